"""Uncertainty of what records say; the formulas are SciPy's."""

from dataclasses import dataclass, replace

import numpy as np
import scipy  # which loads its statistics, a second's work, when the first of them is asked for

from rtx_core.errors import RtxError
from rtx_core.results.record import Record

RESAMPLES = 2000  # of a bootstrap: enough for the second digit of a 95 % bound
ALPHA = 0.05  # of every test
ENOUGH_SEEDS = 3  # from which on a test over seeds decides
CHANCE, CLEAR = "the difference may well be chance", "chance alone would rarely give such a difference"


def equals(p: float) -> str:
    """ "= 0.012", or that p is smaller than what floating point tells from 0."""
    return f"= {p:.2g}" if p > 1e-99 else "< 1e-99"


def accuracy_interval(record: Record, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for the accuracy of one trained model: the uncertainty of a finite test set alone."""
    n = record["test"]["n"]
    interval = scipy.stats.binomtest(round(record["test"]["accuracy"] * n), n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def auc(record: Record) -> float | None:
    """Area under the ROC curve: the share of pairs of a positive and a negative text of which the positive one is scored higher.

    It knows no threshold, so it tells a model that ranks texts badly from one that is only shifted to one class.  None of more than two classes.
    """
    if len(record["test"]["confusion"]) > 2:
        return None
    from sklearn.metrics import roc_auc_score

    found = record.predictions
    return float(roc_auc_score(found["labels"], found["logits"][:, 1] - found["logits"][:, 0]))


def shares(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """(true, answered), each (classes,): the share of the test texts that each class has, and that the model puts in it."""
    confusion = np.array(record["test"]["confusion"])  # rows: truth, columns: answers
    return confusion.sum(1) / confusion.sum(), confusion.sum(0) / confusion.sum()


def answers_all(record: Record) -> bool:
    """Whether the model puts a test text in every class; one that does not was stopped before it knew the class."""
    return bool(shares(record)[1].all())


def mean_interval(values: list[float], level: float = 0.95) -> tuple[float, float, float]:
    """(mean, low, high) by Student's t over seeds; one value has no interval: (value, nan, nan)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(scipy.stats.t.ppf(0.5 + level / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def common(*models: list[Record]) -> list[tuple[Record, ...]]:
    """The records of each seed that all these models have, in the order of the first's."""
    by_seed = [{record["seed"]: record for record in records} for records in models]
    return [tuple(found[seed] for found in by_seed) for seed in by_seed[0] if all(seed in found for found in by_seed)]


def tested(seeds: list) -> list:
    """Those that a statistic rests on: all where they are enough for a test over seeds, else the first."""
    return seeds if len(seeds) >= ENOUGH_SEEDS else seeds[:1]


def same_texts(*records: Record, same_training: bool = True) -> tuple[np.ndarray, ...]:
    """(labels, guesses of each), each (n,), of models on one test set.

    `same_training=False` admits different training data, as of a subset: then the labels say that the test set is the same.
    """
    (a, *others), (first, *rest) = records, [record.predictions for record in records]
    for b, second in zip(others, rest):
        same = np.array_equal(first["labels"], second["labels"])
        if not same or (same_training and a["data"]["sha256"] != b["data"]["sha256"]):
            raise RtxError(f"{a.path.stem} and {b.path.stem} were tested on different data; only runs on the same test set can be paired.")
    return first["labels"], *(found["logits"].argmax(1) for found in (first, *rest))


def compare(a: Record, b: Record, same_training: bool = True) -> dict:
    """Two models on the same sentences: accuracy difference a − b, and McNemar's exact test on where they disagree."""
    labels, guesses_a, guesses_b = same_texts(a, b, same_training=same_training)
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
        "verdict": CHANCE if p >= ALPHA else CLEAR,
    }


# -- measures of a resample: labels and guesses (..., n) -> (...,) ------------------------------------------------------


