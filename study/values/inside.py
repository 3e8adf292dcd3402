"""Names of the pages *Inside the loop*, `run_on.errors('1x4', 64)`, `lens.changed('1x6-64')`, `spans.reach(8)`; and
how their predictions are judged, clause by clause.
"""

from pathlib import Path

import pandas as pd
import yaml

from rtx_core import records
from rtx_core.report.values import Unmeasured
from study import plan


def measured(kind: str, model: str, of: str = "*") -> list[records.Record]:
    """The paper's measurements of a model, a seed each, in their order."""
    seeds = {
        seed
        for named, settings, _ in plan.MEASURES
        if named == kind and model in settings["models"]
        for seed in settings["seeds"]
    }
    found = [one for one in records.measurements(kind, of) if one["model"] == model and one["seed"] in seeds]
    if not found:
        raise Unmeasured(f"no measurement {kind} of {model}")
    return sorted(found, key=lambda one: one["seed"])


class RunOn:
    """Loops over pointers that run on to 256 passes; lists hold a seed each."""

    def growth(self, model: str, of: str = "khop") -> list[float]:
        """How many times as long the state is after the last pass as after the trained ones."""
        return [
            one["free"]["norm"][-1] / one["free"]["norm"][one["passes"].index(one["trained"])]
            for one in measured("growth", model, of)
        ]

    def solved(self, model: str, of: str = "khop") -> list[int]:
        """The hops in a row of which less than a tenth are wrong after the trained passes, 0 and more."""
        after = [one["free"]["error"][one["passes"].index(one["trained"])] for one in measured("growth", model, of)]
        return [next((k for k, error in enumerate(row) if error >= 0.1), len(row)) - 1 for row in after]

    def errors(self, model: str, passes: int, hops: int | None = None, of: str = "khop", way: str = "free"):
        """After so many passes, at so many hops, or else at the most that the seed solves after its trained ones."""
        most = self.solved(model, of)
        return [
            one[way]["error"][one["passes"].index(passes)][k if hops is None else hops]
            for one, k in zip(measured("growth", model, of), most)
        ]

    def resting(self, model: str, of: str = "khop") -> int:
        """The seeds whose last pass moves the state by less than a thousandth of its length."""
        return sum(one["free"]["step"][-1] < 0.001 for one in measured("growth", model, of))

    def radius(self, model: str, passes: int, of: str = "khop") -> list[float]:
        """The largest spectral radius of the normalised pass over texts, after so many passes."""
        return [max(one["radius"][str(passes)]) for one in measured("growth", model, of)]


class Lens:
    """Language loops read after each step."""

    def changed(self, model: str) -> float:
        """The share of answers that the last step changes."""
        return measured("lens", model)[0]["changed"][-1]


class Spans:
    """What is read from the states of loops over S3, a seed each."""

    def reach(self, passes: int, least: float = 0.9) -> list[int]:
        """The number n up to which the product of the first n factors is read from this share of texts."""
        rows = [one["prefix"]["accuracy"][passes] for one in measured("spans", "1x8")]
        return [next((n for n, share in enumerate(row) if share < least), len(row)) for row in rows]

    def read(self, passes: int, span: int) -> list[float]:
        """The share read of the product of the last `span` factors, at the later places."""
        return [one["spans"]["accuracy"][passes][one["spans_read"].index(span)] for one in measured("spans", "1x8")]


def verdicts(judged: dict[str, tuple[dict[str, bool], bool]]) -> pd.DataFrame:
    """A row a prediction of `predictions_inside.yaml`: its verdict, and which of its clauses held and which failed.

    `judged` gives for each id what its clauses came to, in the order in which they stand, and whether what its author
    named as a contradiction happened.
    """
    written = yaml.safe_load((Path(__file__).parents[1] / "predictions_inside.yaml").read_text(encoding="utf-8"))
    rows = []
    for name in (row["id"] for row in written["predictions"] if row["id"] in judged):
        clauses, contradicted = judged[name]
        held, failed = ("; ".join(c for c, kept in clauses.items() if bool(kept) is way) for way in (True, False))
        verdict = "contradicted" if contradicted else "in part" if failed else "kept"
        about = name.removeprefix("inside-").replace("-", " ").capitalize()
        rows.append({"About": about, "Verdict": verdict, "Held": held or "–", "Failed": failed or "–"})
    return pd.DataFrame(rows)


VALUES = {"run_on": RunOn, "lens": Lens, "spans": Spans}
