"""Parts of SST-2, depth, passes and learning rates."""

from collections.abc import Sequence
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import detectable, equivalent
from rtx_core.report.values import Gap, Task
from study.analysis.classifiers import (
    disagreement,
    gap,
    generalization_gap,
    of_model,
    p_over_seeds,
    paired,
    peaks,
    table_row,
    tested,
)
from study.analysis.corpora import inside
from study.analysis.ladder import Ladder, Tuned, best_rate, validated_more_often

DEEPER = ("3x1", "3x2", "1x6", "6x1")


def quantities(
    full: dict[float, list[Record]],
    reduced: dict[float, list[Record]],
    tried: dict[str, dict[float, list[Record]]],
    deepest: list[Record],
    wide: list[Record],
    often: list[Record],
    counting: dict[str, Record],
    profiles: dict[float, Record],
) -> Quantities:
    """Of runs by share of the training texts at both budgets, those of the ladder by rate, three layers run three
    times, Recurrent at Baseline's width, runs that are validated often, bags of words, and counts of the texts."""
    tuned = Tuned(tried)
    narrow = {(256, rung): tuned.at_usual_rate(rung) for rung in tried} | {(256, "3x3"): deepest}
    ladder = Ladder(narrow | {(384, "6x1"): of_model(full[min(full)], "baseline"), (384, "3x2"): wide})

    def task(share: float, budget: dict[float, list[Record]] = full) -> Task:
        return Task(budget[share], called=f"{share:g} of SST-2")

    def half_minus_all(model: str) -> Gap:
        return gap(getattr(task(0.5), model), getattr(task(1.0), model), same_training=False)

    def inside_training(share: float) -> float:
        return inside(profiles[share]["parts"]["test"])

    def second_pass() -> Gap:
        return gap(ladder.runs[256, "3x2"], ladder.runs[256, "3x1"])

    def wide_second_pass() -> Gap:
        """Six layers minus three run twice at Baseline's width."""
        return gap(ladder.runs[384, "6x1"], ladder.runs[384, "3x2"])

    def over_training(runs: Sequence[Record]) -> float:
        """The gap between validation and training loss, the mean over seeds."""
        return mean(map(generalization_gap, runs))

    def by_counting(share: float) -> float:
        return counting[{0.1: "sst2-10pct", 0.5: "sst2-50pct", 1.0: "sst2"}[share]]["test"]["accuracy"]

    def by_models(share: float, budget: dict[float, list[Record]] = full) -> list[float]:
        shared = Task(paired(budget[share]), called=f"{share:g} of SST-2")
        return [shared.baseline.accuracy, shared.recurrent.accuracy]

    def validated(model: str):
        (run,) = of_model(often, model)
        return validated_more_often(run, next(one for one in of_model(full[0.1], model) if one["seed"] == run["seed"]))

    def six_layers_at_smaller_rates() -> Record:
        """The first seed at the best rate but the largest."""
        smaller = dict(sorted(tried["6x1"].items())[:-1])
        return smaller[best_rate(smaller)][0]

    def best_six_layers() -> float:
        """The best accuracy of the first seed at any rate."""
        return max(runs[0]["test"]["accuracy"] for runs in tried["6x1"].values())

    numbers = {
        "one_model": lambda: number(disagreement(full[0.1], same_model=True), ".1%"),
        "two_models": lambda: number(disagreement(full[0.1], same_model=False), ".1%"),
        "deeper_models": lambda: words(len(tried) - 1),
        # Parts of the data
        **table_row("tenth", lambda: task(0.1)),
        **table_row("half", lambda: task(0.5)),
        "tenth_seeds": lambda: words(task(0.1).difference.seeds).capitalize(),
        "detectable": lambda: number(detectable(task(0.1).difference.by_seed), ".1f"),
        "half_seeds": lambda: words(task(0.5).difference.seeds),
        "inside_tenth": lambda: number(inside_training(0.1), ".0%"),
        "inside_all": lambda: number(inside_training(1.0), ".0%"),
        "half_costs_baseline": lambda: number(-half_minus_all("baseline"), ".1f"),
        "half_costs_recurrent": lambda: number(-half_minus_all("recurrent"), ".1f"),
        # Depth and passes
        "second_pass": lambda: str(second_pass()),
        "ladder_seeds": lambda: words(second_pass().seeds),
        "rates": lambda: words(len(tried["1x1"])),
        # Exercises
        "one_layer": lambda: number(tuned.accuracy("1x1"), ".1%"),
        "six_passes": lambda: number(tuned.accuracy("1x6"), ".1%"),
        "six_layers_best": lambda: number(best_six_layers(), ".1%"),
        "six_layers_smaller_rate": lambda: number(six_layers_at_smaller_rates()["test"]["accuracy"], ".1%"),
        "wide_second_pass": lambda: str(wide_second_pass()),
    }
    checks = {
        "one_model": lambda: [
            abs(disagreement(full[0.1], same_model=True) - disagreement(full[0.1], same_model=False)) < 0.01
        ],
        "deeper_models": lambda: [
            not any(tuned.ahead(rung, "1x1") for rung in DEEPER),
            not any(pair.sign for pair in tuned.differences.values()),
            abs(tuned.accuracy("1x1") - by_counting(0.1)) < 0.005,
            min(len(runs) for runs in tuned.runs.values()) >= 3,
        ],
        "tenth_difference": lambda: [
            task(0.1).difference.sign == 0,
            task(0.1).badge.budget == "full",
            task(0.1, reduced).difference.lean == 1,
            task(0.5).difference.lean == 0,
            task(0.5, reduced).difference.lean == 1,
            not equivalent(task(0.1).difference.by_seed, 1),
        ],
        "half_costs_baseline": lambda: [half_minus_all("baseline").lean == -1, half_minus_all("recurrent").lean == -1],
        "behind_counting": lambda: [
            max(by_models(0.1) + by_models(0.1, reduced)) < by_counting(0.1),
            min(by_models(1.0)) - max(by_models(0.1)) > by_counting(1.0) - by_counting(0.1),
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
        "second_pass": lambda: [
            second_pass().sign == 0,
            second_pass().high > 2,
            not any(pair.sign for pair in ladder.differences.values()),
        ],
        "rates": lambda: [
            tuned.accuracy("1x1") >= max(tuned.accuracies()),
            best_rate(tried["6x1"]) == 1e-3,
            peaks(tried["6x1"][1e-3])[0] < min(peaks(tried["6x1"][rate])[0] for rate in (3e-5, 1e-4, 3e-4)),
        ],
        "wide_second_pass": lambda: [wide_second_pass().high > 2],
        "six_layers_best": lambda: [
            best_six_layers() > six_layers_at_smaller_rates()["test"]["accuracy"],
            six_layers_at_smaller_rates() in tuned.at_usual_rate("6x1"),
        ],
        "validated_often": lambda: [
            validated("baseline").steps == validated("recurrent").steps == 0,
            validated("baseline").points == validated("recurrent").points == 0,
            all(epoch == 2 for epoch in tested(often, "epoch")),
        ],
    }
    return Quantities(numbers, checks)
