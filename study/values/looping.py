"""Names of the pages on what a pass is worth: `khop.error('1x4', 4)`, `facts.gain('1x4', '1x1')`, `iso_depth.phi`."""

from collections.abc import Iterable
from functools import cache, cached_property
from itertools import takewhile

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import badge, by_model
from rtx_core.report.statistics import common, mean_interval, unpaired
from rtx_core.report.values import Runs, Space, Unmeasured, Value, look_up
from study import paper
from study.phi import LoopedLosses, mean_phi, phi_by_seed, worth
from study.predictions import counts, predictions
from study.values.common import functions, test_loss

SOLVED = 0.1  # the error below which a number of hops counts as solved


# -- Following pointers, and products in a group


def wrong(record, hops: int, passes: int | None = None) -> float:
    """The share of wrong answers; `passes` other than the trained number where they are given."""
    part = record["test"]["parts"][hops]
    return part["error"] if passes is None else part["error_by_passes"][passes - 1]


def in_a_row(errors: Iterable[float], below: float = SOLVED) -> int:
    """How many of the first are below a bound."""
    return sum(1 for _ in takewhile(lambda error: error < below, errors))


class Hops(Runs):
    """Of one k-hop experiment: its models are written layers x passes, `1x4`."""

    def __init__(self, name: str):
        super().__init__(paper.records(name=name), name)

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

    def behind(self, model: str, other: str) -> float:
        """By how much a model's error exceeds another's at the number of hops where it does so most."""
        return float((self.rows(model).mean(0) - self.rows(other).mean(0)).max())


def copying(hops: int, nearer: int) -> float:
    """The share of wrong answers where the letter `nearer` hops away is given for that at `hops`."""
    from rtx_core.data import HopData  # which imports torch
    from rtx_core.data.algorithmic import KHop

    return KHop(HopData(test_texts=10, hops=hops), 4).copying(hops, nearer)


class Rounding(Runs):
    """k-hop models whose layers were rounded after training: what that adds to the error, in means over seeds."""

    def __init__(self):
        super().__init__(paper.measurements("quantized", "khop"), "k-hop, rounded")

    def cost(self, model: str, bits: int, hops: int = 4, passes: int | None = None) -> float:
        pairs = common([m for m in self.of(model) if m["bits"] == bits], look_up("khop").of(model))
        return float(np.mean([wrong(after, hops, passes) - wrong(before, hops, passes) for after, before in pairs]))

    def most(self, bits: int) -> float:
        """The largest change of a model's error at any number of hops."""
        return max(abs(self.cost(m["model"], bits, hops)) for m in self.records for hops in range(5))


def logit(record, hops: int = 4) -> float:
    """log(error / (1 − error)); half an answer is added to either side, so that no error stays finite."""
    part = record["test"]["parts"][hops]
    missed = part["error"] * part["answers"]
    return float(np.log((missed + 0.5) / (part["answers"] - missed + 0.5)))


def compared(first: list, second: list, hops: int = 4) -> Space:
    """Two k-hop models on the logit of their error at so many hops, first − second, paired over seeds: mean and
    interval, `odds` of a wrong answer of the first over the second's, and in how many `seeds` it has the `lower`."""
    by_seed = [logit(a, hops) - logit(b, hops) for a, b in common(first, second)]
    mean, low, high = mean_interval(by_seed)
    found = {"mean": mean, "low": low, "high": high, "odds": np.exp((mean, low, high)).tolist()}
    found |= {"separated": low > 0 or high < 0, "lower": sum(value < 0 for value in by_seed), "seeds": len(by_seed)}
    return Space(found)


def unpaired_odds(first: list, second: list, hops: int = 4) -> Space:
    """The `odds` of a wrong answer of the first model over the second's with their interval, by Welch's t-test on the
    logits of each run's error, its `p`, and `ranks`, the p of the exact rank-sum test.  Runs of one seed share batches
    and nothing else, so they are no pairs."""
    mean, low, high, p, ranks = unpaired(*([logit(run, hops) for run in runs] for runs in (first, second)))
    return Space({"odds": np.exp((mean, low, high)).tolist(), "p": p, "ranks": ranks})


