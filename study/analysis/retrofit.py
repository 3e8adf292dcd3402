"""Stacks turned into loops (`study.measurements.retrofit`)."""

from collections.abc import Iterable
from statistics import mean

from rtx_core.records import Record

SHARED = {  # middle layers of a stack that became a loop
    "two layers": "two layers run twice, each the mean of two",
    "third layer": "one layer run four times, a copy of the third",
    "mean": "one layer run four times, the mean of four",
}


def loss(measured: Iterable[Record], model: str, tenth: bool = True, seed: int | None = None) -> float:
    """The mean test loss (nats) of a variant over seeds, or that of one: at once, or after a tenth of the steps at the
    best of its rates for each seed."""
    losses = []
    for one in measured:
        steps = one["trained_steps"] // 10 if tenth else 0
        rows = [row["loss"] for row in one["rows"] if (row["model"], row["steps"]) == (model, steps)]
        if seed in (None, one["seed"]):
            losses.append(min(rows))
    return mean(losses)


def best(measured: Iterable[Record], tenth: bool = True) -> float:
    """The mean test loss of the best of the loops."""
    measured = list(measured)
    return min(loss(measured, loop, tenth) for loop in SHARED)


def anew(measured: Iterable[Record]) -> float:
    """The mean test loss of a loop trained anew for as many steps as stack and loop had together."""
    return mean(one["rows"][-1]["loss"] for one in measured)
