"""What many pages read of records."""

from collections.abc import Callable, Iterable, Sequence
from statistics import mean

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import badge
from rtx_core.report.rates import learning_rate
from study.analysis.wording import seeds


def test_loss(record: Record) -> float:
    """In nats."""
    return record["test"]["loss"]


def mean_loss(records: Iterable[Record]) -> float:
    return mean(map(test_loss, records))


def multiply_adds(record: Record) -> int:
    """FLOPs of a token with the passes of training, the output layer included."""
    return record["extra"]["flops_per_token"][record["extra"]["trained_passes"] - 1]


def at_rate(records: Iterable[Record], rate: float) -> list[Record]:
    """The runs at one learning rate."""
    return [record for record in records if learning_rate(record) == rate]


def seeds_of(records: Iterable[Record]) -> list[int]:
    return sorted({record["seed"] for record in records})


def seeds_in_words(records: Iterable[Record]) -> str:
    """How many seeds all models of these runs have: "two seeds"."""
    return seeds(badge(list(records)).seeds)


def pass_share(score: Callable[[str], float], suffix: str = "") -> float:
    """What a second pass of one layer gains of what a second layer gains, of a mean score by model."""
    once, twice, two = (score(f"{model}{suffix}") for model in ("1x1", "1x2", "2x1"))
    return (once - twice) / (once - two)


def gap_closed(
    runs: Sequence[Record],
    shallow: str,
    loop: str,
    stack: str,
    measure: Callable[[Record], float],
    average: Callable = np.median,
) -> list[float]:
    """How far each run of a loop comes from its layers run once, 0, to as many separate layers, 100, on average."""
    losses = {model: [measure(run) for run in runs if run["model"] == model] for model in (shallow, loop, stack)}
    once, own_layers = (float(average(losses[model])) for model in (shallow, stack))
    return [100 * (once - loss) / (once - own_layers) for loss in losses[loop]]
