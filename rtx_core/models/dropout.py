"""Dropout as an object that is handed down: torch's own, or any other source of masks (see `rtx_core.fast.dropout`)."""

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor


class Dropout(Protocol):
    def drop(self, x: Tensor, p: float) -> Tensor:
        """x with entries set to 0 with probability p, the others divided by 1 − p (Srivastava et al. 2014)."""


class TorchDropout:
    """torch's kernels and its global generator."""

    def drop(self, x: Tensor, p: float) -> Tensor:
        return F.dropout(x, p)


def drop(x: Tensor, p: float, dropout: Dropout | None) -> Tensor:
    """None: nothing is dropped."""
    return x if dropout is None else dropout.drop(x, p)


def compound_dropout(p: float) -> float:
    """Two dropouts in series are one: Bernoulli(1−p) masks multiply to a Bernoulli((1−p)²) mask."""
    return 1 - (1 - p) ** 2
