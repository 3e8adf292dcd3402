"""Rounding errors under sharing, and accuracy in other number formats."""

import numpy as np

from rtx_core.report import statistics
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Space, Value
from study import paper

ROOT = 2**0.5  # equal errors of two passes that add up, over independent ones


class Ratio(Value):
    """A factor with its 95 % interval."""

    form = ".2f"


def ratios() -> dict[tuple[str, int], Ratio]:
    """(what is rounded, bits) -> error at the end, shared over unshared: geometric mean over seeds."""
    ends, found = {}, {}
    for measured in paper.measurements("rounding"):
        for curve in measured["curves"]:
            if curve["comparison"] != "trained":
                place = (curve.get("model") or "fresh", curve["bits"])
                ends.setdefault(place, {}).setdefault(curve["arm"], []).append(curve["errors"][-1])
    for place, arms in ends.items():
        logs = np.log(arms["shared"]) - np.log(arms["unshared"])  # both in the order of the seeds
        found[place] = Ratio(*np.exp(statistics.mean_interval(list(logs))), Badge(1, 0))
    return found


def rounding() -> Space:
    found = ratios()
    space = {"tests": len(found), "least": min(found.values()), "most": max(found.values())}
    weakest = [ratio for (_, bits), ratio in found.items() if bits in (4, 6, 8)]
    space["weakest"] = min(weakest, key=lambda ratio: ratio.low)  # of the bits that the claim names
    space["amplified"] = sum(ratio.low > 1 for ratio in found.values())
    space["above_root"] = sum(ratio.low > ROOT for ratio in found.values())
    space["below_root"] = sum(ratio.high < ROOT for ratio in found.values())
    ends = nearest()
    for name in {model for model, _ in ends} - {"baseline"}:
        beside = [ends[name, bits] / ends["baseline", bits] for model, bits in ends if model == name]
        space[f"{name}_over_baseline"] = {"least": min(beside), "most": max(beside)}
    return Space(space)


def nearest() -> dict[tuple[str, int], float]:
    """(trained model, bits) -> error after the last layer with its own weights rounded to nearest."""
    curves = [curve for measured in paper.measurements("rounding") for curve in measured["curves"]]
    return {(c["arm"], c["bits"]): c["errors"][-1] for c in curves if c["comparison"] == "trained"}


def formats() -> Space:
    """Accuracy in each smaller format minus FP32's, `formats.recurrent_int8`, p adjusted."""
    groups = {}
    for measured in paper.measurements("precision"):
        groups.setdefault((measured["of"], measured["model"], measured["format"]), []).append(measured)
    changes = {
        place: statistics.difference(found, groups[(*place[:2], "fp32")], same_training=False)
        for place, found in groups.items()
        if place[2] != "fp32"
    }
    changes = dict(zip(changes, statistics.adjusted(list(changes.values()))))
    space = {"tests": len(changes), "significant": sum(found.sign != 0 for found in changes.values())}
    space["largest"] = 100 * max(abs(found.value) for found in changes.values())
    space["least_p"] = min(found.p for found in changes.values())
    space["least_adjusted"] = min(found.adjusted for found in changes.values())
    besides = beside(groups)
    space["beside"] = max(abs(found) for found in besides)
    space["beside_include_zero"] = all(found.low <= 0 <= found.high for found in besides)
    return Space(space)


def beside(groups: dict) -> list[Value]:
    """The changes of the looped models' accuracies minus the baseline's in the same format, in points."""

    def change(labels, small, exact, base_small, base_exact, weights):
        right = [1.0 * (guesses == labels) for guesses in (small, exact, base_small, base_exact)]
        return statistics.mean(right[0] - right[1] - right[2] + right[3], weights)

    found = []
    for of, model, kind in groups:
        if kind != "fp32" and model != "baseline":
            places = ((model, kind), (model, "fp32"), ("baseline", kind), ("baseline", "fp32"))
            seeds = statistics.common(*(groups[(of, *place)] for place in places))
            value, low, high = statistics.estimate(change, seeds, same_training=False)
            found.append(Value(100 * value, 100 * low, 100 * high))
    return found


VALUES = {"rounding": rounding, "formats": formats, "root": ROOT}
