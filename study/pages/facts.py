"""What passes add to stored facts."""

from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.evidence import by_model
from rtx_core.report.quantities import Quantities
from rtx_core.report.rates import by_rate, learning_rate
from rtx_core.report.statistics import mean_interval
from study.analysis.facts import Facts, Rounded, rounded, stored_bits
from study.analysis.hops import Hops
from study.analysis.records import at_rate, multiply_adds, seeds_of
from study.analysis.wording import listing, p_in_words, seeds, span
from study.folders import Folders
from study.second_pass import questions

MORE = 240  # exposures
RATE, RATES = 0.002, (0.001, 0.002, 0.004, 0.008)
SATURATED = ("1x1", "1x4", "1x1-wide", "2x1", "2x2")


def quantities(
    facts: list[Record],
    saturated: list[Record],
    fewer: list[Record],
    wide: list[Record],
    hops: list[Record],
    rounded_to: list[Record],
    again: list[Record],
    alternatives: list[Record],
) -> Quantities:
    """Of runs on facts at several learning rates, on the same facts with more exposures, on fewer facts, and of width
    128 on more; of runs on k-hop; what models still store when they are rounded; on new seeds; and of what else was
    trained there with the computation of a second pass, the `alternatives`."""
    runs = Folders.among([*facts, *saturated, *wide, *again, *alternatives])
    lower, base, higher, highest = (Facts(at_rate(facts, rate)) for rate in RATES)
    memorized = Facts([run for run in fewer if run["config"]["train"]["epochs"] == MORE])
    small = Facts([run for run in fewer if run["config"]["train"]["epochs"] != MORE])
    repeated = runs.saturated()
    khop = Hops(at_rate(hops, RATE), "k-hop")

    def per_fact(runs: Facts, model: str) -> str:
        """Bits of a fact that are stored, on average over facts and seeds."""
        return number(runs.bits(model) / runs.facts, ".2f")

    def gains_by_seed() -> list[float]:
        """Bits of one layer run four times over those of it run once."""
        return [four / one for four, one in zip(base.each("1x4"), base.each("1x1"))]

    def gains_in_percent() -> list[float]:
        """Of one layer run four times, where each fact is shown more often."""
        return [100 * (four / one - 1) for four, one in zip(repeated.each("1x4"), repeated.each("1x1"))]

    def gains_where_saturated(model: str) -> list[float]:
        """Bits over those of one layer run once, by seed."""
        ones = {run["seed"]: stored_bits(run) for run in repeated.of("1x1")}
        return [stored_bits(run) / ones[run["seed"]] for run in repeated.of(model) if run["seed"] in ones]

    def cost(runs: Facts, model: str) -> float:
        """FLOPs of training, up to a factor that all models share."""
        run = runs.of(model)[0]
        return multiply_adds(run) * run["config"]["train"]["epochs"]

    def fewer_bits() -> list[Rounded]:
        return rounded(rounded_to, at_rate(saturated, RATE))

    def at(model: str, bits: int) -> Rounded:
        return next(one for one in fewer_bits() if (one.run["model"], one.bits) == (model, bits))

    def per_parameter() -> list[float]:
        return [repeated.per_parameter(model) for model in SATURATED]

    def in_percent(ratio: float) -> str:
        return number(100 * (ratio - 1), ".0f")

    def wide_gains(model: str) -> list[float]:
        """Bits stored more than one layer's, in per cent, by seed in ascending order, at width 128."""
        pairs = zip(runs.wide_facts(model), runs.wide_facts("1x1"))
        return sorted(100 * (a / b - 1) for a, b in pairs)

    numbers = {
        **{
            f"wide_{key}_{end}": lambda model=model, place=place: number(
                wide_gains(model)[place], "+.0f" if model == "1x2" else ".0f"
            )
            for key, model in (("pass", "1x2"), ("layer", "2x1"))
            for end, place in (("least", 0), ("most", -1))
            if (key, end) != ("layer", "most")
        },
        # The ceiling
        "least_each": lambda: number(min(per_parameter()), ".1f"),
        "most_each": lambda: number(max(per_parameter()), ".1f"),
        "kept_8": lambda: number(min(one.kept for one in fewer_bits() if one.bits == 8), ".1%"),
        "loop_4": lambda: number(at("1x4", 4).kept, ".0%"),
        "once_4": lambda: number(at("1x1", 4).kept, ".0%"),
        # What can only be memorized
        "facts": lambda: number(base.facts, ","),
        "long_seeds": lambda: seeds(len(seeds_of(repeated.of("1x1")))),
        "four_passes_add": lambda: number(100 * (base.gain("1x4", "1x1") - 1), ".0f"),
        "best_passes": lambda: listing(map(in_percent, runs.over_tuned_layer("1x4"))),
        "few_1_1_tuned": lambda: number(runs.facts_at_best_rate("1x1") / base.facts, ".2f"),
        "best_layers": lambda: span(runs.over_tuned_layer("2x1"), in_percent),
        "again_share": lambda: number(100 * questions(runs)["bits"].share(), ".0f"),
        "again_interval": lambda: questions(runs)["bits"].interval,
        **{
            f"again_{key}": lambda key=key: number(mean(questions(runs)["bits"].scores_of(key)), ".1f")
            for key in ("split_steps", "split", "longer")
        },
        **{
            f"again_{key}": lambda model=model: number(mean(questions(runs)["bits"].scores[model].values()), ".1f")
            for key, model in (("once", "1x1"), ("twice", "1x2"), ("two", "2x1"))
        },
        "longer_p": lambda: p_in_words(questions(runs)["bits"].p_against("longer")),
        "split_p": lambda: p_in_words(questions(runs)["bits"].p_against("split")),
        "split_exposures": lambda: str(runs.split("bits", True)[0]["config"]["train"]["epochs"]),
        "longer_exposures": lambda: str(runs.longer_single("bits")[0]["config"]["train"]["epochs"]),
        # With four times the exposures
        "exposures": lambda: number(base.records[0]["config"]["train"]["epochs"], "d"),
        "more_exposures": lambda: number(repeated.records[0]["config"]["train"]["epochs"], "d"),
        "long_four_passes_add": lambda: number(100 * (repeated.gain("1x4", "1x1") - 1), ".0f"),
        "long_four_passes_low": lambda: number(mean_interval(gains_in_percent())[1], ".0f"),
        "long_four_passes_high": lambda: number(mean_interval(gains_in_percent())[2], ".0f"),
        "long_second_layer_adds": lambda: number(100 * (repeated.gain("2x1", "1x1") - 1), ".0f"),
        "long_two_layers_hold": lambda: number(repeated.bits("2x1") / (repeated.whole * repeated.facts), ".0%"),
        "bits_of_a_fact": lambda: number(repeated.whole, ".0f"),
        **{
            f"{key}_{model.replace('x', '_').replace('-', '_')}": lambda runs=runs, model=model: per_fact(runs, model)
            for key, runs, models in (("few", base, (*SATURATED, "4x1", "4x1-w32")), ("many", repeated, SATURATED))
            for model in models
        },
        "layer_over_passes": lambda: number(cost(base, "2x1") / cost(base, "1x4"), ".1f"),
        "exposures_over_layer": lambda: number(cost(repeated, "1x1") / cost(base, "2x1"), ".1f"),
        "least_seed_adds": lambda: number(100 * (min(gains_by_seed()) - 1), ".0f"),
        "most_seed_adds": lambda: number(100 * (max(gains_by_seed()) - 1), ".0f"),
        "small_passes_add": lambda: number(100 * (small.gain("1x4", "1x1") - 1), ".0f"),
        "small_layer_adds": lambda: number(100 * (small.gain("2x1", "1x1") - 1), ".0f"),
    }
    checks = {
        "wide_pass_least": lambda: [
            max(map(abs, wide_gains("1x2"))) < 5,
            min(wide_gains("2x1")) > 25,
            {learning_rate(run) for run in runs.wide_facts_runs("1x2") + runs.wide_facts_runs("2x1")} == {1e-3},
            len(wide_gains("1x2")) == 2,
        ],
        "by_parameters": lambda: [
            0.7 < (repeated.gain("1x1-wide", "1x1") - 1) / (repeated.gain("2x1", "1x1") - 1) < 0.8
        ],
        "kept_8": lambda: [
            all(one.stored < one.ceiling for one in fewer_bits()),
            at("1x4", 4).stored < at("1x1", 4).stored,
            max(at(model, 4).kept for model in ("2x1", "2x2")) < 0 < at("1x4", 4).kept < at("1x1", 4).kept,
            at("2x1", 5).ceiling < at("1x4", 8).ceiling and at("2x1", 5).stored > at("1x4", 8).stored,
            all(one.stored <= stored_bits(one.run) for one in fewer_bits() if one.bits < 8),
        ],
        "two_layers_twice": lambda: [
            max(khop.errors("2x2", 4)) < 0.01,
            khop.error("2x1", 4) > 0.2,
            base.gain("2x2", "2x1") < 1.1,
        ],
        "four_passes_add": lambda: [
            1.05 < base.gain("1x4", "1x1") < 1.25,
            1.0 < base.gain("2x2", "2x1") < 1.1,
            base.gain("2x1", "1x1") > 1.7,
        ],
        "best_passes": lambda: [
            1 < runs.facts_at_best_rate("1x4") / runs.facts_at_best_rate("1x1") < base.gain("1x4", "1x1"),
            max(lower.bits("1x1"), base.bits("1x1"), highest.bits("1x1")) < higher.bits("1x1"),
            all(max(lower.bits(m), 2 * higher.bits(m)) < base.bits(m) for m in ("1x4", "2x1")),
            max(runs.over_tuned_layer("1x4")[:-1]) < 1.02,
            min(higher.each("1x1")) < 0.9 * max(higher.each("1x1")),
            runs.over_tuned_layer("2x1")[0] > 1.5,
            runs.facts_at_best_rate("2x1") > 1.6 * runs.facts_at_best_rate("1x1"),
        ],
        "facts": lambda: [
            min(memorized.bits(m) for m in ("1x1", "1x4", "2x1", "2x2", "4x1", "4x1-w32"))
            > 0.998 * memorized.whole * memorized.facts
        ],
        "long_four_passes_add": lambda: [
            min(gains_where_saturated("1x4")) > 1.1,
            max(gains_where_saturated("1x4")) < 1.5,
            repeated.bits("1x4") < repeated.bits("1x1-wide") < repeated.bits("2x1"),
            repeated.gain("1x4", "1x1") > 1.1 * base.gain("1x4", "1x1"),
            3.5 < (repeated.gain("2x1", "1x1") - 1) / (repeated.gain("1x4", "1x1") - 1) < 4.5,
        ],
        "few_4_1_w32": lambda: [max(base.each("4x1-w32")) < 0.85 * min(base.each("1x1"))],
        "small_passes_add": lambda: [
            0.85 < (small.gain("1x4", "1x1") - 1) / (base.gain("1x4", "1x1") - 1) < 1.15,
            small.bits("2x1") > 0.97 * small.whole * small.facts,
        ],
        "picked_rate": lambda: [[*by_rate(repeated.records)] == [RATE], {*by_model(repeated.records)} == {*SATURATED}],
        "long_wide": lambda: [0.82 < repeated.gain("1x1-wide", "2x1") < 0.94],
        "long_two_layers_hold": lambda: [repeated.bits("2x1") > 0.95 * repeated.whole * repeated.facts],
        "again_share": lambda: [
            questions(runs)["bits"].share() < 0.2,
            mean(questions(runs)["bits"].scores["1x1"].values()) < base.bits("1x1") / base.facts + 0.05,
            sorted(Facts(again).each("1x1"))[1] < 0.9 * max(Facts(again).each("1x1")),
        ],
        "longer_p": lambda: [
            questions(runs)["bits"].p_against("longer") < 0.05 < questions(runs)["bits"].p_against("split"),
            questions(runs)["bits"].gain("longer") > questions(runs)["bits"].gain("split") > 0.05,
            questions(runs)["bits"].gain("longer") < 0.7,
        ],
        "many_1_1": lambda: [base.bits("1x4") < repeated.bits("1x1") < base.bits("2x1")],
    }
    return Quantities(numbers, checks)
