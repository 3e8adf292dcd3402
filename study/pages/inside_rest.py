"""Stopping early and running on: loops over pointers that stop before their last trained pass, or go on after it."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis import stopping
from study.analysis.hops import Hops
from study.analysis.inside import errors_after
from study.analysis.wording import at_least, percent, seeds

HOPS = 4
GATE, ALIKE = 0.1, 10  # bonuses for the entropy of a gate's passes: some, and so much that all passes have the same


def quantities(
    pointers: list[Record],
    random_passes: list[Record],
    fixed: list[Record],
    gates: list[Record],
    stops: list[Record],
    growth: list[Record],
    variants: list[Record],
) -> Quantities:
    """Of runs of loops with fixed and with random passes, of the latter and of the former in longer training, and of
    six passes with and without a gate; of rules that stop them; and of loops that run on, the two that the page opens
    and variants of the long one."""
    khop, draws, long = Hops(pointers, "k-hop"), Hops(random_passes, "k-hop, longer"), Hops(fixed, "k-hop, longer")

    def rule(training: str, name: str, hops: int) -> tuple[float, float]:
        """(passes, error), on average over seeds."""
        return stopping.mean_of(stops, training, name, hops)

    def six(bonus: float = 0) -> Hops:
        """One layer always trained with six passes, or with a gate and this bonus for the entropy of its passes."""
        return Hops([run for run in gates if run["config"]["model"].get("halting", 0) == bonus], "six passes")

    def random_short() -> Hops:
        """One layer trained with random passes for as many steps."""
        return Hops([run for run in khop.of("1x6-random") if run["seed"] in (5, 6, 7)], "random passes")

    def steps(runs: Hops, model: str) -> int:
        return runs.records_for(model)[0]["config"]["train"]["steps"]

    def loops(measurements: list[Record], model: str) -> list[Record]:
        return [one for one in measurements if one["model"] == model]

    def long_loop(passes: int, way: str = "free") -> list[float]:
        """Errors at four hops."""
        return errors_after(loops(growth, "1x6-random"), passes, HOPS, way)

    def variant(name: str, passes: int, hops: int) -> list[float]:
        return errors_after(loops(variants, f"1x6-random{name}"), passes, hops)

    numbers = {
        # Passes drawn at random in training can be chosen afterwards
        "stopped_early_least": lambda: at_least(min(long.errors("1x4", HOPS, 2) + long.errors("1x6", HOPS, 4))),
        "times_the_steps": lambda: words(steps(draws, "1x6-random") // steps(khop, "1x4")),
        "short_steps": lambda: number(steps(khop, "1x6-random"), ","),
        "random_most": lambda: number(max(draws.errors("1x6-random", HOPS, 12)), ".1%"),
        "random_short_least": lambda: at_least(min(khop.errors("1x6-random", HOPS, 6))),
        "fixed_most": lambda: number(max(long.errors("1x4", HOPS)), ".1%"),
        "six_most": lambda: number(max(long.errors("1x6", HOPS)), ".3%"),
        "gate_three_most": lambda: percent(max(six(GATE).errors("1x6", 3, 6))),
        "alike_least": lambda: percent(min(six(ALIKE).errors("1x6", HOPS, 6))),
        "alike_most": lambda: percent(max(six(ALIKE).errors("1x6", HOPS, 6))),
        "confident_one": lambda: number(rule("random", "confident 0.99", 1)[0], ".1f"),
        "confident_four": lambda: number(rule("random", "confident 0.99", HOPS)[0], ".1f"),
        # Running on
        "seeds": lambda: seeds(len(loops(growth, "1x4"))),
        "long_seeds": lambda: seeds(len(loops(growth, "1x6-random"))),
        "loops": lambda: words(len(growth)),
        # Exercises
        "long_64_least": lambda: number(min(long_loop(64)), ".0%"),
        "long_64_most": lambda: number(max(long_loop(64)), ".0%"),
        "short_random": lambda: number(khop.error("1x6-random", HOPS, 6), ".0%"),
        "short_random_seeds": lambda: words(len(khop.of("1x6-random"))),
    }
    checks = {
        "stopped_early_least": lambda: [
            min(long.errors("1x4", HOPS, 2) + long.errors("1x6", HOPS, 4)) > 0.48,
            max(long.errors("1x4", HOPS) + long.errors("1x6", HOPS)) < 0.01,
        ],
        "random_most": lambda: [
            draws.error("1x6-random", HOPS, 2) > draws.error("1x6-random", HOPS, 3) > 0.05,
            draws.error("1x6-random", HOPS, 4) < 0.05,
            max(draws.errors("1x6-random", HOPS, 12)) < 0.02,
            min(khop.errors("1x6-random", HOPS, 6)) > 0.05,
        ],
        "times_the_steps": lambda: [khop.error("1x6-random", HOPS, 6) > 0.1],
        "six_most": lambda: [
            max(long.errors("1x6", HOPS)) < 0.001,
            min(long.errors("1x6", HOPS, 4)) > 0.4,
            sorted(long.errors("1x6", HOPS, 12))[1] < 0.03,
        ],
        "fixed_most": lambda: [
            max(long.errors("1x4", HOPS, 5)) < 0.02,
            max(long.errors("1x4", HOPS)) < 0.02,
            min(long.errors("1x4", HOPS, 3) + long.errors("1x4", HOPS, 8)) > 0.03,
            sorted(long.errors("1x6", HOPS, 12))[1] > max(long.errors("1x6", HOPS)),
        ],
        "fixed_run_on": lambda: [long.error("1x4", HOPS, 8) > 0.05, draws.error("1x6-random", HOPS, 12) < 0.02],
        "confident_passes": lambda: [
            rule("random", "confident 0.99", HOPS)[1] < rule("random", "fixed 6", HOPS)[1] + 0.002,
            rule("random", "confident 0.99", 1)[0] < 2 < rule("random", "confident 0.99", HOPS)[0] < 5,
            rule("random", "agree", HOPS)[1] > 0.1,
        ],
        "fixed_confident_wrong": lambda: [
            rule("always four", "confident 0.99", HOPS)[1] > 1.5 * rule("always four", "fixed 4", HOPS)[1]
        ],
        "gate_wrong": lambda: [
            six(GATE).error("1x6", HOPS, 6) < 0.01 < random_short().error("1x6-random", HOPS, 6),
            six(GATE).error("1x6", HOPS, 12) < 0.01 < six().error("1x6", HOPS, 12),
            max(six().errors("1x6", HOPS, 6)) < min(0.001, six(GATE).error("1x6", HOPS, 6)),
            rule("gate", "gate 0.3", HOPS)[1] < rule("gate", "fixed 6", HOPS)[1] + 0.003,
            rule("gate", "gate 0.3", 1)[0] < 3.5 < rule("gate", "gate 0.3", HOPS)[0] < 5.5,
            rule("gate", "confident 0.99", HOPS)[1] > 0.1,
            min(six().errors("1x6", HOPS, 4)) > 0.1,
        ],
        "alike_least": lambda: [
            max(six(GATE).errors("1x6", HOPS, 6)) < min(six(ALIKE).errors("1x6", HOPS, 6)),
            max(six(ALIKE).errors("1x6", HOPS, 6)) < min(random_short().errors("1x6-random", HOPS, 6)),
        ],
        "growth_delays_the_loss": lambda: [
            min(long_loop(64, "held")) > max(long_loop(64)),
            min(variant("-norm", 256, 2)) > max(variant("", 256, 2)),
            min(variant("-add-norm", 256, 2)) > max(variant("-add", 256, 2)),
            min(variant("-linear", 256, 2) + variant("-linear-norm", 256, 2)) > 0.15,
        ],
        "four_hops_with_a_matrix": lambda: [
            max(variant("-linear", 6, HOPS)) < 0.04 < min(variant("-add-norm", 6, HOPS) + variant("-norm", 6, HOPS))
        ],
    }
    return Quantities(numbers, checks)
