"""Rounding errors under sharing, and accuracy in other number formats."""

import numpy as np

from rtx_core.report import statistics
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Space, Unmeasured, Value
from study import paper


def rounding() -> Space:
    """Errors at the end, shared over unshared weights, of what is rounded and to how many bits: geometric means."""
    ends: dict[tuple, dict[str, list]] = {}
    for measured in paper.measurements("rounding"):
        for curve in measured["curves"]:
            if curve["comparison"] != "trained":
                arms = ends.setdefault((curve.get("model"), curve["bits"]), {})
                arms.setdefault(curve["arm"], []).append(curve["errors"][-1])  # in the order of the seeds
    found = {}
    for place, arms in ends.items():
        logs = list(np.log(arms["shared"]) - np.log(arms["unshared"]))
        evidence = Badge(len(logs) if place[0] is None else 1, 0)
        found[place] = Value(*np.exp(statistics.mean_interval(logs)), evidence, form=".2f")
    claimed = [ratio for (model, bits), ratio in found.items() if model is None and bits in (4, 6, 8)]
    return Space({"ratios": list(found.values()), "weakest": min(claimed, key=lambda ratio: ratio.low)})


def formats() -> list[statistics.Difference]:
    """Accuracy in each smaller format minus FP32's, p adjusted."""
    groups: dict[tuple, list] = {}
    for measured in paper.measurements("precision"):
        groups.setdefault((measured["of"], measured["model"], measured["format"]), []).append(measured)
    return statistics.adjusted(
        [
            statistics.difference(found, groups[(of, model, "fp32")], same_training=False)
            for (of, model, kind), found in groups.items()
            if kind != "fp32"
        ]
    )


def bf16_trained() -> list[statistics.Difference]:
    """Accuracy after training with 16-bit products minus that in FP32, by Baseline and Recurrent; p adjusted."""
    folders, models = ("sst2-10pct-precisionbf16", "sst2-10pct"), ("baseline", "recurrent")
    pairs = [[paper.records(folder, model=model) for folder in folders] for model in models]
    if min(len(found) for pair in pairs for found in pair) < 5:
        raise Unmeasured(f"{folders[0]} has no five seeds of each model yet.")
    return statistics.adjusted([statistics.difference(*pair) for pair in pairs])


VALUES = {"rounding": rounding, "formats": formats, "bf16_trained": bf16_trained}
