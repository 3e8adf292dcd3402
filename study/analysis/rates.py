"""The best learning rate of a loop compared with that of a stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rtx_core.records import Record
from rtx_core.report.rates import validation_losses


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


def pairs(runs: Iterable[Record]) -> list[Pair]:
    """Of all tasks on which a loop and a stack were trained at the same rates, two at least."""
    tried: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        tried.setdefault((run["name"].partition("-learningrate")[0], run["model"]), []).append(run)

    def pair(task: str, folder: str, stack: str, loop: str, passes: int) -> Pair:
        return Pair(task, stack, loop, passes, *(validation_losses(tried[folder, model]) for model in (stack, loop)))

    def review_pair(once: str, loop: str, layers: int, passes: int) -> Pair:
        """Of two classifiers, whose folders are named by how often their layers are run."""
        losses = (validation_losses(tried[folder, "recurrent"]) for folder in (once, loop))
        return Pair("reviews", f"{layers}x1", f"{layers}x{passes}", passes, *losses)

    more, one = "facts-facts49152-epochs240", "sst2-10pct-numlayers1-numpasses"
    return [
        pair("four hops", "khop", "1x1", "1x4", 4),
        pair("four hops", "khop", "2x1", "2x2", 2),
        pair("four hops, width 256", "khop-hiddensize256-intermediatesize688", "2x1", "2x2", 2),
        pair("eight hops", "khop-hard", "2x1", "2x3", 3),
        pair("facts, 60 exposures", "facts-facts49152", "1x1", "1x4", 4),
        pair("facts, 60 exposures", "facts-facts49152", "2x1", "2x2", 2),
        pair("facts, 240 exposures", more, "1x1", "1x4", 4),
        pair("facts, 240 exposures", more, "2x1", "2x2", 2),
        *(pair("Shakespeare", "iso-depth", "6x1-64", f"{n}x{r}-64", r) for n, r in ((3, 2), (2, 3), (1, 6))),
        review_pair(f"{one}1", f"{one}6", 1, 6),
        review_pair("sst2-10pct-numpasses1", "sst2-10pct", 3, 2),
    ]
