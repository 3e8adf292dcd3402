"""Rounding errors at the end of a model, of shared weights over unshared ones; accuracy in other number formats."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from rtx_core.records import Record
from rtx_core.report.evidence import Badge
from rtx_core.report.statistics import Difference, adjusted, difference, mean_interval
from rtx_core.report.values import Value


def error_ratios(measurements: Iterable[Record]) -> dict[tuple[str | None, int], Value]:
    """(model or None, bits) -> the error with shared weights over that with unshared ones, the geometric mean."""
    ends = defaultdict(lambda: defaultdict(list))
    for curve in (curve for measured in measurements for curve in measured["curves"]):
        if curve["comparison"] != "trained":
            ends[curve.get("model"), curve["bits"]][curve["arm"]].append(curve["errors"][-1])  # in the order of seeds
    ratios = {}
    for (model, bits), arms in ends.items():
        logs = list(np.log(arms["shared"]) - np.log(arms["unshared"]))
        evidence = Badge(len(logs) if model is None else 1, 0)
        ratio, low, high = np.exp(mean_interval(logs))
        ratios[model, bits] = Value(ratio, low, high, evidence, form=".2f")
    return ratios


def weakest_ratio(measurements: Iterable[Record]) -> Value:
    """The least of untrained models at 4, 6 and 8 bits."""
    ratios = error_ratios(measurements)
    return min((ratios[None, bits] for bits in (4, 6, 8)), key=lambda ratio: ratio.low)


def format_changes(measurements: Iterable[Record]) -> list[Difference]:
    """A model's accuracy in each smaller format minus that in FP32, p adjusted."""
    groups = defaultdict(list)
    for measured in measurements:
        groups[measured["of"], measured["model"], measured["format"]].append(measured)
    smaller = [group for group in groups if group[-1] != "fp32"]
    pairs = [(groups[group], groups[*group[:2], "fp32"]) for group in smaller]
    return adjusted([difference(*pair, same_training=False) for pair in pairs])
