"""Names of the language models that two cores train to the end: `shakespeare_small.loss('kausik')`."""

import numpy as np

from rtx_core import records
from rtx_core.report.values import Runs

TRIED = 600  # steps of the runs that choose the learning rate


class Small(Runs):
    """The runs of an experiment at the rate that was best for their model after few steps."""

    def __init__(self, experiment: str):
        self.rates = {}  # model -> learning rate -> loss after few steps
        whole = []
        for record in records.records(experiment=experiment):
            train = record["config"]["train"]
            if train["steps"] == TRIED:
                self.rates.setdefault(record["model"], {})[train["learning_rate"]] = record["test"]["loss"]
            else:
                whole.append(record)
        chosen = [r for r in whole if r["config"]["train"]["learning_rate"] == self.rate(r["model"])]
        super().__init__(chosen, experiment)

    def rate(self, model: str) -> float | None:
        """The best that was tried; a model that trains longer (`gpt-2-time`) has that of the same model."""
        tried = self.rates.get(model) or self.rates.get(model.rpartition("-")[0])
        return min(tried, key=tried.get) if tried else None

    def gain(self, model: str, rate: float) -> float:
        """Nats that the best rate takes off the loss after few steps at this one."""
        return self.rates[model][rate] - min(self.rates[model].values())

    @property
    def tokens(self) -> int:
        """That all but the models of equal time or computation read."""
        return min(record["history"][-1]["tokens"] for record in self.records)

    def at(self, step: int, *models: str) -> list[float]:
        """Validation loss of each model after so many steps, in the mean over seeds."""
        rows = [[next(h for h in r["history"] if h["step"] == step) for r in self.of(m)] for m in models]
        return [float(np.mean([row["validation_loss"] for row in of])) for of in rows]

    def lead(self, first: str, second: str) -> float:
        """Nats by which the first model's loss is the lower, in the mean over seeds that both have."""
        by_seed = [{record["seed"]: record["test"]["loss"] for record in self.of(m)} for m in (first, second)]
        seeds = set.intersection(*map(set, by_seed))
        return float(np.mean([by_seed[1][seed] - by_seed[0][seed] for seed in seeds]))


VALUES = {
    "shakespeare_small": lambda: Small("shakespeare-small"),
    "stories_small": lambda: Small("tinystories-small"),
}
