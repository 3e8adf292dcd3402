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


def story_cost(decoder: Mapping, model: str) -> float:
    """A training step on stories over the control's."""
    step, control = (decoder["models"][m]["stories, bf16 products"]["ours"]["median_ms"] for m in (model, "control"))
    return step / control


def story_memory(decoder: Mapping, model: str) -> float:
    """What such a step adds to memory, over what the control's adds."""
    return decoder["memory_mib"][model] / decoder["memory_mib"]["control"]
