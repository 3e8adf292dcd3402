"""What published claims are judged by beside what pages quote: each a value with what is known of its uncertainty."""

from collections.abc import Callable, Mapping

import numpy as np

from rtx_core.models.registry import config_of
from rtx_core.records import Record
from rtx_core.report import statistics
from rtx_core.report.evidence import badge, device_of
from rtx_core.report.values import Runs, Task, Unmeasured, Value
from study.analysis.benchmarks import by_length
from study.analysis.classifiers import PAIR, paired_difference, rise
from study.analysis.corpora import each_length, furthest_label, guiraud
from study.analysis.records import test_loss

Parts = Mapping[str, dict]  # of a data set, as counted

# -- Classifiers


def pairs_of(task: Task) -> list[tuple]:
    return statistics.common(*(getattr(task, model).records for model in PAIR))


def first_epoch(task: Task) -> Value:
    """Points of validation accuracy after the first epoch."""
    return paired_difference(pairs_of(task), lambda run: 100 * run["history"][0]["validation_accuracy"], "+.1f")


def rise_gap(task: Task) -> Value:
    """How much further the validation loss of the first model rises, in nats."""
    return paired_difference(pairs_of(task), rise, "+.2f")


def final_rise(task: Task, model: str) -> Value:
    runs = getattr(task, model).records
    return Value(*statistics.mean_interval(list(map(rise, runs))), badge(runs), form="+.2f")


def estimated(statistic: Callable, seeds: list[tuple], form: str) -> Value:
    """100 × a statistic of labels, guesses and weights, over the records of each seed."""
    value, low, high = (100 * each for each in statistics.estimate(statistic, seeds))
    return Value(value, low, high, badge(seeds), form=form)


def share(task: Task) -> Value:
    """Recurrent's accuracy as a percentage of Baseline's."""
    score = statistics.MEASURES["accuracy"]
    return estimated(lambda y, a, b, w: score(y, b, w) / score(y, a, w), pairs_of(task), ".1f")


def balances(average: str, *tasks: Task) -> list[Value]:
    """Precision minus recall of each model in points; `average="weighted "` as the study printed them."""
    precision, recall = statistics.MEASURES[f"{average}precision"], statistics.MEASURES[f"{average}recall"]

    def balance(task: Task, model: str) -> Value:
        runs = [(run,) for run in getattr(task, model).records]
        return estimated(lambda y, a, w: precision(y, a, w) - recall(y, a, w), runs, "+.1f")

    return [balance(task, model) for task in tasks for model in PAIR]


def shrinks(small: Task, large: Task) -> Value:
    """By how many points the lead that a model has on the first is smaller on the second."""
    change = (1 if small.difference > 0 else -1) * (small.difference - large.difference)
    return Value(change, change, change, badge([small._records, large._records]), form="+.1f")


def harder(task: Task, reference: Task, model: str) -> Value:
    """Accuracy on another task minus accuracy on this one in points; other texts, so Fisher's exact test of the first
    seeds."""
    pair = [getattr(each, model).records[0] for each in (task, reference)]
    (a, n), (b, m) = [(round(run["test"]["accuracy"] * run["test"]["n"]), run["test"]["n"]) for run in pair]
    points, p = 100 * (b / m - a / n), statistics.same_share(a, n, b, m)
    sign = int(np.sign(points)) if p < statistics.ALPHA else 0
    return Value(points, evidence=badge(pair[0]), form="+.1f", sign=sign, p=p)


def time_ratio(task: Task) -> Value:
    """Recurrent's time of a text in a batch on a CPU over Baseline's; bounds: the middle 80 % of batches."""
    pairs, keys = pairs_of(task), ("per_sentence_ms", "p10_ms", "p90_ms")
    pairs = [pair for pair in pairs if all(run["latency"]["environment"]["device_type"] == "cpu" for run in pair)]
    if len({device_of(record, "latency") for pair in pairs for record in pair}) != 1:
        raise Unmeasured("The two models were not timed on one CPU.")
    y, x = [{k: np.median([p[i]["latency"]["measured"][-1][k] for p in pairs]) for k in keys} for i in (0, 1)]
    return Value(x[keys[0]] / y[keys[0]], x["p10_ms"] / y["p90_ms"], x["p90_ms"] / y["p10_ms"], form=".2f")


