"""Claims of the original study, judged from today's records.

A claim is a row of YAML: what is claimed, where, on which page it is treated, and one test:

    - says: With 10 % of the data the baseline is the more accurate one.
      source: slides, data size table
      page: data-size
      test: {direction: sst2_10pct.difference}

Names are those of `book/values.py`, and whatever `{val}` takes stands here too.  The five tests, and when
they decide:

direction  a difference, above 0 unless `expect: below`: where the paired test is significant at 5 %.
value      a model, `published:` a share found on `n:` texts (`same_texts: true` if they are ours): reproduced
           where it may well be one more run of ours and is a point away at most, contradicted where chance
           would rarely give it; undecided with fewer than three seeds or at a reduced budget.
bound      a value with its interval, and `at_least:`, `at_most:` or `within:` (around 0): where the whole
           interval keeps, or breaks, the bound.
count      a number, and `equals:`, `at_least:` or `at_most:`: always, as nothing in it is chance.
time       a model, `less_than:` another: where the middle 80 % of the batches of the one lie below, or above,
           those of the other, on one machine.

The first key of a test may name several things in a list: contradicted by one of them, reproduced by all of
them.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.errors import RtxError, unknown
from rtx_core.report.badges import Badge
from rtx_core.report.statistics import ALPHA, ENOUGH_SEEDS, as_one_more_run
from rtx_core.report.style import number, p_value, percent

REPRODUCED, CONTRADICTED, UNDECIDED, MISSING = "reproduced", "contradicted", "undecided", "not measured"
OUTCOMES = (REPRODUCED, CONTRADICTED, UNDECIDED, MISSING)
MARGIN = 0.01  # a published value further away than a point is not reproduced
FIELDS = {"says", "source", "page", "test", "section"}


@dataclass(frozen=True)
class Outcome:
    """What became of a claim, in one line, with the badge of its evidence."""

    word: str
    line: str
    badge: Badge | None = None


def read(path: Path) -> list[dict]:
    """The claims in a YAML file, checked: sections of rows, or rows."""
    import yaml

    content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    if isinstance(content, dict):
        content = [{"section": section} | row for section, rows in content.items() for row in rows]
    for place, row in enumerate(content, 1):
        name = f"{Path(path).name}, claim {place}"
        for field in row:
            if field not in FIELDS:
                raise unknown(f"field in {name}:", field, FIELDS)
        if missing := {"says", "source", "test"} - row.keys():
            raise RtxError(
                f"{name} lacks {', '.join(sorted(missing))}; every claim needs says, source and test."
            )
        if next(iter(row["test"])) not in TESTS:
            raise unknown(f"test in {name}:", next(iter(row["test"])), TESTS)
    return content


def judge(claim: Mapping, look_up: Callable[[str], object]) -> Outcome:
    """The outcome of one claim; `look_up` gives what a name of `book/values.py` stands for
    (`rtx_core.report.names.look_up`)."""
    test = dict(claim["test"])
    kind = next(iter(test))
    names = test.pop(kind)
    try:
        if "less_than" in test:
            test["less_than"] = look_up(test["less_than"])
        found = [look_up(name) for name in ([names] if isinstance(names, str) else names)]
        outcomes = [TESTS[kind](value, **test) for value in found]
    except RtxError as lacking:
        if "no record" not in str(lacking):
            raise
        return Outcome(MISSING, str(lacking))
    words = [outcome.word for outcome in outcomes]
    word = CONTRADICTED if CONTRADICTED in words else UNDECIDED if UNDECIDED in words else REPRODUCED
    bearing = [outcome for outcome in outcomes if outcome.word == word] if word == CONTRADICTED else outcomes
    badges = [outcome.badge for outcome in bearing if outcome.badge]
    return Outcome(
        word, "; ".join(outcome.line for outcome in outcomes), min(badges, key=_weight, default=None)
    )


def judged(claims: list[dict], look_up: Callable[[str], object]) -> pd.DataFrame:
    """A row a claim: section, says, source, page, outcome, line, badge."""
    outcomes = [judge(claim, look_up) for claim in claims]
    rows = [
        {key: claim.get(key, "") for key in ("section", "says", "source", "page")}
        | {"outcome": outcome.word, "line": outcome.line, "badge": str(outcome.badge or "")}
        for claim, outcome in zip(claims, outcomes)
    ]
    return pd.DataFrame(rows)


def tally(frame: pd.DataFrame) -> pd.DataFrame:
    """Section by outcome: how many claims."""
    counts = {section: Counter(rows["outcome"]) for section, rows in frame.groupby("section", sort=False)}
    return pd.DataFrame(
        [{"section": name} | {word: count[word] for word in OUTCOMES} for name, count in counts.items()]
    )


def _weight(badge: Badge) -> tuple[int, int]:
    return badge.full, badge.seeds


def _by_bounds(kept: bool, broken: bool) -> str:
    return REPRODUCED if kept else CONTRADICTED if broken else UNDECIDED


def direction(value: object, expect: str = "above") -> Outcome:
    sign = value.sign * {"above": 1, "below": -1}[expect]
    word = {1: REPRODUCED, -1: CONTRADICTED, 0: UNDECIDED}[sign]
    p = f", p {p_value(value.p)}" if value.p is not None else ""
    return Outcome(word, f"{value}{p}", value.badge)


def value(model: object, published: float, n: int, same_texts: bool = False) -> Outcome:
    ours = model.accuracies
    line = f"{percent(np.mean(ours))} against {percent(published)}"
    if model.badge.budget != "full":
        return Outcome(UNDECIDED, f"{line}, at a reduced budget", model.badge)
    if len(ours) < ENOUGH_SEEDS:
        return Outcome(UNDECIDED, f"{line}, with fewer than three seeds", model.badge)
    p = as_one_more_run(published, n, ours, model.n, same_texts)
    near = abs(np.mean(ours) - published) <= MARGIN
    return Outcome(
        _by_bounds(p >= ALPHA and near, p < ALPHA), f"{line}, as one more run p {p_value(p)}", model.badge
    )


def bound(
    value: object, at_least: float | None = None, at_most: float | None = None, within: float | None = None
) -> Outcome:
    least, most = _limits(at_least, at_most, within)
    kept = value.low >= least and value.high <= most
    return Outcome(_by_bounds(kept, value.high < least or value.low > most), str(value), value.badge)


def count(
    value: float, equals: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> Outcome:
    least, most = (equals, equals) if equals is not None else _limits(at_least, at_most, None)
    form = ",.0f" if float(value).is_integer() else ".4g"
    return Outcome(
        _by_bounds(least <= value <= most, True), number(value, form), getattr(value, "badge", None)
    )


def time(model: object, less_than: object) -> Outcome:
    spans = []
    places = set()
    for each in (model, less_than):
        measured = [record["latency"]["measured"][-1] for record in each.records]
        spans.append(
            [
                float(np.median([one[key] for one in measured]))
                for key in ("p10_ms", "per_sentence_ms", "p90_ms")
            ]
        )
        found = [record["latency"]["environment"] for record in each.records]
        places |= {(environment["device"], environment["threads"]) for environment in found}
    (low, ms, high), (other_low, other_ms, other_high) = spans
    word = _by_bounds(high < other_low, low > other_high) if len(places) == 1 else UNDECIDED
    return Outcome(
        word, f"{ms:.2f} against {other_ms:.2f} ms a text", min(model.badge, less_than.badge, key=_weight)
    )


def _limits(at_least: float | None, at_most: float | None, within: float | None) -> tuple[float, float]:
    if within is not None:
        return -within, within
    return -np.inf if at_least is None else at_least, np.inf if at_most is None else at_most


TESTS = {"direction": direction, "value": value, "bound": bound, "count": count, "time": time}
