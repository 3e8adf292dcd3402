"""What a pass is worth: φ, by which a looped model counts as one with N_once + r^φ · N_rec parameters.

    φ = log[(N_eq − N_once) / N_rec] / log r      (Schwethelm et al., 2604.21106)

N_rec parameters are run r times, N_once are not (here there are none), and N_eq is the size of the standard model
of equal loss: φ is 0 where a pass adds nothing, and 1 where it is worth as many layers of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rtx_core.report.statistics import ALPHA, RESAMPLES


@dataclass(frozen=True)
class Looped:
    """The losses (seeds,) in nats of a model that runs `recurrent` of its parameters `passes` times."""

    losses: Sequence[float]
    recurrent: int
    passes: int


def equal_size(loss: float, sizes: Sequence[int], losses: Sequence[float]) -> float:
    """N_eq: the size at which standard models have this loss, log N linear in the loss between two neighbours.

    `sizes` (widths,) ascend with falling `losses`; nan outside of them, as nothing is extrapolated.
    """
    falling = np.minimum.accumulate(losses)
    if not falling[-1] <= loss <= falling[0]:
        return float("nan")
    return float(np.exp(np.interp(-loss, -falling, np.log(sizes))))


def phi(loss: float, looped: Looped, sizes: Sequence[int], losses: Sequence[float]) -> float:
    """φ of one looped model; nan where its loss is not among those of the standard models."""
    return float(np.log(equal_size(loss, sizes, losses) / looped.recurrent) / np.log(looped.passes))


def mean_phi(
    looped: Sequence[Looped], sizes: Sequence[int], standard: Sequence[Sequence[float]]
) -> tuple[float, float, float]:
    """(φ, low, high), the mean over looped models, of mean losses over seeds; `standard` is (widths, seeds).

    The interval is a bootstrap over seeds, which are drawn together for all models, as they share batches; of one
    seed it is nan.  A model whose loss lies outside of the standard ones is left out of a mean.
    """
    standard, seeds = np.array(standard, float), len(standard[0])
    every = np.array([model.losses for model in looped], float)

    def value(drawn: np.ndarray) -> float:
        losses, sized = every[:, drawn].mean(1), standard[:, drawn].mean(1)
        found = [phi(loss, model, sizes, sized) for loss, model in zip(losses, looped)]
        return float(np.nanmean(found)) if not np.isnan(found).all() else float("nan")

    middle = value(np.arange(seeds))
    if seeds == 1:
        return middle, float("nan"), float("nan")
    random = np.random.default_rng(0)
    draws = [value(random.integers(seeds, size=seeds)) for _ in range(RESAMPLES)]
    low, high = np.nanquantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    return middle, float(low), float(high)