def on_logits(first: str, second: str) -> Space:
    return compared(*map(look_up("khop").of, (first, second)))


def unpaired_on_logits(first: str, second: str) -> Space:
    return unpaired_odds(*map(look_up("khop").of, (first, second)))


def at_best_rate(*at_rates: list[Record]) -> list[Record]:
    """Of a model's runs at several rates those at the best, by mean validation loss, on the seeds it has at all."""
    return list(min(zip(*common(*at_rates)), key=lambda runs: sum(r["selected"]["validation_loss"] for r in runs)))


class AtOwnRates:
    """k-hop models, each at the best of its own rate and these, by mean validation loss over the first three seeds, or
    as `new` runs, on the other seeds that were trained at that rate, five or more."""

    def __init__(self, name: str, hops: int, *rates: float):
        found = [Hops(name), *(Hops(f"{name}-learningrate{rate}") for rate in rates)]
        self.hops, self.all = hops, lambda model: [run for each in found for run in each.of(model)]
        self.runs = cache(lambda model: at_best_rate(*([r for r in each.of(model) if r["seed"] < 3] for each in found)))

    def rate(self, model: str) -> float:
        return self.runs(model)[0]["config"]["train"]["learning_rate"]

    def new(self, model: str) -> list[Record]:
        rated = [run for run in self.all(model) if run["config"]["train"]["learning_rate"] == self.rate(model)]
        if len(found := [run for run in rated if run["seed"] >= 3]) < 5:
            raise Unmeasured(f"There are no five new seeds of {model} at a rate of {self.rate(model)}; run them first.")
        return found

    def errors(self, model: str, new: bool = False) -> list[float]:
        return [wrong(run, self.hops) for run in (self.new if new else self.runs)(model)]

    def unpaired(self, first: str, second: str) -> Space:
        """On the new seeds, which share batches and nothing else."""
        return unpaired_odds(self.new(first), self.new(second), self.hops)

    def __call__(self, first: str, second: str, new: bool = False) -> Space:
        return compared(*map(self.new if new else self.runs, (first, second)), self.hops)


# -- Facts, and φ of these and of pointers


class Facts(Runs):
    """Runs on so many random facts; what a model of loss L nats holds is facts · (log2 values − L / ln 2) bits."""

    def __init__(self, name: str):
        super().__init__(paper.records(name=name), name)
        data = self.of("1x1")[0]["config"]["data"]
        self.facts, self.whole = data["facts"], np.log2(data["values"])  # whole: bits of a fact

    def each(self, model: str) -> list[float]:
        """Bits that each seed stores."""
        return [self.facts * float(self.whole - record["test"]["loss"] / np.log(2)) for record in self.of(model)]

    def bits(self, model: str) -> float:
        return float(np.mean(self.each(model)))

    def gain(self, model: str, base: str) -> float:
        """How many times what `base` stores."""
        return self.bits(model) / self.bits(base)

    def per_parameter(self, model: str) -> float:
        """Bits for each parameter, embeddings included."""
        return self.bits(model) / self.of(model)[0]["parameters"]["total"]


def facts_best(model: str) -> float:
    """The bits that a model stores at the best of the rates at which it was trained."""
    rates = [facts for facts in map(look_up, ("facts", *FACT_RATES)) if any(r["model"] == model for r in facts.records)]
    if not rates:
        raise Unmeasured(f"There is no record of facts, {model}; run it first.")
    return max(facts.bits(model) for facts in rates)


def facts_share(model: str, of: str) -> float:
    """The bits that a model stores over those of another, each at the best of its rates."""
    return facts_best(model) / facts_best(of)


def facts_worth(model: str) -> Value:
    return Value(*worth(look_up("facts"), model, ("1x1", "2x1", "4x1"), test_loss))


def pointers_worth(model: str) -> Value:
    return Value(*worth(look_up("khop"), model, ("1x1", "2x1", "3x1", "4x1"), logit))


# -- Shakespeare at equal depth


