"""Values of the page on less data, depth and rates: models of a tenth of SST-2, of the ladder by layers × passes:
`ladder_tuned.accuracy('1x1')`."""

from functools import cached_property
from itertools import permutations
from statistics import mean

from rtx_core import records
from rtx_core.experiments.configure import configure
from rtx_core.report.evidence import badge
from rtx_core.report.statistics import accuracy, adjusted, common, difference
from rtx_core.report.values import Gap, Runs, Space, Value
from rtx_core.train.config import TrainConfig
from study import paper
from study.analysis.classifiers import chosen, missed
from study.plan import CURVE, LADDER, TENTH, TUNED, TUNING
from study.values.common import functions

# (width, layers × passes) -> model, settings
RUNGS = {(256, name): ("recurrent", settings) for name, settings in LADDER.items() if name != "1x1"}
RUNGS |= {(384, "6x1"): ("baseline", {}), (384, "3x2"): ("recurrent-wide", {})}
USUAL = TrainConfig().learning_rate


def rung(model: str, **settings: object) -> list[records.Record]:
    """The records of a model on a tenth of SST-2."""
    name = configure("sst2", model, **TENTH | settings).name
    return Runs(paper.records(name=name), name).of(model)


def finer(model: str) -> Space:
    """What validating at every 50 steps changes with one seed: the steps and the points of test accuracy between the
    weights that are chosen, and the points by which validation accuracy rises after them."""
    [often], after_epochs = rung(model, **CURVE), rung(model)[0]
    steps = often["selected"]["step"] - after_epochs["selected"]["step"]
    points = 100 * (often["test"]["accuracy"] - after_epochs["test"]["accuracy"])
    return Space({"steps": steps, "points": points, "rise": missed([often])[0]})


class Ladder:
    """Models of several layers and passes on the seeds that all have."""

    def __init__(self, found: dict):
        self.runs = {name: list(runs) for name, runs in zip(found, zip(*common(*found.values())))}

    @cached_property
    def differences(self) -> dict[tuple, Gap]:
        """Of all pairs of one width, first minus second, adjusted for their number (both orders leave it as it is)."""
        evidence = badge(list(self.runs.values()))
        pairs = [(a, b) for a, b in permutations(self.runs, 2) if isinstance(a, str) or a[0] == b[0]]
        family = adjusted([difference(self.runs[a], self.runs[b]) for a, b in pairs])
        return {pair: Gap(found, evidence) for pair, found in zip(pairs, family)}

    def accuracy(self, name: str | tuple) -> Value:
        return Value(*accuracy(self.runs[name]), badge(self.runs[name]))


class Usual(Ladder):
    """At the study's rate, by (width, rung)."""

    def __init__(self):
        super().__init__({place: rung(model, **settings) for place, (model, settings) in RUNGS.items()})

    def accuracies(self, width: int, *without: str) -> list[float]:
        return [self.accuracy(place) for place in self.runs if place[0] == width and place[1] not in without]


class Tuned(Ladder):
    """At width 256, each at the rate of the lowest validation loss with seed 0."""

    def __init__(self):
        rates = (USUAL, *TUNING)
        self.tried = {r: {rate: rung("recurrent", **LADDER[r], learning_rate=rate) for rate in rates} for r in TUNED}
        best = (min(each.values(), key=lambda runs: chosen(runs[0])["validation_loss"]) for each in self.tried.values())
        super().__init__(dict(zip(self.tried, best)))

    def accuracies(self) -> list[float]:
        return [self.accuracy(name) for name in TUNED]

    def gain(self, name: str) -> float:
        """What its own rate adds to a model's accuracy, over the seeds that have both."""
        pairs = common(self.runs[name], self.tried[name][USUAL])
        return mean(mine["test"]["accuracy"] - usual["test"]["accuracy"] for mine, usual in pairs)

    def ahead(self, first: str, second: str) -> bool:
        return self.differences[first, second].sign > 0


VALUES = {"ladder": Usual, "ladder_tuned": Tuned} | functions(finer)
