"""Names of the page *Computation, not memory*: `facts.bits('1x4')`, `facts.gain('1x4', '1x1')`, and odds on k-hop."""

from collections.abc import Callable
from functools import cache

import numpy as np

from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Runs, Space, Value, look_up
from study import paper
from study.phi import pooled_phi
from study.values.common import functions, test_loss
from study.values.looping import Hops


class Facts(Runs):
    """Runs on so many random facts; what a model of loss L nats holds is facts · (log2 values − L / ln 2) bits."""

    def __init__(self, name: str):
        super().__init__(paper.records(name=name), name)
        self.models = sorted({record["model"] for record in self.records})
        data, train = (self.of("1x1")[0]["config"][part] for part in ("data", "train"))
        self.facts, self.whole, self.exposures = (
            data["facts"],
            np.log2(data["values"]),
            train["epochs"],
        )  # whole: a fact's

    def each(self, model: str) -> list[float]:
        """Bits that each seed stores."""
        return [self.facts * float(self.whole - record["test"]["loss"] / np.log(2)) for record in self.of(model)]

    def bits(self, model: str) -> float:
        return float(np.mean(self.each(model)))

    def gain(self, model: str, base: str) -> float:
        """How many times what `base` stores."""
        return self.bits(model) / self.bits(base)


def logit(record, hops: int = 4) -> float:
    """log(error / (1 − error)); half an answer is added to either side, so that no error stays finite."""
    part = record["test"]["parts"][hops]
    wrong = part["error"] * part["answers"]
    return float(np.log((wrong + 0.5) / (part["answers"] - wrong + 0.5)))


def compared(first: list, second: list) -> Space:
    """Two k-hop models on the logit of their error at four hops, first − second, paired over seeds: mean and
    interval, `odds` of a wrong answer of the first over the second's, and in how many `seeds` it has the `lower`."""
    by_seed = [logit(a) - logit(b) for a, b in common(first, second)]
    mean, low, high = mean_interval(by_seed)
    found = {"mean": mean, "low": low, "high": high, "odds": np.exp((mean, low, high)).tolist()}
    found |= {"separated": low > 0 or high < 0, "lower": sum(value < 0 for value in by_seed), "seeds": len(by_seed)}
    return Space(found)


def on_logits(first: str, second: str) -> Space:
    return compared(*map(look_up("khop").of, (first, second)))


class AtOwnRates:
    """k-hop models, each at the best of four rates by mean validation loss, over the seeds that it has at all rates."""

    def __init__(self):
        self.found = [look_up("khop"), *(Hops(f"khop-learningrate{rate}") for rate in (0.001, 0.004, 0.008))]
        self.runs = cache(self._runs)

    def _runs(self, model: str) -> list:
        at_rates = zip(*common(*(found.of(model) for found in self.found)))
        return list(min(at_rates, key=lambda runs: np.mean([run["selected"]["validation_loss"] for run in runs])))

    def rate(self, model: str) -> float:
        return self.runs(model)[0]["config"]["train"]["learning_rate"]

    def errors(self, model: str) -> list[float]:
        """At four hops, of each seed."""
        return [run["test"]["parts"][4]["error"] for run in self.runs(model)]

    def __call__(self, first: str, second: str) -> Space:
        return compared(self.runs(first), self.runs(second))


def worth(found: Runs, model: str, stacks: tuple[str, ...], score: Callable) -> Value:
    """φ of a loop by a score of its runs, beside stacks of layers of one width, whose sizes are counted in layers, on
    the seeds that all have."""
    runs = common(*(found.of(name) for name in (model, *stacks)))
    looped, *standard = np.transpose([[score(record) for record in records] for records in runs])
    size = runs[0][0]["config"]["model"]
    sizes = [record["config"]["model"]["num_layers"] for record in runs[0][1:]]
    return Value(*pooled_phi(looped, size["num_layers"], size["num_passes"], sizes, standard))


def facts_worth(model: str) -> Value:
    return worth(look_up("facts"), model, ("1x1", "2x1", "4x1"), test_loss)


def pointers_worth(model: str) -> Value:
    return worth(look_up("khop"), model, ("1x1", "2x1", "3x1", "4x1"), logit)


VALUES = {
    "facts": lambda: Facts("facts-facts49152"),
    "facts_long": lambda: Facts("facts-epochs240"),
    "at_own_rates": AtOwnRates,
}
VALUES |= functions(facts_worth, pointers_worth, on_logits)
