"""Names of the language models that two cores train to the end: `shakespeare_small.loss('kausik')`."""

import numpy as np

from rtx_core.report.statistics import common
from rtx_core.report.values import Runs
from study import paper
from study.experiments import COMBINED, EXPERIMENTS
from study.plan import LARGER

COMBINED_IN = "tinystories-small-learningrate0.004"
TRIED = 600  # steps of the runs that choose the learning rate


class Small(Runs):
    """The runs of an experiment at the rate that was best for their model after few steps,
    of the seeds that all have."""

    def __init__(self, experiment: str):
        self.every = EXPERIMENTS[experiment].train.eval_every  # steps between two evaluations
        self.rates = {}  # model -> learning rate -> loss after few steps
        whole = []
        for record in paper.records(experiment=experiment):
            if (
                record["model"] in COMBINED
                or record["config"]["model"]["hidden_size"] == LARGER[experiment]["hidden_size"]
            ):
                continue
            train = record["config"]["train"]
            if train["steps"] == TRIED:
                self.rates.setdefault(record["model"], {})[train["learning_rate"]] = record["test"]["loss"]
            else:
                whole.append(record)
        chosen = [r for r in whole if r["config"]["train"]["learning_rate"] == self.rate(r["model"])]
        seeds = {}
        for record in chosen:
            seeds.setdefault(record["model"], set()).add(record["seed"])
        of_all = set.intersection(*seeds.values()) if seeds else set()
        super().__init__([record for record in chosen if record["seed"] in of_all], experiment)

    def rate(self, model: str) -> float | None:
        """The best that was tried; a model that trains longer (`gpt-2-time`) has that of the same model."""
        tried = self.rates.get(model) or self.rates.get(model.rpartition("-")[0])
        return min(tried, key=tried.get) if tried else None

    def gaps(self, first: str, second: str) -> list[float]:
        """The loss of the first minus that of the second, by seed."""
        return [a["test"]["loss"] - b["test"]["loss"] for a, b in common(self.of(first), self.of(second))]

    def tokens(self, model: str) -> int:
        """That a run of it reads."""
        return self.of(model)[0]["history"][-1]["tokens"]

    def at(self, step: int, *models: str) -> list[float]:
        """Validation loss of each model after so many steps, in the mean over seeds."""
        rows = [[r["history"][step // self.every - 1] for r in self.of(model)] for model in models]
        return [float(np.mean([row["validation_loss"] for row in of])) for of in rows]

    def passes(self, model: str, n: int) -> float:
        """Validation loss after n passes at test time, in the mean over seeds."""
        return float(np.mean([r["extra"]["passes"]["validation"][n - 1] for r in self.of(model)]))


def wide(experiment: str) -> Runs:
    """The runs at twice the width, whose rate is half the best one at the width itself."""
    found = [r for r in paper.records(experiment=experiment) if r["config"]["train"]["steps"] != TRIED]
    wider = [r for r in found if LARGER[experiment].items() <= (r["config"]["model"] | r["config"]["train"]).items()]
    return Runs(wider, f"{experiment} at twice the width")


class Combined(Runs):
    """The loops of TinyStories and two combinations of them, in the one seed that all have."""

    def __init__(self):
        made = [r for r in paper.records(experiment="tinystories-small") if r["name"] == COMBINED_IN and r["seed"] == 0]
        super().__init__(made, COMBINED_IN)

    def gap(self, first: str, second: str) -> float:
        """Nats by which the first's loss is above the second's."""
        return self.loss(first) - self.loss(second)

    def ahead(self, first: str, second: str) -> bool:
        return self.gap(first, second) < 0


VALUES = {
    "stories_combined": Combined,
    "shakespeare_wide": lambda: wide("shakespeare-small"),
    "stories_wide": lambda: wide("tinystories-small"),
    "shakespeare_small": lambda: Small("shakespeare-small"),
    "stories_small": lambda: Small("tinystories-small"),
}
