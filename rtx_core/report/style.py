"""One look for the whole book: a color, a marker and a title per model, and how numbers are written.

Registered models say how they look, and the study how variants do (`LOOKS`); any other name gets a title, a color and
a marker that follow from it.
"""

import re
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rtx_core.models.registry import MODELS
from rtx_core.study import declaration

if TYPE_CHECKING:
    from rtx_core.report.statistics import Difference

MINUS, NARROW = "\N{MINUS SIGN}", "\N{NARROW NO-BREAK SPACE}"
# Control characters, separators of lines, marks that turn the direction of writing or cannot be seen, lone surrogates.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")
BY_NAME = ("#66ccee", "#997700", "#332288", "#cc99bb", "#7799dd", "#556b2f", "#8b4513", "#00a087")
LOOK = {"axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold", "axes.titlesize": 11}
LOOK |= {"figure.figsize": (7.2, 3.6), "figure.constrained_layout.use": True}
LOOK |= {"grid.color": "#b0b0b0", "grid.alpha": 0.4, "legend.frameon": False}


def theme() -> None:
    """The book's look for every plot after this call."""
    import seaborn as sns

    sns.set_theme(context="notebook", style="whitegrid", font_scale=0.9, rc=LOOK)


def look(name: str) -> tuple[str, str, str]:
    """(title, color, marker) of a model."""
    n = zlib.crc32(name.encode())
    default = name.replace("-", " ").capitalize(), BY_NAME[n % len(BY_NAME)], "vPX*<>hp"[n % 8]
    model = MODELS.get(name)
    look = (model.title, model.colour, model.marker) if model else declaration("LOOKS").get(name, default)
    title, color, marker = (value or fallback for value, fallback in zip(look, default))
    return one_line(title), color, marker


def title(name: str) -> str:
    """A model's name as pages write it."""
    return look(name)[0]


def color(name: str) -> str:
    return look(name)[1]


def marker(name: str) -> str:
    return look(name)[2]


def ordered(names: Iterable[str]) -> list[str]:
    """The names, each once: registered models in the registry's order, then the others as they came."""
    distinct = list(dict.fromkeys(names))
    return [name for name in MODELS if name in distinct] + [name for name in distinct if name not in MODELS]


def one_line(text: object) -> str:
    """The text with every run of white space, but no-break spaces, and of control characters made one blank."""
    return " ".join(re.split(r"[^\S\u202f\u00a0]+", CONTROL.sub(" ", str(text)))).strip()


def number(value: float, form: str = ".1f") -> str:
    """The value in a Python format with a real minus sign and a narrow no-break space before %; no zero has a sign.

    >>> number(-0.0123, "+.1%") '\u22121.2\u202f%'
    """
    text = format(value, form)
    if set(filter(str.isdigit, text)) == {"0"}:
        text = text.replace("-", "").replace("+", "")
    return text.replace("-", MINUS).replace("%", f"{NARROW}%")


def points(value: float) -> str:
    """A difference of two shares in percentage points, without the word: "+0.1"."""
    return number(100 * value, "+.1f")


def interval(difference: "Difference") -> str:
    """A difference of shares, which has `value`, `low` and `high`: "+0.1 (−0.3 to +0.6)", or of two seeds both."""
    if difference.seeds == 2:
        return f"{points(difference.value)} ({', '.join(map(points, difference.by_seed))})"
    return f"{points(difference.value)} ({points(difference.low)} to {points(difference.high)})"


def p_value(p: float | None) -> str:
    """As "0.012" or "< 0.001"; nothing where there is no test."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.2g}"
