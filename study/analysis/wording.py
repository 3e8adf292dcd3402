"""How pages write shares, ranges and lists."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from rtx_core.report import number, p_value
from rtx_core.report.quantities import words


def percent(share: float) -> str:
    """With a decimal below ten per cent."""
    return number(share, ".0%" if share >= 0.095 else ".1%")


def at_least(share: float) -> str:
    """In whole per cent, rounded down: no value of which this is the least is below it."""
    return number(math.floor(100 * share) / 100, ".0%")


def span(values: Iterable[float], write: Callable[[Any], str] = percent, joint: str = " to ") -> str:
    """The least and the most of several values, or one where they are written alike."""
    ends = [write(end(values)) for end in (min, max)] if (values := list(values)) else []
    return joint.join(dict.fromkeys(ends))


def listing(texts: Iterable[str]) -> str:
    """As in "a, b and c"."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def seeds(count: int) -> str:
    """As in "three seeds"."""
    return f"{words(count)} seed{'s' * (count != 1)}"


def p_in_words(p: float) -> str:
    """As in "p = 0.03" and "p < 0.001"."""
    return f"p {'' if p < 0.001 else '= '}{p_value(p)}"
