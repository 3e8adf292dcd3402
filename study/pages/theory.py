"""Theory."""

from collections.abc import Mapping

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from study.analysis.attention import heaviest_tokens, probability
from study.analysis.precision import error_ratios


def quantities(sizes: Mapping[str, dict], rounding: list[Record], attention: list[Record]) -> Quantities:
    """Of the sizes of encoders, of rounding errors, and of where [CLS] looks in one sentence, a measurement a model."""

    def ratios() -> list:
        return list(error_ratios(rounding).values())

    def look(model: str) -> Record:
        return next(measurement for measurement in attention if measurement["model"] == model)

    numbers = {"ratios": lambda: number(len(ratios()), ",")}
    checks = {
        "wide_loop": lambda: [
            sizes["recurrent-wide"]["mflops"] == sizes["baseline"]["mflops"],
            2 * sizes["recurrent-wide"]["layers"] == sizes["baseline"]["layers"],
        ],
        "ratios": lambda: [1.45 < max(ratios()) < 1.55, not any(ratio.low > 2**0.5 for ratio in ratios())],
        "attention": lambda: [
            probability(look("baseline"), "negative") > 0.9,
            probability(look("recurrent"), "negative") > 0.9,
            heaviest_tokens(look("recurrent")) == ["thin"] * 6,
            heaviest_tokens(look("baseline")) == ["thin"] * 6,
        ],
    }
    return Quantities(numbers, checks)
