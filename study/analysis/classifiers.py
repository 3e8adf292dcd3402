"""Baseline and Recurrent, classifiers of texts: their differences by task, and what the rule that picks a checkpoint,
counting words, depth and the learning rate have to do with them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean

import numpy as np

from rtx_core.reads import remembered
from rtx_core.records import Record
from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.quantities import words
from rtx_core.report.style import number
from rtx_core.report.values import Gap, Task, Value
from study.analysis.records import seeds_of

PAIR = ("baseline", "recurrent")


def of_model(records: Iterable[Record], model: str) -> list[Record]:
    return [record for record in records if record["model"] == model]


def paired(records: Sequence[Record], models: Sequence[str] = PAIR) -> list[Record]:
    """The runs on the seeds that all of these models have."""
    return [run for pair in statistics.common(*(of_model(records, model) for model in models)) for run in pair]


def on_equal_seeds(cuts: Iterable[Iterable[Record]], model: str) -> list[float]:
    """A model's mean accuracy on each cut of a data set, over the seeds that it has on all."""
    pairs = statistics.common(*(of_model(runs, model) for runs in cuts))
    return [mean(run["test"]["accuracy"] for run in column) for column in zip(*pairs)]


def fall(leaky: Iterable[Record], clean: Iterable[Record], model: str) -> float:
    """Points by which a model is worse where no phrase of a training sentence is tested."""
    before, after = on_equal_seeds((leaky, clean), model)
    return 100 * (before - after)


def table_row(name: str, task: Callable[[], Task]) -> dict[str, Callable[[], str]]:
    """The keys of a test in a table: circles of its evidence, accuracies in percent, and Baseline − Recurrent."""
    return {
        f"{name}_circles": lambda: task().badge.circles,
        f"{name}_baseline_percent": lambda: number(100 * task().baseline.accuracy, ".1f"),
        f"{name}_recurrent_percent": lambda: number(100 * task().recurrent.accuracy, ".1f"),
        f"{name}_difference": lambda: str(task().difference),
    }


def gap(first: Iterable[Record], second: Iterable[Record], same_training: bool = True) -> Gap:
    """The accuracy of some runs minus that of others, paired by seed, in points."""
    pair = list(first), list(second)
    return Gap(statistics.difference(*pair, same_training=same_training), badge(pair))


def paired_difference(pairs: list[tuple], measure: Callable, form: str) -> Value:
    """`measure(run)` of the first minus that of the second of each pair, by the paired t-test."""
    value, low, high, p = statistics.over_seeds(*([measure(run) for run in column] for column in zip(*pairs)))
    sign = int(np.sign(value)) if p < statistics.ALPHA else 0
    return Value(value, low, high, badge(pairs), form=form, sign=sign, p=p)


def p_over_seeds(measure: Callable, first: Iterable[Record], second: Iterable[Record]) -> float:
    """p of the difference in a measure of each run, by the paired t-test."""
    return statistics.over_seeds(*([measure(run) for run in runs] for runs in (first, second)))[3]


def brackets(records: Sequence[Record]) -> str:
    """What stands in brackets beside the mean of these runs."""
    seeds = len(seeds_of(records))
    return {1: "95 % intervals over texts", 2: "the two seeds"}.get(seeds, f"95 % intervals over {words(seeds)} seeds")


class Family:
    """The first model minus the second on each test, p adjusted over all of them."""

    def __init__(self, tests: Mapping[str, Sequence[Record]], models: Sequence[str] = PAIR):
        self.pairs = {test: [of_model(records, model) for model in models] for test, records in tests.items()}

    def differences(self, measure: str = "accuracy") -> dict[str, statistics.Difference]:
        family = [statistics.difference(*pair, measure=measure) for pair in self.pairs.values()]
        return dict(zip(self.pairs, statistics.adjusted(family)))

    @remembered
    def gaps(self) -> dict[str, Gap]:
        """In accuracy, in points."""
        return {test: Gap(one, badge(self.pairs[test])) for test, one in self.differences().items()}

    @property
    def full(self) -> dict[str, Gap]:
        """Those at the full budget."""
        return {test: one for test, one in self.gaps.items() if one.badge.budget == "full"}

    @property
    def films(self) -> list[Gap]:
        """Those on film reviews."""
        return [one for test, one in self.gaps.items() if self.pairs[test][0][0]["experiment"] == "sst2"]


# -- The rule that picks a checkpoint


def chosen(run: Record) -> dict:
    """The row of a run's history that was tested."""
    return next(row for row in run["history"] if row["step"] == run["selected"]["step"])


def tested(runs: Iterable[Record], measure: str) -> list[float]:
    """A measure after the epoch whose weights were tested."""
    return [chosen(run)[measure] for run in runs]


def last(runs: Iterable[Record], measure: str) -> list[float]:
    """A measure after the last epoch."""
    return [run["history"][-1][measure] for run in runs]


def peaks(runs: Iterable[Record]) -> list[float]:
    """The highest validation accuracy of each run."""
    return [max(row["validation_accuracy"] for row in run["history"]) for run in runs]


def missed(runs: Iterable[Record]) -> list[float]:
    """Points of validation accuracy between the epoch that was tested and the best."""
    return [100 * (peak - at_test) for peak, at_test in zip(peaks(runs), tested(runs, "validation_accuracy"))]


def most_accurate(runs: Iterable[Record]) -> list[float]:
    """Test accuracy in percent after the epoch of the best validation accuracy."""
    return [100 * run["most_accurate"]["test"]["accuracy"] for run in runs]


def generalization_gap(run: Record) -> float:
    """Validation over training loss after the last epoch, in nats."""
    return run["history"][-1]["validation_loss"] - run["history"][-1]["train_loss"]


def rise(run: Record) -> float:
    """Of the validation loss, from its lowest to its last value, in nats."""
    return run["history"][-1]["validation_loss"] - chosen(run)["validation_loss"]


def highest_rise(run: Record) -> float:
    """Of the validation loss, from its lowest to its highest value, in nats."""
    return max(row["validation_loss"] for row in run["history"]) - chosen(run)["validation_loss"]
