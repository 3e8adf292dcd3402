"""What the pages of the book share: tables, figures, statistics, badges, claims and provenance, of records."""

from typing import TYPE_CHECKING

from rtx_core.lazy import lazily

if TYPE_CHECKING:
    from rtx_core.report import statistics, values
    from rtx_core.report.display import escape, figure, for_script, markdown, provenance, samples, table
    from rtx_core.report.evidence import badge, by_model, device_of, milliseconds
    from rtx_core.report.figures import (
        accuracies,
        benchmark,
        bubble,
        canvas,
        dots,
        forest,
        learning_curves,
        legend,
        lines,
        loss,
    )
    from rtx_core.report.style import color, marker, number, ordered, p_value, points, theme, title
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
__all__ = ["accuracies", "badge", "benchmark", "bubble", "by_model", "canvas", "color", "device_of", "dots"]
__all__ += ["escape", "figure", "for_script", "forest", "learning_curves", "legend", "lines", "loss", "markdown"]
__all__ += ["marker", "milliseconds", "number", "ordered", "p_value", "points", "provenance", "samples", "statistics"]
__all__ += ["table", "theme", "title", "values"]
