"""Uncertainty of what records say, by SciPy's formulas: functions of lists of records that give numbers."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # which loads its statistics, a second's work, when the first of them is asked for

from rtx_core.errors import RtxError, unknown

RESAMPLES = 2000  # of a bootstrap: enough for the second digit of a 95 % bound
ALPHA = 0.05  # of every test
ENOUGH_SEEDS = 3  # from which on a test over seeds decides; two seeds give a range and no verdict


def accuracy_interval(record) -> tuple[float, float]:
    """Wilson's interval for the accuracy of one trained model: the uncertainty of a finite test set alone."""
    n = record["test"]["n"]
    test = scipy.stats.binomtest(round(record["test"]["accuracy"] * n), n)
    low, high = test.proportion_ci(1 - ALPHA, method="wilson")
    return float(low), float(high)


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """(mean, low, high) by Student's t over seeds; one value has no interval: (value, nan, nan)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, np.nan, np.nan
    half = float(scipy.stats.t.ppf(1 - ALPHA / 2, len(values) - 1) * scipy.stats.sem(values))
    return mean, mean - half, mean + half


def accuracy(records: list) -> tuple[float, float, float]:
    """(mean accuracy, low, high): of one seed Wilson's interval over texts, else `mean_or_range`."""
    values = [record["test"]["accuracy"] for record in records]
    return (values[0], *accuracy_interval(records[0])) if len(values) == 1 else mean_or_range(values)


def mean_or_range(values: list[float]) -> tuple[float, float, float]:
    """(mean, low, high) over seeds: Student's interval of three and more, of two the values themselves."""
    return mean_interval(values) if len(values) >= ENOUGH_SEEDS else (float(np.mean(values)), min(values), max(values))


def auc(record) -> float | None:
    """Area under the ROC curve; None of more than two classes."""
    if len(record["test"]["confusion"]) > 2:
        return None
    from sklearn.metrics import roc_auc_score

    predictions = record.predictions
    return float(roc_auc_score(predictions["labels"], np.diff(predictions["logits"])[:, 0]))


def mean_auc(records: list) -> float | None:
    """The mean over seeds; None of more than two classes, or where there is no record."""
    areas = [area for record in records if (area := auc(record)) is not None]
    return float(np.mean(areas)) if areas and len(areas) == len(records) else None


def shares(record) -> tuple[np.ndarray, np.ndarray]:
    """(true, answered), each (classes,): the share of test texts in each class, and that the model puts there."""
    confusion = np.array(record["test"]["confusion"])  # rows: truth, columns: answers
    return confusion.sum(1) / confusion.sum(), confusion.sum(0) / confusion.sum()


def answers_all(record) -> bool:
    """Whether the model puts a test text in every class."""
    return bool(shares(record)[1].all())


def matched_accuracy(record) -> float:
    """Accuracy of a two-class model if as many texts were called positive as there are, those of the highest scores."""
    positive = record.predictions["labels"] == 1
    order = np.argsort(-np.diff(record.predictions["logits"])[:, 0], kind="stable")
    right = positive[order] == (np.arange(len(order)) < positive.sum())
    return float(right.mean())


def common(*models: Sequence) -> list[tuple]:
    """The records of each seed that all these models have, in the order of the first's."""
    by_seed = [{record["seed"]: record for record in records} for records in models]
    seeds = [seed for seed in (by_seed[0] if by_seed else ()) if all(seed in records for records in by_seed)]
    return [tuple(records[seed] for records in by_seed) for seed in seeds]


def same_texts(*records, same_training: bool = True) -> tuple[np.ndarray, ...]:
    """(labels, guesses of each), each (n,), of models on one test set; where the test sets differ an RtxError.

    `same_training=False` admits other training data, as of a subset: then the labels alone tell the set.
    """
    first = records[0]
    labels = first.predictions["labels"]
    for record in records[1:]:
        same = np.array_equal(labels, record.predictions["labels"])
        if not same or (same_training and first["data"]["sha256"] != record["data"]["sha256"]):
            raise RtxError(f"{first.path.stem} and {record.path.stem} were tested on different data; pair others.")
    return labels, *(record.predictions["logits"].argmax(1) for record in records)


