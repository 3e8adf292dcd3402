"""What decoders cost in memory and time (`benchmarks.loops`)."""

from collections.abc import Mapping

CONTEXT = 512  # tokens read before the one that is timed


def token_ms(costs: Mapping, model: str, cache: str = "all", context: int = CONTEXT) -> float:
    """The median time of one more token."""
    rows = [row for row in costs["decoding"] if (row["model"], row["cache"], row["context"]) == (model, cache, context)]
    return rows[0]["median_ms"]


def wide_token_ms(costs: Mapping, model: str, width: int) -> float:
    """The same by width, from a turn of several tokens, after which a processor's cache holds the weights that fit."""
    row = _by_width(costs, model, width)
    return row["median_ms"] / row["tokens"]


def weight_bytes(costs: Mapping, model: str, width: int) -> int:
    """Of the layers, in 32 bits."""
    return _by_width(costs, model, width)["weight_bytes"]


def _by_width(costs: Mapping, model: str, width: int) -> Mapping:
    return next(row for row in costs["decoding_by_width"] if (row["model"], row["width"]) == (model, width))


def kept_kib(costs: Mapping, model: str, way: str = "kept") -> float:
    """What a training step keeps for its gradients, in KiB a token."""
    return costs["training"][model][way]["bytes_per_token"] / 1024


def recompute_time(costs: Mapping, model: str) -> float:
    """How many times as long a step takes whose layer applications are computed again."""
    ways = costs["training"][model]
    return ways["recomputed"]["median_ms"] / ways["kept"]["median_ms"]