def size_error(task: Task, millions: tuple[float, float], saving: float) -> Value:
    """How far our parameters are from those stated, in roundings of these (0.05 million, a point)."""
    ours = [getattr(task, name).parameters / 1e6 for name in PAIR]
    percent = 100 * (1 - ours[1] / ours[0])
    furthest = max(*abs(np.subtract(ours, millions)) / 0.05, abs(percent - saving))
    return Value(furthest, text=f"{ours[0]:.1f} M, {ours[1]:.1f} M, {percent:.1f} %")


def depth_gap() -> Value:
    """Between the layers that Baseline and Recurrent apply."""
    baseline, recurrent = (config.num_layers * config.num_passes for config in map(config_of, PAIR))
    return Value(abs(baseline - recurrent), text=f"depth {baseline} and {recurrent}")


def differing_widths() -> Value:
    """How many widths of Baseline and Recurrent differ."""
    configs, widths = list(map(config_of, PAIR)), ("hidden_size", "num_heads", "intermediate_size")
    differing = sum(len({getattr(config, name) for config in configs}) > 1 for name in widths)
    return Value(differing, text=f"{differing} of {len(widths)} widths differ")


# -- Corpora


def label_error(*stated: tuple[Parts, Mapping]) -> Value:
    """The largest distance of a part's share of a label from what is stated, in points, on any of these data sets."""
    furthest = max(furthest_label(parts, percents) for parts, percents in stated)
    return Value(furthest, text=f"{furthest:.3f} points off")


def lengths(parts: Parts, unit: str, low: int, high: int, longest: float = 1.0) -> Value:
    """Per cent of the longest test texts that have as many words or tokens."""
    every = np.sort(each_length(parts["test"], unit))
    some = every[len(every) - round(longest * len(every)) :]
    percent = 100 * float(((low <= some) & (some <= high)).mean())
    return Value(percent, text=f"{percent:.1f} %")


def diversity(long: Record, short: Record) -> Value:
    """Distinct tokens of the long training texts over those of as many short ones, as bags of words know them."""
    ratio = long["tokens_known"] / short["tokens_known"]
    return Value(ratio, text=f"{ratio:.1f} times")


def diversity_for_length(long: Record, short: Record, long_parts: Parts, short_parts: Parts) -> Value:
    """The same by Guiraud's index."""
    known = long["tokens_known"], short["tokens_known"]
    ratio = guiraud(*known, long_parts["train"], short_parts["train"])
    return Value(ratio, text=f"{ratio:.1f} times")


# -- Language models


def loss_gap(runs: Runs, first: str, second: str) -> Value:
    """Test loss of the first model minus that of the second, in nats per character or token; of one seed by batches."""
    pairs = statistics.common(runs.records_for(first), runs.records_for(second))
    if len(pairs) > 1:
        return paired_difference(pairs, test_loss, "+.3f")
    columns = (run["test"]["batch_losses"][:-1] for run in pairs[0])  # the last is shorter
    value, low, high, p = statistics.over_seeds(*columns)
    sign = int(np.sign(value)) if p < statistics.ALPHA else 0
    return Value(value, low, high, badge(pairs), form="+.3f", sign=sign, p=p)


def parameters(runs: Runs, *models: str) -> list[int]:
    return [runs.records_for(model)[0]["parameters"]["total"] for model in models]


def millions_error(totals: list[int], stated: tuple[float, ...]) -> Value:
    """The largest distance of parameters from those stated, in millions."""
    millions = [total / 1e6 for total in totals]
    furthest = max(abs(np.subtract(millions, stated)))
    return Value(furthest, text=", ".join(f"{million:.2f} M" for million in millions))


def growth(recurrence: Mapping) -> Value:
    """The power of the text's length with which the time of the recurrence along it grows."""
    times = by_length(recurrence, "by_length", "kausik")
    lengths, seconds = np.log([recurrence["sizes"]["lengths"], times])
    slope = np.polyfit(lengths, seconds, 1)[0]
    return Value(slope, text=f"length to the power {slope:.2f}")
