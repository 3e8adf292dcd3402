"""Errors."""

from rtx_core.records import Record
from rtx_core.report import number, title
from rtx_core.report.quantities import Quantities
from study.analysis.errors import Errors, disagreement


def quantities(pair: list[Record], words: list[Record], tenth: list[Record]) -> Quantities:
    """Of a run of each of two models on GLUE's sentences, of a bag of words beside them, and of the runs of both
    models on a tenth of SST-2."""

    def errors() -> Errors:
        return Errors(pair, words[0])

    def both() -> int:
        return int((errors().first & errors().second).sum())

    def independent() -> float:
        """How many errors the two would share by chance."""
        return errors().first.mean() * errors().second.sum()

    numbers = {
        "first": lambda: title(pair[0]["model"]),
        "second": lambda: title(pair[1]["model"]),
        "sentences": lambda: number(len(errors().first), ","),
        "first_wrong": lambda: number(errors().first.sum(), ","),
        "both_wrong": lambda: number(both(), ","),
        "independent": lambda: number(independent(), ".0f"),
        "one_model": lambda: number(disagreement(tenth, same_model=True), ".1%"),
        "two_models": lambda: number(disagreement(tenth, same_model=False), ".1%"),
        "only_models_right": lambda: number(errors().only_models_right.sum(), ","),
        "only_words_right": lambda: number(errors().only_words_right.sum(), ","),
    }
    checks = {
        "both_wrong": lambda: [both() > 0.8 * max(errors().first.sum(), errors().second.sum())],
        "independent": lambda: [
            both() > 4 * independent(),
            abs(disagreement(tenth, same_model=True) - disagreement(tenth, same_model=False)) < 0.01,
        ],
        "only_models_right": lambda: [
            errors().positive[errors().only_models_right].mean() < 0.25,
            errors().positive[errors().only_words_right].mean() > 0.65,
            max(map(errors().answered_positive, (errors().first, errors().second)))
            < errors().answered_positive(errors().words),
        ],
    }
    return Quantities(numbers, checks)