def _accuracy(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return (labels == guesses).mean(axis)


def _precision(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((guesses == 1).sum(axis), 1)


def _weighted_precision(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    """Precision of each of two classes, weighted by how many texts the class has."""
    negative, positive = _precision(1 - labels, 1 - guesses, axis), _precision(labels, guesses, axis)
    return negative + (labels == 1).mean(axis) * (positive - negative)


def _recall(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((labels == 1).sum(axis), 1)


def _f1(labels: np.ndarray, guesses: np.ndarray, axis: int = -1) -> np.ndarray:
    return 2 * ((labels == 1) & (guesses == 1)).sum(axis) / np.maximum((labels == 1).sum(axis) + (guesses == 1).sum(axis), 1)


# of two classes; but for accuracy and the weighted ones, of class 1
MEASURES = {"accuracy": _accuracy, "precision": _precision, "recall": _recall, "f1": _f1,
            "weighted precision": _weighted_precision, "weighted recall": _accuracy}  # fmt: skip


def bootstrap_interval(statistic, *columns: np.ndarray, level: float = 1 - ALPHA) -> tuple[float, float, float]:
    """(value, low, high) of `statistic(*columns, axis)`; whole texts are resampled, all columns of a text together."""
    found = scipy.stats.bootstrap(
        columns, statistic, paired=True, vectorized=True, n_resamples=RESAMPLES, batch=100, confidence_level=level, method="percentile", rng=0
    )
    low, high = found.confidence_interval
    return float(statistic(*columns, axis=-1)), float(low), float(high)


def estimate(statistic, seeds: list[tuple[Record, ...]], same_training: bool = True) -> tuple[float, float, float, int]:
    """(value, low, high, seeds) of `statistic(labels, *guesses, axis)` of the models whose records of each seed are given: with three or
    more seeds their mean with Student's interval, else of the first seed with a bootstrap interval over texts."""
    columns = [same_texts(*records, same_training=same_training) for records in tested(seeds)]
    if len(columns) > 1:
        return *mean_interval([float(statistic(*column, axis=-1)) for column in columns]), len(columns)
    return *bootstrap_interval(statistic, *columns[0]), 1


# -- two models --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A paired difference first − second with its 95 % interval.  `p` is None where the interval decides, and the seeds if there are two."""

    value: float
    low: float
    high: float
    p: float | None
    n: int  # test texts
    by_seed: tuple[float, ...]
    test: str
    adjusted: float | None = None  # p as one of a family of comparisons

    @property
    def seeds(self) -> int:
        return len(self.by_seed)

    @property
    def sign(self) -> int:
        """+1 or −1 where the difference is significant at 5 %, else 0; by the adjusted p where there is one."""
        p = self.p if self.adjusted is None else self.adjusted
        clear = p < ALPHA if p is not None else (self.low > 0 or self.high < 0) and len({np.sign(d) for d in self.by_seed}) == 1
        return int(np.sign(self.value)) if clear else 0

    @property
    def verdict(self) -> str:
        return CLEAR if self.sign else CHANCE

    def __str__(self) -> str:
        p = "" if self.p is None else f", p {equals(self.p)}"
        p += "" if self.adjusted is None else f", adjusted {self.adjusted:.2g}"
        count = f"{self.seeds} seeds" if self.seeds > 1 else "one seed"
        count += f": {' and '.join(f'{100 * d:+.2f}' for d in self.by_seed)}" if self.seeds > 1 and self.p is None else ""
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
    """The paired difference of two models in a measure.  Where three or more seeds are common to both: the paired t-test.  With two:
    the mean over them, a bootstrap interval over texts, both seeds' guesses of a text together, and no p.  With one: the same interval,
    and for accuracy McNemar's exact test."""
    pairs = common(first, second)
    if not pairs:
        raise RtxError(f"{first[0].path.parent.name} and {second[0].path.parent.name} have no seed in common, so they cannot be paired.")
    columns, score = [same_texts(*pair, same_training=same_training) for pair in pairs], MEASURES[measure]
    scores = [(float(score(y, a)), float(score(y, b))) for y, a, b in columns]
    by_seed, n = tuple(a - b for a, b in scores), len(columns[0][0])
    if len(pairs) >= ENOUGH_SEEDS:
        return Difference(*over_seeds(*zip(*scores)), n, by_seed, "paired t-test over seeds")

    def gap(y, *guesses, axis):
        return sum(score(y, a, axis) - score(y, b, axis) for a, b in zip(guesses[::2], guesses[1::2])) / len(pairs)

    found = bootstrap_interval(gap, *same_texts(*(record for pair in pairs for record in pair), same_training=same_training))
    if len(pairs) > 1 or measure != "accuracy":
        return Difference(*found, None, n, by_seed, "bootstrap over texts")
    return Difference(*found, compare(*pairs[0], same_training)["p"], n, by_seed, "McNemar's exact test")


def adjusted(family: list[Difference]) -> list[Difference]:
    """The same differences, their p adjusted for one another after Benjamini and Hochberg; one without p stays as it is."""
    ps = [one.p for one in family if one.p is not None]
    found = iter(scipy.stats.false_discovery_control(ps, method="bh") if ps else [])
    return [one if one.p is None else replace(one, adjusted=float(next(found))) for one in family]


def as_one_more_run(value: float, n: int, ours: list[float], texts: int, same_texts: bool = False) -> float:
    """p that a single run, tested on n texts, comes out as far from the mean m of our k seeds, tested on `texts`, as `value` did:

        t = (value − m) / sqrt(a + b),   a = s²(1 + 1/k),   b = value(1 − value)/n + m(1 − m)/texts

    with s the standard deviation over our seeds.  Two draws of texts make b, which is 0 where the texts are the same.  Student's t,
    with the degrees of freedom of Satterthwaite (1946), (k − 1)(a + b)²/a²: only a is estimated from few numbers.
    """
    k, m = len(ours), float(np.mean(ours))
    a = np.var(ours, ddof=1) * (1 + 1 / k) if np.ptp(ours) > 1e-12 else 0.0
    b = 0.0 if same_texts else value * (1 - value) / n + m * (1 - m) / texts
    if a + b == 0:
        return float(np.isclose(value, m))
    return float(2 * scipy.stats.t.sf(abs(value - m) / np.sqrt(a + b), (k - 1) * ((a + b) / a) ** 2 if a else np.inf))


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
        """±1 where the interval excludes 0, two seeds or more agree and, with enough seeds, the test over seeds says so too; else 0."""
        agree = len(self.by_seed) > 1 and len({np.sign(d) for d in self.by_seed}) == 1
        clear = (self.low > 0 or self.high < 0) and agree and (self.p is None or self.p < ALPHA)
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
