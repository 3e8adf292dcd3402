"""Names of the pages on looping: `khop.error('1x4', 4)`, `iso_depth.phi`."""

from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import badge, by_model
from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Runs, Space, Unmeasured
from study import paper
from study.experiments import EXPERIMENTS
from study.phi import LoopedLosses, mean_phi, phi_by_seed
from study.predictions import predictions
from study.values.common import functions

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
        """How many each seed solves, and one more: of words over a group, whose lengths count from 1, the factors that
        it keeps."""
        return [1 + in_a_row(row[1:], below) for row in self.rows(model, passes)]

    def behind(self, model: str, other: str) -> float:
        """By how much a model's error exceeds another's at the number of hops where it does so most."""
        return float((self.rows(model).mean(0) - self.rows(other).mean(0)).max())


def copying(hops: int, nearer: int, letters: int = 32) -> float:
    """The share of wrong answers where the letter `nearer` hops away is given for that at `hops`."""
    from rtx_core.data import HopData  # which imports torch
    from rtx_core.data.algorithmic import KHop

    return KHop(HopData(test_texts=10, letters=letters, hops=hops), 4).copying(hops, nearer)


class Rounding:
    """What rounding the layers after training adds to the error, in means over seeds."""

    def __init__(self):
        self.measured = paper.measurements("quantized", "khop")
        self.exact = Hops("khop")

    def cost(self, model: str, bits: int, hops: int = 4, passes: int | None = None) -> float:
        found = {m["seed"]: m for m in self.measured if (m["model"], m["bits"]) == (model, bits)}
        if not found:
            raise Unmeasured(f"There is no measurement of {model} rounded to {bits} bits; make it first.")
        exact = {record["seed"]: record for record in self.exact.of(model)}
        return float(np.mean([wrong(m, hops, passes) - wrong(exact[seed], hops, passes) for seed, m in found.items()]))

    def most(self, bits: int) -> float:
        """The largest change of a model's error at any number of hops."""
        return max(abs(self.cost(m["model"], bits, hops)) for m in self.measured for hops in range(5))


# -- Shakespeare at equal depth


class IsoDepth:
    """Six layer applications as 6x1, 3x2, 2x3 and 1x6 at several widths, `3x2-64`, on the seeds that all have."""

    def __init__(self, records: list[Record], looped: tuple[str, ...] = ("3x2", "2x3", "1x6")):
        self.looped = looped
        found = {m: records for m, records in by_model(records).items() if m.startswith(("6x1", *looped))}
        self.runs = dict(zip(found, zip(*common(*found.values())))) if found else {}
        if lacking := [shape for shape in ("6x1", *looped) if not self.of(shape)]:
            raise Unmeasured(
                f"There is no record of iso-depth, {lacking[0]}, of a seed that the others have; run it first."
            )
        self.badge = badge(list(self.runs.values()))

    def of(self, shape: str) -> list[str]:
        """The models of a shape, such as "3x2", by width."""
        return sorted((m for m in self.runs if m.startswith(f"{shape}-")), key=self.size)

    def size(self, model: str) -> int:
        """Parameters of the layers and what joins them."""
        return self.runs[model][0]["parameters"]["non_embedding"]

    def rate(self, model: str) -> float:
        return self.runs[model][0]["config"]["train"]["learning_rate"]

    def losses(self, *models: str) -> list[list[float]]:
        """Of each model, by seed."""
        return [[record["test"]["loss"] for record in self.runs[m]] for m in models]

    @cached_property
    def rows(self) -> dict[str, list[float]]:
        """Mean losses from least to most sharing, of each width at which all four shapes are measured."""
        shapes = [{m.split("-")[-1]: np.mean(self.losses(m)) for m in self.of(s)} for s in ("6x1", *self.looped)]
        return {width: [of[width] for of in shapes] for width in shapes[0] if all(width in of for of in shapes)}

    @property
    def in_order(self) -> bool:
        """Whether loss rises with sharing at every width."""
        return all(row == sorted(row) for row in self.rows.values())

    @property
    def looped_ahead(self) -> bool:
        """Whether a looped model has a lower loss than the standard one of its width."""
        return any(min(row[1:]) < row[0] for row in self.rows.values())

    def beside(self, *models: str) -> tuple[list[LoopedLosses], list[int], list[list[float]]]:
        """What φ of these models is made of: themselves, sizes and losses of the standard ones."""
        looped = []
        for model, losses in zip(models, self.losses(*models)):
            shape, size = self.runs[model][0]["config"]["model"], self.size(model)
            adapter = 2 * shape["hidden_size"] ** 2 if shape["injection"] == "linear" else 0  # run in each pass
            outside = shape["num_layers"] - (shape["num_core_layers"] or shape["num_layers"])
            once = outside * (size - adapter) // shape["num_layers"]
            looped.append(LoopedLosses(losses, size - once, shape["num_passes"], once))
        standard = self.of("6x1")
        return looped, [self.size(m) for m in standard], self.losses(*standard)

    def by_seed(self, *models: str) -> list[float]:
        """φ in each seed, the mean over these models; nan where one lies outside of the standard ones."""
        return phi_by_seed(*self.beside(*models)).mean(0).tolist()

    def worth(self, *models: str) -> tuple[float, float, float]:
        """φ of these models, (mean, low, high); the interval is nan of one seed."""
        return mean_phi(*self.beside(*models))

    @cached_property
    def phi(self) -> Space:
        """φ of each shape and each width, the mean of all, and the least; and by how much it is larger for the fewest
        passes than for the most."""
        groups = {f"of_{shape}": self.of(shape) for shape in self.looped}
        groups["of_all"] = every = sum(groups.values(), [])
        groups |= {f"at_{width}": [m for m in every if m.endswith(f"-{width}")] for width in self.rows}
        groups["least"] = [min(every, key=lambda model: self.worth(model)[0])]
        found = {name: self.worth(*models) for name, models in groups.items()}
        fewest, most = (self.by_seed(*self.of(self.looped[i])) for i in (0, -1))
        found["falls"] = mean_interval([a - b for a, b in zip(fewest, most)])
        return Space({k: {"value": v, "low": low, "high": high} for k, (v, low, high) in found.items()})


