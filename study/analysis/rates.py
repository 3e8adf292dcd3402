"""The best learning rate of a loop compared with that of a stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rtx_core.records import Record
from study.analysis.records import learning_rate


def by_rate(runs: Iterable[Record]) -> dict[float, float]:
    """Learning rate -> validation loss, on average over the seeds that all rates have."""
    losses: dict[float, dict[int, float]] = {}
    for run in runs:
        losses.setdefault(learning_rate(run), {})[run["seed"]] = run["selected"]["validation_loss"]
    shared = set.intersection(*map(set, losses.values()))
    return {rate: float(np.mean([losses[rate][seed] for seed in shared])) for rate in sorted(losses)}


@dataclass(frozen=True)
class Pair:
    """A loop of so many passes, and its layers run once or a stack of its depth, each trained at several rates."""

    task: str
    stack: str
    loop: str
    passes: int
    stack_losses: Mapping[float, float]
    loop_losses: Mapping[float, float]

    @property
    def stack_rate(self) -> float:
        return min(self.stack_losses, key=self.stack_losses.__getitem__)

    @property
    def loop_rate(self) -> float:
        return min(self.loop_losses, key=self.loop_losses.__getitem__)

    def predicted(self, power: float) -> list[float]:
        """Of the rates that the loop was trained at the nearest to the stack's best over passes^power; two, if it lies
        half-way between them."""
        target = self.stack_rate / self.passes**power
        distances = {rate: abs(np.log(rate / target)) for rate in self.loop_losses}
        return [rate for rate, distance in distances.items() if distance < min(distances.values()) + 0.01]

    def holds(self, power: float) -> bool:
        return self.loop_rate in self.predicted(power)


def pair(task: str, runs: Iterable[Record], stack: str, loop: str, passes: int) -> Pair:
    """Of two models by name."""
    runs = list(runs)
    losses = (by_rate(run for run in runs if run["model"] == model) for model in (stack, loop))
    return Pair(task, stack, loop, passes, *losses)


def review_pair(runs: Iterable[Record], layers: int, passes: int) -> Pair:
    """Of two classifiers, which differ in how often their layers are run."""
    runs = [run for run in runs if run["config"]["model"]["num_layers"] == layers]
    losses = (by_rate(r for r in runs if r["config"]["model"]["num_passes"] == n) for n in (1, passes))
    return Pair("reviews", f"{layers}x1", f"{layers}x{passes}", passes, *losses)


def pairs(hops, hard, wider, facts, saturated, text, reviews) -> list[Pair]:
    """Of all tasks on which a loop and a stack were trained at the same rates, two at least."""
    return [
        pair("four hops", hops, "1x1", "1x4", 4),
        pair("four hops", hops, "2x1", "2x2", 2),
        pair("four hops, width 256", wider, "2x1", "2x2", 2),
        pair("eight hops", hard, "2x1", "2x3", 3),
        pair("facts, 60 exposures", facts, "1x1", "1x4", 4),
        pair("facts, 60 exposures", facts, "2x1", "2x2", 2),
        pair("facts, 240 exposures", saturated, "1x1", "1x4", 4),
        pair("facts, 240 exposures", saturated, "2x1", "2x2", 2),
        *(pair("Shakespeare", text, "6x1-64", f"{n}x{r}-64", r) for n, r in ((3, 2), (2, 3), (1, 6))),
        review_pair(reviews, 1, 6),
        review_pair(reviews, 3, 2),
    ]
