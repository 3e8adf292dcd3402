"""Rounding errors under sharing, and accuracy in other number formats."""

from rtx_core.report.statistics import Difference
from rtx_core.report.values import Space
from study import paper
from study.analysis.precision import error_ratios, format_changes, weakest_ratio
from study.values.common import computed


def rounding() -> Space:
    """Errors at the end, shared over unshared weights, of what is rounded and to how many bits: geometric means."""
    measurements = paper.measurements("rounding")
    return Space({"ratios": list(error_ratios(measurements).values()), "weakest": weakest_ratio(measurements)})


def formats() -> list[Difference]:
    """Accuracy in each smaller format minus FP32's, p adjusted."""
    return format_changes(paper.measurements("precision"))


VALUES = computed(rounding, formats)
