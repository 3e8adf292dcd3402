"""How a language model is trained: every setting with its reason.  No torch here, so pages can show it."""

import math
from dataclasses import dataclass, fields

from rtx_core.errors import RtxError, unknown
from rtx_core.training.protocol import PRECISIONS

SCHEDULES = ("constant", "cosine")
ZERO_IS_FINE = ("warmup_steps", "min_learning_rate", "weight_decay", "dropout")


@dataclass(frozen=True)
class Recipe:
    """One optimizer step reads `batch_size · block_size` tokens; the defaults are nanoGPT's for character-level Shakespeare."""

    steps: int = 5000  # optimizer steps; the schedule ends with them
    batch_size: int = 64  # sequences in a step
    block_size: int = 256  # tokens in a sequence
    micro_batches: int = 1  # parts that a step's batch is cut into, so that its memory is bounded; the gradient is the same
    learning_rate: float = 1e-3  # AdamW; high, as small models can bear
    schedule: str = "cosine"  # "constant", or "cosine" from learning_rate to min_learning_rate at the last step; both after the warm-up
    min_learning_rate: float = 1e-4
    warmup_steps: int = 100  # linear, from 1 / warmup_steps of the rate
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.1  # of matrices and tables only; gains of norms are left alone
    clip_norm: float = 1.0  # of the whole gradient
    dropout: float = 0.2
    eval_every: int = 250  # steps between evaluations; the last step always has one
    eval_batches: int = 80  # fixed batches of an evaluation, the same for every model and step
    precision: str = "fp32"  # "bf16" = autocast, matrix products in 16 bits; weights, sums and optimizer stay fp32

    def __post_init__(self):
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        for field in fields(self):
            value, zero_is_fine = getattr(self, field.name), field.name in ZERO_IS_FINE
            if field.type in (int, float) and not (math.isfinite(value) and (value > 0 or (value == 0 and zero_is_fine))):
                raise RtxError(f"{field.name} is {value!r}; it must be {'at least 0' if zero_is_fine else 'above 0'}.")
        if self.batch_size % self.micro_batches:
            raise RtxError(f"micro_batches is {self.micro_batches}; it must divide the batch size, which is {self.batch_size}.")
        if self.eval_batches < 2:
            raise RtxError(f"eval_batches is {self.eval_batches}; a standard error needs at least 2.")

    def learning_rate_at(self, step: int) -> float:
        """The rate of optimizer step `step`, counted from 0: a function of the step alone, so a resumed run needs no scheduler."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        if self.schedule == "constant":
            return self.learning_rate
        share = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)  # 0 after the warm-up, 1 at the end
        return self.min_learning_rate + (self.learning_rate - self.min_learning_rate) * (1 + math.cos(math.pi * min(1.0, share))) / 2

    @property
    def tokens(self) -> int:
        """Tokens of the whole training, where every sequence is full."""
        return self.steps * self.batch_size * self.block_size
