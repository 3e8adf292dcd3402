"""The two models beside a bag of words, until the pages that quote it have their own numbers."""

from rtx_core.report.values import Space
from study import paper
from study.analysis.classifiers import PAIR
from study.analysis.yardstick import Yardstick

# bag of words of -> the models' runs beside it
RUNS = {name: name for key, name in paper.TESTS.items() if key != "yelp_512"}
RUNS |= {"multi-domain-imdb": "multi-domain-imdb-trainrows5000-epochs1"}


def yardstick() -> Space:
    """By model its differences, the best, and on how many tasks it is ahead or behind."""
    beside = Yardstick({bag: paper.records(name) for bag, name in RUNS.items()}, paper.measurements("yardstick"))

    def about(model: str) -> dict:
        signs = [gap.sign for gap in beside.full(model)]
        ahead = sum(gap.sign > 0 for gap in beside.gaps(model).values())
        counts = {"full": len(signs), "behind_full": signs.count(-1), "ahead": ahead}
        return beside.gaps(model) | counts | {"best": beside.best(model)}

    return Space({model: about(model) for model in PAIR})


VALUES = {"yardstick": yardstick}
