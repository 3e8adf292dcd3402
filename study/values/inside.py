"""Names of the pages on what happens inside models: `run_on('1x4', 64, 4)`, `attention.baseline.most`."""

import numpy as np

from rtx_core import records
from rtx_core.report.values import Space, Unmeasured
from study import paper, plan
from study.analysis import inside
from study.values.common import computed, functions


def measured(kind: str, model: str, of: str = "*") -> list[records.Record]:
    """The paper's measurements of a model, a seed each, in their order."""
    asked = [settings for named, settings, _ in plan.MEASURES if named == kind and model in settings["models"]]
    seeds = {seed for settings in asked for seed in settings["seeds"]}
    found = [one for one in records.measurements(kind, of) if one["model"] == model and one["seed"] in seeds]
    if not found:
        raise Unmeasured(f"no measurement {kind} of {model}")
    return sorted(found, key=lambda one: one["seed"])


def run_on(model: str, passes: int, hops: int, of: str = "khop", way: str = "free") -> list[float]:
    return inside.errors_after(measured("growth", model, of), passes, hops, way)


def attention() -> Space:
    """By model, of its first seed: the probability of "negative", and the token that [CLS] weighs most each time."""
    found = {}
    for m in reversed(paper.measurements("attention", "sst2")):
        most = np.mean(m["weights"], axis=1).argmax(1)  # (applications,)
        negative = m["probabilities"][m["classes"].index("negative")]
        found[m["model"]] = {"negative": negative, "most": [m["tokens"][place] for place in most]}
    return Space(found)


VALUES = functions(run_on) | computed(attention)
