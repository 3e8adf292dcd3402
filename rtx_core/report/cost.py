"""What a character costs a language model of the Shakespeare pages."""

from collections.abc import Mapping


def applied(size: Mapping) -> int:
    """Layers that run per character: the recurrence runs each twice, for its state and for its output."""
    return size["num_layers"] * (2 if "window" in size else 1)


def mflops(size: Mapping) -> float:
    """Matrix products of a forward pass for one character, on average over a text of the block size."""
    d, seen = size["hidden_size"], (size["block_size"] + 1) / 2
    layers = applied(size) * 2 * (4 * d * d + 2 * d * size["intermediate_size"])
    # a state sees two positions, an output one
    attention = 4 * d * size["num_layers"] * (3 if "window" in size else seen)
    return (layers + attention + 2 * d * size["vocab_size"]) / 1e6
