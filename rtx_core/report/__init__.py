"""What the pages of the book share: tables, figures, statistics, badges, claims and provenance, of records."""

from rtx_core.lazy import lazily

_NAMES = {
    "display": "table figure samples markdown escape for_script provenance",
    "evidence": "badge by_model device_of milliseconds",
    "figures": "benchmark accuracies bubble canvas dots forest learning_curves legend lines loss",
    "statistics": "statistics",
    "style": "theme title color marker ordered number points p_value",
    "values": "values",
}
__getattr__, __dir__ = lazily(__name__, _NAMES)
