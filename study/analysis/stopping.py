"""Rules that stop a trained loop (`study.measurements.stopping`)."""

from collections.abc import Iterable
from statistics import mean

from rtx_core.records import Record


def of(measured: Iterable[Record], model: str) -> list[Record]:
    return [one for one in measured if one["model"] == model]


def mean_of(measured: Iterable[Record], model: str, rule: str, hops: int) -> tuple[float, float]:
    """(passes spent, share of wrong answers) of a rule at so many hops, on average over seeds."""
    rows = [row for one in of(measured, model) for row in one["rules"] if row["rule"] == rule]
    return mean(row["passes"][hops] for row in rows), mean(row["error"][hops] for row in rows)
