"""Names of the pages on looping: `khop.error('1x4', 4)`, `iso_depth.phi`, and what became of the predictions."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import yaml

from rtx_core.report.display import Displayed, markdown
from rtx_core.report.evidence import Badge, badge
from rtx_core.report.phi import Looped, mean_phi
from rtx_core.report.statistics import Difference, common, mean_interval, over_seeds
from rtx_core.report.values import Gap, Runs, Space, Unmeasured, look_up
from study import paper
from study.published import published

SOLVED = 0.1  # the error below which a number of hops counts as solved
KEPT, BROKEN, PARTLY, MISSING = "kept", "contradicted", "in part", "not measured yet"


# -- k-hop induction


class Hops(Runs):
    """Of one k-hop experiment: its models are written layers x passes, `1x4`."""

    def __init__(self, name: str):
        super().__init__(paper.records(name=name), name)

    def errors(self, model: str, hops: int, passes: int | None = None) -> list[float]:
        """The share of wrong answers of each seed; `passes` other than the trained number where they are given."""
        parts = [record["test"]["parts"][hops] for record in self.of(model)]
        return [part["error"] if passes is None else part["error_by_passes"][passes - 1] for part in parts]

    def error(self, model: str, hops: int, passes: int | None = None) -> float:
        return float(np.mean(self.errors(model, hops, passes)))

    def solved(self, model: str, passes: int | None = None) -> int:
        """Up to how many hops the mean error stays below a tenth."""
        return self._below(lambda hops: self.error(model, hops, passes), model)

    def solved_by(self, model: str, seed: int, passes: int | None = None, below: float = SOLVED) -> int:
        """The same of one seed, with another bound for the error where one is given."""
        (at,) = (i for i, record in enumerate(self.of(model)) if record["seed"] == seed)
        return self._below(lambda hops: self.errors(model, hops, passes)[at], model, below)

    def _below(self, error: Callable[[int], float], model: str, below: float = SOLVED) -> int:
        most = len(self.of(model)[0]["test"]["parts"]) - 1
        return next((hops for hops in range(1, most + 1) if error(hops) >= below), most + 1) - 1

    def difference(self, first: str, second: str, hops: int) -> Gap:
        """Of the errors of two models, first − second in points, paired over the seeds that both have."""
        pairs = common(self.of(first), self.of(second))
        a, b = ([run["test"]["parts"][hops]["error"] for run in column] for column in zip(*pairs))
        by_seed = tuple(x - y for x, y in zip(a, b))
        found = Difference(*over_seeds(a, b), pairs[0][0]["test"]["n"], by_seed, "paired t-test over seeds")
        return Gap(found, badge(pairs))

    def behind(self, model: str, other: str) -> float:
        """By how much a model's error exceeds another's at the number of hops where it does so most."""
        most = len(self.of(model)[0]["test"]["parts"])
        return max(self.error(model, h) - self.error(other, h) for h in range(most))

    def rise(self, model: str, first: int, second: int) -> float:
        """The largest rise of an error from one number of passes to another."""
        most = len(self.of(model)[0]["test"]["parts"])
        return max(self.error(model, h, second) - self.error(model, h, first) for h in range(most))


class Rounding:
    """What rounding the layers after training adds to the error at four hops, in means over seeds."""

    def __init__(self):
        self.measured = paper.measurements("quantized", "khop")
        self.exact = Hops("khop")

    def cost(self, model: str, bits: int, hops: int = 4, passes: int | None = None) -> float:
        found = [m for m in self.measured if (m["model"], m["bits"]) == (model, bits)]
        if not found:
            raise Unmeasured(f"There is no measurement of {model} rounded to {bits} bits; make it first.")
        changes = []
        for measured in found:
            (exact,) = (r for r in self.exact.of(model) if r["seed"] == measured["seed"])
            parts = (record["test"]["parts"][hops] for record in (measured, exact))
            after, before = (p["error"] if passes is None else p["error_by_passes"][passes - 1] for p in parts)
            changes.append(after - before)
        return float(np.mean(changes))

    def most(self, bits: int) -> float:
        """The largest change of a model's error at any number of hops."""
        return max(abs(self.cost(m["model"], bits, hops)) for m in self.measured for hops in range(5))

    def grows(self, model: str, bits: int) -> bool:
        """Whether the cost rises with every pass up to the trained number."""
        passes = self.exact.of(model)[0]["config"]["model"]["num_passes"]
        costs = [self.cost(model, bits, passes=r) for r in range(1, passes + 1)]
        return costs == sorted(costs)


