"""What was expected, as it was written down before the runs, and what became of it.

A row of `predictions.yaml` is judged by the function of its id in `study/verdicts`; what a row of
`predictions_inside.yaml` says is asked of what its page computes, clause by clause.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

import yaml

from rtx_core.report.display import Displayed, markdown
from rtx_core.report.quantities import words as number_words
from study.verdicts import FUNCTIONS

WRITTEN_BEFORE = ("id", "written", "experiment", "says", "contradicted_by", "from")  # of a row, before its runs
KEPT, BROKEN, PARTLY, MISSING = "kept", "contradicted", "in part", "not measured yet"


@cache
def read(name: str) -> dict[str, dict]:
    """The rows of a file by their ids; one without a date of its own has the file's."""
    content = yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return {row["id"]: {"written": content["written"]} | row for row in content["predictions"]}


@dataclass(frozen=True)
class Prediction:
    """A row; the records are asked when its verdict is first read, unless it came to `clauses`."""

    row: dict
    clauses: dict[str, bool] | None = None
    contradicted: bool = False  # whether what its author named as a contradiction of them happened

    @cached_property
    def verdict(self) -> str:
        """Of a row without a function, or whose function lacks records, that it is not measured yet."""
        if self.clauses is not None:
            return BROKEN if self.contradicted else KEPT if all(self.clauses.values()) else PARTLY
        function = FUNCTIONS.get(self.row["id"])
        if function is None:
            return MISSING
        try:
            holds, contradicted = function()
        except Exception:  # of means and minima of runs that are not there; a test runs each on the paper's records
            return MISSING
        return BROKEN if contradicted else KEPT if holds else PARTLY

    @property
    def lesson(self) -> str:
        """What one learns from this verdict, or which clauses failed."""
        failed = "; ".join(clause for clause, holds in (self.clauses or {}).items() if not holds)
        return f"This did not hold: {failed}." if failed else self.row.get("taught", {}).get(self.verdict, "")


FAILED = BROKEN, PARTLY  # the worst first


def told(predictions: Iterable[Prediction]) -> Displayed:
    """A closed box with how a page's predictions came out, and the one that failed most; its title counts them."""
    rows = list(predictions)
    count = f"{number_words(len(rows))} predictions" if len(rows) > 1 else "one prediction"
    lead = f"Before these runs we wrote down {count}; [](predictions.ipynb) has each with its verdict."
    failed = sorted(
        (row for row in rows if row.verdict in FAILED and row.lesson), key=lambda row: FAILED.index(row.verdict)
    )
    example = f" For example, we had written: “{failed[0].row['short']}” {failed[0].lesson}" if failed else ""
    return markdown(f":::{{dropdown}} What we had expected: {verdict_counts(rows)}\n{lead}{example}\n:::")


def dropdown(predictions: Iterable[Prediction]) -> Displayed:
    """A closed box with each prediction, its verdict and what one learns; its title counts the verdicts."""
    rows = list(predictions)
    lines = [f"- {p.row['short']} *{p.verdict.capitalize()}.* {p.lesson}".rstrip() for p in rows]
    head = f":::{{dropdown}} What was predicted of the inside of these models: {verdict_counts(rows)}"
    source = "A file on [](predictions.ipynb) has their wording."
    return markdown("\n\n".join([head, "\n".join(lines), source, ":::"]))


def verdict_counts(rows: list[Prediction]) -> str:
    """Such as "2 kept, 1 in part"."""
    verdicts = [prediction.verdict for prediction in rows]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in (KEPT, PARTLY, BROKEN, MISSING) if v in verdicts)


def predictions() -> dict[str, Prediction]:
    return {key: Prediction(row) for key, row in read("predictions.yaml").items()}


PAGES = {  # the beginning of a prediction's id -> the page of its runs, in the book's order; the longest counts
    "khop": "looping",
    "random-passes": "inside-rest",
    "khop-draw": "inside-rest",
    "khop-longer": "inside-rest",
    "narrow": "looping",
    "facts": "facts",
    "ceiling": "facts",
    "state-tracking": "state-tracking",
    "iso-depth": "iso-depth",
    "text": "iso-depth",
    "split": "iso-depth",
    "tinystories": "tinystories",
    "shakespeare": "shakespeare",
    "kausik": "shakespeare",
    "backprop": "sharing",
    "cache": "sharing",
    "pointers": "sharing",
    "muon": "sharing",
    "halting": "inside-rest",
    "stack": "sharing",
    "rounding-text": "sharing",
    "bench": "bench",
    "sst2": "sst2",
    "ladder": "sst2",
    "sst2-long": "reviews",
    "yelp": "reviews",
    "three": "reviews",
    "three-layers": "looping",
    "bf16": "precision",
    "rounding": "precision",
}
ORDER = list(dict.fromkeys(PAGES.values()))


def page_of(name: str) -> str:
    """The page of the runs that a prediction is about."""
    return PAGES[max((beginning for beginning in PAGES if name.startswith(beginning)), key=len)]


def of_page(page: str) -> list[Prediction]:
    return [prediction for name, prediction in predictions().items() if page_of(name) == page]


def counts() -> dict[str, int]:
    """How many rows of `predictions.yaml` that records can judge were kept, in part and contradicted, and all of them;
    by the `sha256` of what the rows say anyone can tell later whether they were changed.  `inside` are the rows of the
    other file, which its pages judge."""
    verdicts = [one.verdict for one in predictions().values()]
    by_verdict = {"kept": verdicts.count(KEPT), "part": verdicts.count(PARTLY), "contradicted": verdicts.count(BROKEN)}
    more_counts = {"inside": len(read("predictions_inside.yaml")), "sha256": words_sha256()}
    return by_verdict | {"judged": sum(by_verdict.values())} | more_counts


def words_sha256() -> str:
    """The hash of what all rows of `predictions.yaml` said before the runs, as JSON."""
    rows = [{key: str(row[key]) for key in WRITTEN_BEFORE} for row in read("predictions.yaml").values()]
    return sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def judged(clauses: dict[str, tuple[dict[str, bool], bool]]) -> list[Prediction]:
    """Rows of `predictions_inside.yaml` in their order, of {id: (clauses, contradicted)}."""
    rows = read("predictions_inside.yaml").items()
    return [Prediction(row, *clauses[name]) for name, row in rows if name in clauses]
