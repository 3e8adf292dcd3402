"""Values of the page on less data, depth and rates: models of a tenth of SST-2, of the ladder by layers × passes:
`ladder_tuned.accuracy('1x1')`."""

from functools import cached_property
from itertools import permutations
from statistics import mean

from rtx_core import records
from rtx_core.experiments.configure import configure
from rtx_core.report.evidence import badge
from rtx_core.report.statistics import accuracy, adjusted, common, difference
from rtx_core.report.values import Gap, Runs, Space, Unmeasured, Value, look_up
from rtx_core.train.config import TrainConfig
from study import paper
from study.plan import CURVE, LADDER, TENTH, TUNED, TUNING
from study.values.common import chosen, functions, peaks

RUNGS = {
    (256, name): ("recurrent", s) for name, s in LADDER.items() if name != "1x1"
}  # (width, rung) -> model, settings
RUNGS |= {(384, "6x1"): ("baseline", {}), (384, "3x2"): ("recurrent-wide", {})}
DEPTHS = {"once": (256, "3x1"), "twice": (256, "3x2"), "thrice": (256, "3x3"), "six": (256, "6x1")}
DEPTHS |= {"wide": (384, "3x2"), "baseline": (384, "6x1")}
USUAL = TrainConfig().learning_rate


def rung(model: str, **settings: object) -> list[records.Record]:
    """The records of a model on a tenth of SST-2."""
    name = configure("sst2", model, **TENTH | settings).name
    return Runs(paper.records(name=name), name).of(model)


def finer(model: str) -> Space:
    """What validating at every 50 steps changes with one seed: the steps and the points of test accuracy between the
    weights that are chosen, and the points by which validation accuracy rises after them."""
    [often], after_epochs = rung(model, **CURVE), rung(model)[0]
    chosen = next(row for row in often["history"] if row["step"] == often["selected"]["step"])
    rise = max(row["validation_accuracy"] for row in often["history"]) - chosen["validation_accuracy"]
    steps = often["selected"]["step"] - after_epochs["selected"]["step"]
    points = 100 * (often["test"]["accuracy"] - after_epochs["test"]["accuracy"])
    return Space({"steps": steps, "points": points, "rise": 100 * rise})


def of_depths() -> Space:
    """Runs at the study's rate, by name, and all of them."""
    found = {name: rung(RUNGS[place][0], **RUNGS[place][1]) for name, place in DEPTHS.items()}
    return Space(found | {"all": sum(found.values(), [])})


def depth() -> Space:
    """Paired differences of these, first minus second, in points: `depth.twice_once`."""
    pairs = [("twice", "once"), ("thrice", "twice"), ("six", "twice"), ("baseline", "wide")]
    found = {f"{a}_{b}": [getattr(of_depths(), name) for name in (a, b)] for a, b in pairs}
    return Space({name: Gap(difference(*pair), badge(pair)) for name, pair in found.items()})


def tested_after(epoch: int) -> list[float]:
    """Test accuracies of those of these runs whose weights after this epoch are tested."""
    return [run["test"]["accuracy"] for run in of_depths().all if round(chosen(run)["epoch"]) == epoch]


class Ladder:
    """Models of several layers and passes on the seeds that all have, which are five."""

    def __init__(self, found: dict):
        self.runs = {name: list(runs) for name, runs in zip(found, zip(*common(*found.values())))}

    @cached_property
    def differences(self) -> dict[tuple, Gap]:
        """Of all pairs of one width, first minus second, adjusted for their number (both orders leave it as it is)."""
        evidence = badge(list(self.runs.values()))
        if evidence.seeds < 5:
            raise Unmeasured(f"The models of the ladder have {evidence.seeds} seeds in common; run them on five.")
        pairs = [(a, b) for a, b in permutations(self.runs, 2) if isinstance(a, str) or a[0] == b[0]]
        family = adjusted([difference(self.runs[a], self.runs[b]) for a, b in pairs])
        return {pair: Gap(found, evidence) for pair, found in zip(pairs, family)}


class Usual(Ladder):
    """At the study's rate, by (width, rung)."""

    def __init__(self):
        super().__init__({place: rung(model, **settings) for place, (model, settings) in RUNGS.items()})

    def differ(self, width: int, first: str, second: str) -> bool:
        return self.differences[(width, first), (width, second)].sign != 0

    def accuracies(self, width: int, *without: str) -> list[float]:
        return [accuracy(runs)[0] for (wide, r), runs in self.runs.items() if wide == width and r not in without]

    @property
    def tuned(self) -> list[float]:
        """Of each model that was tuned, but one layer, what its own rate adds to its accuracy."""
        return [look_up("ladder_tuned").gain(r) for r in TUNED if (256, r) in RUNGS]


class Tuned(Ladder):
    """At width 256, each at the rate of the lowest validation loss with seed 0."""

    def __init__(self):
        self.tried = {
            r: {rate: rung("recurrent", **LADDER[r], learning_rate=rate) for rate in (USUAL, *TUNING)} for r in TUNED
        }
        super().__init__(
            {r: min(t.values(), key=lambda runs: chosen(runs[0])["validation_loss"]) for r, t in self.tried.items()}
        )
        self.words = look_up("bag_of_words.sst2_10pct.accuracy")

    def accuracy(self, name: str) -> Value:
        return Value(*accuracy(self.runs[name]), badge(self.runs[name]))

    def accuracies(self) -> list[float]:
        return [self.accuracy(name) for name in TUNED]

    def peak(self, name: str, rate: float) -> float:
        """The highest validation accuracy at a rate that was tried, with seed 0."""
        return peaks(self.tried[name][rate][:1])[0]

    def gain(self, name: str) -> float:
        """What its own rate adds to a model's accuracy, over the seeds that have both."""
        pairs = common(self.runs[name], self.tried[name][USUAL])
        return mean(mine["test"]["accuracy"] - usual["test"]["accuracy"] for mine, usual in pairs)

    def gains(self) -> list[float]:
        return [self.gain(name) for name in TUNED]

    def ahead(self, first: str, second: str) -> bool:
        return self.differences[first, second].sign > 0

    def differ(self, first: str, second: str) -> bool:
        return self.differences[first, second].sign != 0


VALUES = {"depth": depth, "depths": of_depths, "ladder": Usual, "ladder_tuned": Tuned} | functions(tested_after, finer)
