"""Names of a package that are imported when first asked for, so that prose waits for no torch and no matplotlib."""

from collections.abc import Callable
from importlib import import_module


def lazily(package: str, modules: dict[str, str]) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package that offers names of its modules; a module's own name is the module."""
    place = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in place:
            offered = ", ".join(sorted(place))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it offers {offered}")
        module = import_module(f"{package}.{place[name]}")
        return module if name == place[name] else getattr(module, name)

    return get, lambda: sorted(place)