def mcnemar(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """p of McNemar's exact test on the texts that one of two models (texts,) alone answers rightly."""
    only_a, only_b = int(((a == labels) & (b != labels)).sum()), int(((a != labels) & (b == labels)).sum())
    return float(scipy.stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def _require_two(differences: Sequence[float] | np.ndarray) -> None:
    if len(differences) < 2:
        raise RtxError(f"A test over seeds needs two pairs or more, and there is {len(differences)}; train more seeds.")


def over_seeds(first: list[float], second: list[float]) -> tuple[float, float, float, float]:
    """(mean difference, low, high, p) by the paired t-test over seeds; at least two pairs."""
    _require_two(differences := np.subtract(first, second))
    if np.ptp(differences) < 1e-12:  # no spread: t is infinite, or 0/0
        value = float(differences.mean())
        return value, value, value, 1.0 if abs(value) < 1e-12 else 0.0
    test = scipy.stats.ttest_rel(first, second)
    low, high = test.confidence_interval(1 - ALPHA)
    return float(differences.mean()), float(low), float(high), float(test.pvalue)


def unpaired(first: list[float], second: list[float]) -> tuple[float, float, float, float, float]:
    """(mean difference, low, high, p, p of ranks) over seeds that are no pairs: Welch's t-test, which does not ask for
    equal spreads, and the exact rank-sum test, which does not ask for a normal distribution."""
    with warnings.catch_warnings():  # scores that are all equal have a variance of zero, which Welch's test can take
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = scipy.stats.ttest_ind(first, second, equal_var=False)
    low, high = test.confidence_interval(1 - ALPHA)
    ranks = scipy.stats.mannwhitneyu(first, second, method="exact").pvalue
    return float(np.mean(first) - np.mean(second)), float(low), float(high), float(test.pvalue), float(ranks)


def equivalent(differences: Sequence[float], margin: float) -> bool:
    """Whether two one-sided t-tests over seeds place the mean difference within ±margin (Schuirmann 1987)."""
    _require_two(differences)
    sides = ((-margin, "greater"), (margin, "less"))
    tests = [scipy.stats.ttest_1samp(differences, bound, alternative=side) for bound, side in sides]
    return bool(max(test.pvalue for test in tests) < ALPHA)


def detectable(differences: Sequence[float], power: float = 0.8) -> float:
    """The smallest mean difference that a paired t-test over as many seeds of this spread shows with this power."""
    _require_two(differences)
    freedom, error = len(differences) - 1, float(scipy.stats.sem(differences))
    critical = scipy.stats.t.ppf(1 - ALPHA / 2, freedom)
    return error * float(scipy.optimize.brentq(lambda d: scipy.stats.nct.sf(critical, freedom, d) - power, 0.0, 20.0))


def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of values (texts,)."""
    return weights @ values / weights.sum(-1)


def _precision(labels: np.ndarray, guesses: np.ndarray, weights: np.ndarray, label: int = 1) -> np.ndarray:
    return weights @ ((labels == label) & (guesses == label)) / np.maximum(weights @ (guesses == label), 1)


def _f1(labels: np.ndarray, guesses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    hits = weights @ ((labels == 1) & (guesses == 1))
    return 2 * hits / np.maximum(weights @ (labels == 1) + weights @ (guesses == 1), 1)


MEASURES = {  # of labels and guesses (texts,), with weights (..., texts): how often each counts; of class 1
    "accuracy": lambda labels, guesses, weights: mean(labels == guesses, weights),
    "precision": _precision,
    "recall": lambda labels, guesses, weights: _precision(guesses, labels, weights),
    "f1": _f1,
    "weighted precision": lambda labels, guesses, weights: sum(
        mean(labels == of, weights) * _precision(labels, guesses, weights, of) for of in np.unique(labels)
    ),
}
MEASURES["weighted recall"] = MEASURES["accuracy"]


def bootstrap(statistic: Callable, *columns: np.ndarray) -> tuple[float, float, float]:
    """(value, low, high) of `statistic(*columns, weights)`, whole texts resampled; those that are alike in all columns
    are one kind, and how often it is drawn is multinomial."""
    kinds, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    n = counts.sum()
    resampled = np.random.default_rng(0).multinomial(n, counts / n, size=RESAMPLES)
    low, high = np.quantile(statistic(*kinds, resampled), [ALPHA / 2, 1 - ALPHA / 2])
    return float(statistic(*kinds, counts)), float(low), float(high)


def estimate(statistic: Callable, seeds: list[tuple]) -> tuple[float, float, float]:
    """(value, low, high) of `statistic(labels, *guesses, weights)` of the models whose records of each seed are given:
    of one seed the bootstrap interval over texts, else `mean_or_range`."""
    columns = [same_texts(*records) for records in seeds]
    if len(columns) == 1:
        return bootstrap(statistic, *columns[0])
    return mean_or_range([float(statistic(*column, np.ones(len(column[0])))) for column in columns])


@dataclass(frozen=True)
class Difference:
    """A paired difference first − second with its 95 % interval; of two seeds with their range and without p."""

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
        """The verdict on two architectures: ±1 where three seeds or more show a significant difference, else 0."""
        return self.lean if self.seeds >= ENOUGH_SEEDS else 0

    @property
    def lean(self) -> int:
        """+1 or −1 where the difference is significant at 5 %, by the adjusted p where there is one, else 0.  Of one
        seed it compares two trained models, by their test or by the interval over texts; two seeds have none."""
        if self.seeds == 2:
            return 0
        p = self.p if self.adjusted is None else self.adjusted
        clear = p < ALPHA if p is not None else self.low > 0 or self.high < 0
        return int(np.sign(self.value)) if clear else 0


def difference(first: list, second: list, measure: str = "accuracy", same_training: bool = True) -> Difference:
    """The paired difference of two models in a measure, over the seeds that both have; without one an RtxError.

    Three or more seeds: the paired t-test.  One: a bootstrap interval over texts, and for accuracy McNemar's exact
    test.  Two: their mean and their range, which decide nothing.
    """
    pairs = common(first, second)
    if not pairs:
        names = " and ".join(f"{r[0].path.parent.name}/{r[0]['model']}" if r else "no run" for r in (first, second))
        raise RtxError(f"There is no record of a seed that {names} have in common, so they cannot be paired.")
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    score = MEASURES[measure]

    def gap(labels: np.ndarray, a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return score(labels, a, weights) - score(labels, b, weights)

    columns = [same_texts(*pair, same_training=same_training) for pair in pairs]
    n = len(columns[0][0])
    by_seed = [float(gap(*column, weights=np.ones(n))) for column in columns]
    p, test = None, "none: two seeds"
    if len(pairs) >= ENOUGH_SEEDS:
        (value, low, high, p), test = over_seeds(by_seed, [0.0] * len(pairs)), "paired t-test over seeds"
    elif len(pairs) == 2:
        value, low, high = mean_or_range(by_seed)
    else:
        (value, low, high), test = bootstrap(gap, *columns[0]), "bootstrap over texts"
        p, test = (mcnemar(*columns[0]), "McNemar's exact test") if measure == "accuracy" else (None, test)
    return Difference(value, low, high, p, n, tuple(by_seed), test)


def adjusted(family: list[Difference]) -> list[Difference]:
    """The same differences, those over three seeds or more with p adjusted after Benjamini and Hochberg.

    A test over the texts of one seed is about two trained models and belongs to no family of tests over seeds.
    """
    p_values = [each.p for each in family if each.seeds >= ENOUGH_SEEDS]
    new = iter(scipy.stats.false_discovery_control(p_values, method="bh") if p_values else [])
    return [replace(each, adjusted=float(next(new))) if each.seeds >= ENOUGH_SEEDS else each for each in family]


def as_one_more_run(value: float, n: int, values: list[float], texts: int, same_texts: bool = False) -> float:
    """p that a run, tested on n texts, comes out as far from the mean m of our k seeds, tested on `texts`, as `value`:

        t = (value − m) / sqrt(a + b),   a = s²(1 + 1/k),   b = value(1 − value)/n + m(1 − m)/texts

    with s the standard deviation over our seeds; b is 0 where the texts are the same.  Student's t, with the degrees
    of freedom of Satterthwaite (1946), (k − 1)(a + b)²/a²: only a is estimated from few numbers.
    """
    k, m = len(values), float(np.mean(values))
    a = np.var(values, ddof=1) * (1 + 1 / k) if np.ptp(values) > 1e-12 else 0.0
    b = 0.0 if same_texts else value * (1 - value) / n + m * (1 - m) / texts
    if a + b == 0:
        return float(np.isclose(value, m))
    freedom = (k - 1) * ((a + b) / a) ** 2 if a else np.inf
    return float(2 * scipy.stats.t.sf(abs(value - m) / np.sqrt(a + b), freedom))


def same_share(right_a: int, n_a: int, right_b: int, n_b: int) -> float:
    """p of Fisher's exact test that two models, each tested on texts of its own, are right equally often."""
    return float(scipy.stats.fisher_exact([[right_a, n_a - right_a], [right_b, n_b - right_b]]).pvalue)
