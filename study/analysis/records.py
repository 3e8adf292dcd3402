"""What many pages read of records."""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, variance

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import badge
from rtx_core.report.rates import learning_rate
from rtx_core.report.statistics import scipy
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


def share_interval(once: Sequence[float], twice: Sequence[float], two: Sequence[float]) -> tuple[float, float]:
    """95 % of `pass_share` of mean scores, by Fieller's theorem for groups of unequal variance: the shares s for which
    (once − twice) − s (once − two) is not significantly different from zero.  Without bounds where the gain of the
    second layer is itself not significant."""
    gain, whole = mean(once) - mean(twice), mean(once) - mean(two)
    first, second, third = (variance(scores) / len(scores) for scores in (once, twice, two))
    share = gain / whole
    terms = ((1 - share) ** 2 * first, second, share**2 * third)
    degrees = sum(terms) ** 2 / sum(term**2 / (len(x) - 1) for term, x in zip(terms, (once, twice, two)))
    t = float(scipy.stats.t.ppf(0.975, degrees)) ** 2
    a, b, c = whole**2 - t * (first + third), gain * whole - t * first, gain**2 - t * (first + second)
    if a <= 0:
        return -math.inf, math.inf
    root = math.sqrt(b**2 - a * c)
    return (b - root) / a, (b + root) / a


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
