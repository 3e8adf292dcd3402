"""Names of the page *Computation, not memory*: `facts.bits('1x4')`, `facts.gain('1x4', '1x1')`, and odds on k-hop."""

from collections.abc import Callable
from functools import cache

import numpy as np

from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Runs, Value, look_up
from study import paper
from study.phi import pooled_phi
from study.values.common import functions, test_loss
from study.values.looping import Hops


class Facts(Runs):
    """Runs on so many random facts; what a model of loss L nats holds is facts · (log2 values − L / ln 2) bits."""

    def __init__(self, name: str):
        super().__init__(paper.records(name=name), name)

    @property
    def facts(self) -> int:
        return self.records[0]["config"]["data"]["facts"]

    @property
    def models(self) -> list[str]:
        return sorted({record["model"] for record in self.records})

    @property
    def exposures(self) -> int:
        return self.records[0]["config"]["train"]["epochs"]

    def each(self, model: str) -> list[float]:
        """Bits that each seed stores."""
        whole = np.log2(self.records[0]["config"]["data"]["values"])  # of a fact
        return [self.facts * float(whole - record["test"]["loss"] / np.log(2)) for record in self.of(model)]

    def bits(self, model: str) -> float:
        return float(np.mean(self.each(model)))

    def known(self, model: str) -> float:
        """The share of facts that are answered rightly, in the mean over seeds."""
        return float(np.mean([record["test"]["accuracy"] for record in self.of(model)]))

    def gain(self, model: str, base: str) -> float:
        """How many times what `base` stores."""
        return self.bits(model) / self.bits(base)


def logit(record, hops: int = 4) -> float:
    """log(error / (1 − error)); half an answer is added to either side, so that no error stays finite."""
    part = record["test"]["parts"][hops]
    wrong = part["error"] * part["answers"]
    return float(np.log((wrong + 0.5) / (part["answers"] - wrong + 0.5)))


class OnLogits:
    """Two k-hop models on the logit of their error at four hops, paired over seeds: first − second."""

    def __init__(self, first: list, second: list):
        self.by_seed = [logit(a) - logit(b) for a, b in common(first, second)]
        self.mean, self.low, self.high = mean_interval(self.by_seed)

    @property
    def odds(self) -> tuple[float, float, float]:
        """The first's odds of a wrong answer over those of the second, (ratio, low, high)."""
        return tuple(float(np.exp(value)) for value in (self.mean, self.low, self.high))

    @property
    def separated(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def lower(self) -> int:
        """In how many seeds the first errs less."""
        return sum(value < 0 for value in self.by_seed)

    @property
    def seeds(self) -> int:
        return len(self.by_seed)


def on_logits(first: str, second: str) -> OnLogits:
    return OnLogits(*map(look_up("khop").of, (first, second)))


class AtOwnRates:
    """k-hop models, each at the best of four rates by mean validation loss, over the seeds that it has at all rates."""

    def __init__(self):
        self.at = {0.002: look_up("khop")} | {rate: Hops(f"khop-learningrate{rate}") for rate in (0.001, 0.004, 0.008)}
        self.best = cache(self._best)  # model -> rate, runs

    def _best(self, model: str) -> tuple[float, list]:
        runs = dict(zip(self.at, zip(*common(*(found.of(model) for found in self.at.values())))))
        losses = {rate: np.mean([run["selected"]["validation_loss"] for run in runs[rate]]) for rate in runs}
        rate = min(losses, key=losses.get)
        return rate, list(runs[rate])

    def rate(self, model: str) -> float:
        return self.best(model)[0]

    def errors(self, model: str) -> list[float]:
        """At four hops, of each seed."""
        return [run["test"]["parts"][4]["error"] for run in self.best(model)[1]]

    def __call__(self, first: str, second: str) -> OnLogits:
        return OnLogits(self.best(first)[1], self.best(second)[1])


def facts_worth(model: str) -> Value:
    """φ of a loop by its loss on 49,152 facts."""
    return worth(look_up("facts"), model, ("1x1", "2x1", "4x1"), test_loss)


def pointers_worth(model: str) -> Value:
    """φ of a loop by the logit of its error at four hops."""
    return worth(look_up("khop"), model, ("1x1", "2x1", "3x1", "4x1"), logit)


def worth(found: Runs, model: str, stacks: tuple[str, ...], score: Callable) -> Value:
    """φ beside stacks of layers of one width, whose sizes are counted in layers, on the seeds that all have."""
    runs = common(*(found.of(name) for name in (model, *stacks)))
    looped, *standard = np.transpose([[score(record) for record in records] for records in runs])
    size = runs[0][0]["config"]["model"]
    sizes = [record["config"]["model"]["num_layers"] for record in runs[0][1:]]
    return Value(*pooled_phi(looped, size["num_layers"], size["num_passes"], sizes, standard))


VALUES = {
    "facts": lambda: Facts("facts-facts49152"),
    "facts_few": lambda: Facts("facts"),
    "facts_long": lambda: Facts("facts-epochs240"),
    "at_own_rates": AtOwnRates,
}
VALUES |= functions(facts_worth, pointers_worth, on_logits)
