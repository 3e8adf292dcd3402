"""Names of a package that are imported when first used, so that prose waits for no torch and no matplotlib."""

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from rtx_core.deprecated import warn_renamed


def lazily(package: str, file: str, renamed: Mapping[str, str] = {}) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package whose `__init__` has its imports under `if TYPE_CHECKING:`.

    Type checkers and editors read them there; here each is made when its name is first used.  `renamed` has the
    names of the version before.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If)).body
    imports = [line for line in block if isinstance(line, ast.ImportFrom)]
    place = {alias.name: line.module or "" for line in imports for alias in line.names}

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    def get(name: str) -> object:
        if name in renamed:
            warn_renamed(name, renamed[name])
            return getattr(sys.modules[package], renamed[name])
        if name not in place:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it offers {', '.join(names())}")
        if place[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(place[name]), name)

    return get, names
