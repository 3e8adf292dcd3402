"""What was expected, as it was written down before the runs, and what became of it.

A row of `predictions.yaml` says in names of `study/values` when it is `kept` and when `broken`; what a row of
`predictions_inside.yaml` says is asked of what its page computes, clause by clause.
"""

from functools import cached_property
from pathlib import Path

import pandas as pd
import yaml

from rtx_core.report.display import Displayed, markdown
from rtx_core.report.values import Unmeasured, look_up

KEPT, BROKEN, PARTLY, MISSING = "kept", "contradicted", "in part", "not measured yet"


def read(name: str) -> dict[str, dict]:
    """The rows of a file by their ids; one without a date of its own has the file's."""
    content = yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return {row["id"]: {"written": content["written"]} | row for row in content["predictions"]}


class Prediction:
    """A row of `predictions.yaml`; the records are asked when its verdict is first read."""

    def __init__(self, row: dict):
        self.row, self.experiment = row, row["experiment"]

    @cached_property
    def verdict(self) -> str:
        """Of a row without `kept` and `broken`, or one of whose names has no record, that it is not measured yet."""
        if "kept" not in self.row:
            return MISSING
        try:
            return BROKEN if look_up(self.row["broken"]) else KEPT if look_up(self.row["kept"]) else PARTLY
        except Unmeasured:
            return MISSING

    @property
    def box(self) -> Displayed:
        title = f":::{{dropdown}} {self.verdict.capitalize()}: {self.experiment} ({self.row['written']})"
        parts = [self.row["says"], f"Contradicted by: {self.row['contradicted_by']}", f"Known then: {self.row['from']}"]
        if taught := self.row.get("taught", {}).get(self.verdict):  # what one learns from this verdict
            parts.append(f"**What it teaches:** {taught}")
        return markdown("\n\n".join((title, *parts, ":::")))


def predictions() -> dict[str, Prediction]:
    return {key: Prediction(row) for key, row in read("predictions.yaml").items()}


def verdicts(judged: dict[str, tuple[dict[str, bool], bool]]) -> pd.DataFrame:
    """A row a prediction of `predictions_inside.yaml`: its verdict, and which of its clauses held and which failed.

    `judged` gives for each id what its clauses came to, in the order in which they stand, and whether what its author
    named as a contradiction happened.
    """
    rows = []
    for name in (name for name in read("predictions_inside.yaml") if name in judged):
        clauses, contradicted = judged[name]
        held, failed = ("; ".join(c for c, kept in clauses.items() if bool(kept) is way) for way in (True, False))
        verdict = BROKEN if contradicted else PARTLY if failed else KEPT
        about = name.removeprefix("inside-").replace("-", " ").capitalize()
        rows.append({"About": about, "Verdict": verdict, "Held": held or "–", "Failed": failed or "–"})
    return pd.DataFrame(rows)
