"""The names that the book's prose quotes: {val}`sst2.difference:+.1f`; a page's own live beside this.  Every run of a
labelled corpus has one, its folder's with `_` for `-` and `.`: `sst2_50pct_epochs1`.
"""

import re
from collections.abc import Callable
from statistics import mean

import numpy as np

from rtx_core.report import statistics
from rtx_core.report.evidence import badge
from rtx_core.report.values import Gap, Model, Space, Task, Value
from study import claims, paper
from study.experiments import EXPERIMENTS
from study.published import published

PAIR = ("baseline", "recurrent")
# the tests of the forest plots, which are one family: in prose -> folder of its records, the full budget first
COMPARED = {"grouped": "sst2-grouped", "sst2": "sst2", "official": "sst2-official", "short": "sst2-short"}
COMPARED |= {"tenth": "sst2-10pct", "half": "sst2-50pct", "long": "sst2-long"}
COMPARED |= {"yelp": "yelp", "domains": "multi-domain", "yelp_512": "yelp-maxlength512-trainrows10000-epochs1"}


def computed(*given: Callable) -> dict[str, Callable]:
    """Values under the names of functions, which are called once, when their name is used."""
    return {function.__name__: function for function in given}


def functions(*given: Callable) -> dict[str, Callable]:
    """Functions that a sentence calls itself."""
    return {function.__name__: lambda function=function: function for function in given}


def task(name: str) -> Task:
    return Task(paper.records(name=name), called=name)


def transfer() -> Space:
    """Models of one corpus, tested on another."""
    ways = {"to_yelp": "sst2-10pct-to-yelp", "to_sst2": "yelp-to-sst2"}
    return Space({key: Task(paper.measurements("transfer", name), called=name) for key, name in ways.items()})


def asked(model: str, about: str, found: str) -> list[float]:
    """How likely a model finds each of our short sentences about one domain in another, or in the same."""
    (measured,) = (m for m in paper.measurements("asked", COMPARED["domains"]) if m["model"] == model)
    return [answer[found] for answer in measured["answers"] if answer["meant"] == about]


def bag_of_words() -> Space:
    """What word counts alone can do, by data set: `bag_of_words.sst2_10pct.accuracy`."""
    measured = paper.measurements("yardstick")
    found = {each["of"]: [other for other in measured if other["of"] == each["of"]] for each in measured}
    return Space({name: Model(each, f"bag of words, {name}") for name, each in found.items()})


def leakage() -> Space:
    """Points of accuracy that phrases of a sentence on both sides of the split are worth, on equal seeds."""
    words, cuts = bag_of_words(), ("sst2", "sst2-grouped")
    found = {"bag_of_words": 100 * (words.sst2.accuracy - words.sst2_grouped.accuracy)}
    for model in PAIR:
        pairs = statistics.common(*(paper.records(name=name, model=model) for name in cuts))
        found[model] = 100 * mean(a["test"]["accuracy"] - b["test"]["accuracy"] for a, b in pairs)
    return Space(found)


def p_over_seeds(measure: Callable, first: Model | list, second: Model | list) -> float:
    """p of the difference in a measure of each run, by the paired t-test."""
    return statistics.over_seeds(*([measure(run) for run in runs_of(found)] for found in (first, second)))[3]


def minus(first: Model | list, second: Model | list, **about: object) -> Gap:
    """The accuracy of some runs minus that of others, paired by seed, in points."""
    pair = [runs_of(first), runs_of(second)]
    return Gap(statistics.difference(*pair, **about), badge(pair))


def paired_difference(pairs: list[tuple], what: Callable, form: str) -> Value:
    """`what(run)` of the first minus that of the second of each pair, by the paired t-test."""
    value, *bounds, p = statistics.over_seeds(*([what(run) for run in column] for column in zip(*pairs)))
    sign = int(np.sign(value)) if p < statistics.ALPHA else 0
    return Value(value, *bounds, badge(pairs), form=form, sign=sign, p=p)


def front() -> Space:
    """Baseline − Recurrent of all tasks, p adjusted; those in full, and of film reviews; SST-2 on the seeds of both."""
    pairs = {key: [paper.records(name=name, model=m) for m in PAIR] for key, name in COMPARED.items()}
    family = statistics.adjusted([statistics.difference(*pair) for pair in pairs.values()])
    tasks = {key: Gap(found, badge(pair)) for (key, pair), found in zip(pairs.items(), family)}
    full = tuple(gap for gap in tasks.values() if gap.badge.budget == "full")
    films = tuple(gap for key, gap in tasks.items() if COMPARED[key].startswith("sst2"))
    pooled = Task(statistics.common(*pairs["sst2"]), called="sst2")
    return Space({"tasks": tasks, "full": full, "films": films, "sst2": pooled})


def scoreboard() -> Space:
    """How many claims have which outcome: `scoreboard.reproduced`; `trained`: of these, how many rest on training."""
    frame = claims.judged()
    found, trained = frame["outcome"], int((frame["badge"][frame["outcome"] == claims.REPRODUCED] != "").sum())
    counts = {word: int((found == word).sum()) for word in claims.OUTCOMES}
    return Space(counts | {"all": len(found), "trained": trained})


def published_rows() -> Space:
    """By task and source: `published_rows.sst2.table_6.baseline.accuracy`."""
    tasks = published()["benchmarks"].items()
    return Space({task: {row["source"].split(", ")[1].lower(): row for row in rows} for task, rows in tasks})


def runs_of(found: Model | list) -> list:
    return getattr(found, "records", found)


def chosen(run) -> dict:
    """The row of a run's history that was tested."""
    return next(row for row in run["history"] if row["step"] == run["selected"]["step"])


def tested(found: Model | list, what: str) -> list[float]:
    """`what` after the epoch whose weights were tested."""
    return [chosen(run)[what] for run in runs_of(found)]


def missed(found: Model | list) -> list[float]:
    """Points of validation accuracy between the epoch that was tested and the best."""
    return [100 * (best - a) for best, a in zip(peaks(found), tested(found, "validation_accuracy"))]


def picked(found: Model | list) -> list[float]:
    """Test accuracy in percent after the epoch of the best validation accuracy."""
    return [100 * run["most_accurate"]["test"]["accuracy"] for run in runs_of(found)]


def last(found: Model | list, what: str) -> list[float]:
    """`what` after the last epoch."""
    return [run["history"][-1][what] for run in runs_of(found)]


def peaks(found: Model | list) -> list[float]:
    """The highest validation accuracy of a run."""
    return [max(row["validation_accuracy"] for row in run["history"]) for run in runs_of(found)]


def generalization_gap(run) -> float:
    """Validation over training loss after the last epoch, in nats."""
    return run["history"][-1]["validation_loss"] - run["history"][-1]["train_loss"]


def rise(run) -> float:
    """Of the validation loss, from its lowest to its last value, in nats."""
    return run["history"][-1]["validation_loss"] - chosen(run)["validation_loss"]


LABELLED = tuple(name for name, experiment in EXPERIMENTS.items() if experiment.data.labeled)
NAMES = {re.sub(r"\W", "_", name): name for _, name, *_ in paper.planned() if name.startswith(LABELLED)}
VALUES = {key: lambda name=name: task(name) for key, name in (NAMES | COMPARED).items()} | {"compared": COMPARED}
VALUES |= computed(transfer, published, published_rows, bag_of_words, leakage, front, scoreboard)
VALUES |= functions(statistics.equivalent, statistics.detectable)
VALUES |= functions(asked, mean, statistics.auc, statistics.matched_accuracy, minus, p_over_seeds)
VALUES |= functions(tested, picked, last, peaks, missed, generalization_gap)
