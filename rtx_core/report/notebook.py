"""What notebooks share beside their science: a check of injected parameters, and errors that are one sentence."""

import ast

import IPython

from rtx_core.errors import RtxError, unknown

MARK = "# Parameters"  # papermill's first line of the cell that it injects


def check_parameters() -> None:
    """End with one sentence if papermill injected a parameter that the notebook does not have, or of another type.

    Its cell follows the one tagged `parameters`; both are read from the kernel's history.  From here on an `RtxError`
    shows as its sentence alone.  Outside a notebook this does nothing.
    """
    shell = IPython.get_ipython()
    if shell is None:
        return
    shell.set_custom_exc((RtxError,), _one_sentence)
    cells = [cell for cell in shell.user_ns.get("In", []) if cell.strip()]
    for before, cell in zip(cells, cells[1:]):
        injected, defaults = (_assigned(cell), _assigned(before)) if cell.lstrip().startswith(MARK) else ({}, {})
        for name, value in injected.items():
            if name not in defaults:
                raise unknown("parameter", name, defaults)
            kind = type(defaults[name])
            if ... not in (value, defaults[name]) and type(value) not in (
                (float, int, str) if kind is float else (kind,)
            ):  # YAML reads 1e-4 as text
                advice = f"  With papermill: -y '{name}: [a, b]'." if kind is list else ""
                got = f"{value!r:.80} of type {type(value).__name__}"
                raise RtxError(f"Parameter {name} is {got}; expected {kind.__name__}.{advice}")


def _assigned(source: str) -> dict[str, object]:
    """The values that a cell gives to names: numbers, texts, lists and the like, `...` of what is computed."""
    values = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(_Numbers().visit(node.value))
            except ValueError:
                values[node.targets[0].id] = ...
    return values


class _Numbers(ast.NodeTransformer):
    """nan and infinity, which papermill writes as float('nan')."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.unparse(node.func) != "float":
            return node
        return ast.Constant(float(ast.literal_eval(node.args[0])))


def _one_sentence(shell, kind, error, traceback, tb_offset=None) -> list[str]:
    shell._showtraceback(kind, error, [str(error)])
    return [str(error)]
