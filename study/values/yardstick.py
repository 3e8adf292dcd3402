"""The two models minus a bag of words, on every task that has both."""

from rtx_core import records
from rtx_core.report import badge, statistics
from rtx_core.report.values import Gap, Space
from study import paper

MODELS = ("baseline", "recurrent")
RUNS = {  # bag of words of -> the runs of the models that stand beside it
    "sst2": "sst2",
    "sst2-official": "sst2-official",
    "sst2-10pct": "sst2-10pct",
    "sst2-short": "sst2-short",
    "sst2-grouped": "sst2-grouped-epochs1",
    "sst2-50pct": "sst2-50pct-epochs1",
    "sst2-long": "sst2-long-epochs1",
    "yelp": "yelp-trainrows10000-epochs1",
    "multi-domain": "multi-domain-trainrows5000-epochs1",
    "multi-domain-imdb": "multi-domain-imdb-trainrows5000-epochs1",
}


def minus_words(name: str, model: str):
    """(model − bag of words, badge) on the seeds that both models have, or None where one is missing or the
    model never answers some class."""
    words = paper.measurements("yardstick", name)
    seeds = statistics.common(*(paper.records(name=RUNS[name], model=each) for each in MODELS))
    found = [record for pair in seeds for record in pair if record["model"] == model]
    found = [record for record in found if statistics.answers_all(record)]
    if not words or not found:
        return None
    beside = [records.Record(words[0].content | {"seed": record["seed"]}, words[0].path) for record in found]
    return statistics.difference(found, beside, same_training=False), badge(found)


def yardstick() -> Space:
    """`yardstick.baseline.behind`: on how many tasks the bag of words is ahead, p adjusted over them."""
    space = {}
    for model in MODELS:
        pairs = {name: pair for name in RUNS if (pair := minus_words(name, model))}
        family = statistics.adjusted([difference for difference, _ in pairs.values()])
        gaps = {name: Gap(found, evidence) for found, (name, (_, evidence)) in zip(family, pairs.items())}
        full = [gap for gap in gaps.values() if gap.badge.budget == "full"]
        space[model] = gaps | {
            "tasks": len(gaps),
            "full": len(full),
            "behind": sum(gap.sign < 0 for gap in gaps.values()),
            "ahead": sum(gap.sign > 0 for gap in gaps.values()),
            "behind_full": sum(gap.sign < 0 for gap in full),
        }
    return Space(space)


VALUES = {"yardstick": yardstick}
