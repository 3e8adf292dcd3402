"""What the claims page judges beside the values that other pages quote."""

import numpy as np

from rtx_core.models.registry import config_of
from rtx_core.report import statistics as S
from rtx_core.report.evidence import badge, device_of
from rtx_core.report.values import Runs, Space, Task, Unmeasured, Value
from study import paper
from study.analysis.classifiers import PAIR, paired_difference, rise
from study.analysis.corpora import each_length, furthest_label, guiraud
from study.analysis.records import test_loss
from study.published import published
from study.values.common import computed, functions, task
from study.values.methods import parts_of
from study.values.performance import benchmark, by_length


def pairs_of(task: Task) -> list[tuple]:
    return S.common(*(getattr(task, model).records for model in PAIR))


def estimated(statistic, seeds: list[tuple], form: str) -> Value:
    """100 × a statistic of labels, guesses and weights, over the records of each seed."""
    return Value(*(100 * each for each in S.estimate(statistic, seeds)), badge(seeds), form=form)


def share(task: Task) -> Value:
    """Recurrent's accuracy as a percentage of Baseline's."""
    score = S.MEASURES["accuracy"]
    return estimated(lambda y, a, b, w: score(y, b, w) / score(y, a, w), pairs_of(task), ".1f")


def balance(task: Task, model: str, average: str = "") -> Value:
    """Precision minus recall in points; `average="weighted "` as the study printed them."""
    precision, recall = S.MEASURES[f"{average}precision"], S.MEASURES[f"{average}recall"]
    runs = [(run,) for run in getattr(task, model).records]
    return estimated(lambda y, a, w: precision(y, a, w) - recall(y, a, w), runs, "+.1f")


def final_rise(task: Task, model: str) -> Value:
    runs = getattr(task, model).records
    return Value(*S.mean_interval(list(map(rise, runs))), badge(runs), form="+.2f")


def shrinks(small: Task, large: Task) -> Value:
    """By how many points the lead that a model has on the first is smaller on the second."""
    change = (1 if small.difference > 0 else -1) * (small.difference - large.difference)
    return Value(change, change, change, badge([small._records, large._records]), form="+.1f")


def harder_task(task: Task, than: Task, name: str) -> Value:
    """Accuracy on `than` minus accuracy on `task` in points; other texts, so Fisher's exact test of the first seeds."""
    pair = [getattr(each, name).records[0] for each in (task, than)]
    (a, n), (b, m) = [(round(r["test"]["accuracy"] * r["test"]["n"]), r["test"]["n"]) for r in pair]
    points, p = 100 * (b / m - a / n), S.same_share(a, n, b, m)
    return Value(points, evidence=badge(pair[0]), form="+.1f", sign=int(np.sign(points)) if p < S.ALPHA else 0, p=p)


def loss_gap(runs: Runs, first: str, second: str) -> Value:
    """Test loss of the first model minus that of the second, in nats per character or token; of one seed by batches."""
    pairs = S.common(runs.of(first), runs.of(second))
    if len(pairs) > 1:
        return paired_difference(pairs, test_loss, "+.3f")
    *found, p = S.over_seeds(*(run["test"]["batch_losses"][:-1] for run in pairs[0]))  # the last one is shorter
    return Value(*found, badge(pairs), form="+.3f", sign=int(np.sign(found[0])) if p < S.ALPHA else 0, p=p)


def times_of(task: Task) -> Value:
    """Recurrent's time of a text in a batch on a CPU over Baseline's; bounds: the middle 80 % of batches."""
    pairs, keys = pairs_of(task), ("per_sentence_ms", "p10_ms", "p90_ms")
    pairs = [pair for pair in pairs if all(r["latency"]["environment"]["device_type"] == "cpu" for r in pair)]
    if len({device_of(record, "latency") for pair in pairs for record in pair}) != 1:
        raise Unmeasured("The two models were not timed on one CPU.")
    y, x = [{k: np.median([p[i]["latency"]["measured"][-1][k] for p in pairs]) for k in keys} for i in (0, 1)]
    return Value(x[keys[0]] / y[keys[0]], x["p10_ms"] / y["p90_ms"], x["p90_ms"] / y["p10_ms"], form=".2f")


