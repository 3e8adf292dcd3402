"""Uncertainty of what records say; the formulas are SciPy's."""

import numpy as np
from scipy.stats import binomtest, t

from rtx_core.errors import RtxError
from rtx_core.results.record import Record


def accuracy_interval(record: Record, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for the accuracy of one trained model: the uncertainty of a finite test set alone."""
    n = record["test"]["n"]
    interval = binomtest(round(record["test"]["accuracy"] * n), n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: list[float], level: float = 0.95) -> tuple[float, float, float]:
    """(mean, low, high) by Student's t over seeds; one value has no interval: (value, nan, nan)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(t.ppf(0.5 + level / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def compare(a: Record, b: Record) -> dict:
    """Two models on the same sentences: accuracy difference a − b, and McNemar's exact test on where they disagree."""
    first, second = a.predictions, b.predictions
    if not np.array_equal(first["labels"], second["labels"]) or a["data"]["sha256"] != b["data"]["sha256"]:
        raise RtxError(f"{a.path.stem} and {b.path.stem} were tested on different data; only runs on the same test set can be paired.")
    right_a = first["logits"].argmax(1) == first["labels"]
    right_b = second["logits"].argmax(1) == second["labels"]
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    p = float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return {
        "n": len(right_a),
        "difference": float(right_a.mean() - right_b.mean()),
        "points": 100 * float(right_a.mean() - right_b.mean()),
        "only_a": only_a,
        "only_b": only_b,
        "p": p,
        "verdict": "the difference may well be chance" if p >= 0.05 else "chance alone would rarely give such a difference",
    }
