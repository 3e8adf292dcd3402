"""Rounding errors under sharing, and accuracy in other number formats."""

from collections import defaultdict

from rtx_core.report.statistics import Difference, adjusted, difference
from rtx_core.report.values import Space
from study import paper
from study.analysis.classifiers import PAIR
from study.analysis.precision import error_ratios, weakest_ratio
from study.values.common import computed


def rounding() -> Space:
    """Errors at the end, shared over unshared weights, of what is rounded and to how many bits: geometric means."""
    measurements = paper.measurements("rounding")
    return Space({"ratios": list(error_ratios(measurements).values()), "weakest": weakest_ratio(measurements)})


def formats() -> list[Difference]:
    """Accuracy in each smaller format minus FP32's, p adjusted."""
    groups = defaultdict(list)
    for measured in paper.measurements("precision"):
        groups[measured["of"], measured["model"], measured["format"]].append(measured)
    smaller = [of for of in groups if of[-1] != "fp32"]
    return adjusted([difference(groups[of], groups[*of[:2], "fp32"], same_training=False) for of in smaller])


def bf16_trained() -> list[Difference]:
    """Accuracy after training with 16-bit products minus that in FP32, of Baseline and Recurrent, p adjusted."""
    folders = ("sst2-10pct-precisionbf16", "sst2-10pct")
    pairs = [[paper.records(folder, model=model) for folder in folders] for model in PAIR]
    return adjusted([difference(*pair) for pair in pairs])


VALUES = computed(rounding, formats, bf16_trained)
