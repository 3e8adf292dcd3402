"""Uncertainty of what records say; the formulas are SciPy's."""

from dataclasses import dataclass

import numpy as np
import scipy  # which loads its statistics, a second's work, when the first of them is asked for

from rtx_core.errors import RtxError
from rtx_core.results.record import Record

RESAMPLES = 2000  # of a bootstrap: enough for the second digit of a 95 % bound
ALPHA = 0.05  # of every test
ENOUGH_SEEDS = 3  # from which on a test over seeds decides too


def accuracy_interval(record: Record, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for the accuracy of one trained model: the uncertainty of a finite test set alone."""
    n = record["test"]["n"]
    interval = scipy.stats.binomtest(round(record["test"]["accuracy"] * n), n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: list[float], level: float = 0.95) -> tuple[float, float, float]:
    """(mean, low, high) by Student's t over seeds; one value has no interval: (value, nan, nan)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(scipy.stats.t.ppf(0.5 + level / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def paired_guesses(a: Record, b: Record, same_training: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(labels, guesses of a, guesses of b), each (n,), of two models on one test set.

    `same_training=False` admits different training data, as of a subset: then the labels say that the test set is the same.
    """
    first, second = a.predictions, b.predictions
    same = np.array_equal(first["labels"], second["labels"])
    if not same or (same_training and a["data"]["sha256"] != b["data"]["sha256"]):
        raise RtxError(f"{a.path.stem} and {b.path.stem} were tested on different data; only runs on the same test set can be paired.")
    return first["labels"], first["logits"].argmax(1), second["logits"].argmax(1)


def compare(a: Record, b: Record, same_training: bool = True) -> dict:
    """Two models on the same sentences: accuracy difference a − b, and McNemar's exact test on where they disagree."""
    labels, guesses_a, guesses_b = paired_guesses(a, b, same_training)
    right_a, right_b = guesses_a == labels, guesses_b == labels
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    p = float(scipy.stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return {
        "n": len(right_a),
        "difference": float(right_a.mean() - right_b.mean()),
        "points": 100 * float(right_a.mean() - right_b.mean()),
        "only_a": only_a,
        "only_b": only_b,
        "p": p,
        "verdict": "the difference may well be chance" if p >= ALPHA else "chance alone would rarely give such a difference",
    }


# -- measures of a resample: labels and guesses (..., n) -> (...,) ------------------------------------------------------


def _accuracy(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return (labels == guesses).mean(axis)


def _precision(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((guesses == 1).sum(axis), 1)


def _recall(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((labels == 1).sum(axis), 1)


def _f1(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return 2 * ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((labels == 1).sum(axis) + (guesses == 1).sum(axis), 1)


MEASURES = {"accuracy": _accuracy, "precision": _precision, "recall": _recall, "f1": _f1}  # but for accuracy, of class 1 of two


def bootstrap_interval(statistic, *columns: np.ndarray, level: float = 1 - ALPHA) -> tuple[float, float, float]:
    """(value, low, high) of `statistic(*columns, axis)`; whole texts are resampled, all columns of a text together."""
    found = scipy.stats.bootstrap(
        columns, statistic, paired=True, vectorized=True, n_resamples=RESAMPLES, batch=100, confidence_level=level, method="percentile", rng=0
    )
    low, high = found.confidence_interval
    return float(statistic(*columns, axis=-1)), float(low), float(high)


# -- two models --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A paired difference first − second with its 95 % interval.  `p` is None where the interval alone decides."""

    value: float
    low: float
    high: float
    p: float | None
    n: int  # test texts
    seeds: int
    test: str

    @property
    def sign(self) -> int:
        """+1 or −1 where the difference is significant at 5 %, else 0."""
        clear = self.p < ALPHA if self.p is not None else self.low > 0 or self.high < 0
        return int(np.sign(self.value)) if clear else 0

    def __str__(self) -> str:
        p = "" if self.p is None else f", p = {self.p:.2g}"
        count = f"{self.seeds} seeds" if self.seeds > 1 else "one seed"
        return (
            f"{100 * self.value:+.2f} points (95 % interval {100 * self.low:+.2f} to {100 * self.high:+.2f}; {self.test}{p}; "
            f"n = {self.n:,} texts, {count})"
        )


def over_seeds(first: list[float], second: list[float]) -> tuple[float, float, float, float]:
    """(mean difference, low, high, p) by the paired t-test over seeds; at least two pairs."""
    differences = np.subtract(first, second)
    if np.ptp(differences) < 1e-12:  # no spread: t is infinite, or 0/0
        value = float(differences.mean())
        return value, value, value, 1.0 if abs(value) < 1e-12 else 0.0
    found = scipy.stats.ttest_rel(first, second)
    low, high = found.confidence_interval(1 - ALPHA)
    return float(differences.mean()), float(low), float(high), float(found.pvalue)


def difference(first: list[Record], second: list[Record], measure: str = "accuracy", same_training: bool = True) -> Difference:
    """The paired difference of two models in a measure: the paired t-test where three or more seeds are common to both;
    else, of the first common seed, McNemar's exact test (accuracy) with a bootstrap interval over texts."""
    pairs = [(a, b) for a in first for b in second if a["seed"] == b["seed"]]
    if not pairs:
        raise RtxError(f"{first[0].path.parent.name} and {second[0].path.parent.name} have no seed in common, so they cannot be paired.")
    columns = [paired_guesses(a, b, same_training) for a, b in pairs]
    n, score = len(columns[0][0]), MEASURES[measure]
    if len(pairs) >= 3:
        value, low, high, p = over_seeds(*zip(*((score(y, a), score(y, b)) for y, a, b in columns)))
        return Difference(value, low, high, p, n, len(pairs), "paired t-test over seeds")
    y, a, b = columns[0]
    if measure != "accuracy":
        value, low, high = bootstrap_interval(lambda y, a, b, axis: score(y, a, axis) - score(y, b, axis), y, a, b)
        return Difference(value, low, high, None, n, 1, "bootstrap over texts")
    value, low, high = bootstrap_interval(np.mean, (y == a).astype(float) - (y == b))
    return Difference(value, low, high, compare(*pairs[0], same_training)["p"], n, 1, "McNemar's exact test")


def same_share(right_a: int, n_a: int, right_b: int, n_b: int) -> float:
    """p of Fisher's exact test that two models, each tested on texts of its own, are right equally often."""
    return float(scipy.stats.fisher_exact([[right_a, n_a - right_a], [right_b, n_b - right_b]]).pvalue)


@dataclass(frozen=True)
class Paired:
    """The loss of one language model minus that of another, on the same batches, with the same seeds."""

    value: float
    low: float  # 95 % interval over batches, of the mean over seeds
    high: float
    by_seed: tuple[float, ...]
    p: float | None  # paired t-test over seeds, where there are enough

    @property
    def sign(self) -> int:
        """±1 where the interval excludes 0, every seed agrees and, with enough seeds, the test over seeds says so too; else 0."""
        clear = (self.low > 0 or self.high < 0) and len({np.sign(d) for d in self.by_seed}) == 1 and (self.p is None or self.p < ALPHA)
        return int(np.sign(self.value)) if clear else 0


def paired(first: list[Record], second: list[Record]) -> Paired | None:
    """None where no seed is common to both."""
    found = [(a["test"], b["test"]) for a in first for b in second if a["seed"] == b["seed"] and a["test"]["batch_sizes"] == b["test"]["batch_sizes"]]
    if not found:
        return None
    sizes = np.array(found[0][0]["batch_sizes"])
    whole = sizes == sizes[0]  # the last batch may be smaller
    a, b = (np.array([pair[i]["batch_losses"] for pair in found])[:, whole] for i in (0, 1))  # (seeds, batches) each
    gain = a - b
    value, low, high = mean_interval(gain.mean(0).tolist())
    p = over_seeds(a.mean(1).tolist(), b.mean(1).tolist())[3] if len(found) >= ENOUGH_SEEDS else None
    return Paired(value, low, high, tuple(gain.mean(1).tolist()), p)
