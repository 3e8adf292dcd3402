"""Characters at equal depth: six layer applications as 6x1, 3x2, 2x3 and 1x6, and what their passes are worth."""

from types import SimpleNamespace

import numpy as np

from rtx_core.reads import remembered
from rtx_core.records import Record
from rtx_core.report.evidence import badge, by_model
from rtx_core.report.rates import at_best_rate, by_rate
from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Runs, Unmeasured, Value
from study.analysis.phi import LoopedLosses, mean_phi, phi_by_seed, worth
from study.analysis.records import test_loss

STACKS = ("1x1-64", "2x1-64", "3x1-64", "4x1-64", "6x1-64")  # layers of one width, each run once


class IsoDepth:
    """Six layer applications as 6x1, 3x2, 2x3 and 1x6, `3x2-64`, on the seeds that all have, at least so many."""

    def __init__(self, records: list[Record], looped: tuple[str, ...] = ("3x2", "2x3", "1x6"), seeds: int = 1):
        self.looped, shapes = looped, ("6x1", *looped)
        matches = {m: runs for m, runs in by_model(records).items() if m.startswith(shapes)}
        self.runs = dict(zip(matches, zip(*common(*matches.values()))))
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

    @remembered
    def phi(self) -> SimpleNamespace:
        """φ of each shape, of all models, of each width, of the model with the least; how far it falls with passes."""
        groups = {f"of_{shape}": self.of(shape) for shape in self.looped}
        every = sum(groups.values(), [])
        groups |= {"of_all": every}
        groups |= {f"at_{width}": [m for m in every if m.endswith(f"-{width}")] for width in (64, 128)}
        groups["least"] = [min(every, key=lambda model: self.worth(model)[0])]
        intervals = {name: self.worth(*models) for name, models in groups.items() if models}
        fewest, most = (self.by_seed(*self.of(self.looped[i])) for i in (0, -1))
        intervals["falls"] = mean_interval([a - b for a, b in zip(fewest, most)])
        if groups["at_128"]:  # how far it falls from width 64 to 128
            narrow, wide = (self.by_seed(*groups[f"at_{width}"]) for width in (64, 128))
            intervals["in_width"] = mean_interval([a - b for a, b in zip(narrow, wide)])
        phis = {name: SimpleNamespace(value=v, low=low, high=high) for name, (v, low, high) in intervals.items()}
        return SimpleNamespace(**phis)


def best_of(runs: list[Record], seeds: int) -> list[Record]:
    """Of each model that was trained at all rates of these runs, the first so many seeds at its best rate."""
    rates = len(by_rate(runs))
    tried = by_model([run for run in runs if run["seed"] < seeds]).values()
    best = [at_best_rate(each) for each in tried if len(by_rate(each)) == rates]
    return [run for each in best if len(each) == seeds for run in each]


def rounding_cost(rounded: list[Record], runs: list[Record], model: str, bits: int) -> float:
    """By how many nats a model's test loss rises if its layers are rounded, on average over seeds."""
    measured = [one for one in rounded if (one["model"], one["bits"]) == (model, bits)]
    pairs = common(measured, [run for run in runs if run["model"] == model])
    return float(np.mean([test_loss(after) - test_loss(before) for after, before in pairs]))


def text_worth(model: str, runs: list[Record]) -> Value:
    """φ of a loop over characters, in layers, beside stacks of its width, each at the best rate of these runs."""
    return Value(*worth(Runs(best_of(runs, seeds=3), "iso-depth"), model, STACKS, test_loss))
