"""Claims of the four sources, judged from today's records.

A claim is a row of a section of YAML, under the page that treats it: what is claimed, where, and one test:

    SST-2:
      Less data, depth and rates:
        - says: With 10 % of the data the baseline is the more accurate one.
          source: slides, data size table
          test: {direction: sst2_10pct.difference}

Names are what `{val}` takes; the first key of a test may hold a list of them: contradicted by one, reproduced by all.

direction  a difference, above 0 unless `expect: below`: decided where the paired test is significant at 5 %.  Of one
           seed, or at a reduced budget, it is then of the same sign, or of the opposite one, and no more.
value      a model, `published:` a share found on `n:` texts (`same_texts: true` if they are ours): reproduced where it
           may well be one more run of ours and is a point away at most, contradicted where chance would rarely give it.
bound      a value with its interval, and `at_least:`, `at_most:` or `within:` (around 0): decided where the whole
           interval keeps, or breaks, the bound.
count      a number, and `equals:`, `at_least:` or `at_most:`: always decided, as nothing in it is chance.
untested   why no record can decide it; names no value.

`value` and `bound` are undecided with fewer than three seeds or at a reduced budget; what has no badge, a time or a
count, no seed decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from rtx_core.errors import unknown
from rtx_core.report.evidence import Badge
from rtx_core.report.statistics import ALPHA, ENOUGH_SEEDS, as_one_more_run
from rtx_core.report.style import number, p_value
from rtx_core.report.values import Unmeasured, Value, look_up

REPRODUCED, CONTRADICTED, UNDECIDED, MISSING = "reproduced", "contradicted", "undecided", "not measured"
SAME, OPPOSITE = "of the same sign", "of the opposite sign"
OUTCOMES = (REPRODUCED, SAME, CONTRADICTED, OPPOSITE, UNDECIDED, MISSING)
WORST_FIRST = (CONTRADICTED, OPPOSITE, UNDECIDED, SAME, REPRODUCED)
MARGIN = 0.01  # a published value further away than a point is not reproduced
FILE = Path(__file__).with_name("claims.yaml")


@dataclass(frozen=True)
class Outcome:
    """What became of a claim, in one line, with the badge of its evidence."""

    word: str
    line: str
    badge: Badge | None = None


def judged(path: Path = FILE) -> pd.DataFrame:
    """A row a claim in a YAML file: section, says, source, page, kind (of test), outcome, line, badge."""
    content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    every = [(section, page, claim) for section, of in content.items() for page in of for claim in of[page]]
    rows = []
    for section, page, claim in every:
        outcome = judge(claim["test"])
        row = {"section": section, "says": claim["says"], "source": claim["source"], "page": page}
        row |= {"kind": next(iter(claim["test"])), "outcome": outcome.word, "line": outcome.line}
        rows.append(row | {"badge": str(outcome.badge or "")})
    return pd.DataFrame(rows)


def judge(test: Mapping) -> Outcome:
    """The outcome of one claim's test; the names in it stand for the values of the book."""
    (kind, names), *bounds = test.items()
    if kind == "untested":
        return Outcome(MISSING, names)
    if kind not in TESTS:
        raise unknown("test of a claim", kind, TESTS)
    try:
        values = [look_up(name) for name in ([names] if isinstance(names, str) else names)]
    except Unmeasured as lacking:
        return Outcome(MISSING, str(lacking))
    outcomes = [TESTS[kind](value, **dict(bounds)) for value in values]
    word = min((outcome.word for outcome in outcomes), key=WORST_FIRST.index)
    bearing = [outcome for outcome in outcomes if word not in (CONTRADICTED, OPPOSITE) or outcome.word == word]
    badges = [outcome.badge for outcome in bearing if outcome.badge]
    weakest = min(badges, key=lambda badge: (badge.full, badge.seeds), default=None)
    return Outcome(word, "; ".join(outcome.line for outcome in outcomes), weakest)


def by_bounds(kept: bool, broken: bool) -> str:
    return REPRODUCED if kept else CONTRADICTED if broken else UNDECIDED


def decides(evidence: Badge | None) -> bool:
    """Whether there are seeds enough, at the full budget."""
    return evidence is None or (evidence.seeds >= ENOUGH_SEEDS and evidence.budget == "full")


def direction(value: object, expect: str = "above") -> Outcome:
    sign = getattr(value, "lean", value.sign) * {"above": 1, "below": -1}[expect]
    p = f", p {p_value(value.p)}" if value.p is not None else ""
    kept, broken = (REPRODUCED, CONTRADICTED) if decides(value.badge) else (SAME, OPPOSITE)
    return Outcome({1: kept, -1: broken, 0: UNDECIDED}[sign], f"{value}{p}", value.badge)


def value(model: object, published: float, n: int, same_texts: bool = False) -> Outcome:
    ours = model.accuracies
    line = f"{number(np.mean(ours), '.1%')} against {number(published, '.1%')}"
    if not decides(model.badge):
        why = "fewer than three seeds" if model.badge.budget == "full" else "a reduced budget"
        return Outcome(UNDECIDED, f"{line}, {why}", model.badge)
    p = as_one_more_run(published, n, ours, model.n, same_texts)
    near = abs(np.mean(ours) - published) <= MARGIN
    word = by_bounds(p >= ALPHA and near, p < ALPHA)
    return Outcome(word, f"{line}, p {p_value(p)}", model.badge)


def bound(value: object, at_least: float = -np.inf, at_most: float = np.inf, within: float | None = None) -> Outcome:
    if within is not None:
        at_least, at_most = -within, within
    kept = value.low >= at_least and value.high <= at_most
    word = by_bounds(kept, value.high < at_least or value.low > at_most) if decides(value.badge) else UNDECIDED
    return Outcome(word, str(value), value.badge)


def count(value: float, equals: float | None = None, at_least: float = -np.inf, at_most: float = np.inf) -> Outcome:
    kept = at_least <= value <= at_most and equals in (None, value)
    line = str(value) if isinstance(value, Value) else number(value, ",.0f" if float(value).is_integer() else ".3g")
    return Outcome(by_bounds(kept, not kept), line)


TESTS = {"direction": direction, "value": value, "bound": bound, "count": count}
