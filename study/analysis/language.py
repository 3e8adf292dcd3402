"""Language models: losses of several models in nats per token or character, by seed."""

from collections.abc import Sequence

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.statistics import common
from rtx_core.report.values import Runs, Unmeasured
from study.analysis.records import learning_rate

TRAINING = {  # (experiment, recipe) -> tokens or characters that the study's own runs read
    ("tinystories", "report"): 204_800_000,
    ("shakespeare", "report"): 10_000 * 128 * 256,
    ("shakespeare", "nanogpt"): 5000 * 64 * 256,
}


class Language(Runs):
    """Decoders of one task; losses in nats per token or character."""

    def gaps(self, first: str, second: str) -> list[float]:
        """The loss of the first minus that of the second, by seed."""
        return [a["test"]["loss"] - b["test"]["loss"] for a, b in common(self.of(first), self.of(second))]

    def gap(self, first: str, second: str) -> float:
        return float(np.mean(self.gaps(first, second)))

    def tokens(self, model: str) -> int:
        """What a run of it reads."""
        return self.of(model)[0]["history"][-1]["tokens"]

    def share(self, model: str) -> float:
        """What a run of it reads of the study's own training."""
        run = self.of(model)[0]
        return self.tokens(model) / TRAINING[run["experiment"], run["recipe"]]

    def seed_range(self) -> float:
        """By how much the losses of one model's seeds differ at most."""
        seeds = [[run["test"]["loss"] for run in runs] for runs in by_model(self.records).values()]
        if max(map(len, seeds), default=0) < 2:
            raise Unmeasured(f"There are no two seeds of one model of {self.called}; run another one.")
        return max(float(np.ptp(losses)) for losses in seeds)

    def at(self, step: int, *models: str) -> list[float]:
        """Validation loss of each model after so many steps, in the mean over seeds."""
        runs = [[r["history"] for r in self.of(model)] for model in models]
        losses = ([row["validation_loss"] for rows in of for row in rows if row["step"] == step] for of in runs)
        return [float(np.mean(of_model)) for of_model in losses]


def short_run_losses(records: Sequence[Record]) -> dict[str, dict[float, float]]:
    """Model -> learning rate -> loss, of runs of one seed that were made to choose the rate."""
    losses: dict[str, dict[float, float]] = {}
    for record in records:
        losses.setdefault(record["model"], {})[learning_rate(record)] = record["test"]["loss"]
    return losses


def rate_gain(records: Sequence[Record], model: str, rate: float) -> float:
    """By how many nats a learning rate is better than the best lower one in short runs of a model; below 0, worse."""
    losses = short_run_losses(records).get(model, {})
    lower = [loss for slower_rate, loss in losses.items() if slower_rate < rate]
    if rate not in losses or not lower:
        raise Unmeasured(f"There are no short runs of {model} at {rate:g} and at a lower rate; run them first.")
    return min(lower) - losses[rate]
