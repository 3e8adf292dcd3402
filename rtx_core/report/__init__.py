"""What the pages of the book share: tables, figures, statistics, badges, claims and provenance.  It reads
records, never torch."""

from importlib import import_module

_MODULES = ("statistics", "style", "values")
# Module -> its names, imported when one is first asked for, so that prose never waits for matplotlib.
_FROM = {
    "display": "table figure samples markdown for_script provenance",
    "style": "COLOURS MARKERS ORDER theme title palette markers ordered number percent points p_value",
    "evidence": "badge by_model device_of milliseconds",
    "figures": "benchmark accuracies bubble canvas dots forest learning_curves legend lines loss",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    for module, names in _FROM.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"rtx_core.report has no {name!r}; it has {', '.join(__dir__())}.")


def __dir__() -> list[str]:
    return sorted([*_MODULES, *" ".join(_FROM.values()).split()])
