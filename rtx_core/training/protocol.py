"""How a classifier is trained: every setting of the report, with its reason.  No torch here, so pages can show it."""

import math
from dataclasses import asdict, dataclass, fields

from rtx_core.errors import RtxError, unknown

PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class Protocol:
    """The report's training protocol; each default is the report's own value or, where it is silent, said to be ours."""

    learning_rate: float = 3e-5  # AdamW; low for training from scratch, kept because the report used it
    weight_decay: float = 0.01  # AdamW's default in the public code, on every parameter
    batch_size: int = 16  # sentences, as in the report
    epochs: int = 5  # at most; early stopping may end a run sooner
    warmup_steps: int = 100  # linear; the slides state it, the public code declares it and never uses it
    clip_norm: float = 1.0  # of the whole gradient
    plateau_factor: float = 0.5  # ReduceLROnPlateau on validation loss, per epoch
    plateau_patience: int = 2  # more than two epochs without improvement, so in 5 epochs it hardly ever acts
    stop_min_delta: float = 1e-3  # early stopping: the least improvement of validation loss that counts
    stop_patience: int = 3  # epochs without it
    eval_every: int = 0  # steps between evaluations; 0 = at the end of each epoch (the slides say 50, unused there)
    precision: str = "fp32"  # "bf16" = autocast on a GPU; weights and optimizer stay fp32

    def __post_init__(self):
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        for field in fields(self):
            value, zero_is_fine = getattr(self, field.name), field.name in ("warmup_steps", "eval_every", "weight_decay", "stop_min_delta")
            if field.type in (int, float) and not (math.isfinite(value) and (value > 0 or (value == 0 and zero_is_fine))):
                raise RtxError(f"{field.name} is {value!r}; it must be {'at least 0' if zero_is_fine else 'above 0'}.")


@dataclass(frozen=True)
class Seeds:
    """Three independent streams.  Two models trained with one seed see the same batches in the same order: a pair."""

    initialization: int
    order: int
    dropout: int

    @classmethod
    def of(cls, seed: int) -> "Seeds":
        return cls(initialization=seed, order=10_000 + seed, dropout=20_000 + seed)


def as_config(protocol: Protocol, seeds: Seeds) -> dict:
    return asdict(protocol) | {"seeds": asdict(seeds)}
