"""Dropout as a function that is handed down: `F.dropout`, or another source of masks (`rtx_core.fast.encoder`)."""

from collections.abc import Callable

from torch import Tensor

# (x, p) -> x with entries set to 0 with probability p, the others divided by 1 − p (Srivastava et al. 2014); None: x
Dropout = Callable[[Tensor, float], Tensor] | None


def drop(x: Tensor, p: float, dropout: Dropout) -> Tensor:
    return x if dropout is None else dropout(x, p)


def compound_dropout(p: float) -> float:
    """Two dropouts in series are one: Bernoulli(1−p) masks multiply to a Bernoulli((1−p)²) mask."""
    return 1 - (1 - p) ** 2
