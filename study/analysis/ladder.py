"""Classifiers of several layers and passes: their differences at one learning rate, and each at its own."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from statistics import mean
from types import SimpleNamespace
from typing import Any

from rtx_core.reads import remembered
from rtx_core.records import Record
from rtx_core.report.evidence import badge
from rtx_core.report.rates import at_best_rate, best_rate
from rtx_core.report.statistics import accuracy, adjusted, common, difference
from rtx_core.report.values import Gap, Unmeasured, Value
from study.analysis.classifiers import missed


class Ladder:
    """Models by layers x passes, or by (width, layers x passes), on the seeds that all have."""

    def __init__(self, runs: Mapping[Any, Sequence[Record]]):
        seeds = common(*runs.values())
        self.runs = {name: [run[place] for run in seeds] for place, name in enumerate(runs)}

    @remembered
    def differences(self) -> dict[tuple, Gap]:
        """Of all pairs of one width, first minus second, adjusted for their number (both orders leave it as it is)."""
        evidence = badge(list(self.runs.values()))
        pairs = [(a, b) for a, b in permutations(self.runs, 2) if isinstance(a, str) or a[0] == b[0]]
        family = adjusted([difference(self.runs[a], self.runs[b]) for a, b in pairs])
        return {pair: Gap(one, evidence) for pair, one in zip(pairs, family)}

    def accuracy(self, name: str | tuple) -> Value:
        if not self.runs[name]:
            raise Unmeasured(f"There is no seed that {name} shares with all models; run them first.")
        return Value(*accuracy(self.runs[name]), badge(self.runs[name]))

    def accuracies(self, width: int | None = None, *without: str) -> list[Value]:
        """Of all models, or of those of one width."""
        places = [place for place in self.runs if width is None or (place[0] == width and place[1] not in without)]
        return [self.accuracy(place) for place in places]


class Tuned(Ladder):
    """Each model at its best rate; `tried` holds its runs by rate, the study's own rate first."""

    def __init__(self, tried: Mapping[str, Mapping[float, Sequence[Record]]]):
        self.tried = tried
        super().__init__({name: at_best_rate(self.at_all_rates(name)) for name in tried})

    def at_all_rates(self, name: str) -> list[Record]:
        return [run for runs in self.tried[name].values() for run in runs]

    def rate(self, name: str) -> float | None:
        return best_rate(self.at_all_rates(name))

    def at_usual_rate(self, name: str) -> Sequence[Record]:
        return next(iter(self.tried[name].values()))

    def gain(self, name: str) -> float:
        """What its own rate adds to a model's accuracy, over the seeds that have both."""
        pairs = common(self.runs[name], self.at_usual_rate(name))
        return mean(tuned["test"]["accuracy"] - untuned["test"]["accuracy"] for tuned, untuned in pairs)

    def ahead(self, first: str, second: str) -> bool:
        return self.differences[first, second].sign > 0


def validated_more_often(often: Record, after_epochs: Record) -> SimpleNamespace:
    """Of a run that is validated every few steps, beside the same one that is after each epoch: the steps and the
    points of test accuracy between the weights that are chosen, and how far validation accuracy rises after them."""
    steps = often["selected"]["step"] - after_epochs["selected"]["step"]
    points = 100 * (often["test"]["accuracy"] - after_epochs["test"]["accuracy"])
    return SimpleNamespace(steps=steps, points=points, rise=missed([often])[0])
