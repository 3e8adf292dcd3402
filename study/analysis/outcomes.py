"""What becomes of a published claim: the tests that decide it, each of one value or of several.

direction  a difference, above 0 unless `expect` is "below": decided where the paired test is significant at 5 %.  Of
           one seed, or at a reduced budget, it is then of the same sign, or of the opposite one, and no more.
printed    a model's accuracy beside a share of `n` texts (`same_texts` if they are ours): reproduced where it may well
           be one more run of ours and is a point away at most, contradicted where chance would rarely give it.
bound      a value with its interval, and `at_least`, `at_most` or `within` (around 0): decided where the whole interval
           keeps, or breaks, the bound.
count      a number, and `equals`, `at_least` or `at_most`: always decided, as nothing in it is chance.
untested   why no record can decide it.

Of several values a claim is contradicted by one, and reproduced by all.  `printed` and `bound` are undecided with fewer
than three seeds or at a reduced budget; what has no badge, a time or a count, no seed decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rtx_core.report.evidence import Badge
from rtx_core.report.statistics import ALPHA, ENOUGH_SEEDS, as_one_more_run
from rtx_core.report.style import number, p_value
from rtx_core.report.values import Gap, Model, Value

REPRODUCED, CONTRADICTED, UNDECIDED, MISSING = "reproduced", "contradicted", "undecided", "not measured"
SAME, OPPOSITE = "of the same sign", "of the opposite sign"
WORST_FIRST = (CONTRADICTED, OPPOSITE, UNDECIDED, SAME, REPRODUCED)
MARGIN = 0.01  # a published value further away than a point is not reproduced


@dataclass(frozen=True)
class Outcome:
    """What became of a claim, in one line, with the badge of its evidence."""

    word: str
    line: str
    badge: Badge | None = None


def direction(*values: Value, expect: str = "above") -> Outcome:
    return combined(sign_of(value, expect) for value in values)


def printed(model: Model, share: float, n: int, same_texts: bool = False) -> Outcome:
    ours = model.accuracies
    line = f"{number(float(np.mean(ours)), '.1%')} against {number(share, '.1%')}"
    if not decides(model.badge):
        why = "fewer than three seeds" if model.badge.budget == "full" else "a reduced budget"
        return Outcome(UNDECIDED, f"{line}, {why}", model.badge)
    p = as_one_more_run(share, n, ours, model.n, same_texts)
    near = bool(abs(np.mean(ours) - share) <= MARGIN)
    return Outcome(by_bounds(p >= ALPHA and near, p < ALPHA), f"{line}, p {p_value(p)}", model.badge)


def bound(*values: Value, at_least: float = -np.inf, at_most: float = np.inf, within: float | None = None) -> Outcome:
    if within is not None:
        at_least, at_most = -within, within
    return combined(interval_inside(value, at_least, at_most) for value in values)


def count(*values: float, equals: float | None = None, at_least: float = -np.inf, at_most: float = np.inf) -> Outcome:
    return combined(count_inside(value, equals, at_least, at_most) for value in values)


def untested(reason: str) -> Outcome:
    return Outcome(MISSING, reason)


def combined(every: Iterable[Outcome]) -> Outcome:
    """The worst word, all lines, and the weakest badge of the outcomes that bear the word."""
    outcomes = list(every)
    word = min((outcome.word for outcome in outcomes), key=WORST_FIRST.index)
    bearing = [outcome for outcome in outcomes if word not in (CONTRADICTED, OPPOSITE) or outcome.word == word]
    badges = [outcome.badge for outcome in bearing if outcome.badge]
    weakest = min(badges, key=lambda badge: (badge.full, badge.seeds), default=None)
    return Outcome(word, "; ".join(outcome.line for outcome in outcomes), weakest)


def sign_of(value: Value, expect: str) -> Outcome:
    sign = (value.lean if isinstance(value, Gap) else value.sign) * {"above": 1, "below": -1}[expect]
    p = f", p {p_value(value.p)}" if value.p is not None else ""
    right, wrong = (REPRODUCED, CONTRADICTED) if decides(value.badge) else (SAME, OPPOSITE)
    return Outcome({1: right, -1: wrong, 0: UNDECIDED}[sign], f"{value}{p}", value.badge)


def interval_inside(value: Value, at_least: float, at_most: float) -> Outcome:
    inside, outside = value.low >= at_least and value.high <= at_most, value.high < at_least or value.low > at_most
    word = by_bounds(inside, outside) if decides(value.badge) else UNDECIDED
    return Outcome(word, str(value), value.badge)


def count_inside(value: float, equals: float | None, at_least: float, at_most: float) -> Outcome:
    inside = at_least <= value <= at_most and equals in (None, value)
    line = str(value) if isinstance(value, Value) else number(value, ",.0f" if float(value).is_integer() else ".3g")
    return Outcome(by_bounds(inside, not inside), line)


def by_bounds(inside: bool, outside: bool) -> str:
    return REPRODUCED if inside else CONTRADICTED if outside else UNDECIDED


def decides(evidence: Badge | None) -> bool:
    """Whether there are seeds enough, at the full budget."""
    return evidence is None or (evidence.seeds >= ENOUGH_SEEDS and evidence.budget == "full")
