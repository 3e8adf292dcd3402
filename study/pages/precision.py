"""Number formats: rounding errors under sharing, accuracy in fewer bits, and loops with rounded layers."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.values import Runs, Value
from study.analysis.hops import Rounding
from study.analysis.precision import error_ratios, format_changes
from study.analysis.records import seeds_of


def quantities(
    rounding: list[Record], formats: list[Record], quantized: list[Record], pointers: list[Record]
) -> Quantities:
    """Of rounding errors, accuracies in other formats, and pointer models with rounded layers and as they were."""
    loops = Rounding(quantized, Runs(pointers, "k-hop"))

    def ratios() -> list[Value]:
        return list(error_ratios(rounding).values())

    def untrained() -> dict[int, Value]:
        """The ratio by the number of bits."""
        return {bits: ratio for (model, bits), ratio in error_ratios(rounding).items() if model is None}

    def cost(model: str, bits: int = 4) -> float:
        """By how much rounding raises the share of wrong answers at four hops."""
        return loops.cost(model, bits)

    def most(bits: int) -> float:
        return max(cost(model, bits) for model in ("1x4", "1x4-noise", "2x2", "4x1"))

    numbers = {
        "ratio_least": lambda: number(min(ratios()), ".1f"),
        "ratio_most": lambda: number(max(ratios()), ".1f"),
        "ratios": lambda: str(len(ratios())),
        "draws": lambda: words(len({curve["seed"] for one in rounding for curve in one["curves"] if "seed" in curve})),
        "four_bits_cost": lambda: number(100 * cost("1x4"), ".0f"),
        "four_bits_cost_after_noise": lambda: number(100 * cost("1x4-noise"), ".1f"),
        "loop_seeds": lambda: words(len(seeds_of(quantized))),
        # Exercises
        "few_bits": lambda: str(min(untrained())),
        "many_bits": lambda: str(max(untrained())),
        "ratio_few_bits": lambda: str(untrained()[min(untrained())]),
        "ratio_many_bits": lambda: str(untrained()[max(untrained())]),
    }
    checks = {
        "ratio_least": lambda: [
            1.25 < min(ratios()) < 1.35,
            1.45 < max(ratios()) < 1.55,
            not any(change.lean for change in format_changes(formats)),
            cost("1x4") > 1.5 * max(cost("4x1"), cost("2x2")),
        ],
        "ratios": lambda: [all(ratio.low > 1 for ratio in ratios()), not any(ratio.low > 2**0.5 for ratio in ratios())],
        "formats": lambda: [
            max(abs(change.value) for change in format_changes(formats)) < 0.001,
            not any(change.lean for change in format_changes(formats)),
        ],
        "four_bits_cost": lambda: [
            loops.most(8) < 0.005,
            max(cost("4x1"), cost("2x2")) < 0.01,
            cost("1x4-noise") < cost("1x4") / 2,
            most(5) < 0.02,
            cost("1x4", 3) == most(3),
        ],
    }
    return Quantities(numbers, checks)
