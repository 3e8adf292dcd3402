"""SST-2 as the study cuts it, without its leak, and on GLUE's sentences."""

from functools import partial
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import detectable
from rtx_core.report.values import Task
from study.analysis.classifiers import (
    PAIR,
    Family,
    highest_rise,
    last,
    missed,
    most_accurate,
    paired,
    peaks,
    table_row,
    tested,
)
from study.analysis.corpora import inside
from study.published import in_table


def quantities(tests: dict[str, list[Record]], profiles: dict[str, Record], published: list[dict]) -> Quantities:
    """Of the runs of each test of the family, what was counted of the cuts of SST-2, and the published rows."""
    family = Family(tests)

    def task(test: str) -> Task:
        return Task(tests[test], called=test)

    def pooled() -> Task:
        return Task(paired(tests["sst2"]), called="sst2")

    def clean_runs() -> list[Record]:
        return [run for model in PAIR for run in getattr(task("grouped"), model)]

    def part(cut: str, name: str) -> dict:
        return profiles[cut]["parts"][name]

    def inside_clean() -> float:
        return max(inside(part("grouped", name)) for name in ("validation", "test"))

    def time(measure: str) -> float:
        """Recurrent's time of a text over Baseline's."""
        return getattr(pooled().recurrent, measure) / getattr(pooled().baseline, measure)

    def off_clean(model: str) -> float:
        """How far a model's accuracy on GLUE's sentences is from that without the leak."""
        return abs(getattr(task("official"), model).accuracy - getattr(task("grouped"), model).accuracy)

    def fall(model: str) -> float:
        """Points by which a model is worse on GLUE's sentences than on the pooled cut."""
        return 100 * (getattr(pooled(), model).accuracy - getattr(task("official"), model).accuracy)

    numbers = {
        "parameters": lambda: number(pooled().parameter_ratio, ".0%"),  # Recurrent's over Baseline's
        "clean_accuracy": lambda: number(mean(getattr(task("grouped"), model).accuracy for model in PAIR), ".0%"),
        # Without the leak
        "clean_baseline": lambda: number(task("grouped").baseline.accuracy, ".1%"),
        "clean_recurrent": lambda: number(task("grouped").recurrent.accuracy, ".1%"),
        "clean_detectable": lambda: number(detectable(task("grouped").difference.by_seed), ".1f"),
        "short_detectable": lambda: number(detectable(task("short").difference.by_seed), ".1f"),
        "clean_seeds": lambda: words(task("grouped").difference.seeds),
        "clean_first_seed": lambda: number(task("grouped").difference.by_seed[0], "+.1f"),
        "clean_runs": lambda: words(len(clean_runs())),
        "clean_first_epoch": lambda: words(tested(clean_runs(), "epoch").count(1)),  # runs whose loss is lowest there
        "clean_most_accurate_baseline": lambda: number(mean(most_accurate(task("grouped").baseline)), ".1f"),
        "clean_most_accurate_recurrent": lambda: number(mean(most_accurate(task("grouped").recurrent)), ".1f"),
        # As published
        "missed_baseline_least": lambda: number(min(missed(pooled().baseline)), ".1f"),
        "missed_baseline_most": lambda: number(max(missed(pooled().baseline)), ".1f"),
        "missed_recurrent_least": lambda: number(min(missed(pooled().recurrent)), ".1f"),
        "missed_recurrent_most": lambda: number(max(missed(pooled().recurrent)), ".1f"),
        "pooled_baseline": lambda: number(pooled().baseline.accuracy, ".1%"),
        "pooled_recurrent": lambda: number(pooled().recurrent.accuracy, ".1%"),
        "best_validation_baseline": lambda: number(mean(peaks(pooled().baseline)), ".1%"),
        "best_validation_recurrent": lambda: number(mean(peaks(pooled().recurrent)), ".1%"),
        "published_baseline": lambda: number(in_table(published, "Table 13")["baseline"]["accuracy"], ".1%"),
        "published_recurrent": lambda: number(in_table(published, "Table 13")["recurrent"]["accuracy"], ".1%"),
        "published_wide": lambda: number(in_table(published, "Table 13")["recurrent-wide"]["accuracy"], ".1%"),
        # On whole sentences
        "official_seeds": lambda: words(task("official").difference.seeds),
        "sentences": lambda: str(part("official", "test")["n"]),
        # On a CPU
        "time_in_batches": lambda: number(time("ms"), ".0%"),
        "time_alone": lambda: number(time("ms_single"), ".0%"),
    }
    for name, test in {"clean": "grouped", "pooled": "sst2", "official": "official"}.items():
        numbers |= table_row(name, partial(task, test))
    checks = {
        "clean_accuracy": lambda: [
            abs(task("grouped").baseline.accuracy - task("grouped").recurrent.accuracy) < 0.01,
            0.88 < pooled().baseline.accuracy < pooled().recurrent.accuracy < 0.91,
            max(pooled().difference.by_seed) < 0,
            not any(difference.sign == 1 for difference in family.films),
            peaks(pooled().baseline)[0] > peaks(pooled().recurrent)[0],
            peaks(pooled().baseline)[1] < peaks(pooled().recurrent)[1],
        ],
        "clean_difference": lambda: [
            task("grouped").difference.seeds >= 3,
            -1 < task("grouped").difference.low < 0 < task("grouped").difference.high < 1,
        ],
        "clean_first_epoch": lambda: [
            inside(part("seeded", "validation")) > 0.8 and inside_clean() == 0,
            sorted(tested(clean_runs(), "epoch")) == [1, 1, 1, 1, 1, 3],
            min(map(highest_rise, clean_runs())) > 0.1,
            max(last(clean_runs(), "train_loss")) < 0.2,
            max(row["validation_loss"] for run in paired(tests["sst2"]) for row in run["history"]) < 0.35,
            sorted(missed(clean_runs()))[1] > 0,
            all(
                0.8 < recurrent - baseline < 1.2
                for baseline, recurrent in zip(*(most_accurate(getattr(task("grouped"), model)) for model in PAIR))
            ),
        ],
        "pooled_baseline": lambda: [
            max(tested(pooled().baseline, "epoch")) == 2,
            min(tested(pooled().baseline, "epoch")) == 1,
            min(tested(pooled().recurrent, "epoch")) > max(tested(pooled().baseline, "epoch")),
            abs(mean(peaks(pooled().recurrent)) - mean(peaks(pooled().baseline))) < 0.002,
            min(missed(pooled().baseline)) > max(missed(pooled().recurrent)),
        ],
        "published_baseline": lambda: [
            abs(pooled().recurrent.accuracy - in_table(published, "Table 13")["recurrent"]["accuracy"]) < 0.01,
            pooled().baseline.accuracy < in_table(published, "Table 13")["baseline"]["accuracy"] - 0.01,
            pooled().difference.seeds == 2 and max(pooled().difference.by_seed) < 0,
        ],
        "official_difference": lambda: [
            task("official").difference.seeds == 2 and min(task("official").difference.by_seed) > 0,
            1.5 < task("official").difference.by_seed[0] / 100 * part("official", "test")["n"] < 2.5,
            6.5 < fall("baseline") < 9.5,
            6.5 < fall("recurrent") < 10.5,
            max(off_clean("baseline"), off_clean("recurrent")) < 0.03,
        ],
        "time_in_batches": lambda: [
            time("ms") < time("ms_single"),
            time("ms_single") < 1,
            abs(task("tenth").recurrent_wide.ms / task("tenth").baseline.ms - 1) < 0.05,
        ],
    }
    return Quantities(numbers, checks)
