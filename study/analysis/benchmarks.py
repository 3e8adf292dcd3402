"""Medians of the times that `benchmarks` have recorded, in milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem


def median(benchmark: Mapping, *place: str) -> float:
    """The median at a place of a benchmark."""
    return reduce(getitem, place, benchmark)["median_ms"]


def step_ms(step: Mapping, model: str, way: str = "this project", texts: str = "steps") -> float:
    """A training step on SST-2, or on `long_texts`."""
    return median(step, texts, f"{model}, {way}")


def bf16_gain(step: Mapping, model: str, texts: str = "steps") -> float:
    """How many times as fast such a step is with 16-bit products."""
    return step_ms(step, model, texts=texts) / step_ms(step, model, "this project, bf16", texts)


def kind_shares(step: Mapping) -> dict[str, dict[str, float]]:
    """Model -> kind of operation -> what it takes of a step on SST-2."""
    return {
        model: {kind: ms / sum(kinds.values()) for kind, ms in kinds.items()}
        for model, kinds in step.get("by_kind", {}).items()
    }


def floor_share(step: Mapping, model: str) -> float:
    """Of a step on SST-2, what matrix products and AdamW alone take at their best speed."""
    return step["floor"][model]["ms"] / step_ms(step, model)


def story_gain(decoder: Mapping) -> float:
    """How many times as fast a training step on stories is with 16-bit products."""
    model = decoder["models"]["control"]
    return median(model, "stories, 32 bits", "ours") / median(model, "stories, bf16 products", "ours")


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
    step, control = (median(decoder, "models", m, "stories, bf16 products", "ours") for m in (model, "control"))
    return step / control


def story_memory(decoder: Mapping, model: str) -> float:
    """What such a step adds to memory, over what the control's adds."""
    return decoder["memory_mib"][model] / decoder["memory_mib"]["control"]


@dataclass(frozen=True)
class GraphStep:
    """A training step in milliseconds: as written, as a CUDA graph, and its kernels alone; and how many these are."""

    written: float
    graph: float
    kernels: float
    launches: float


def graph_steps(graphs: Mapping) -> dict[str, GraphStep]:
    """Model -> its step; each time was taken over several steps."""
    steps = {}
    for name, model in graphs["models"].items():
        written, graph = (model[way]["median_ms"] / model[way]["steps"] for way in ("as written", "graph"))
        steps[name] = GraphStep(written, graph, model["kernels_ms"], model["kernels"])
    return steps


def kernel_ms(ways: Mapping) -> float:
    """What matrix products and attention take of a step with compiled layers."""
    return ways["by_kind"]["matrix products"] + ways["by_kind"]["attention"]


def kernel_shares(layers: Mapping) -> list[float]:
    """The same over the whole step, by model."""
    return [kernel_ms(ways) / sum(ways["by_kind"].values()) for ways in layers["models"].values()]


def layer_gains(layers: Mapping) -> list[float]:
    """How many times as long a step takes as written as with compiled layers, by model."""
    ways = layers["models"].values()
    return [way["as written"]["median_ms"] / way["layers compiled"]["median_ms"] for way in ways]
