"""What `benchmarks` have timed, in milliseconds: `step_ms('baseline', 'this project')`."""

from functools import reduce
from operator import getitem

from rtx_core import paths, records
from study.values.common import functions


def benchmark(name: str, machine: str = "cpu") -> dict:
    """What `python -m benchmarks.<name>` recorded on a CPU, on another one with AMX, or on a GPU ("cuda")."""
    return records.read_json(paths.REPOSITORY / "results" / "benchmarks" / f"{name}-{machine}.json")


def timed(name: str, *place: str, machine: str = "cpu") -> float:
    """The median at a place of a benchmark."""
    return reduce(getitem, place, benchmark(name, machine))["median_ms"]


def step_ms(model: str, way: str, texts: str = "steps", machine: str = "cpu") -> float:
    """A training step on SST-2, or on `long_texts`."""
    return timed("training-step", texts, f"{model}, {way}", machine=machine)


def bf16_gain(model: str, texts: str = "steps", machine: str = "cpu") -> float:
    """How many times as fast such a step is with 16-bit products."""
    return step_ms(model, "this project", texts, machine) / step_ms(model, "this project, bf16", texts, machine)


def step_share(model: str, kind: str, machine: str = "cpu") -> float:
    """Of a step on SST-2, what operators of a kind take."""
    took = benchmark("training-step", machine)["by_kind"][model]
    return took[kind] / sum(took.values())


def floor_share(model: str, machine: str = "cpu") -> float:
    """Of a step on SST-2, what matrix products and AdamW alone take at their best speed."""
    return benchmark("training-step", machine)["floor"][model]["ms"] / step_ms(model, "this project", machine=machine)


def story_cost(model: str) -> float:
    """A training step on stories over the control's."""
    step, control = (timed("decoder", "models", m, "stories, bf16 products", "ours") for m in (model, "control"))
    return step / control


def story_memory(model: str) -> float:
    """What such a step adds to memory, over what the control's adds."""
    memory = benchmark("decoder")["memory_mib"]
    return memory[model] / memory["control"]


def by_length(part: str, who: str) -> list[float]:
    """Of the recurrence along the text (`kausik`), or of a standard model beside it, at each length: of training
    (`by_length`), or of one more character (`next_character`)."""
    return [row["median_ms"] for row in benchmark("recurrence")[part] if row["who"] == who]


def times_as_slow(who: str) -> list[float]:
    """The recurrence over a standard model, forward and backward, at each length."""
    return [ours / its for ours, its in zip(by_length("by_length", "kausik"), by_length("by_length", who))]


VALUES = functions(benchmark, timed, step_ms, bf16_gain, step_share, floor_share, story_cost, story_memory)
VALUES |= functions(by_length, times_as_slow)
