"""Learning rates picked by validation, of one model's runs at several rates."""

from collections.abc import Collection, Iterable
from statistics import mean

from rtx_core.reads import remember
from rtx_core.report.evidence import by_model
from rtx_core.report.style import ordered
from rtx_core.report.values import Runs, Unmeasured


def learning_rate(run) -> float:
    return run["config"]["train"]["learning_rate"]


def by_rate(runs: Iterable) -> dict[float, list]:
    """Learning rate, ascending -> the runs at it."""
    runs = list(runs)
    return {rate: [run for run in runs if learning_rate(run) == rate] for rate in sorted(set(map(learning_rate, runs)))}


def validation_losses(runs: Iterable) -> dict[float, float]:
    """Learning rate -> validation loss, the mean over the seeds that all rates have, or over all if they share none."""
    rates = by_rate(runs)
    shared = set.intersection(*({run["seed"] for run in each} for each in rates.values())) if rates else set()
    return {
        rate: mean(run["selected"]["validation_loss"] for run in each if not shared or run["seed"] in shared)
        for rate, each in rates.items()
    }


def best_rate(runs: Iterable) -> float | None:
    """That of the lowest validation loss (`validation_losses`); None where there are no runs."""
    losses = validation_losses(runs)
    return min(losses, key=losses.__getitem__, default=None)


def at_best_rate(runs: Iterable, picked_on: Collection[int] = ()) -> list:
    """The runs at the best rate; where it is `picked_on` some seeds, which alone count then, those of the others."""
    runs = list(runs)
    best = best_rate(run for run in runs if not picked_on or run["seed"] in picked_on)
    return [run for run in runs if learning_rate(run) == best and run["seed"] not in picked_on]


class AtOwnRates:
    """Models, each at the best of several learning rates, for which it needs runs at all of them: `runs` are those of
    the seeds that its rate was `picked_on`, as far as all rates have them; `new` those of the other seeds at that rate,
    at least so many."""

    def __init__(self, *rates: Runs, picked_on: Collection[int], least: int = 1):
        self.rates, self.picked_on, self.least = rates, picked_on, least
        self.runs, self.new = remember(self._runs), remember(self._new)

    @property
    def models(self) -> list[str]:
        """Those that have runs at all rates, and so many new seeds at their own."""
        tried = ordered(set.intersection(*(set(by_model(rate.records)) for rate in self.rates)))
        return [model for model in tried if len(at_best_rate(self.of(model), self.picked_on)) >= self.least]

    def of(self, model: str) -> list:
        """At all rates."""
        return [run for rate in self.rates for run in rate.of(model)]

    def rate(self, model: str) -> float:
        return learning_rate(self.runs(model)[0])

    def later(self, model: str) -> list:
        """The runs at its rate of all other seeds, however few."""
        return at_best_rate(self.of(model), self.picked_on)

    def _runs(self, model: str) -> list:
        shared = set(self.picked_on).intersection(*({run["seed"] for run in rate.of(model)} for rate in self.rates))
        return at_best_rate(run for run in self.of(model) if run["seed"] in shared)

    def _new(self, model: str) -> list:
        runs, called = at_best_rate(self.of(model), self.picked_on), self.rates[0].called
        if len(runs) < self.least:
            count = f"There are {len(runs)} of {self.least} seeds of {called}, {model}"
            raise Unmeasured(f"{count} that did not pick its rate; run them first.")
        return runs
