"""The names that prose quotes: what `book/values.py` defines, looked up, computed with, and formatted.

`{val}` and `{holds}` of the book (`book/_ext/values_roles.py`) and the claims ask here, so a name means one
thing everywhere.
"""

import importlib.util
import math
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY
from rtx_core.report.style import number

FUNCTIONS = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "len": len,
    "all": all,
    "any": any,
    "sum": sum,
    "isnan": math.isnan,
}


@cache
def values() -> dict[str, object]:
    """Every name of `book/values.py` and of the `book/values_<page>.py` beside it: the `VALUES` of all of
    them."""
    found = {}
    owner = {}
    for path in sorted((REPOSITORY / "book").glob("values*.py")):
        for name, value in load(path).VALUES.items():
            if name in found:
                raise RtxError(
                    f"{name!r} is defined by {owner[name]} and by {path.name}; names of values must differ."
                )
            found[name] = value
            owner[name] = path.name
    return found


def load(path: Path) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(f"book_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Names(dict):
    """The names for `eval`: a function among the values is called, once, when its name is first used."""

    def __init__(self, given: dict[str, object]):
        super().__init__(FUNCTIONS)
        self.given = given
        self.failed = {}

    def __missing__(self, name: str) -> object:
        if name not in self.given:
            near = get_close_matches(name, self.given, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise RtxError(f"Unknown value {name!r}: {hint}the names are those of book/values*.py.")
        if name in self.failed:  # many sentences quote one name
            raise self.failed[name]
        value = self.given[name]
        try:
            self[name] = value() if isinstance(value, Callable) else value
        except RtxError as error:
            self.failed[name] = error
            raise
        return self[name]


@cache
def names() -> Names:
    return Names(values())


def look_up(expression: str, known: Names | None = None) -> object:
    """What an expression over the values gives, such as "sst2.difference" or "abs(sst2.difference) < 1";
    RtxError where it fails."""
    known = names() if known is None else known
    known.setdefault("__builtins__", {})
    try:
        return eval(expression, known)  # as globals, so that generators see them too
    except RtxError:
        raise
    except Exception as error:
        raise RtxError(f"{expression!r} cannot be computed: {type(error).__name__}: {error}.") from error


def shown(quoted: str, known: Names | None = None) -> str:
    """The text for `{val}`: "name" or "name:format"; a real minus sign, a thin no-break space before %."""
    expression, _, form = quoted.partition(":")
    value = look_up(expression.strip(), known)
    if not form:
        return str(value) if hasattr(value, "badge") or not isinstance(value, (int, float)) else plain(value)
    try:
        return number(value, form.strip()) if isinstance(value, (int, float)) else format(value, form.strip())
    except (TypeError, ValueError) as error:
        raise RtxError(f"{quoted!r} cannot be written: {error}.") from error


def plain(value: float) -> str:
    """A number without a format: whole ones with separators, others with four digits."""
    return number(value, "," if isinstance(value, int) else ".4g")
