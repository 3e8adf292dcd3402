"""Rounding errors under sharing, and accuracy in other number formats."""

import numpy as np

from rtx_core.report import statistics
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Space, Value
from study import paper

ROOT = 2**0.5  # equal errors of two passes that add up, over independent ones


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
    return Space(
        {
            "tests": len(found),
            "least": min(found.values()),
            "most": max(found.values()),
            "weakest": min(claimed, key=lambda ratio: ratio.low),
            "amplified": sum(ratio.low > 1 for ratio in found.values()),
            "above_root": sum(ratio.low > ROOT for ratio in found.values()),
            "below_root": sum(ratio.high < ROOT for ratio in found.values()),
        }
    )


def formats() -> Space:
    """Accuracy in each smaller format minus FP32's, p adjusted; the largest change in points."""
    groups: dict[tuple, list] = {}
    for measured in paper.measurements("precision"):
        groups.setdefault((measured["of"], measured["model"], measured["format"]), []).append(measured)
    changes = statistics.adjusted(
        [
            statistics.difference(found, groups[(of, model, "fp32")], same_training=False)
            for (of, model, kind), found in groups.items()
            if kind != "fp32"
        ]
    )
    return Space(
        {
            "significant": sum(change.sign != 0 for change in changes),
            "largest": 100 * max(abs(change.value) for change in changes),
        }
    )


VALUES = {"rounding": rounding, "formats": formats}
