"""When predictions of classifiers hold and when they are contradicted."""

from statistics import mean

from rtx_core.report import statistics
from rtx_core.report.values import Model
from study import paper
from study.analysis import classifiers
from study.analysis.ladder import validated_more_often
from study.plan import CURVE
from study.verdicts.runs import RUNS, Conditions


def _bag_of_words(name: str) -> float:
    """The accuracy of counting words on a data set."""
    return Model(paper.measurements("yardstick", name), f"bag of words, {name}").accuracy


def ladder() -> Conditions:
    default, tuned = RUNS.ladder(), RUNS.ladder_tuned()
    close, every = default.accuracies(256, "1x6"), default.accuracies(256)
    holds = not any(pair.sign for pair in default.differences.values()) and max(close) - min(close) <= 0.02
    gains = [abs(tuned.gain(rung)) for rung in ("3x1", "3x2", "6x1", "1x6")]
    contradicting = [((256, "3x2"), (256, "3x1")), ((256, "3x2"), (256, "6x1")), ((384, "6x1"), (384, "3x2"))]
    return holds and min(gains) > max(every) - min(every), any(default.differences[pair].sign for pair in contradicting)


def ladder_tuned() -> Conditions:
    tuned, level = RUNS.ladder_tuned(), (("3x2", "3x1"), ("3x2", "6x1"), ("1x6", "1x1"))
    holds = min(map(tuned.gain, tuned.runs)) > 0
    holds = holds and min(tuned.accuracies()) >= _bag_of_words("sst2-10pct")
    holds = holds and abs(tuned.accuracy("6x1") - tuned.accuracy("1x1")) <= 0.02
    holds = holds and not any(tuned.differences[pair].sign for pair in level)
    return holds, tuned.ahead("6x1", "1x1") or tuned.ahead("1x6", "1x1")


def bf16() -> Conditions:
    """After training with 16-bit products minus after 32-bit ones."""
    folders = ("sst2-10pct-precisionbf16", "sst2-10pct")
    pairs = [[paper.records(folder, model=model) for folder in folders] for model in classifiers.PAIR]
    gaps = statistics.adjusted([statistics.difference(first, second) for first, second in pairs])
    holds = all(gap.sign == 0 and abs(gap.value) <= 0.01 for gap in gaps)
    return holds, any(gap.sign != 0 or abs(gap.value) >= 0.02 for gap in gaps)


def sst2_curve() -> Conditions:
    """With the first seed."""
    pairs = [(RUNS.on_a_tenth(model, **CURVE)[0], RUNS.on_a_tenth(model)[0]) for model in classifiers.PAIR]
    both = [validated_more_often(*pair) for pair in pairs]
    holds = all(abs(one.steps) <= 171 and abs(one.points) <= 1.5 and one.rise > 0 for one in both)
    return holds, any(abs(one.steps) > 342 or abs(one.points) > 3 for one in both)


def sst2_leak_free() -> Conditions:
    grouped, pooled = RUNS.task("sst2-grouped"), RUNS.task("sst2")
    models = grouped.baseline, grouped.recurrent
    first, second = (mean(classifiers.most_accurate(model)) for model in models)
    holds = all(0.8 < model.accuracy < 0.84 for model in models)
    holds = holds and abs(grouped.difference) < 1 and abs(first - second) < 1
    holds = holds and max(epoch for model in models for epoch in classifiers.tested(model, "epoch")) <= 2
    holds = holds and max(first - 100 * models[0].accuracy, second - 100 * models[1].accuracy) <= 1
    falls = [a.accuracy - b.accuracy for a, b in zip(models, (pooled.baseline, pooled.recurrent))]
    return holds, abs(grouped.difference) >= 2 or max(falls) > -0.03


def sst2_half() -> Conditions:
    half, words = RUNS.task("sst2-50pct"), _bag_of_words("sst2-50pct")
    furthest = max(abs(model.accuracy - words) for model in (half.baseline, half.recurrent))
    holds = -2 < half.difference <= 0 and furthest <= 0.015
    return holds, half.difference.lean == 1 or furthest >= 0.03


def sst2_long() -> Conditions:
    """Of the shares of texts that are called positive and that are."""
    long = RUNS.task("sst2-long")
    true = statistics.shares(long.baseline.records[0])[0][1]
    furthest = max(abs(model.positive - true) for model in (long.baseline, long.recurrent))
    holds = long.difference.lean != -1 and abs(long.difference) < 2 and furthest <= 0.05
    return holds, long.difference.lean == -1 or furthest >= 0.1


def three_domains() -> Conditions:
    domains = RUNS.task("multi-domain-trainrows20000-epochs1")
    models, words = (domains.baseline, domains.recurrent), _bag_of_words("multi-domain")
    _, _, products = domains.recurrent.records[0]["test"]["confusion"]
    holds = all(0.97 <= model.accuracy < min(0.99, words + 0.005) for model in models)
    holds = holds and abs(domains.difference) < 1 and products[2] > 0.9 * sum(products)
    return holds, any(model.accuracy < 0.95 for model in models) or abs(domains.difference) >= 2


def three_domains_full() -> Conditions:
    domains, words = RUNS.task("multi-domain"), _bag_of_words("multi-domain")
    accuracies = [model.accuracy for model in (domains.baseline, domains.recurrent)]
    holds = all(0.98 <= accuracy <= 0.993 and abs(accuracy - words) <= 0.01 for accuracy in accuracies)
    return holds and abs(domains.difference) < 0.5, min(accuracies) < 0.975 or abs(domains.difference) >= 1


def yelp_full() -> Conditions:
    short, long, words = RUNS.task("yelp"), RUNS.task("yelp-maxlength512"), _bag_of_words("yelp")
    most = max(abs(short.difference), abs(long.difference))
    beyond = [model.accuracy - words for model in (short.baseline, short.recurrent)]
    gains = [b.accuracy - a.accuracy for a, b in ((short.baseline, long.baseline), (short.recurrent, long.recurrent))]
    holds = most < 1.5 and max(map(abs, beyond)) <= 0.02 and min(gains) >= 0.01
    return holds, most >= 3 or max(beyond) >= 0.03