def labels() -> Space:
    """The largest distance of a part's share of a label from what is stated, in points."""

    def off(name: str, stated: dict) -> Value:
        most = furthest_label(parts_of(name), stated)
        return Value(most, text=f"{most:.3f} points off")

    table, whole, parts = (
        published()["labels"]["sst2"],
        parts_of("sst2-seeded-128")["train"],
        parts_of("yelp-seeded-128"),
    )
    percents = {"train": 100 * np.array(whole["labels"]) / whole["n"]}
    found = {"table": off("sst2-published-128", {part: table[part]["percent"] for part in parts})}
    found |= {"subsets": max(off(f"sst2-seeded-{size}pct-128", percents) for size in (10, 50))}
    found |= {"three": off("multi-domain-seeded-128", dict.fromkeys(parts, 100 / 3))}
    return Space(found | {"yelp": off("yelp-seeded-128", dict.fromkeys(parts, 50))})


def lengths(name: str, unit: str, low: int, high: int, longest: float = 1.0) -> Value:
    """Per cent of the longest test texts that have as many words or tokens."""
    every = np.sort(each_length(parts_of(name)["test"], unit))
    some = every[len(every) - round(longest * len(every)) :]
    share = 100 * float(((low <= some) & (some <= high)).mean())
    return Value(share, text=f"{share:.1f} %")


def diversity() -> Space:
    """Distinct tokens of the long training texts over those of as many short ones."""
    tokens = [paper.measurements("yardstick", f"sst2-{part}")[0]["tokens_known"] for part in ("long", "short")]
    parts = [parts_of(f"sst2-seeded-{part}-128")["train"] for part in ("long", "short")]
    ratios = {"of_texts": tokens[0] / tokens[1], "for_length": guiraud(*tokens, *parts)}
    return Space({name: Value(ratio, text=f"{ratio:.1f} times") for name, ratio in ratios.items()})


def sizes() -> Space:
    """How far our counts are from those stated, in roundings of these (0.05 million, a point), and what differs."""
    millions = [getattr(task("sst2"), name).parameters / 1e6 for name in PAIR]
    saving = 100 * (1 - millions[1] / millions[0])
    configs, widths = list(map(config_of, PAIR)), ("hidden_size", "num_heads", "intermediate_size")
    differing = sum(len({getattr(config, name) for config in configs}) > 1 for name in widths)
    a, b = (each.num_layers * each.num_passes for each in configs)
    words = f"{millions[0]:.1f} M, {millions[1]:.1f} M, {saving:.1f} %"

    def off(a: float, b: float, percent: float) -> Value:
        return Value(max(*abs(np.subtract(millions, (a, b))) / 0.05, abs(saving - percent)), text=words)

    differing = Value(differing, text=f"{differing} of {len(widths)} widths differ")
    return Space({"off": off, "differing": differing, "depth_gap": Value(abs(a - b), text=f"depth {a} and {b}")})


def decoders() -> Space:
    """What is counted of the decoders of the other two studies, and how the recurrence's time grows with the length."""
    names = ("tinystories-report-reduced", "shakespeare-nanogpt-reduced")
    total = {run["model"]: run["parameters"]["total"] for name in names for run in paper.records(name=name)}
    off = sum(abs(total[m] - each["total"]) for m, each in published()["tinystories"]["components"].items())
    millions = [total[model] / 1e6 for model in ("gpt-1", "gpt-6", "kausik")]
    furthest, words = max(abs(np.subtract(millions, (1.89, 10.74, 1.89)))), ", ".join(f"{m:.2f} M" for m in millions)
    lengths = benchmark("recurrence")["sizes"]["lengths"]
    slope = np.polyfit(*np.log([lengths, by_length("by_length", "kausik")]), 1)[0]
    slope = Value(slope, text=f"length to the power {slope:.2f}")
    return Space({"printed": off, "letters": Value(furthest, text=words), "growth": slope})


VALUES = computed(labels, diversity, sizes, decoders) | functions(pairs_of, paired_difference, rise, share, balance)
VALUES |= functions(final_rise, shrinks, harder_task, loss_gap, times_of, lengths)
