"""The names that the book's prose quotes: {val}`sst2.difference:+.1f`; a page's own live beside this.  Every run of a
labelled corpus has one, its folder's with `_` for `-` and `.`: `sst2_50pct_epochs1`.
"""

import re
from collections.abc import Callable
from statistics import mean

from rtx_core.report import statistics
from rtx_core.report.values import Model, Space, Task
from study import claims, paper
from study.analysis import outcomes
from study.analysis.classifiers import (
    PAIR,
    Family,
    gap,
    generalization_gap,
    last,
    missed,
    most_accurate,
    p_over_seeds,
    paired,
    peaks,
    tested,
)
from study.experiments import EXPERIMENTS
from study.published import published


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
    (measured,) = (m for m in paper.measurements("asked", paper.TESTS["domains"]) if m["model"] == model)
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


def front() -> Space:
    """Baseline − Recurrent of all tasks, p adjusted; those in full, and of film reviews; SST-2 on the seeds of both."""
    family = Family(paper.tests())
    entries = {"tasks": family.gaps, "full": tuple(family.full.values()), "films": tuple(family.films)}
    return Space(entries | {"sst2": Task(paired(paper.records("sst2")), called="sst2")})


def scoreboard() -> Space:
    """How many claims have which outcome: `scoreboard.reproduced`; `trained`: of these, how many rest on training."""
    frame = claims.judged(claims.Sources(**paper.claim_sources()))
    found, trained = frame["outcome"], int((frame["badge"][frame["outcome"] == outcomes.REPRODUCED] != "").sum())
    counts = {word: int((found == word).sum()) for word in outcomes.OUTCOMES}
    return Space(counts | {"all": len(found), "trained": trained})


def published_rows() -> Space:
    """By task and source: `published_rows.sst2.table_6.baseline.accuracy`."""
    tasks = published()["benchmarks"].items()
    return Space({task: {row["source"].split(", ")[1].lower(): row for row in rows} for task, rows in tasks})


LABELLED = tuple(name for name, experiment in EXPERIMENTS.items() if experiment.data.labeled)
NAMES = {re.sub(r"\W", "_", name): name for _, name, *_ in paper.planned() if name.startswith(LABELLED)}
VALUES = {key: lambda name=name: task(name) for key, name in (NAMES | paper.TESTS).items()}
VALUES |= {"compared": paper.TESTS, "minus": lambda: gap, "picked": lambda: most_accurate}
VALUES |= computed(transfer, published, published_rows, bag_of_words, leakage, front, scoreboard)
VALUES |= functions(statistics.equivalent, statistics.detectable)
VALUES |= functions(asked, mean, statistics.auc, statistics.matched_accuracy, p_over_seeds)
VALUES |= functions(tested, last, peaks, missed, generalization_gap)
