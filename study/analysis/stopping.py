"""Rules that stop a trained loop (`study.measurements.stopping`)."""

from collections.abc import Iterable
from statistics import mean

from rtx_core.records import Record

TRAINED = {  # how one layer was trained -> its experiment and model
    "always four": ("khop", "1x4"),
    "random": ("khop-steps9000", "1x6-random"),
    "random, 4,000 steps": ("khop", "1x6-random"),
    "gate": ("khop-halting0.1-steps4000", "1x6"),
}


def of(measured: Iterable[Record], training: str) -> list[Record]:
    return [one for one in measured if (one["of"], one["model"]) == TRAINED[training]]


def rules(measured: Iterable[Record], training: str, kind: str) -> list[str]:
    """The names of the rules of a kind, such as "confident", that were tried."""
    rows = [one["rules"] for one in of(measured, training)][:1]
    return [row["rule"] for each in rows for row in each if row["rule"].startswith(kind)]


def mean_of(measured: Iterable[Record], training: str, rule: str, hops: int) -> tuple[float, float]:
    """(passes spent, share of wrong answers) of a rule at so many hops, on average over seeds."""
    rows = [row for one in of(measured, training) for row in one["rules"] if row["rule"] == rule]
    return mean(row["passes"][hops] for row in rows), mean(row["error"][hops] for row in rows)


def nearest(measured: Iterable[Record], training: str, kind: str, hops: int, passes: float) -> tuple[float, float]:
    """`mean_of` the rule of a kind that spends about so many passes at so many hops."""
    measured = list(measured)
    points = [mean_of(measured, training, rule, hops) for rule in rules(measured, training, kind)]
    return min(points, key=lambda point: abs(point[0] - passes))
