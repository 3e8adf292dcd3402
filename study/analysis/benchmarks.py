"""Medians of the times that `benchmarks` have recorded, in milliseconds."""

from collections.abc import Mapping


def by_length(recurrence: Mapping, part: str, model: str) -> list[float]:
    """Of the recurrence along the text (`kausik`), or of a standard model beside it, at each length: of training
    (`by_length`), or of one more character (`next_character`)."""
    return [row["median_ms"] for row in recurrence[part] if row["who"] == model]


def times_as_slow(recurrence: Mapping, model: str) -> list[float]:
    """The time of the recurrence over that of a standard model, forward and backward, at each length."""
    pairs = zip(by_length(recurrence, "by_length", "kausik"), by_length(recurrence, "by_length", model))
    return [ours / standard for ours, standard in pairs]
