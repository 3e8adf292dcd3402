"""One kind of error for all that a user can get wrong: a sentence with what was got, what was expected, what to do."""

import sysconfig
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

MAX_LISTED = 20  # choices are not listed beside a near one


class RtxError(ValueError):
    """Bad input.  The message names what was got, what was expected and what to do about it."""


def whole_number(name: str, value: object, least: int, most: int) -> None:
    """An error unless a value is a whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise RtxError(f"{name} is {value!r:.60}; expected a whole number from {least} to {most:,}.")


def unknown(kind: str, got: object, choices: Iterable[str]) -> RtxError:
    """An error for a name that does not exist, with the nearest one that does."""
    choices = list(choices)
    near = get_close_matches(str(got), choices, n=1, cutoff=0.6)
    hint = f" did you mean {near[0]!r}?" if near else ""
    listing = "" if near and len(choices) > MAX_LISTED else f" the choices are {', '.join(choices)}."
    return RtxError(f"Unknown {kind} {got!r}:{hint}{listing}")


def reason(error: BaseException) -> str:
    """A foreign exception as a part of a sentence: its kind, what it says, and the last line of the user's own code."""
    foreign = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<frozen ")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "-packages" not in f.filename]
    frames = [f for f in frames if not f.filename.startswith(foreign)]
    place = f", in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    message = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
    return f"{type(error).__name__}: {message:.350}{place}"
