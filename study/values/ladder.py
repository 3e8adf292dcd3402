"""Names of the ladder, models of a tenth of SST-2 by layers x passes: `ladder_tuned.accuracy('1x1')`."""

from functools import cached_property
from itertools import combinations, permutations

import numpy as np

from rtx_core import records
from rtx_core.experiments.configure import configure
from rtx_core.report.evidence import badge
from rtx_core.report.statistics import accuracy, adjusted, common, difference
from rtx_core.report.values import Gap, Runs, Unmeasured, Value, look_up
from rtx_core.train.config import TrainConfig
from study import paper
from study.plan import LADDER, TENTH, TUNED, TUNING

RUNGS = {256: {name: ("recurrent", settings) for name, settings in LADDER.items() if name != "1x1"}}
RUNGS[384] = {"6x1": ("baseline", {}), "3x2": ("recurrent-wide", {})}  # layers x passes -> (model, settings)


def rung(model: str, **settings: object) -> list[records.Record]:
    """The records of a model on a tenth of SST-2."""
    name = configure("sst2", model, **TENTH | settings).name
    return Runs(paper.records(name=name), name).of(model)


class Ladder:
    """Models of one width and several layers and passes on the seeds that all have, which are five."""

    def __init__(self):
        found = {(width, r): rung(m, **s) for width, rungs in RUNGS.items() for r, (m, s) in rungs.items()}
        seeds = common(*found.values())
        if len(seeds) < 5:
            raise Unmeasured(f"The models of the ladder have {len(seeds)} seeds in common; run them on five.")
        self.runs = dict(zip(found, zip(*seeds)))
        pairs = [(a, b) for a, b in combinations(self.runs, 2) if a[0] == b[0]]
        family = adjusted([difference(self.runs[a], self.runs[b]) for a, b in pairs])
        self.differences = dict(zip(pairs, family))

    def differ(self, width: int, first: str, second: str) -> bool:
        """Whether two models differ significantly, adjusted for all pairs of one width."""
        return bool(self.differences[(width, first), (width, second)].sign)

    def accuracies(self, width: int, *without: str) -> list[float]:
        some = (runs for (wide, r), runs in self.runs.items() if wide == width and r not in without)
        return [float(np.mean([record["test"]["accuracy"] for record in runs])) for runs in some]

    @property
    def tuned(self) -> list[float]:
        """Of each model of width 256 that was tuned, what its own rate adds to its accuracy."""
        return [Tuned().gain(r) for r in TUNED if r in RUNGS[256]]


class Tuned:
    """The models of width 256 at the rate that has the lowest validation loss with seed 0,
    on the seeds that all have."""

    def __init__(self):
        rates = (TrainConfig().learning_rate, *TUNING)
        self.tried = {
            name: {rate: rung("recurrent", **LADDER[name], learning_rate=rate) for rate in rates} for name in TUNED
        }
        self.rates = {name: min(rates, key=lambda r: loss(rates[r][0])) for name, rates in self.tried.items()}
        found = [self.tried[name][rate] for name, rate in self.rates.items()]
        self.runs = dict(zip(TUNED, zip(*common(*found))))
        self.badge = badge(list(self.runs.values()))
        self.words = look_up("bag_of_words.sst2_10pct.accuracy")

    def accuracy(self, name: str, rate: float | None = None) -> Value:
        """Of a model at its own rate, or at one that was tried."""
        records = self.tried[name][rate] if rate else self.runs[name]
        return Value(*accuracy(records), badge(records))

    def accuracies(self) -> list[float]:
        return [self.accuracy(name) for name in TUNED]

    def peak(self, name: str) -> float:
        """The highest validation accuracy of a run at the model's own rate, in the mean over seeds."""
        return float(np.mean([highest(run) for run in self.runs[name]]))

    def peak_at_any(self, name: str) -> float:
        """The highest validation accuracy with seed 0 at any of the rates."""
        return max(highest(found[0]) for found in self.tried[name].values())

    def spread(self, name: str) -> float:
        """Between the seeds' highest and lowest test accuracy at the model's own rate."""
        return float(np.ptp([run["test"]["accuracy"] for run in self.runs[name]]))

    def tested_first(self, *names: str) -> int:
        """How many runs of these models are tested after their first epoch."""
        runs = [run for name in names for run in self.runs[name]]
        return sum(run["selected"]["step"] == run["history"][0]["step"] for run in runs)

    def gain(self, name: str) -> float:
        """What its own rate adds to a model's accuracy, over the seeds that have both."""
        pairs = common(self.runs[name], self.tried[name][TrainConfig().learning_rate])
        return float(np.mean([mine["test"]["accuracy"] - usual["test"]["accuracy"] for mine, usual in pairs]))

    def gains(self) -> list[float]:
        return [self.gain(name) for name in TUNED]

    @cached_property
    def differences(self) -> dict[tuple[str, str], Gap]:
        """Of all pairs, first minus second, adjusted for their number, which both orders leave as it is."""
        pairs = list(permutations(TUNED, 2))
        family = adjusted([difference(self.runs[a], self.runs[b]) for a, b in pairs])
        return {pair: Gap(found, self.badge) for pair, found in zip(pairs, family)}

    def ahead(self, first: str, second: str) -> bool:
        """Whether the first is significantly ahead, which five seeds decide."""
        if self.badge.seeds < 5:
            raise Unmeasured(f"The tuned models have {self.badge.seeds} seeds in common; run them on five.")
        return self.differences[first, second].sign > 0

    def differ(self, first: str, second: str) -> bool:
        return self.ahead(first, second) or self.ahead(second, first)


def loss(record: records.Record) -> float:
    """On the validation texts, of the checkpoint that is tested."""
    return record["selected"]["validation_loss"]


def highest(record: records.Record) -> float:
    """The best validation accuracy of a run."""
    return max(row["validation_accuracy"] for row in record["history"])


VALUES = {"ladder": Ladder, "ladder_tuned": Tuned}
