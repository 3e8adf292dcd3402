"""One look for the whole book: a color, a marker and a title per model, and how numbers are written.

`COLOURS`, `MARKERS`, `TITLES` (dicts by model) and `ORDER` (a list) are read from the registry of models
whenever they are asked for, so a model that a notebook registers is in them at once.  A name that is not
registered, such as "recurrent, 3 passes", gets a color and a marker that depend on the name alone:
`palette(names)` and `markers(names)` give them for any names.
"""

import math
import zlib
from collections.abc import Iterable

from rtx_core.models.registry import MODELS, SPARE_COLOURS, SPARE_MARKERS

MINUS, NARROW = "\N{MINUS SIGN}", "\N{NARROW NO-BREAK SPACE}"
LOOK = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlesize": 11,
    "figure.figsize": (7.2, 3.6),
    "figure.constrained_layout.use": True,
    "grid.color": "#b0b0b0",
    "grid.alpha": 0.4,
    "legend.frameon": False,
}


# What experiments call a registered model with other settings.
VARIANTS = {
    "gpt-1": "Standard, 1 layer",
    "gpt-2": "Standard, 2 layers",
    "gpt-6": "Standard, 6 layers",
    "kausik": "Recurrent",
    "kausik-positions": "Recurrent, positions",
    "control-8": "Control, 8 layers",
    "control-16": "Control, 16 layers",
    "control-long": "Control, longer",
    "bag-of-words": "Bag of words",
}


def theme() -> None:
    """The book's look for every plot after this call."""
    import seaborn as sns

    sns.set_theme(context="notebook", style="whitegrid", font_scale=0.9, rc=LOOK)


def title(name: str) -> str:
    """A model's name as pages write it."""
    if name in VARIANTS:
        return VARIANTS[name]
    if name in MODELS:
        return MODELS[name].title
    return name.replace("-", " ").capitalize()


def colour(name: str) -> str:
    """The color of a model, or of any other name: the same name always has the same."""
    known = getattr(MODELS.get(name), "colour", None)
    return known or SPARE_COLOURS[zlib.crc32(name.encode()) % len(SPARE_COLOURS)]


def marker(name: str) -> str:
    """The marker of a model, or of any other name."""
    known = getattr(MODELS.get(name), "marker", None)
    return known or SPARE_MARKERS[zlib.crc32(name.encode()) % len(SPARE_MARKERS)]


def palette(names: Iterable[str]) -> dict[str, str]:
    """Name -> color, as seaborn's `palette` takes it."""
    return {name: colour(name) for name in dict.fromkeys(names)}


def markers(names: Iterable[str]) -> dict[str, str]:
    """Name -> marker, as seaborn's `markers` takes it."""
    return {name: marker(name) for name in dict.fromkeys(names)}


def ordered(names: Iterable[str]) -> list[str]:
    """The names, each once: registered models in the registry's order, then the others as they came."""
    given = list(dict.fromkeys(names))
    return [name for name in MODELS if name in given] + [name for name in given if name not in MODELS]


def __getattr__(name: str) -> dict[str, str] | list[str]:
    made = {"COLOURS": palette, "MARKERS": markers, "TITLES": titles, "ORDER": list}
    if name not in made:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return made[name](MODELS)


def titles(names: Iterable[str]) -> dict[str, str]:
    """Name -> title."""
    return {name: title(name) for name in names}


def number(value: float, form: str = ".1f") -> str:
    """The value in a Python format with a real minus sign and a narrow no-break space before %; no zero has a
    sign.

    >>> number(-0.0123, "+.1%") '\u22121.2\u202f%'
    """
    text = format(value, form)
    digits = [letter for letter in text if letter.isdigit()]
    if digits and set(digits) == {"0"}:
        text = text.replace("-", "").replace("+", "")
    return text.replace("-", MINUS).replace("%", f"{NARROW}%")


def percent(value: float, low: float | None = None, high: float | None = None, digits: int = 1) -> str:
    """A share: "90.1 %", or with its bounds "90.1 % (89.4 to 90.8)"."""
    text = number(value, f".{digits}%")
    if low is None or high is None or math.isnan(low):
        return text
    return f"{text} ({number(100 * low, f'.{digits}f')} to {number(100 * high, f'.{digits}f')})"


def points(value: float, digits: int = 1) -> str:
    """A difference of two shares in percentage points, without the word: "+0.1"."""
    return number(100 * value, f"+.{digits}f")


def interval(found: object, digits: int = 1) -> str:
    """A difference of shares with its 95 % interval: "+0.1 (−0.3 to +0.6)".  `found` has `value`, `low` and
    `high`."""
    return f"{points(found.value, digits)} ({points(found.low, digits)} to {points(found.high, digits)})"


def p_value(p: float | None) -> str:
    """ "0.012", "< 0.001", or nothing where there is no test."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"
