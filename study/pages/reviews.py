"""Other reviews: short and long texts, Yelp, another corpus and three domains, and a bag of words on every test."""

from functools import partial
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import auc
from rtx_core.report.values import Gap, Task
from study.analysis.classifiers import PAIR, most_accurate, of_model, p_over_seeds, table_row
from study.analysis.corpora import each_length, positive
from study.analysis.wording import seeds
from study.analysis.yardstick import Yardstick


def quantities(
    full: dict[str, list[Record]],
    early: dict[str, list[Record]],
    transfer: list[Record],
    reverse: list[Record],
    answers: list[Record],
    tests: dict[str, list[Record]],
    bags: list[Record],
    profiles: dict[str, Record],
) -> Quantities:
    """Of runs at the full budget and after one epoch by task, tests on another corpus in both directions, answers to
    sentences of ours, the runs of every test and its bag of words, and what was counted of the texts."""
    beside = Yardstick(tests, bags)

    def task(name: str, budget: dict[str, list[Record]] = full) -> Task:
        return Task(budget[name], called=name)

    def first(name: str) -> Task:
        """After one epoch."""
        return task(name, early)

    def moved() -> Task:
        return Task(transfer, called="SST-2 to Yelp")

    def moved_runs() -> list[Record]:
        return [*moved().baseline, *moved().recurrent]

    def areas(runs: list[Record]) -> list[float]:
        return [area for run in runs if (area := auc(run)) is not None]

    def matched_lead(compared: Task) -> float:
        """Points by which Baseline leads where each model calls as many texts positive as there are."""
        return 100 * (compared.baseline.matched - compared.recurrent.matched)

    def part(name: str, subset: str = "train") -> dict:
        return profiles[name]["parts"][subset]

    def length(name: str, statistic=mean) -> float:
        return statistic(each_length(part(name)).tolist())

    def likelihoods(model: str, topic: str, domain: str) -> list[float]:
        """How likely a model finds each of our sentences about one domain in another, or in the same."""
        (measured,) = of_model(answers, model)
        return [answer[domain] for answer in measured["answers"] if answer["meant"] == topic]

    def recognized(model: str) -> int:
        return sum(p > 0.5 for p in likelihoods(model, "local business", "local business"))

    def gap(test: str, model: str) -> Gap:
        """A network minus the bag of words, in points."""
        return beside.gaps(model)[test]

    def every() -> list[Gap]:
        """Of the tests at the full budget."""
        return [one for model in PAIR for one in beside.full(model)]

    def words_alone(test: str) -> float:
        (bag,) = (bag for bag in bags if bag["of"] == test)
        return bag["test"]["accuracy"]

    numbers = {
        # A bag of words
        "tests": lambda: words(len(beside.full("baseline"))),
        "long_high": lambda: number(gap("sst2-long", "recurrent").high, ".1f"),
        # One epoch
        "longest": lambda: f"{100 * full['long'][0]['config']['data']['length_fraction']:.0f}",
        "early_long_lead": lambda: number(-first("long").difference, ".1f"),
        "early_long_true": lambda: number(positive(part("long", "test")), ".0%"),
        "early_long_positive_baseline": lambda: number(first("long").baseline.positive, ".0%"),
        "early_long_matched_baseline": lambda: number(first("long").baseline.matched, ".1%"),
        "early_long_matched_recurrent": lambda: number(first("long").recurrent.matched, ".1%"),
        # In full
        "short_seeds": lambda: seeds(task("short").difference.seeds),
        "long_seeds": lambda: seeds(task("long").difference.seeds),
        "long_lead": lambda: number(-task("long").difference, ".1f"),
        "long_matched_lead": lambda: number(-matched_lead(task("long")), ".1f"),
        "yelp_lead": lambda: number(task("yelp").difference, ".1f"),
        "yelp_matched_lead": lambda: number(matched_lead(task("yelp")), ".1f"),
        "yelp_most_accurate_baseline": lambda: number(most_accurate(task("yelp").baseline)[0], ".1f"),
        "yelp_most_accurate_recurrent": lambda: number(most_accurate(task("yelp").recurrent)[0], ".1f"),
        # Another corpus
        "transfer_seeds": lambda: seeds(moved().difference.seeds).capitalize(),
        "transfer_difference": lambda: str(moved().difference),
        # Exercises
        "short_first_seed": lambda: number(task("short").difference.by_seed[0], ".1f"),
        "reverse_auc": lambda: number(mean(areas(reverse)), ".2f"),
        # Three domains
        "domains_seeds": lambda: seeds(task("domains").difference.seeds),
        "domains_baseline": lambda: number(task("domains").baseline.accuracy, ".1%"),
        "domains_recurrent": lambda: number(task("domains").recurrent.accuracy, ".1%"),
        "businesses_baseline": lambda: words(recognized("baseline")),
        "businesses_recurrent": lambda: words(recognized("recurrent")),
        "domains_by_counting": lambda: number(words_alone("multi-domain"), ".1%"),
    }
    for name in ("short", "long", "yelp", "domains"):
        numbers |= table_row(name, partial(task, name))
    checks = {
        "tests": lambda: [max(map(beside.best, PAIR)) < 2, gap("sst2-long", "recurrent").high > 2],
        "order_of_words": lambda: [
            len(beside.full("baseline")) == len(beside.full("recurrent")) == 9,
            max(one for one in every() if one.seeds >= 3) < 0,
            gap("sst2-10pct", "baseline").sign == -1,
            max(one.seeds for one in every() if one > 0) == 2,
            [one.sign for one in every()].count(-1) == 1,
            min(gap("sst2", "recurrent").by_seed) > 0,
            max(map(abs, every())) < 3.2,
        ],
        "leads_by_threshold": lambda: [
            first("long").difference.lean == -1,
            first("yelp").difference.lean == -1,
            first("yelp_512").difference.lean == 1,
            0 < matched_lead(first("long")) < 2,
            0 < matched_lead(first("yelp")) < 2,
            0 < matched_lead(first("yelp_512")) < 2,
            all(0.3 < matched_lead(task(name)) / task(name).difference < 0.7 for name in ("long", "yelp")),
        ],
        "early_long_lead": lambda: [
            first("long").baseline.positive < positive(part("long", "test")) < first("long").recurrent.positive,
            abs(first("long").baseline.auc - first("long").recurrent.auc) < 0.005,
        ],
        "early_yelp": lambda: [
            first("yelp").baseline.positive < first("yelp").recurrent.positive,
            first("yelp_512").baseline.positive > first("yelp_512").recurrent.positive,
        ],
        "short_difference": lambda: [
            task("short").difference.seeds >= 3 and task("short").difference.sign == 0,
            task("short").badge.budget == "full",
        ],
        "short_first_seed": lambda: [task("short").difference.by_seed[0] > 0],
        "long_lead": lambda: [
            task("long").difference.seeds == 1 and task("long").difference.high < 0,
            task("yelp").difference.seeds == 1 and task("yelp").difference.low > 0,
            max(abs(task(name).difference) for name in ("short", "long", "yelp")) < 1.5,
            0 < most_accurate(task("yelp").recurrent)[0] - most_accurate(task("yelp").baseline)[0] < 0.2,
        ],
        "transfer_difference": lambda: [
            moved().difference.sign == 0,
            p_over_seeds(auc, moved().baseline, moved().recurrent) > 0.05,
            max(areas(moved_runs())) - min(areas(moved_runs())) < 0.03,
            moved().difference.seeds == 3 and min(moved().difference.by_seed[:2]) > 5,
            moved().difference.by_seed[2] < 0,
        ],
        "reverse_auc": lambda: [max(areas(reverse)) - min(areas(reverse)) < 0.01],
        "domains_baseline": lambda: [
            min(task("domains").baseline.accuracy, task("domains").recurrent.accuracy) >= 0.985
        ],
        "businesses_baseline": lambda: [
            length("pooled", median) == 7,
            length("yelp", median) > 10 * length("pooled", median),
            min(likelihoods("baseline", "shopping", "movie") + likelihoods("recurrent", "shopping", "movie")) > 0.99,
        ],
    }
    return Quantities(numbers, checks)
