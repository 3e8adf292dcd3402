"""Numbers in the text of an executed notebook: `papermill --engine rtx …` and `rtx show` put them there.

Prose quotes keys, {eval}`q.gain`.  A cell's metadata can hold what an expression gave (`user_expressions`), which
JupyterLab shows with the extension jupyterlab-myst, without a kernel; `plain` writes numbers in place of the roles, for
readers without the extension.
"""

import re
from collections.abc import Iterator

from rtx_core.report.display import escape
from rtx_core.report.quantities import METADATA, NOT_AVAILABLE

ROLE = re.compile(r"\{eval\}`([A-Za-z_]\w*\.\w+)`")
CHECK = re.compile(r"^% check: (\w+)$", re.MULTILINE)
UNSUPPORTED = "*These runs do not bear this paragraph out:*"


def outputs(notebook: dict) -> Iterator[dict]:
    """What the `Quantities` that a notebook shows contain."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if isinstance(values := output.get("metadata", {}).get(METADATA), dict):
                yield values


def quantities(notebook: dict) -> dict[str, dict]:
    """Numbers and failures of the last `Quantities` that an executed notebook shows; empty ones where it shows none."""
    empty = {"numbers": {}, "failures": {}}
    return [empty, *outputs(notebook)][-1]


def text(values: dict, expression: str) -> str:
    """The text of `q.key`."""
    return values["numbers"].get(expression.partition(".")[2], {}).get("text", NOT_AVAILABLE)


def fill(notebook: dict) -> None:
    """Put numbers into the metadata of the cells that quote them, and a line under paragraphs whose checks fail."""
    values = quantities(notebook)
    for cell in [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]:
        cell["source"] = marked("".join(cell["source"]), values["failures"])
        expressions = list(dict.fromkeys(ROLE.findall(cell["source"])))
        if expressions:
            cell["metadata"]["user_expressions"] = [
                {"expression": one, "result": result_of(text(values, one))} for one in expressions
            ]


def result_of(value: str) -> dict:
    """As a kernel answers a request for an expression that gives a text."""
    return {"status": "ok", "data": {"text/plain": f"'{value}'"}, "metadata": {}}


def marked(source: str, failures: dict[str, list[str]]) -> str:
    """The text with a line after each paragraph whose checks fail."""
    paragraphs = source.split("\n\n")
    for place, paragraph in enumerate(paragraphs):
        keys = [expression.partition(".")[2] for expression in ROLE.findall(paragraph)] + CHECK.findall(paragraph)
        failed = list(dict.fromkeys(condition for key in keys for condition in failures.get(key, ())))
        if failed and UNSUPPORTED not in "".join(paragraphs[place + 1 : place + 2]):
            paragraphs[place] += f"\n\n{UNSUPPORTED} " + "; ".join(f"`{condition}`" for condition in failed)
    return "\n\n".join(paragraphs)


def plain(notebook: dict, values: dict) -> None:
    """Write the numbers in place of the roles, and leave out the names of checks."""
    for cell in [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]:
        filled = ROLE.sub(lambda role: in_markdown(text(values, role[1])), "".join(cell["source"]))
        cell["source"] = CHECK.sub("", filled).rstrip()


def in_markdown(value: str) -> str:
    """A text as Markdown; numbers and plain words need no escapes, and stay legible where one edits the notebook."""
    return escape(value) if set(value) & set("\\`*_{}[]<>$&#|!~") else value
