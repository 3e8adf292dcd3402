"""Architectures."""

from collections.abc import Mapping

from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from study.analysis.formulas import agree


def quantities(sizes: Mapping[str, dict], recorded: list[dict], published: Mapping) -> Quantities:
    """Of the sizes of the studies' models by their formulas, of the configurations and parameters of all recorded runs,
    and of the counts in print."""

    def saving(model: str, other: str, part: str = "total") -> float:
        """The share of the second model's parameters that the first does without."""
        return 1 - sizes[model][part] / sizes[other][part]

    numbers = {
        "recurrent_share": lambda: number(sizes["recurrent"]["total"] / sizes["baseline"]["total"], ".0%"),
        "share_outside": lambda: number(sizes["recurrent"]["outside"] / sizes["baseline"]["outside"], ".0%"),
        "saving": lambda: number(saving("recurrent", "baseline"), ".1%"),
        "three_part_adds": lambda: number(saving("control", "three-part"), ".0%"),
        "relaxed_adds": lambda: number(saving("control", "relaxed"), ".0%"),
    }
    checks = {
        "saving": lambda: [
            published["baseline"]["total"] == sizes["baseline"]["total"],
            published["recurrent"]["total"] == sizes["recurrent"]["total"],
        ],
        "formulas": lambda: [agree(recorded)],
        "three_part_adds": lambda: [sizes["frailt"]["total"] < sizes["three-part"]["total"]],
    }
    return Quantities(numbers, checks)
