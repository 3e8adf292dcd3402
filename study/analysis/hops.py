"""Following pointers, and products in a group: the shares of wrong answers by hops (or factors) and passes."""

from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from types import SimpleNamespace

import numpy as np

from rtx_core.records import Record
from rtx_core.report.rates import AtOwnRates
from rtx_core.report.statistics import common, mean_interval, scipy, unpaired
from rtx_core.report.values import Runs

SOLVED = 0.1  # the error below which a number of hops counts as solved


def wrong(record, hops: int, passes: int | None = None) -> float:
    """The share of wrong answers; `passes` other than the trained number where they are given."""
    part = record["test"]["parts"][hops]
    return part["error"] if passes is None else part["error_by_passes"][passes - 1]


def in_a_row(errors: Iterable[float], below: float = SOLVED) -> int:
    """How many of the first are below a bound."""
    return sum(1 for _ in takewhile(lambda error: error < below, errors))


def factors(record, passes: int | None = None, below: float = SOLVED) -> int:
    """Of products, the length up to which less than a tenth of the answers is wrong."""
    return in_a_row((wrong(record, place, passes) for place in range(len(record["test"]["parts"]))), below)


def solved_by_pass(record) -> list[int]:
    """How many hops a loop solves, counted from one, after each of its trained passes."""
    parts, trained = record["test"]["parts"], record["config"]["model"]["num_passes"]
    return [in_a_row(wrong(record, hops, r) for hops in range(1, len(parts))) for r in range(1, trained + 1)]


class Hops(Runs):
    """Of one k-hop experiment: its models are written layers x passes, `1x4`."""

    def rows(self, model: str, passes: int | None = None) -> np.ndarray:
        """(seeds, hops): shares of wrong answers."""
        return np.array([[wrong(r, hops, passes) for hops in range(len(r["test"]["parts"]))] for r in self.of(model)])

    def errors(self, model: str, hops: int, passes: int | None = None) -> list[float]:
        return [wrong(record, hops, passes) for record in self.of(model)]

    def error(self, model: str, hops: int, passes: int | None = None) -> float:
        return float(np.mean(self.errors(model, hops, passes)))

    def solved(self, model: str, passes: int | None = None) -> int:
        """Up to how many hops the mean error stays below a tenth."""
        return in_a_row(self.rows(model, passes).mean(0)[1:])

    def factors(self, model: str, passes: int | None = None, below: float = SOLVED) -> list[int]:
        """How many each seed solves, and one more: of products, whose lengths count from 1, the factors it keeps."""
        return [1 + in_a_row(row[1:], below) for row in self.rows(model, passes)]

    def behind(self, model: str, reference: str) -> float:
        """By how much a model's error exceeds another's at the number of hops where it does so most."""
        return float((self.rows(model).mean(0) - self.rows(reference).mean(0)).max())


@cache
def copying(hops: int, nearer: int, letters: int = 32, texts: int = 2000) -> float:
    """The share of wrong answers where the letter `nearer` hops away is given for that at `hops`."""
    from rtx_core.data import HopData  # which imports torch
    from rtx_core.data.algorithmic import KHop

    return KHop(HopData(test_texts=10, letters=letters, hops=hops), 4).copying(hops, nearer, texts)


class Rounding(Runs):
    """k-hop models whose layers were rounded after training: what that adds to the error, in means over seeds."""

    def __init__(self, measurements: list[Record], khop: Runs):
        super().__init__(measurements, "k-hop, rounded")
        self.khop = khop

    def costs(self, model: str, bits: int, hops: int = 4, passes: int | None = None) -> list[float]:
        """Of each seed."""
        pairs = common([m for m in self.of(model) if m["bits"] == bits], self.khop.of(model))
        return [wrong(after, hops, passes) - wrong(before, hops, passes) for after, before in pairs]

    def cost(self, model: str, bits: int, hops: int = 4, passes: int | None = None) -> float:
        return float(np.mean(self.costs(model, bits, hops, passes)))

    def most(self, bits: int) -> float:
        """The largest change of a model's error at any number of hops."""
        return max(abs(self.cost(m["model"], bits, hops)) for m in self.records for hops in range(5))


def logit(record, hops: int = 4) -> float:
    """log(error / (1 − error)); half an answer is added to either side, so that no error stays finite."""
    part = record["test"]["parts"][hops]
    missed = part["error"] * part["answers"]
    return float(np.log((missed + 0.5) / (part["answers"] - missed + 0.5)))


def compared(first: list, second: list, hops: int = 4) -> SimpleNamespace:
    """Two k-hop models on the logit of their error at so many hops, first − second, paired over seeds: mean and
    interval, `odds` of a wrong answer of the first over the second's, `p` of the paired t-test, and in how many `seeds`
    it has the `lower`."""
    by_seed = [logit(a, hops) - logit(b, hops) for a, b in common(first, second)]
    mean, low, high = mean_interval(by_seed)
    return SimpleNamespace(
        mean=mean,
        low=low,
        high=high,
        odds=np.exp((mean, low, high)).tolist(),
        p=float(scipy.stats.ttest_1samp(by_seed, 0).pvalue) if len(by_seed) > 1 else np.nan,
        separated=low > 0 or high < 0,
        lower=sum(value < 0 for value in by_seed),
        seeds=len(by_seed),
    )


def unpaired_odds(first: list, second: list, hops: int = 4) -> SimpleNamespace:
    """The `odds` of a wrong answer of the first model over the second's with their interval, by Welch's t-test on the
    logits of each run's error, its `p`, and `ranks`, the p of the exact rank-sum test.  Runs of one seed share batches
    and nothing else, so they are no pairs."""
    mean, low, high, p, ranks = unpaired(*([logit(run, hops) for run in runs] for runs in (first, second)))
    return SimpleNamespace(odds=np.exp((mean, low, high)).tolist(), p=p, ranks=ranks)


class HopsAtOwnRates(AtOwnRates):
    """k-hop models at their own rates, each picked on the first three seeds, by their errors at so many hops."""

    def __init__(self, hops: int, *rates: Runs, least: int = 5):
        super().__init__(*rates, picked_on=(0, 1, 2), least=least)
        self.hops = hops

    def errors(self, model: str, new: bool = False) -> list[float]:
        return [wrong(run, self.hops) for run in (self.new if new else self.runs)(model)]

    def unpaired(self, first: str, second: str) -> SimpleNamespace:
        """On the new seeds, which share batches and nothing else."""
        return unpaired_odds(self.new(first), self.new(second), self.hops)

    def __call__(self, first: str, second: str, new: bool = False) -> SimpleNamespace:
        runs = self.new if new else self.runs
        return compared(runs(first), runs(second), self.hops)
