"""What the pages of the book share: tables, figures, statistics, badges, claims and provenance.  It reads
records, never torch."""

from importlib import import_module

# Module -> its names, imported when one is first asked for, so that prose never waits for matplotlib.
_FROM = {
    "display": ("table", "figure", "samples", "markdown", "escape"),
    "style": (
        "COLOURS",
        "MARKERS",
        "ORDER",
        "TITLES",
        "theme",
        "title",
        "palette",
        "markers",
        "ordered",
        "number",
        "percent",
        "points",
        "interval",
        "p_value",
    ),
    "badges": ("badge", "as_records", "by_model"),
    "tables": ("benchmark", "accuracies", "milliseconds", "device_of"),
    "figures": ("bubble", "canvas", "confusion", "forest", "learning_curves"),
    "origin": ("provenance", "papermill_line"),
}
_MODULES = (
    "badges",
    "claims",
    "display",
    "figures",
    "names",
    "published",
    "statistics",
    "style",
    "tables",
    "values",
)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    for module, names in _FROM.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"rtx_core.report has no {name!r}; it has {', '.join(__dir__())}.")


def __dir__() -> list[str]:
    return sorted([*_MODULES, *(name for names in _FROM.values() for name in names)])
