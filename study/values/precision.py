"""Rounding errors under sharing, and accuracy in other number formats."""

from collections import defaultdict

import numpy as np

from rtx_core.report.evidence import Badge
from rtx_core.report.statistics import Difference, adjusted, difference, mean_interval
from rtx_core.report.values import Space, Value
from study import paper
from study.analysis.classifiers import PAIR
from study.values.common import computed


def rounding() -> Space:
    """Errors at the end, shared over unshared weights, of what is rounded and to how many bits: geometric means."""
    ends = defaultdict(lambda: defaultdict(list))
    for curve in (curve for measured in paper.measurements("rounding") for curve in measured["curves"]):
        if curve["comparison"] != "trained":
            ends[curve.get("model"), curve["bits"]][curve["arm"]].append(curve["errors"][-1])  # in the order of seeds
    found = {}
    for (model, bits), arms in ends.items():
        logs = list(np.log(arms["shared"]) - np.log(arms["unshared"]))
        evidence = Badge(len(logs) if model is None else 1, 0)
        found[model, bits] = Value(*np.exp(mean_interval(logs)), evidence, form=".2f")
    claimed = [ratio for (model, bits), ratio in found.items() if model is None and bits in (4, 6, 8)]
    return Space({"ratios": list(found.values()), "weakest": min(claimed, key=lambda ratio: ratio.low)})


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