# -- Shakespeare at equal depth


class IsoDepth:
    """Six layer applications as 6x1, 3x2, 2x3 and 1x6 at several widths, `3x2-64`, on the seeds that all have."""

    def __init__(self):
        found = {}
        for record in paper.records(name="iso-depth"):
            found.setdefault(record["model"], {})[record["seed"]] = record
        if not any(model.startswith("6x1") for model in found):
            raise Unmeasured("There is no record of iso-depth, 6x1; run it first.")
        self.seeds = sorted(set.intersection(*map(set, found.values())))
        if not self.seeds:
            raise Unmeasured("The models of iso-depth have no seed in common; run them on one.")
        self.runs = {model: [by_seed[seed] for seed in self.seeds] for model, by_seed in found.items()}
        self.badge = badge(list(self.runs.values()))

    def losses(self, model: str) -> list[float]:
        return [record["test"]["loss"] for record in self.runs[model]]

    def loss(self, model: str) -> float:
        return float(np.mean(self.losses(model)))

    def size(self, model: str) -> int:
        """Parameters of the layers, which are all that is looped."""
        return self.runs[model][0]["parameters"]["non_embedding"]

    def of(self, shape: str) -> list[str]:
        """The models of a shape, such as "3x2", by width."""
        return sorted((m for m in self.runs if m.startswith(f"{shape}-")), key=lambda m: int(m.split("-")[1]))

    @property
    def widths(self) -> list[str]:
        """Widths at which all four shapes are measured."""
        shapes = [{m.split("-")[1] for m in self.of(shape)} for shape in ("6x1", "3x2", "2x3", "1x6")]
        return sorted(set.intersection(*shapes), key=int)

    @property
    def in_order(self) -> bool:
        """Whether loss rises with sharing at every width."""
        losses = [[self.loss(f"{s}-{width}") for s in ("6x1", "3x2", "2x3", "1x6")] for width in self.widths]
        return all(row == sorted(row) for row in losses)

    @property
    def looped_ahead(self) -> bool:
        """Whether a looped model has a lower loss than the standard one of its width."""
        looped = [m for shape in ("3x2", "2x3", "1x6") for m in self.of(shape)]
        return any(self.loss(m) < self.loss(f"6x1-{m.split('-')[1]}") for m in looped)

    def worth(self, *models: str) -> tuple[float, float, float]:
        """φ of these models, (mean, low, high); the interval is nan of one seed."""
        standard = self.of("6x1")
        looped = [Looped(self.losses(m), self.size(m), int(re.match(r"\dx(\d)", m)[1])) for m in models]
        sizes, losses = [self.size(m) for m in standard], [self.losses(m) for m in standard]
        return mean_phi(looped, sizes, losses)

    @cached_property
    def phi(self) -> Space:
        """φ of each shape at the widths that are measured and of each width, the mean of all, and the least."""
        shapes = {f"of_{shape}": self.of(shape) for shape in ("3x2", "2x3", "1x6")}
        every = [model for models in shapes.values() for model in models]
        widths = {f"at_{width}": [m for m in every if m.endswith(f"-{width}")] for width in self.widths}
        least = min(every, key=lambda model: self.worth(model)[0])
        found = shapes | widths | {"of_all": every, "least": [least]}
        found = {name: self.worth(*models) for name, models in found.items()}
        return Space({k: {"value": v, "low": low, "high": high} for k, (v, low, high) in found.items()})


# -- every recurrence beside the standard model of its size

