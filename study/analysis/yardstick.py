"""Classifiers beside a bag of words: their differences on every task that has both."""

from collections.abc import Iterable, Mapping, Sequence

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.values import Gap
from study.analysis.classifiers import PAIR, of_model, paired


class Yardstick:
    """Of the runs of each task, on the seeds that all models have, and of bags of words by the task they count."""

    def __init__(self, runs: Mapping[str, Sequence[Record]], bags: Iterable[Record], models: Sequence[str] = PAIR):
        self.runs, self.bags, self.models = runs, list(bags), models
        self.gaps = remember(self._gaps)

    def pair(self, task: str, model: str) -> tuple[list[Record], list[Record]]:
        """(runs, bags of words), none of a run that never answers some class."""
        runs = of_model(paired(self.runs[task], self.models), model)
        runs = [run for run in runs if statistics.answers_all(run)]
        bags = [bag for bag in self.bags if bag["of"] == task]
        return runs, [Record({**bag.content, "seed": run["seed"]}, bag.path) for run in runs for bag in bags]

    def _gaps(self, model: str) -> dict[str, Gap]:
        """The model minus the bag of words by task, p adjusted over them."""
        pairs = {task: pair for task in self.runs if all(pair := self.pair(task, model))}
        differences = [statistics.difference(*pair, same_training=False) for pair in pairs.values()]
        adjusted = statistics.adjusted(differences)
        return {task: Gap(one, badge(runs)) for (task, (runs, _)), one in zip(pairs.items(), adjusted)}

    def full(self, model: str) -> list[Gap]:
        """Those at the full budget."""
        return [gap for gap in self.gaps(model).values() if gap.badge.budget == "full"]

    def best(self, model: str) -> Gap:
        return max(self.gaps(model).values())
