"""How a model is trained: every setting with its reason, and the learning rate as a pure function.  No torch here."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from rtx_core.settings import NaturalFloat, NaturalInt, PositiveFloat, PositiveInt, Probability, Settings

DEVICES = ("auto", "cpu", "cuda")


class TrainConfig(Settings):
    """The defaults are the classification study's; language experiments state their own."""

    epochs: NaturalInt = Field(default=5, description="passes over the training texts at most; 0: `steps` counts")
    steps: NaturalInt = Field(default=0, description="optimizer steps; 0: `epochs` counts")
    batch_size: PositiveInt = Field(default=16, description="texts or sequences in a step")
    micro_batches: PositiveInt = Field(default=1, description="parts of a step's batch, to bound memory")
    optimizer: Literal["adamw", "muon"] = Field(
        default="adamw", description='"muon": Muon for the matrices of the layers, AdamW for all else, at one rate'
    )
    learning_rate: PositiveFloat = Field(default=3e-5, description="after the warm-up")
    schedule: Literal["constant", "linear", "cosine", "plateau"] = Field(
        default="plateau", description="constant, linear or cosine to min_learning_rate, or cut on a plateau"
    )
    min_learning_rate: NaturalFloat = Field(default=0.0, description="at the last step, for linear and cosine")
    # 100 in the slides, unused in the public code
    warmup_steps: NaturalInt = Field(default=100, description="steps of linear warm-up")
    beta1: Probability = Field(default=0.9, description="of AdamW")
    beta2: Probability = Field(default=0.999, description="of AdamW")
    weight_decay: NaturalFloat = Field(default=0.01, description="of AdamW, on what decay names")
    decay: Literal["all", "matrices"] = Field(
        default="all", description="weight decay of every parameter, or of matrices and tables alone"
    )
    clip_norm: PositiveFloat = Field(default=1.0, description="largest norm of the whole gradient")
    plateau_factor: PositiveFloat = Field(
        default=0.5, description="factor of the rate on a plateau of the validation loss"
    )
    # hardly ever in 5
    plateau_patience: NaturalInt = Field(default=2, description="epochs without improvement before that")
    stop_min_delta: NaturalFloat = Field(
        default=1e-3, description="least gain of validation loss that prevents early stopping"
    )
    stop_patience: NaturalInt = Field(default=3, description="epochs without that gain before stopping; 0: never")
    eval_every: NaturalInt = Field(default=0, description="steps between evaluations; 0: at the end of each epoch")
    precision: Literal["fp32", "bf16"] = Field(default="fp32", description="of matrix products; all else stays fp32")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.epochs) == bool(self.steps):
            raise ValueError(f"epochs is {self.epochs} and steps is {self.steps}; exactly one of them must be above 0")
        if self.steps and not self.eval_every:
            raise ValueError("eval_every is 0, the end of an epoch, but steps are counted; give a number of steps")
        if self.batch_size % self.micro_batches:
            raise ValueError(f"micro_batches is {self.micro_batches}; it must divide batch_size, {self.batch_size}")
        return self

    def total_steps(self, steps_per_epoch: int | None) -> int:
        return self.steps or self.epochs * (steps_per_epoch or 0)


def learning_rate(config: TrainConfig, step: int, history: Sequence[dict] = (), total: int = 0) -> float:
    """The rate of optimizer step `step`, counted from 0: a function of the step and of the evaluations before it alone.

    For `plateau` the warm-up is PyTorch's LinearLR, to the last bits: each step multiplies the last rate by a factor.
    """
    base, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "plateau":
        start = 1 / max(1, warmup)
        rate = base * start if warmup > 1 else base
        for i in range(min(step, warmup - 1)):
            rate *= 1.0 + (1.0 - start) / ((warmup - 1) * start + i * (1.0 - start))
        return rate * config.plateau_factor ** plateaus(config, history)
    if step < warmup:
        return base * (step + 1) / warmup
    if config.schedule == "constant":
        return base
    progress = min(1.0, (step - warmup) / max(1, total - warmup))  # 0 after the warm-up, 1 at the end
    remaining = 1 - progress if config.schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return config.min_learning_rate + (base - config.min_learning_rate) * remaining


def plateaus(config: TrainConfig, history: Sequence[dict]) -> int:
    """How often the validation loss had not improved, relatively, for more than `plateau_patience` epochs."""
    return stalls(history, config.plateau_patience + 1, lambda best: best * (1 - 1e-4))


def stops_early(config: TrainConfig, history: Sequence[dict]) -> bool:
    """Whether the validation loss has not fallen by `stop_min_delta` for `stop_patience` epochs."""
    patience = config.stop_patience
    return patience > 0 and stalls(history, patience, lambda best: best - config.stop_min_delta) > 0


def stalls(history: Sequence[dict], patience: int, aim: Callable[[float], float]) -> int:
    """How often the validation loss stayed above `aim(best)` for `patience` epochs in a row."""
    best, epochs_waited, count = math.inf, 0, 0
    for row in [row for row in history if row.get("epoch") == round(row.get("epoch", 0.5))]:
        better = row["validation_loss"] < aim(best)
        best, epochs_waited = (row["validation_loss"], 0) if better else (best, epochs_waited + 1)
        if epochs_waited == patience:
            count, epochs_waited = count + 1, 0
    return count
