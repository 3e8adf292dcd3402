"""The names that the book's prose quotes: {val}`sst2.difference:+.1f`; a page's own live beside this.  Every run of a
corpus has one, its folder's with `_` for `-`: `sst2_50pct_epochs1`.  A function is called once, when its name is used.
"""

from collections.abc import Callable

from rtx_core.report.statistics import common, same_share
from rtx_core.report.values import Model, Space, Task
from study import paper
from study.experiments import EXPERIMENTS


def task(name: str) -> Task:
    return Task(paper.records(name=name), called=name)


def leakage() -> Space:
    """Points of accuracy that leaving a sentence's phrases on both sides of the split is worth, at one epoch,
    on the seeds of both."""
    pooled, grouped = task("sst2-epochs1"), task("sst2-grouped-epochs1")
    found = {}
    for model in ("baseline", "recurrent"):
        pairs = common(getattr(pooled, model).records, getattr(grouped, model).records)
        found[model] = 100 * sum(a["test"]["accuracy"] - b["test"]["accuracy"] for a, b in pairs) / len(pairs)
    words = bag_of_words()
    found["bag_of_words"] = 100 * (words.sst2.accuracy - words.sst2_grouped.accuracy)
    return Space(found | {"p_values": [chance(pooled, grouped, model) for model in ("baseline", "recurrent")]})


def chance(pooled: Task, grouped: Task, model: str) -> float:
    """p that chance in the choice of test texts alone explains it, by Fisher's exact test on the first seed."""
    tests = [getattr(task, model).records[0]["test"] for task in (pooled, grouped)]
    return same_share(*(n for test in tests for n in (round(test["accuracy"] * test["n"]), test["n"])))


def bag_of_words() -> Space:
    """What word counts alone can do, by data set: `bag_of_words.sst2_10pct.accuracy`."""
    found = {}
    for measured in paper.measurements("yardstick"):
        found.setdefault(measured["of"], []).append(measured)
    return Space({name: Model(each, f"bag of words, {name}") for name, each in found.items()})


def functions(*given: Callable) -> dict[str, Callable]:
    """The values of functions that sentences call themselves."""
    return {function.__name__: lambda function=function: function for function in given}


TASKS = tuple(name for name, experiment in EXPERIMENTS.items() if experiment.data.labelled)
RUNS = {name for _, name, *_ in paper.planned() if name.startswith(TASKS)}
VALUES = {name.replace("-", "_"): lambda name=name: task(name) for name in sorted(RUNS)}
COMPARED = {  # the tasks of the forest plots: in prose -> (title, folder of its records), the full budget first
    "sst2": ("SST-2", "sst2"),
    "official": ("SST-2, GLUE's split", "sst2-official"),
    "short": ("SST-2, short texts", "sst2-short"),
    "tenth": ("SST-2, 10 % of the data", "sst2-10pct"),
    "grouped": ("SST-2, leak-free cut", "sst2-grouped-epochs1"),
    "half": ("SST-2, 50 % of the data", "sst2-50pct-epochs1"),
    "long": ("SST-2, long texts", "sst2-long-epochs1"),
    "yelp": ("Yelp, 128 tokens", "yelp-trainrows10000-epochs1"),
    "yelp_512": ("Yelp, 512 tokens", "yelp-maxlength512-trainrows10000-epochs1"),
}
VALUES |= {key: lambda name=name: task(name) for key, (_, name) in COMPARED.items()}
VALUES |= {
    "compared": COMPARED,
    "domains": lambda: task("multi-domain-trainrows5000-epochs1"),
    "leakage": leakage,
    "bag_of_words": bag_of_words,
}
