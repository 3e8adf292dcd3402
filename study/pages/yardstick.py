"""The two models beside a bag of words."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.values import Gap
from study.analysis.classifiers import PAIR
from study.analysis.yardstick import Yardstick


def quantities(runs: dict[str, list[Record]], bags: list[Record]) -> Quantities:
    """Of the runs of each task, and of bags of words."""
    beside = Yardstick(runs, bags)

    def gap(task: str, model: str) -> Gap:
        return beside.gaps(model)[task]

    def both(task: str) -> list[Gap]:
        return [gap(task, model) for model in PAIR]

    def single() -> list[Gap]:
        """Where a network is ahead with one seed."""
        return [gap("sst2-long", "recurrent"), gap("yelp", "baseline"), *both("multi-domain")]

    def signs(model: str) -> list[int]:
        return [one.sign for one in beside.gaps(model).values()]

    def full_signs(model: str) -> list[int]:
        return [one.sign for one in beside.full(model)]

    numbers = {
        "tests": lambda: words(len(Yardstick(runs, bags).full("baseline"))),
        "long_high": lambda: number(Yardstick(runs, bags).gaps("recurrent")["sst2-long"].high, ".1f"),
        "best_recurrent": lambda: number(beside.best("recurrent"), ".1f"),
        "best_baseline": lambda: number(beside.best("baseline"), ".1f"),
        "baseline_worse": lambda: words(sum(one < 0 for one in beside.full("baseline"))),
    }
    checks = {
        "tests": lambda: [
            max(map(beside.best, PAIR)) < 2,
            max(min(one.by_seed) for one in (*both("sst2-official"), gap("sst2", "baseline"))) < 0,
            1 not in signs("baseline") + signs("recurrent"),
            gap("sst2-long", "recurrent").high > 2,
        ],
        "order_of_words": lambda: [
            len(beside.full("baseline")) == len(beside.full("recurrent")) == 9,
            gap("sst2-10pct", "baseline").sign == -1,
            max(*both("sst2-grouped"), *both("sst2-official"), *both("sst2-short")) < 0,
            max(seed for one in both("sst2-official") for seed in one.by_seed) < 0,
            full_signs("baseline").count(-1) == 1,
            full_signs("recurrent").count(-1) == 0,
            all(one.seeds == 1 and one.low > 0 for one in single()),
            min(gap("sst2", "recurrent").by_seed) > 0,
            max(abs(one) for model in PAIR for one in beside.full(model)) < 3.2,
            set(beside.gaps("baseline")) - set(beside.gaps("recurrent")) == {"multi-domain-imdb"},
        ],
    }
    return Quantities(numbers, checks)
