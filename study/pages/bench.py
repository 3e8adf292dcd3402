"""Bench your loop: whether its quick budget ranks models as longer training does."""

from collections.abc import Mapping
from statistics import median

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from study.analysis.ranking import by_seed, correlation, mean_errors, swapped

HOPS = 4


def quantities(pointers: list[Record], quick: Mapping[str, float], facts: list[Record]) -> Quantities:
    """Of runs on four hops with several seeds; of the errors on facts at the quick budget, by model; and of runs on
    facts with more exposures."""

    def agreement() -> list[float]:
        return [value for _, value in by_seed(pointers, HOPS).values()]

    def models() -> list[int]:
        return [count for count, _ in by_seed(pointers, HOPS).values()]

    def longer() -> dict[str, float]:
        return mean_errors(facts)

    numbers = {
        "pointer_models": lambda: f"{min(models())} to {max(models())}",
        "pointer_seeds": lambda: words(len(agreement())),
        "agreement": lambda: number(median(agreement()), ".2f"),
        "agreement_least": lambda: number(min(agreement()), ".2f"),
        "agreement_most": lambda: number(max(agreement()), ".2f"),
        "fact_models": lambda: words(len(quick.keys() & longer().keys())),
        "facts_agreement": lambda: number(correlation(quick, longer()), ".2f"),
        "exposures": lambda: str(facts[0]["config"]["train"]["epochs"]),
    }
    checks = {
        "agreement": lambda: [median(agreement()) > 0.7, min(agreement()) < 0.85],
        "facts_agreement": lambda: [
            correlation(quick, longer()) > 0.7,
            swapped(quick, longer()) == [("1x1", "1x4"), ("2x1", "2x2")],
            quick["1x1"] < quick["1x4"] and quick["2x1"] < quick["2x2"],
        ],
    }
    return Quantities(numbers, checks)
