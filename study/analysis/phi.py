"""What a pass is worth: φ, by which a looped model counts as one with N_once + r^φ · N_rec parameters.

    φ = log[(N_eq − N_once) / N_rec] / log r      (Schwethelm et al., 2604.21106)

N_rec parameters are run r times, N_once are not, and N_eq is the size of the standard model
of equal loss: φ is 0 where a pass adds nothing, and 1 where it is worth as many layers of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rtx_core.report.statistics import common, mean_interval
from rtx_core.report.values import Runs

Standard = Sequence[Sequence[float]]  # (widths, seeds): the losses of standard models


@dataclass(frozen=True)
class LoopedLosses:
    """The losses (seeds,) in nats of a model that runs `recurrent` of its parameters `passes` times, `once` others."""

    losses: Sequence[float]
    recurrent: int
    passes: int
    once: int = 0

    @classmethod
    def of(cls, runs: Sequence[dict]) -> "LoopedLosses":
        """Of one model's records, a seed each; what joins first layers to looped ones is run with these."""
        model, size = runs[0]["config"]["model"], runs[0]["parameters"]["non_embedding"]
        adapter = 2 * model["hidden_size"] ** 2 if model["injection"] == "linear" else 0
        outside = model["num_layers"] - (model["num_core_layers"] or model["num_layers"])
        once = outside * (size - adapter) // model["num_layers"]
        return cls([run["test"]["loss"] for run in runs], size - once, model["num_passes"], once)


def equal_size(loss: float, sizes: Sequence[int], losses: Sequence[float]) -> float:
    """N_eq: the size at which standard models have this loss, log N linear in the loss between two neighbours.

    `sizes` (widths,) ascend with falling `losses`; nan outside of them, as nothing is extrapolated.
    """
    falling = np.minimum.accumulate(losses)
    inside = falling[-1] <= loss <= falling[0]
    return float(np.exp(np.interp(-loss, -falling, np.log(sizes)))) if inside else float("nan")


def phi(loss: float, looped: LoopedLosses, sizes: Sequence[int], losses: Sequence[float]) -> float:
    """φ of one looped model; nan where its loss is not among those of the standard models larger than N_once."""
    worth = (equal_size(loss, sizes, losses) - looped.once) / looped.recurrent
    return float(np.log(worth) / np.log(looped.passes)) if worth > 0 else float("nan")


def phi_by_seed(looped: Sequence[LoopedLosses], sizes: Sequence[int], standard: Standard) -> np.ndarray:
    """φ (models, seeds), each seed beside the standard models of that seed, as they share batches."""
    columns = np.array(standard, float).T
    return np.array([[phi(loss, of, sizes, column) for loss, column in zip(of.losses, columns)] for of in looped])


def mean_phi(looped: Sequence[LoopedLosses], sizes: Sequence[int], standard: Standard) -> tuple[float, float, float]:
    """(φ, low, high): the mean over looped models and seeds, with Student's interval over seeds (nan for one seed).

    A model that lies outside of the standard ones in a seed is left out.
    """
    values = phi_by_seed(looped, sizes, standard)
    inside = values[~np.isnan(values).any(1)]
    nan = float("nan")
    return mean_interval(inside.mean(0).tolist()) if len(inside) else (nan, nan, nan)


def pooled_phi(
    losses: Sequence[float], recurrent: int, passes: int, sizes: Sequence[int], standard: Standard
) -> tuple[float, float, float]:
    """(φ, low, high) of the mean of a looped model's losses (seeds,), beside the means of the standard ones.

    For tasks on which single seeds leap: only means are interpolated.  The interval is Student's over jackknifed seeds,
    each time without one, in the loop and in the standard models; nan where a mean lies outside of the standard ones.
    """
    columns, looped, one = np.array(standard, float), np.array(losses, float), LoopedLosses((), recurrent, passes)

    def without(left_out: list[int]) -> float:
        return phi(np.delete(looped, left_out).mean(), one, sizes, np.delete(columns, left_out, 1).mean(1))

    n = len(looped)
    return mean_interval([n * without([]) - (n - 1) * without([seed]) for seed in range(n)])


def worth(runs_by_model: Runs, model: str, stacks: Sequence[str], score: Callable) -> tuple[float, float, float]:
    """(φ, low, high) of a loop by a score of its runs, beside stacks of layers of one width, whose sizes are counted in
    layers, on the seeds that all have."""
    runs = common(*(runs_by_model.records_for(name) for name in (model, *stacks)))
    looped, *standard = np.transpose([[score(record) for record in records] for records in runs])
    size, *sizes = (record["config"]["model"] for record in runs[0])
    return pooled_phi(looped, size["num_layers"], size["num_passes"], [each["num_layers"] for each in sizes], standard)
