"""SST-2 as the study splits it, without its leak, on GLUE's sentences, and on parts of it: depth and learning rates."""

from collections.abc import Sequence
from functools import partial
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import detectable, equivalent
from rtx_core.report.values import Gap, Task
from study.analysis.classifiers import (
    PAIR,
    Family,
    gap,
    generalization_gap,
    highest_rise,
    last,
    missed,
    most_accurate,
    of_model,
    p_over_seeds,
    paired,
    peaks,
    table_row,
    tested,
)
from study.analysis.corpora import inside
from study.analysis.ladder import Ladder, Tuned, validated_more_often
from study.published import in_table

DEEPER = ("3x1", "3x2", "1x6", "6x1")


def quantities(
    tests: dict[str, list[Record]],
    tried: dict[str, dict[float, list[Record]]],
    deepest: list[Record],
    often: list[Record],
    counting: dict[str, Record],
    profiles: dict[str, Record],
    published: list[dict],
) -> Quantities:
    """Of the runs of each test of the family, those of the ladder by rate, three layers run three times, runs that are
    validated often, bags of words, counts of the splits of SST-2, and the published rows."""
    family = Family(tests)
    tuned = Tuned(tried)
    narrow = {(256, rung): tuned.at_usual_rate(rung) for rung in tried} | {(256, "3x3"): deepest}
    wide = {
        (384, "6x1"): of_model(tests["tenth"], "baseline"),
        (384, "3x2"): of_model(tests["tenth"], "recurrent-wide"),
    }
    ladder = Ladder(narrow | wide)

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

    def second_pass() -> Gap:
        return gap(ladder.runs[256, "3x2"], ladder.runs[256, "3x1"])

    def over_training(runs: Sequence[Record]) -> float:
        """The gap between validation and training loss, the mean over seeds."""
        return mean(map(generalization_gap, runs))

    def validated(model: str):
        (run,) = of_model(often, model)
        tenth = of_model(tests["tenth"], model)
        return validated_more_often(run, next(one for one in tenth if one["seed"] == run["seed"]))

    def at_best_validation(run: Record) -> float:
        """Test accuracy if validation accuracy picks the checkpoint."""
        return most_accurate([run])[0]

    numbers = {
        "parameters": lambda: number(pooled().parameter_ratio, ".0%"),  # Recurrent's over Baseline's
        # Without the leak
        "clean_seeds": lambda: words(task("grouped").difference.seeds),
        "clean_first_seed": lambda: number(task("grouped").difference.by_seed[0], "+.1f"),
        "clean_runs": lambda: words(len(clean_runs())),
        "clean_first_epoch": lambda: words(tested(clean_runs(), "epoch").count(1)),  # runs whose loss is lowest there
        # As published
        "missed_baseline_least": lambda: number(min(missed(pooled().baseline)), ".1f"),
        "missed_baseline_most": lambda: number(max(missed(pooled().baseline)), ".1f"),
        "missed_recurrent_most": lambda: number(max(missed(pooled().recurrent)), ".1f"),
        "published_baseline": lambda: number(in_table(published, "Table 13")["baseline"]["accuracy"], ".1%"),
        "published_recurrent": lambda: number(in_table(published, "Table 13")["recurrent"]["accuracy"], ".1%"),
        "published_wide": lambda: number(in_table(published, "Table 13")["recurrent-wide"]["accuracy"], ".1%"),
        # On whole sentences
        "official_seeds": lambda: words(task("official").difference.seeds),
        "sentences": lambda: str(part("official", "test")["n"]),
        # On a CPU
        "time_in_batches": lambda: number(time("ms"), ".0%"),
        # Parts of the data
        "tenth_seeds": lambda: words(task("tenth").difference.seeds).capitalize(),
        "tenth_detectable": lambda: number(detectable(task("tenth").difference.by_seed), ".1f"),
        "half_seeds": lambda: words(task("half").difference.seeds),
        # Depth and passes
        "second_pass": lambda: str(second_pass()),
        "ladder_seeds": lambda: words(second_pass().seeds),
        "rates": lambda: words(len(tried["1x1"])),
        "one_layer": lambda: number(tuned.accuracy("1x1"), ".1%"),
        "six_passes": lambda: number(tuned.accuracy("1x6"), ".1%"),
    }
    rows = {"clean": "grouped", "pooled": "sst2", "official": "official", "tenth": "tenth", "half": "half"}
    for name, test in rows.items():
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
            p_over_seeds(at_best_validation, *(getattr(task("grouped"), model) for model in PAIR)) < 0.05,
        ],
        "level_at_best": lambda: [
            pooled().difference.seeds == 2 and max(pooled().difference.by_seed) < 0,
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
        ],
        "time_in_batches": lambda: [
            time("ms") < time("ms_single"),
            time("ms_single") < 1,
            abs(task("tenth").recurrent_wide.ms / task("tenth").baseline.ms - 1) < 0.05,
        ],
        "tenth_difference": lambda: [
            task("tenth").difference.sign == 0,
            task("tenth").badge.budget == "full",
            not equivalent(task("tenth").difference.by_seed, 1),
        ],
        "validated_often": lambda: [
            validated("baseline").steps == validated("recurrent").steps == 0,
            validated("baseline").points == validated("recurrent").points == 0,
        ],
        "deeper_models": lambda: [
            not any(tuned.ahead(rung, "1x1") for rung in DEEPER),
            not any(pair.sign for pair in tuned.differences.values()),
            abs(tuned.accuracy("1x1") - counting["sst2-10pct"]["test"]["accuracy"]) < 0.005,
            min(len(runs) for runs in tuned.runs.values()) >= 3,
        ],
        "second_pass": lambda: [
            second_pass().sign == 0,
            second_pass().high > 2,
            not any(pair.sign for pair in ladder.differences.values()),
        ],
        "rates": lambda: [
            tuned.accuracy("1x1") >= max(tuned.accuracies()),
            tuned.rate("6x1") == 1e-3,
            peaks(tried["6x1"][1e-3])[0] < min(peaks(tried["6x1"][rate])[0] for rate in (3e-5, 1e-4, 3e-4)),
        ],
        "overfitting": lambda: [
            p_over_seeds(generalization_gap, ladder.runs[384, "6x1"], ladder.runs[256, "3x2"]) < 0.05,
            over_training(ladder.runs[256, "3x2"]) < over_training(ladder.runs[384, "6x1"]),
            p_over_seeds(generalization_gap, ladder.runs[384, "6x1"], ladder.runs[384, "3x2"]) > 0.05,
            max(over_training(tuned.at_usual_rate(rung)) for rung in ("1x1", "3x1", "1x6", "6x1"))
            < over_training(ladder.runs[384, "6x1"]),
            over_training(ladder.runs[384, "3x2"]) > max(over_training(tuned.at_usual_rate(rung)) for rung in tried),
            over_training(tuned.at_usual_rate("1x1"))
            < min(over_training(tuned.at_usual_rate(rung)) for rung in DEEPER),
        ],
    }
    return Quantities(numbers, checks)
