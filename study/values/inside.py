"""Names of the pages on what happens inside models: `run_on('1x4', 64, 4)`, `attention.baseline.most`."""

import numpy as np

from rtx_core import records
from rtx_core.report.values import Space, Unmeasured
from study import paper, plan
from study.analysis.hops import in_a_row
from study.values.common import computed, functions


def measured(kind: str, model: str, of: str = "*") -> list[records.Record]:
    """The paper's measurements of a model, a seed each, in their order."""
    asked = [settings for named, settings, _ in plan.MEASURES if named == kind and model in settings["models"]]
    seeds = {seed for settings in asked for seed in settings["seeds"]}
    found = [one for one in records.measurements(kind, of) if one["model"] == model and one["seed"] in seeds]
    if not found:
        raise Unmeasured(f"no measurement {kind} of {model}")
    return sorted(found, key=lambda one: one["seed"])


def after(one: records.Record, passes: int, what: str, way: str = "free"):
    return one[way][what][one["passes"].index(passes)]


def run_on(model: str, passes: int, hops: int, of: str = "khop", way: str = "free") -> list[float]:
    """Of loops over pointers that run on, a seed each: the error at so many hops after so many passes; "held" is with
    the state's length held."""
    return [after(one, passes, "error", way)[hops] for one in measured("growth", model, of)]


def factors_read(passes: int) -> list[int]:
    """From the states of loops over S3, a seed each: the number n up to which the product of the first n factors is
    read from more than nine tenths of texts."""
    rows = [one["prefix"]["accuracy"][passes] for one in measured("spans", "1x8")]
    return [in_a_row(1 - share for share in row) for row in rows]


def span_read(passes: int, span: int) -> list[float]:
    """From these, the share read of the product of the last `span` factors, at the later places."""
    return [one["spans"]["accuracy"][passes][one["spans_read"].index(span)] for one in measured("spans", "1x8")]


def attention() -> Space:
    """By model, of its first seed: the probability of "negative", and the token that [CLS] weighs most each time."""
    found = {}
    for m in reversed(paper.measurements("attention", "sst2")):
        most = np.mean(m["weights"], axis=1).argmax(1)  # (applications,)
        negative = m["probabilities"][m["classes"].index("negative")]
        found[m["model"]] = {"negative": negative, "most": [m["tokens"][place] for place in most]}
    return Space(found)


VALUES = functions(run_on, factors_read, span_read) | computed(attention)