class IsoDepth:
    """Six layer applications as 6x1, 3x2, 2x3 and 1x6, `3x2-64`, on the seeds that all have, at least so many."""

    def __init__(self, records: list[Record], looped: tuple[str, ...] = ("3x2", "2x3", "1x6"), seeds: int = 1):
        self.looped, shapes = looped, ("6x1", *looped)
        found = {m: runs for m, runs in by_model(records).items() if m.startswith(shapes)}
        self.runs = dict(zip(found, zip(*common(*found.values()))))
        if not all(map(self.of, shapes)) or min(map(len, self.runs.values())) < seeds:
            raise Unmeasured(f"There is no record of {seeds} seeds of iso-depth that all models have; run them first.")
        self.badge = badge(list(self.runs.values()))
        alike = [[f"{shape}-{m.split('-')[-1]}" for shape in shapes] for m in self.of("6x1")]  # of one width
        rows = [[np.mean(self.losses(m)) for m in row] for row in alike if self.runs.keys() >= set(row)]
        self.in_order = all(row == sorted(row) for row in rows)  # loss rises with sharing
        self.looped_ahead = any(min(row[1:]) < row[0] for row in rows)

    def of(self, shape: str) -> list[str]:
        """The models of a shape, such as "3x2", by width."""
        return sorted((m for m in self.runs if m.startswith(f"{shape}-")), key=self.size)

    def size(self, model: str) -> int:
        """Parameters of the layers and what joins them."""
        return self.runs[model][0]["parameters"]["non_embedding"]

    def rate(self, model: str) -> float:
        return self.runs[model][0]["config"]["train"]["learning_rate"]

    def losses(self, model: str) -> list[float]:
        return [record["test"]["loss"] for record in self.runs[model]]

    def beside(self, *models: str) -> tuple[list[LoopedLosses], list[int], list[list[float]]]:
        """What φ of these models is made of: themselves, sizes and losses of the standard ones."""
        standard = self.of("6x1")
        looped = [LoopedLosses.of(self.runs[model]) for model in models]
        return looped, list(map(self.size, standard)), list(map(self.losses, standard))

    def by_seed(self, *models: str) -> list[float]:
        """φ in each seed, the mean over these models; nan where one lies outside of the standard ones."""
        return phi_by_seed(*self.beside(*models)).mean(0).tolist()

    def worth(self, *models: str) -> tuple[float, float, float]:
        """φ of these models, (mean, low, high); the interval is nan of one seed."""
        return mean_phi(*self.beside(*models))

    @cached_property
    def phi(self) -> Space:
        """φ of each shape, of all models, of each width, of the model with the least; how far it falls with passes."""
        groups = {f"of_{shape}": self.of(shape) for shape in self.looped}
        every = sum(groups.values(), [])
        groups |= {"of_all": every}
        groups |= {f"at_{width}": [m for m in every if m.endswith(f"-{width}")] for width in (64, 128)}
        groups["least"] = [min(every, key=lambda model: self.worth(model)[0])]
        found = {name: self.worth(*models) for name, models in groups.items() if models}
        fewest, most = (self.by_seed(*self.of(self.looped[i])) for i in (0, -1))
        found["falls"] = mean_interval([a - b for a, b in zip(fewest, most)])
        if groups["at_128"]:  # how far it falls from width 64 to 128
            narrow, wide = (self.by_seed(*groups[f"at_{width}"]) for width in (64, 128))
            found["in_width"] = mean_interval([a - b for a, b in zip(narrow, wide)])
        return Space({name: dict(zip(("value", "low", "high"), bounds)) for name, bounds in found.items()})


def of_first_seeds(seeds: int) -> IsoDepth:
    return IsoDepth([record for record in paper.records(name="iso-depth") if record["seed"] < seeds], seeds=seeds)


def longer_training_lowers() -> Value:
    """φ after 800 steps minus φ after four times as many, of the loops of width 64, paired by seed."""
    loops = ("3x2-64", "2x3-64", "1x6-64")
    short, long = (look_up(name).by_seed(*loops) for name in ("iso_depth_three", "iso_depth_longer"))
    return Value(*mean_interval([a - b for a, b in zip(short, long)]), form=".2f")