def iso_depth(steps: str = "", seed: int | None = None, looped: tuple[str, ...] = ("3x2", "2x3", "1x6")) -> IsoDepth:
    return IsoDepth([r for r in paper.records(name=f"iso-depth{steps}") if seed in (None, r["seed"])], looped)


def at_their_rates() -> IsoDepth:
    """Of seed 0 each model's run at the best of three rates, by validation loss."""
    tried: dict[str, list[Record]] = {}
    for record in paper.records(experiment="iso-depth"):
        if record["seed"] == 0 and record["config"]["train"]["steps"] == EXPERIMENTS["iso-depth"].train.steps:
            tried.setdefault(record["model"], []).append(record)
    whole = [records for records in tried.values() if len(records) == 3]
    return IsoDepth([min(records, key=lambda r: r["selected"]["validation_loss"]) for records in whole])


HOPS = {
    "khop": "khop",
    "khop_hard": "khop-hard",
    "khop_published": "khop-published-reduced",
    "khop_long": "khop-steps9000",
    "s3": "state-tracking",  # the parts of these are lengths, from 1, where those of hops are from 0
    "s3_16": "state-tracking-letters16",
    "s3_long": "state-tracking-letters16-steps12000",
    "s3_scan": "state-tracking-scan",
    "s3_curriculum": "state-tracking-curriculum",
    "z6": "state-tracking-groupZ6",
    "a5_scan": "state-tracking-scan-groupA5-steps6000",
}
VALUES = {key: lambda name=name: Hops(name) for key, name in HOPS.items()}
VALUES |= {f"{key}_reached": lambda name=HOPS[key]: Hops(name).factors for key in HOPS if key.startswith(("s3", "z6"))}
VALUES |= {
    "khop_rounded": Rounding,
    "iso_depth": iso_depth,
    "iso_depth_first": lambda: iso_depth(seed=0),
    "iso_depth_tuned": at_their_rates,
    "iso_depth_longer": lambda: iso_depth("-steps3200"),
    "iso_depth_parts": lambda: iso_depth(looped=("three-part",)),
    "predictions": predictions,
}
VALUES |= functions(copying)
