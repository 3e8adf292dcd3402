"""The two models beside a bag of words: their differences on every task that has both."""

from rtx_core import records
from rtx_core.report import badge, statistics
from rtx_core.report.values import Gap, Space
from study import paper
from study.analysis.classifiers import PAIR

# bag of words of -> the models' runs beside it
RUNS = {name: name for key, name in paper.TESTS.items() if key != "yelp_512"}
RUNS |= {"multi-domain-imdb": "multi-domain-imdb-trainrows5000-epochs1"}


def compared(name: str, model: str) -> tuple[list, list] | None:
    """(runs, bag of words) on the seeds that both models have, or None where one is missing or the model never
    answers some class."""
    seeds = statistics.common(*(paper.records(name=RUNS[name], model=each) for each in PAIR))
    runs = [run for pair in seeds for run in pair if run["model"] == model and statistics.answers_all(run)]
    words = paper.measurements("yardstick", name)
    beside = [records.Record(each.content | {"seed": run["seed"]}, each.path) for run in runs for each in words]
    return (runs, beside) if beside else None


def against(model: str) -> Space:
    """The differences by task, p adjusted over them, the best, and on how many tasks the model is ahead or behind."""
    pairs = {name: pair for name in RUNS if (pair := compared(name, model))}
    found = [statistics.difference(*pair, same_training=False) for pair in pairs.values()]
    gaps = {name: Gap(gap, badge(pairs[name][0])) for name, gap in zip(pairs, statistics.adjusted(found))}
    full = [gap.sign for gap in gaps.values() if gap.badge.budget == "full"]
    counts = {"full": len(full), "behind_full": full.count(-1), "ahead": sum(gap.sign > 0 for gap in gaps.values())}
    return Space(gaps | counts | {"best": max(gaps.values(), default=float("nan"))})


VALUES = {"yardstick": lambda: Space({model: against(model) for model in PAIR})}