def best_of(*rates: str, seeds: int) -> list[Record]:
    """Of each model that was tried at all of these rates with so many seeds the runs at its best."""
    tried = [by_model(paper.records(name=f"iso-depth{rate}")) for rate in rates]
    everywhere = sorted(set.intersection(*map(set, tried)))
    best = [at_best_rate(*(found[model] for found in tried)) for model in everywhere]
    return [run for runs in best if len(runs) >= seeds for run in runs]


def text_worth(model: str, *rates: str) -> Value:
    """φ of a loop over characters beside stacks of its width, in layers, at the best of these rates."""
    found = Runs(best_of("", *rates, seeds=3), "iso-depth")
    return Value(*worth(found, model, ("1x1-64", "2x1-64", "3x1-64", "4x1-64", "6x1-64"), test_loss))


FACT_RATES = {"facts_lower": 0.001, "facts_higher": 0.004, "facts_highest": 0.008}  # the last one of one layer alone
HIGHER = ("-learningrate0.006", "-learningrate0.012")  # than the rate of all iso-depth models
HOPS = {
    "khop": "khop",
    "khop_hard": "khop-hard",
    "khop_hard_higher": "khop-hard-learningrate0.004",
    "khop_at_8e_3": "khop-learningrate0.008",
    "khop_at_16e_3": "khop-learningrate0.016",
    "khop_published": "khop-published-reduced",
    "khop_long": "khop-steps9000",
    "khop_longer": "khop-steps12000",
    "s3": "state-tracking",  # the parts of these are lengths, from 1, where those of hops are from 0
    "s3_long": "state-tracking-letters16-steps12000",
    "s3_scan": "state-tracking-scan",
    "s3_curriculum": "state-tracking-curriculum",
    "s3_mixed": "state-tracking-curriculum-stage1",
    "z6": "state-tracking-groupZ6",
    "a5_scan": "state-tracking-scan-groupA5-steps6000",
}
VALUES = {key: lambda name=name: Hops(name) for key, name in HOPS.items()}
VALUES |= {f"{key}_reached": lambda name=HOPS[key]: Hops(name).factors for key in HOPS if key.startswith(("s3", "z6"))}
VALUES |= {
    "khop_rounded": Rounding,
    "at_own_rates": lambda: AtOwnRates("khop", 4, 0.001, 0.004, 0.008),
    "hard_at_own_rates": lambda: AtOwnRates("khop-hard", 8, 0.004),
    "facts": lambda: Facts("facts-facts49152"),
    "facts_long": lambda: Facts("facts-epochs240"),
    "iso_depth": lambda: IsoDepth(paper.records(name="iso-depth")),
    "iso_depth_longer": lambda: IsoDepth(paper.records(name="iso-depth-steps3200")),
    "iso_depth_parts": lambda: IsoDepth(paper.records(name="iso-depth"), ("three-part",)),
    "iso_depth_tuned": lambda: IsoDepth(best_of("", "-learningrate0.0015", "-learningrate0.006", seeds=1)),
    "iso_depth_higher": lambda: IsoDepth(best_of("", *HIGHER, seeds=3), seeds=3),
    "predictions": predictions,
}
VALUES |= {f"iso_depth_{n}": lambda k=k: of_first_seeds(k) for n, k in {"first": 1, "three": 3, "eight": 8}.items()}
VALUES |= {name: lambda rate=rate: Facts(f"facts-facts49152-learningrate{rate}") for name, rate in FACT_RATES.items()}
VALUES |= {"prediction_counts": lambda: Space(counts())}
VALUES |= {"longer_training_lowers": longer_training_lowers}
VALUES |= {"w44_at_8e_3": lambda: [wrong(run, 4) for run in look_up("khop_at_8e_3").of("4x1-w44") if run["seed"] >= 3]}
VALUES |= functions(copying, on_logits, unpaired_on_logits, facts_best, facts_share, facts_worth, pointers_worth)
VALUES |= {"text_worth": lambda: text_worth, "text_worth_tuned": lambda: lambda model: text_worth(model, *HIGHER)}
