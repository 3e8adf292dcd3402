"""Thresholds: short and long texts, Yelp, another corpus, and three domains."""

from functools import partial
from statistics import mean, median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import auc, matched_accuracy
from rtx_core.report.values import Model, Task
from study.analysis.classifiers import last, most_accurate, of_model, p_over_seeds, table_row
from study.analysis.corpora import each_length, guiraud, positive
from study.analysis.wording import seeds
from study.published import in_table


def quantities(
    full: dict[str, list[Record]],
    early: dict[str, list[Record]],
    transfer: list[Record],
    reverse: list[Record],
    answers: list[Record],
    counting: dict[str, Record],
    profiles: dict[str, Record],
    published: list[dict],
) -> Quantities:
    """Of runs at the full budget and after one epoch by task, tests on another corpus in both directions, answers to
    sentences of ours, bags of words, what was counted of the texts, and the published rows of three domains."""

    def task(name: str, budget: dict[str, list[Record]] = full) -> Task:
        return Task(budget[name], called=name)

    def first(name: str) -> Task:
        """After one epoch."""
        return task(name, early)

    def moved() -> Task:
        return Task(transfer, called="SST-2 to Yelp")

    def moved_runs() -> list[Record]:
        return [*moved().baseline, *moved().recurrent]

    def areas() -> list[float]:
        return [area for run in moved_runs() if (area := auc(run)) is not None]

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

    def distinct_tokens() -> list[int]:
        return [counting[name]["tokens_known"] for name in ("sst2-long", "sst2-short")]

    def products_right(model: Model) -> float:
        products = model.records[0]["test"]["confusion"][2]
        return products[2] / sum(products)

    def errors(model: Model) -> float:
        return 1 - model.accuracy

    def table_12(model: str) -> dict:
        return in_table(published, "Table 12")[model]

    numbers = {
        # One epoch
        "longest": lambda: f"{100 * full['long'][0]['config']['data']['length_fraction']:.0f}",
        "early_long_lead": lambda: number(-first("long").difference, ".1f"),
        "early_long_true": lambda: number(positive(part("long", "test")), ".0%"),
        "early_long_positive_baseline": lambda: number(first("long").baseline.positive, ".0%"),
        "early_long_positive_recurrent": lambda: number(first("long").recurrent.positive, ".0%"),
        "early_long_matched_baseline": lambda: number(first("long").baseline.matched, ".1%"),
        "early_long_matched_recurrent": lambda: number(first("long").recurrent.matched, ".1%"),
        "early_reviews": lambda: number(early["yelp_512"][0]["data"]["n_train"], ","),
        # In full
        "short_seeds": lambda: seeds(task("short").difference.seeds),
        "long_seeds": lambda: seeds(task("long").difference.seeds),
        "long_lead": lambda: number(-task("long").difference, ".1f"),
        "long_matched_lead": lambda: number(-matched_lead(task("long")), ".1f"),
        "yelp_seeds": lambda: seeds(task("yelp").difference.seeds),
        "reviews": lambda: number(full["yelp"][0]["data"]["n_train"], ","),
        "yelp_lead": lambda: number(task("yelp").difference, ".1f"),
        "yelp_matched_lead": lambda: number(matched_lead(task("yelp")), ".1f"),
        "yelp_most_accurate_baseline": lambda: number(most_accurate(task("yelp").baseline)[0], ".1f"),
        "yelp_most_accurate_recurrent": lambda: number(most_accurate(task("yelp").recurrent)[0], ".1f"),
        "distinct_tokens": lambda: f"{distinct_tokens()[0] / distinct_tokens()[1]:.1f} times",
        "times_as_long": lambda: number(length("long") / length("short"), ".0f"),
        # Another corpus
        "transfer_seeds": lambda: seeds(moved().difference.seeds).capitalize(),
        "transfer_difference": lambda: str(moved().difference),
        "transfer_runs": lambda: words(len(moved_runs())),
        # Exercises
        "short_first_seed": lambda: number(task("short").difference.by_seed[0], ".1f"),
        "reverse_auc_least": lambda: number(min(area for run in reverse if (area := auc(run)) is not None), ".2f"),
        "reverse_auc_most": lambda: number(max(area for run in reverse if (area := auc(run)) is not None), ".2f"),
        # Three domains
        "domains_seeds": lambda: seeds(task("domains").difference.seeds),
        "domains_baseline": lambda: number(task("domains").baseline.accuracy, ".1%"),
        "domains_recurrent": lambda: number(task("domains").recurrent.accuracy, ".1%"),
        "domains_more_errors": lambda: number(
            100 * (errors(task("domains").recurrent) / errors(task("domains").baseline) - 1), ".0f"
        ),
        "businesses_baseline": lambda: words(recognized("baseline")),
        "businesses_recurrent": lambda: words(recognized("recurrent")),
        "domains_by_counting": lambda: number(counting["multi-domain"]["test"]["accuracy"], ".1%"),
    }
    for name in ("short", "long", "yelp", "domains"):
        numbers |= table_row(name, partial(task, name))
    checks = {
        "leads_by_threshold": lambda: [
            first("long").difference.lean == -1,
            first("yelp").difference.lean == -1,
            first("yelp_512").difference.lean == 1,
            0 < matched_lead(first("long")) < 2,
            0 < matched_lead(first("yelp")) < 2,
            0 < matched_lead(first("yelp_512")) < 2,
            max(abs(task(name).difference) for name in ("short", "long", "yelp")) < 1.5,
            all(0.3 < matched_lead(task(name)) / task(name).difference < 0.7 for name in ("long", "yelp")),
        ],
        "early_long_lead": lambda: [
            first("long").baseline.positive < positive(part("long", "test")) < first("long").recurrent.positive,
            abs(first("long").baseline.auc - first("long").recurrent.auc) < 0.005,
        ],
        "early_reviews": lambda: [
            max(first("yelp").baseline.positive, first("yelp").recurrent.positive) < positive(part("yelp", "test")),
            max(first("yelp_512").baseline.positive, first("yelp_512").recurrent.positive)
            < positive(part("yelp_512", "test")),
            first("yelp").baseline.positive < first("yelp").recurrent.positive,
            first("yelp_512").baseline.positive > first("yelp_512").recurrent.positive,
            first("yelp").baseline.auc > first("yelp").recurrent.auc,
            first("yelp_512").baseline.auc > first("yelp_512").recurrent.auc,
        ],
        "short_difference": lambda: [
            task("short").difference.seeds >= 3 and task("short").difference.sign == 0,
            task("short").badge.budget == "full",
            abs(task("short").baseline.positive - task("short").recurrent.positive) < 0.02,
        ],
        "short_first_seed": lambda: [task("short").difference.by_seed[0] > 0],
        "long_lead": lambda: [
            task("long").difference.seeds == 1 and task("long").difference.high < 0,
            task("yelp").difference.seeds == 1 and task("yelp").difference.low > 0,
            0 < most_accurate(task("yelp").recurrent)[0] - most_accurate(task("yelp").baseline)[0] < 0.2,
        ],
        "distinct_tokens": lambda: [
            distinct_tokens()[0] > distinct_tokens()[1],
            guiraud(*distinct_tokens(), part=part("long"), base=part("short")) < 1,
            (each_length(part("short")) <= 3).mean() > 0.5,
            (abs(each_length(part("long")) - 21) <= 9).mean() > 0.5,
            max(each_length(part("short"))) < min(each_length(part("long"))),
        ],
        "transfer_difference": lambda: [
            moved().difference.sign == 0,
            p_over_seeds(auc, moved().baseline, moved().recurrent) > 0.05,
            max(areas()) - min(areas()) < 0.03,
            max(map(matched_accuracy, moved_runs())) - min(map(matched_accuracy, moved_runs())) < 0.03,
            moved().difference.seeds == 3 and min(moved().difference.by_seed[:2]) > 5,
            moved().difference.by_seed[2] < 0,
        ],
        "domains_baseline": lambda: [
            min(task("domains").baseline.accuracy, task("domains").recurrent.accuracy) >= 0.985,
            task("domains").difference.lean == 1,
            min(map(products_right, (task("domains").baseline, task("domains").recurrent))) > 0.9,
            sum(truth[2] for truth in first("domains").recurrent.records[0]["test"]["confusion"]) == 0,
            0.3 < 100 / last(first("domains").recurrent, "step")[0] < 0.35,
        ],
        "businesses_baseline": lambda: [
            length("pooled", median) == 7,
            length("yelp", median) > 10 * length("pooled", median),
            min(likelihoods("baseline", "shopping", "movie") + likelihoods("recurrent", "shopping", "movie")) > 0.99,
        ],
        "domains_by_counting": lambda: [
            counting["multi-domain"]["test"]["accuracy"]
            > max(table_12("baseline")["accuracy"], table_12("recurrent")["accuracy"]) - 0.005,
            task("domains").baseline.parameters == table_12("baseline")["total"],
            task("domains").recurrent.parameters == table_12("recurrent")["total"],
        ],
    }
    return Quantities(numbers, checks)
