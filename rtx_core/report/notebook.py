"""What notebooks share beside their science: a check of injected parameters, and errors that are one sentence."""

import ast

import IPython

from rtx_core.errors import RtxError, unknown

MARK = "# Parameters"  # papermill's first line of the cell that it injects


def check_parameters() -> None:
    """End with one sentence if papermill injected a parameter that the notebook does not have.

    papermill puts its cell after the one tagged `parameters`; both are read from the history of the kernel.  From here
    on an `RtxError` shows as its sentence alone.  Outside a notebook this does nothing.
    """
    shell = IPython.get_ipython()
    if shell is None:
        return
    shell.set_custom_exc((RtxError,), _one_sentence)
    cells = [cell for cell in shell.user_ns.get("In", []) if cell.strip()]
    for before, cell in zip(cells, cells[1:]):
        if cell.lstrip().startswith(MARK):
            own = _assigned(before)
            for name in _assigned(cell):
                if name not in own:
                    raise unknown("parameter", name, own)


def _assigned(source: str) -> list[str]:
    """The names to which a cell gives values."""
    return [node.targets[0].id for node in ast.parse(source).body if isinstance(node, ast.Assign)]


def _one_sentence(shell, kind, error, traceback, tb_offset=None) -> list[str]:
    lines = [str(error)]
    shell._showtraceback(kind, error, lines)
    return lines
