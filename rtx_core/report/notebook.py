"""What notebooks share beside their science: a check of injected parameters, and errors that are one sentence."""

import json
from contextlib import suppress
from pathlib import Path

import IPython

from rtx_core.errors import RtxError, unknown

MARK = "# Parameters"  # papermill's first line of the cell that it injects


def check_parameters() -> None:
    """End with one sentence if papermill injected a parameter that the notebook does not have, or of another type.

    papermill puts its cell after the one tagged `parameters`; both are read from the history of the kernel.  Outside a notebook,
    or where nothing was injected, this only makes an `RtxError` show as its sentence alone.
    """
    shell = IPython.get_ipython()
    if shell is None:
        return
    shell.set_custom_exc((RtxError,), _one_sentence)
    cells = [cell for cell in shell.user_ns.get("In", []) if cell.strip()]
    for before, cell in zip(cells, cells[1:]):
        if cell.lstrip().startswith(MARK):
            check(_assigned(before), _assigned(cell))


def changed_parameters(notebook: Path) -> dict[str, object]:
    """The parameters of the running notebook that are not what its file says; outside of a notebook none."""
    shell = IPython.get_ipython()
    if shell is None or not notebook.exists():
        return {}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    tagged = (cell["source"] for cell in cells if "parameters" in cell["metadata"].get("tags", ()))
    own, here = _assigned("".join(next(tagged, ()))), shell.user_ns
    return {name: here[name] for name, value in own.items() if here.get(name, value) != value}


def check(own: dict[str, object], injected: dict[str, object]) -> None:
    """`injected` names and values against the notebook's `own`."""
    for name, value in injected.items():
        if name not in own:
            raise unknown("parameter", name, own)
        usual, kind = own[name], type(own[name])
        if type(value) is kind or usual is None or (kind is float and type(value) is int):
            continue
        if kind is float and isinstance(value, str):  # YAML reads 1e-4 as text
            with suppress(ValueError):
                float(value)
                continue
        advice = f"  With papermill: -y '{name}: [a, b]'." if kind is list else ""
        raise RtxError(
            f"Parameter {name} is {value!r:.80} of type {type(value).__name__}; expected {kind.__name__}.{advice}"
        )


def _assigned(source: str) -> dict[str, object]:
    """The names that a cell sets, with their values."""
    found = {}
    exec(source, found)
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _one_sentence(shell, kind, error, traceback, tb_offset=None) -> list[str]:
    lines = [str(error)]
    shell._showtraceback(kind, error, lines)
    return lines
