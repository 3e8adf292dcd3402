"""The numbers that a page's prose quotes, and the checks of its sentences, computed from the runs that the page shows.

    q = Quantities(
        numbers={"gain": lambda: number(100 * (facts.gain("1x4", "1x1") - 1), ".0f")},
        checks={"gain": lambda: [facts.gain("1x4", "1x1") > 1.05]},
    )
    q.gain             the text "7", which prose quotes with the role {eval}`q.gain`
    q.holds("gain")    whether these runs bear the check out
    q                  shows how many checks fail, and hands all of it to the book and to `rtx show`

A check has the key of a number: its paragraph is marked where the check fails.  A check of a paragraph without a number
has a name of its own, which a comment under the paragraph repeats: `% check: name`.
"""

import ast
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from rtx_core.errors import unknown
from rtx_core.reads import reading
from rtx_core.report.evidence import COUNTS

METADATA = "quantities"  # where an output of a notebook holds them
NOT_AVAILABLE = "n/a"


def words(count: int) -> str:
    """A whole number up to ten as a word, a larger one in digits."""
    return COUNTS[count] if 0 <= count < len(COUNTS) else f"{count:,}"


class Text(str):
    """A text that JupyterLab shows as it is: its `repr` escapes nothing, not even the narrow space before "%"."""

    def __repr__(self) -> str:
        return f"'{self}'"


class Quantities:
    """Keys of numbers as attributes, each a text; a key whose runs are missing is "n/a".

    Each function of `numbers` gives the text of one number; each of `checks` a list of conditions on the same runs.
    Both are called at once, so the object holds texts and never a run.
    """

    def __init__(self, numbers: Mapping[str, Callable[[], str]], checks: Mapping[str, Callable] = {}):
        self._numbers = {key: _number(function) for key, function in numbers.items()}
        self._failures = {key: _failures(function) for key, function in checks.items()}

    def __getattr__(self, key: str) -> str:
        if key.startswith("_"):
            raise AttributeError(key)
        if key not in self._numbers:
            raise unknown("quantity", key, self._numbers)
        return Text(self._numbers[key]["text"])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._numbers]

    def holds(self, check: str) -> bool:
        """Whether all conditions of a check hold for these runs."""
        if check not in self._failures:
            raise unknown("check", check, self._failures)
        return not self._failures[check]

    @property
    def unsupported(self) -> dict[str, list[str]]:
        """Check -> its conditions that do not hold for these runs, of the checks that fail."""
        return {check: failures for check, failures in self._failures.items() if failures}

    def as_json(self) -> dict[str, Any]:
        return {"numbers": self._numbers, "failures": self._failures}

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict[str, str], dict[str, Any]]:
        """The book reads the metadata and shows nothing; JupyterLab shows the checks that fail."""
        failed = self.unsupported
        head = f"{len(self._numbers)} numbers; "
        head += f"{len(failed)} of {len(self._failures)} checks fail" if failed else "all checks hold"
        lines = [f"{check}: {'; '.join(failures)}" for check, failures in failed.items()]
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        plain = "\n".join([f"{head}.", *lines])
        html = f"<small>{head}.<ul>{items}</ul></small>"
        return {"text/markdown": "% numbers", "text/html": html, "text/plain": plain}, {METADATA: self.as_json()}


def _number(function: Callable[[], str]) -> dict[str, Any]:
    """The text of a number with the seeds and records that it was read from, or why there is none."""
    with reading() as read:
        try:
            text, reason = str(function()), ""
        except Exception as error:  # a reader's runs may lack what a sentence quotes
            text, reason = NOT_AVAILABLE, f"{type(error).__name__}: {error}"
    seeds = sorted({record["seed"] for record in read if record.get("seed") is not None})
    return {"text": text, "reason": reason, "seeds": seeds, "records": sorted({str(record) for record in read})}


def _failures(function: Callable) -> list[str]:
    """The conditions of a check that do not hold, as its source writes them."""
    try:
        results = list(function())
    except Exception as error:  # a reader's runs may lack what a check compares
        return [f"these runs do not measure it ({error})"]
    conditions = _conditions(function)
    if len(conditions) != len(results):  # of a comprehension, or of a source that cannot be read
        conditions = [f"condition {n + 1}" for n in range(len(results))]
    return [condition for condition, result in zip(conditions, results) if not result]


def _conditions(function: Callable) -> list[str]:
    """The elements of the list that a lambda returns, as its source writes them."""
    code = function.__code__
    for node in ast.walk(_syntax(code.co_filename)):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno and isinstance(node.body, ast.List):
            return [ast.unparse(element) for element in node.body.elts]
    return []


@cache
def _syntax(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8") if Path(file).is_file() else "")
