"""Try it: the loop at work."""

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities


def quantities(cups: list[Record], demo: list[Record], words: list[Record]) -> Quantities:
    """Of the layer that tracks three cups, of the classifier as the page runs it, and of a bag of words."""

    def right(move: int, passes: int) -> float:
        """The share of answers after so many moves that are right."""
        return 1 - cups[0]["test"]["parts"][move - 1]["error_by_passes"][passes - 1]

    def positive(passes: int) -> list[float]:
        """The probability of "positive" that the classifier gives each recorded sentence."""
        return [example["passes"][passes - 1]["probabilities"][1] for example in demo[0]["examples"]]

    numbers = {
        "cups_eight_passes": lambda: number(right(12, 8), ".0%"),  # at the twelfth move
        "cups_twelve_passes": lambda: number(right(12, 12), ".0%"),
        "model": lambda: number(demo[0]["test"]["accuracy"], ".1%"),
        "bag_of_words": lambda: number(words[0]["test"]["accuracy"], ".1%"),
        "one_pass": lambda: number(demo[0]["accuracy_after"][0], ".1%"),
        "six_passes": lambda: number(demo[0]["accuracy_after"][5], ".1%"),
        "same_class": lambda: number(demo[0]["same_class"], ".1%"),  # with weights of 8 bits
    }
    checks = {
        "cups_eight_passes": lambda: [
            right(8, 8) > 0.99,
            right(12, 8) < 0.7,
            right(12, 12) > 0.95,
            right(16, 16) < 0.85,
        ],
        "model": lambda: [abs(demo[0]["test"]["accuracy"] - demo[0]["fp32_accuracy"]) < 0.005],
        "one_pass": lambda: [
            max(demo[0]["accuracy_after"]) - min(demo[0]["accuracy_after"]) < 0.005,
            all(abs(six - 0.5) > abs(two - 0.5) for six, two in zip(positive(6), positive(2))),
        ],
        "same_class": lambda: [demo[0]["same_class"] >= 0.99],
    }
    return Quantities(numbers, checks)
