"""Names of the pages on looping: `khop.error('1x4', 4)`, `iso_depth.phi`, and what became of the predictions."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import yaml

from rtx_core.report.display import Displayed, markdown
from rtx_core.report.evidence import badge
from rtx_core.report.phi import LoopedLosses, mean_phi, phi
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
        seeds = [record["seed"] for record in self.of(model)]
        if seed not in seeds:
            raise Unmeasured(f"There is no record of {model} with seed {seed}; run it first.")
        at = seeds.index(seed)
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


def copying(hops: int, nearer: int, letters: int = 32) -> float:
    """The share of wrong answers where the letter `nearer` hops away is given for that at `hops`."""
    from rtx_core.data import HopData  # which imports torch
    from rtx_core.data.algorithmic import KHop

    return KHop(HopData(test_texts=10, letters=letters, hops=hops), 4).copying(hops, nearer)


def reached(name: str) -> Callable[..., list[int]]:
    """reached(model, passes) of state tracking: the factors that each seed keeps, less than a tenth wrong."""
    runs = Hops(name)
    seeds = {model: [r["seed"] for r in runs.of(model)] for model in {r["model"] for r in runs.records}}
    return lambda model, passes=None: [runs.solved_by(model, seed, passes) + 1 for seed in seeds[model]]


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
        looped = [LoopedLosses(self.losses(m), self.size(m), int(re.match(r"\dx(\d)", m)[1])) for m in models]
        sizes, losses = [self.size(m) for m in standard], [self.losses(m) for m in standard]
        return mean_phi(looped, sizes, losses)

    def each(self, *models: str) -> list[float]:
        """φ in each seed, the mean over these models; nan where one lies outside of the standard models."""
        standard = self.of("6x1")
        sizes, losses = [self.size(m) for m in standard], [self.losses(m) for m in standard]
        looped = [LoopedLosses(self.losses(m), self.size(m), int(m[2])) for m in models]
        return [
            float(np.mean([phi(one.losses[k], one, sizes, [column[k] for column in losses]) for one in looped]))
            for k in range(len(self.seeds))
        ]

    @cached_property
    def phi(self) -> Space:
        """φ of each shape at the widths that are measured and of each width, the mean of all, and the least; and by
        how much it is larger for two passes than for six."""
        shapes = {f"of_{shape}": self.of(shape) for shape in ("3x2", "2x3", "1x6")}
        every = [model for models in shapes.values() for model in models]
        widths = {f"at_{width}": [m for m in every if m.endswith(f"-{width}")] for width in self.widths}
        least = min(every, key=lambda model: self.worth(model)[0])
        found = shapes | widths | {"of_all": every, "least": [least]}
        found = {name: self.worth(*models) for name, models in found.items()}
        two, six = self.each(*shapes["of_3x2"]), self.each(*shapes["of_1x6"])
        found["falls"] = mean_interval([a - b for a, b in zip(two, six)])
        return Space({k: {"value": v, "low": low, "high": high} for k, (v, low, high) in found.items()})

    @property
    def outside(self) -> list[str]:
        """Looped models that are better or worse than every standard one in some seed, and so have no φ there."""
        looped = [m for m in self.runs if not m.startswith("6x1")]
        return [m for m in looped if np.isnan(self.each(m)).any()]


# -- predictions


class Prediction:
    """A row of `predictions.yaml`, and what became of it, which is asked of the records when it is first read."""

    def __init__(self, row: dict, written: object):
        self.row, self.experiment = row, row["experiment"]
        self.written = row.get("written", written)

    @cached_property
    def verdict(self) -> str:
        """Of a row without `kept` and `broken`, or one of whose names has no record, that it is not measured yet."""
        if "kept" not in self.row:
            return MISSING
        try:
            return BROKEN if look_up(self.row["broken"]) else KEPT if look_up(self.row["kept"]) else PARTLY
        except Unmeasured:
            return MISSING

    @property
    def box(self) -> Displayed:
        title = f":::{{dropdown}} Predicted on {self.written}: {self.verdict}"
        parts = [self.row["says"], f"Contradicted by: {self.row['contradicted_by']}", f"Known then: {self.row['from']}"]
        if taught := self.row.get("taught", {}).get(self.verdict):  # what one learns from this verdict
            parts.append(f"**What it teaches:** {taught}")
        return markdown("\n\n".join((title, *parts, ":::")))


def predictions() -> dict[str, Prediction]:
    content = yaml.safe_load((Path(__file__).parents[1] / "predictions.yaml").read_text(encoding="utf-8"))
    return {row["id"]: Prediction(row, content["written"]) for row in content["predictions"]}


VALUES = {
    "khop": lambda: Hops("khop"),
    "khop_hard": lambda: Hops("khop-hard"),
    "khop_published": lambda: Hops("khop-published-reduced"),
    "khop_printed": lambda: published()["khop"]["errors"],  # by layers, by hops
    "khop_long": lambda: Hops("khop-steps9000"),
    "s3": lambda: Hops("state-tracking"),  # its parts are lengths, from 1, where those of hops are from 0
    "s3_reached": lambda: reached("state-tracking"),
    "z6_reached": lambda: reached("state-tracking-groupZ6"),
    "s3_16_reached": lambda: reached("state-tracking-letters16"),
    "s3_long_reached": lambda: reached("state-tracking-letters16-steps12000"),
    "s3_long": lambda: Hops("state-tracking-letters16-steps12000"),
    "s3_scan": lambda: Hops("state-tracking-scan"),
    "s3_scan_reached": lambda: reached("state-tracking-scan"),
    "z6": lambda: Hops("state-tracking-groupZ6"),
    "copying": lambda: copying,
    "khop_rounded": Rounding,
    "iso_depth": IsoDepth,
    "predictions": predictions,
}