ERROR = {  # of a record, by task
    "k-hop": lambda test: max(test["parts"][-1]["error"], 0.5 / test["parts"][-1]["answers"]),  # at the most hops
    "Shakespeare": lambda test: test["loss"],
    "TinyStories": lambda test: test["loss"],
    "SST-2, a tenth": lambda test: 1 - test["accuracy"],
}
STORIES, CHARACTERS = "tinystories-small-learningrate0.004", "shakespeare-small-learningrate0.003"
ONE_LAYER = "sst2-10pct-numlayers1"
PAIRS = (  # recurrence, task, folder/model of it and of the standard model with as many parameters
    ("1×4", "k-hop", "khop/1x4", "khop/1x1"),
    ("2×2", "k-hop", "khop/2x2", "khop/2x1"),
    ("FraiLT", "k-hop", "khop/frailt", "khop/1x1"),
    ("Relaxed", "k-hop", "khop/relaxed", "khop/1x1"),
    ("Gated", "k-hop", "khop/1x4-gated", "khop/1x1"),
    ("Three Part", "k-hop", "khop/three-part", "khop/3x1"),
    ("Kausik", "Shakespeare", f"{CHARACTERS}/kausik", f"{CHARACTERS}/gpt-1"),
    ("FraiLT", "TinyStories", f"{STORIES}/frailt", f"{STORIES}/control"),
    ("Recurrent", "SST-2, a tenth", "sst2-10pct/recurrent", "sst2-10pct-numpasses1/recurrent"),
    ("ALBERT-like", "SST-2, a tenth", f"{ONE_LAYER}-numpasses6/recurrent", f"{ONE_LAYER}-numpasses1/recurrent"),
)


@dataclass(frozen=True)
class Pair:
    """A recurrence and the standard model of its size on one task, by error or loss; over the seeds that both have."""

    recurrence: str
    task: str
    looped: float
    standard: float
    ratio: float  # of the looped model's error or loss to the standard one's, geometric mean over seeds
    low: float  # 95 % interval; nan of one seed
    high: float
    parameters: float  # the looped model's as a share of the standard one's
    badge: Badge


def matrix() -> list[Pair]:
    """Every pair of which a seed is recorded."""
    found = []
    for recurrence, task, *addresses in PAIRS:
        names = (address.split("/") for address in addresses)
        pairs = common(*(paper.records(name=name, model=model) for name, model in names))
        if not pairs:
            continue
        first, second = ([ERROR[task](r["test"]) for r in column] for column in zip(*pairs))
        ratio = np.exp(mean_interval([float(np.log(a / b)) for a, b in zip(first, second)]))
        size = [r["parameters"]["non_embedding"] for r in pairs[0]]
        means = [float(np.mean(column)) for column in (first, second)]
        found.append(Pair(recurrence, task, *means, *map(float, ratio), size[0] / size[1], badge(pairs)))
    return found


# -- predictions


@dataclass(frozen=True)
class Prediction:
    """A row of `predictions.yaml`, and what became of it."""

    id: str
    experiment: str
    says: str
    contradicted_by: str
    known: str
    written: str
    verdict: str

    @property
    def box(self) -> Displayed:
        title = f":::{{admonition}} Predicted on {self.written}: {self.verdict}"
        parts = (self.says, f"Contradicted by: {self.contradicted_by}", f"Known then: {self.known}")
        return markdown("\n\n".join((f"{title}\n:class: note", *parts, ":::")))


def predictions() -> dict[str, Prediction]:
    """By id.  A row without `kept` and `broken`, or one of whose names has no record, is not measured yet."""
    content = yaml.safe_load((Path(__file__).parents[1] / "predictions.yaml").read_text(encoding="utf-8"))
    rows = content["predictions"]
    return {
        row["id"]: Prediction(
            *(row[field] for field in ("id", "experiment", "says", "contradicted_by", "from")),
            str(row.get("written", content["written"])),
            verdict(row),
        )
        for row in rows
    }


def verdict(row: dict) -> str:
    if "kept" not in row:
        return MISSING
    try:
        if look_up(row["broken"]):
            return BROKEN
        return KEPT if look_up(row["kept"]) else PARTLY
    except Unmeasured:
        return MISSING


VALUES = {
    "khop": lambda: Hops("khop"),
    "khop_hard": lambda: Hops("khop-hard"),
    "khop_published": lambda: Hops("khop-published-reduced"),
    "khop_printed": lambda: published()["khop"]["errors"],  # by layers, by hops
    "khop_long": lambda: Hops("khop-steps9000"),
    "s3": lambda: Hops("state-tracking"),  # its parts are lengths, from 1, where those of hops are from 0
    "s3_16": lambda: Hops("state-tracking-letters16"),
    "s3_long": lambda: Hops("state-tracking-letters16-steps12000"),
    "s3_scan": lambda: Hops("state-tracking-scan"),
    "z6": lambda: Hops("state-tracking-groupZ6"),
    "khop_rounded": Rounding,
    "iso_depth": IsoDepth,
    "matrix": matrix,
    "predictions": predictions,
}
