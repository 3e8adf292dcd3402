"""Names of the pages *Inside the loop*, `run_on.errors('1x4', 64)`, `last_changes('1x6-64')`."""

from rtx_core import records
from rtx_core.report.values import Unmeasured
from study import plan
from study.values.common import functions
from study.values.looping import in_a_row


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


class RunOn:
    """Loops over pointers that run on to 256 passes; lists hold a seed each."""

    def growth(self, model: str, of: str = "khop") -> list[float]:
        """How many times as long the state is after the last pass as after the trained ones."""
        return [one["free"]["norm"][-1] / after(one, one["trained"], "norm") for one in measured("growth", model, of)]

    def errors(self, model: str, passes: int, hops: int | None = None, of: str = "khop", way: str = "free"):
        """After so many passes, at so many hops, or else at the most of which the seed, after its trained passes, has
        less than a tenth wrong."""
        found = measured("growth", model, of)
        most = [in_a_row(after(one, one["trained"], "error")) - 1 if hops is None else hops for one in found]
        return [after(one, passes, "error", way)[at] for one, at in zip(found, most)]

    def resting(self, model: str, of: str = "khop") -> int:
        """The seeds whose last pass moves the state by less than a thousandth of its length."""
        return sum(one["free"]["step"][-1] < 0.001 for one in measured("growth", model, of))


def last_changes(model: str) -> float:
    """The share of answers that the last step of a language loop changes."""
    return measured("lens", model)[0]["changed"][-1]


def factors_read(passes: int) -> list[int]:
    """From the states of loops over S3, a seed each: the number n up to which the product of the first n factors is
    read from more than nine tenths of texts."""
    rows = [one["prefix"]["accuracy"][passes] for one in measured("spans", "1x8")]
    return [in_a_row(1 - share for share in row) for row in rows]


def span_read(passes: int, span: int) -> list[float]:
    """From these, the share read of the product of the last `span` factors, at the later places."""
    return [one["spans"]["accuracy"][passes][one["spans_read"].index(span)] for one in measured("spans", "1x8")]


VALUES = {"run_on": RunOn} | functions(last_changes, factors_read, span_read)
