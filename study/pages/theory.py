"""Theory: what a loop saves, the hops that its passes can follow, and the bits that its weights can hold."""

from collections.abc import Mapping
from statistics import mean

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from study.analysis.facts import Facts, Rounded, rounded, stored_bits
from study.analysis.hops import solved_by_pass
from study.analysis.precision import error_ratios
from study.analysis.wording import listing

PICKING = 3  # the seed that picks the learning rates of facts, and is reported nowhere else


def quantities(
    sizes: Mapping[str, dict],
    rounding: list[Record],
    small: list[Record],
    drawn: list[Record],
    wide: list[Record],
    hard: list[Record],
    published: list[Record],
    stored: list[Record],
    capacities: list[Record],
) -> Quantities:
    """Of the sizes of encoders, of rounding errors, of loops over pointers (always four passes, one to six, at width
    256, six passes on eight hops, and on the published task), and of models of facts and what they still store when
    they are rounded."""

    def ratios() -> list:
        return list(error_ratios(rounding).values())

    def steps(runs: list[Record]) -> list[list[int]]:
        """Hops solved after each pass, by run."""
        return list(map(solved_by_pass, runs))

    def facts() -> Facts:
        return Facts([run for run in stored if run["seed"] != PICKING])

    def each(model: str) -> float:
        return facts().per_parameter(model)

    def at(model: str, bits: int) -> Rounded:
        return next(one for one in rounded(capacities, stored) if (one.run["model"], one.bits) == (model, bits))

    def kept(bits: int) -> list[float]:
        return [one.kept for one in rounded(capacities, stored) if one.bits == bits]

    models = ("1x1", "1x4", "2x1", "2x2")
    numbers = {
        "wide_steps": lambda: listing(map(str, steps(wide)[0])),
        "published_hops": lambda: number(max(run[-1] for run in steps(published)), "d"),
        "least_each": lambda: number(min(map(each, models)), ".1f"),
        "most_each": lambda: number(max(map(each, models)), ".1f"),
        "passes_add": lambda: number(100 * (facts().gain("1x4", "1x1") - 1), ".0f"),
        "kept_8": lambda: number(min(kept(8)), ".1%"),
        "loop_4": lambda: number(at("1x4", 4).kept, ".0%"),
        "once_4": lambda: number(at("1x1", 4).kept, ".0%"),
        "stack_5": lambda: number(at("2x1", 5).stored / 1000, ".0f"),
        "loop_8": lambda: number(at("1x4", 8).stored / 1000, ".0f"),
        "ratios": lambda: number(len(ratios()), ","),
    }
    checks = {
        "wide_loop": lambda: [
            sizes["recurrent-wide"]["mflops"] == sizes["baseline"]["mflops"],
            2 * sizes["recurrent-wide"]["layers"] == sizes["baseline"]["layers"],
        ],
        "wide_steps": lambda: [
            all(run == [0, 1, 2, 4] for run in steps(wide)),
            2 < mean(run[3] for run in steps(small)) <= 4,
            all(run[2] <= 2 for run in steps(small)),
            all(run[4] <= 4 < run[5] for run in steps(hard)),
            all(run[1] == 2 for run in steps(drawn)),
            all(run[3] > 8 and run[2] < 4 for run in steps(published)),
        ],
        "kept_8": lambda: [
            all(one.stored < one.ceiling for one in rounded(capacities, stored)),
            max(at(model, 4).kept for model in ("2x1", "2x2")) < 0 < at("1x4", 4).kept < at("1x1", 4).kept,
            at("2x1", 5).ceiling < at("1x4", 8).ceiling and at("2x1", 5).stored > at("1x4", 8).stored,
            all(one.stored <= stored_bits(one.run) for one in rounded(capacities, stored) if one.bits < 8),
        ],
        "ratios": lambda: [1.45 < max(ratios()) < 1.55, not any(ratio.low > 2**0.5 for ratio in ratios())],
    }
    return Quantities(numbers, checks)
