"""The pictures that several pages share.  Each draws and returns a matplotlib figure; the page captions it
with `display.figure`."""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from rtx_core.report.badges import Badge, by_model
from rtx_core.report.statistics import accuracy
from rtx_core.report.style import MINUS, colour, marker, ordered, theme, title
from rtx_core.report.tables import milliseconds

GREY = "#5c6370"
BAND = "#c9d5e8"  # within a point of no difference


def canvas(
    columns: int = 1, rows: int = 1, *, height: float = 3.4, **options: object
) -> tuple[Figure, np.ndarray]:
    """Axes in the book's look, row by row in one array, together as wide as the text; `height` is that of a
    row, in inches."""
    theme()
    fig, axes = plt.subplots(rows, columns, figsize=(7.2, rows * height), squeeze=False, **options)
    return fig, axes.ravel()


def forest(
    rows: Iterable[tuple[str, object, Badge]],
    *,
    models: tuple[str, str] = ("baseline", "recurrent"),
    band: float = 0.01,
    xlabel: str = "",
) -> Figure:
    """A row for each (name, difference, badge): its value with the 95 % interval, in points; filled at the
    full budget, else hollow.

    The color is the model's that is ahead where the difference is significant, else grey; the band is ±1
    point.
    """
    rows = list(rows)
    first, second = models
    fig, (ax,) = canvas(height=0.9 + 0.36 * len(rows))
    ax.axvspan(-100 * band, 100 * band, color=BAND, alpha=0.45, linewidth=0)
    ax.axvline(0, color=GREY, linewidth=1)
    for y, (_, found, evidence) in enumerate(rows):
        color = {1: colour(first), -1: colour(second), 0: GREY}[found.sign]
        ax.plot(
            [100 * found.low, 100 * found.high],
            [y, y],
            color=color,
            linewidth=2.2,
            alpha=0.6,
            solid_capstyle="round",
        )
        filled = color if evidence.budget == "full" else "white"
        ax.plot(
            100 * found.value, y, "o", markersize=8, color=color, markerfacecolor=filled, markeredgewidth=1.8
        )
    ax.set(yticks=range(len(rows)), ylim=(len(rows) - 0.4, -0.6))
    ax.set_yticklabels([f"{name}  {evidence.circles}" for name, _, evidence in rows])
    ax.set_xlabel(xlabel or f"accuracy, {title(first)} {MINUS} {title(second)} (points, 95 % interval)")
    ax.grid(axis="y", visible=False)
    look = {"transform": ax.transAxes, "fontweight": "bold", "va": "bottom"}
    ax.text(0, 1.01, f"← {title(second)} ahead", color=colour(second), ha="left", **look)
    ax.text(1, 1.01, f"{title(first)} ahead →", color=colour(first), ha="right", **look)
    return fig


def bubble(found: object) -> Figure:
    """Accuracy against inference time of a text, a bubble a model, its area the size of the stored model.

    Bars: 95 % interval of the accuracy; 10th to 90th percentile of the time (of the first seed).
    """
    fig, (ax,) = canvas()
    for name, records in by_model(found).items():
        value, low, high = accuracy(records)
        measured = records[0]["latency"]["measured"][-1]
        x = milliseconds(records)
        spread = np.abs(
            [[x - measured["p10_ms"] / measured["batch"]], [measured["p90_ms"] / measured["batch"] - x]]
        )
        color = colour(name)
        errors = [[100 * (value - low)], [100 * (high - value)]]
        ax.errorbar(x, 100 * value, xerr=spread, yerr=errors, color=color, capsize=3, linewidth=1, zorder=2)
        size = records[0]["size_mb"]
        ax.scatter(
            x,
            100 * value,
            s=12 * size,
            color=color,
            alpha=0.45,
            edgecolor="black",
            marker=marker(name),
            zorder=3,
        )
        words = f"{title(name)}\n{size:.1f} MB"
        ax.annotate(words, (x, 100 * value), xytext=(16, 14), textcoords="offset points", fontsize=9)
    ax.margins(0.35)
    ax.set_xlim(left=0)
    ax.set(xlabel="inference time of a text, in batches (ms)", ylabel="test accuracy (%)")
    return fig


def learning_curves(
    found: object, *, measures: tuple[str, ...] = ("loss", "accuracy"), x: str = "epoch"
) -> Figure:
    """Training (dashed) and validation by epoch or step, a line a run, one panel a measure; a ring marks the
    selected checkpoint."""
    fig, axes = canvas(len(measures))
    for name, records in by_model(found).items():
        for record in records:
            history = pd.DataFrame(record["history"])
            chosen = history.set_index("step", drop=False).loc[record["selected"]["step"]]
            look = {"color": colour(name), "alpha": 1.0 if record is records[0] else 0.5}
            for ax, measure in zip(axes, measures):
                if f"train_{measure}" in history:
                    ax.plot(
                        history[x],
                        history[f"train_{measure}"],
                        "--",
                        label=f"{title(name)}, training",
                        **look,
                    )
                validation = f"validation_{measure}"
                kind = {"marker": marker(name), "markersize": 4, "label": f"{title(name)}, validation"}
                ax.plot(history[x], history[validation], **kind, **look)
                ax.plot(
                    chosen[x], chosen[validation], "o", markersize=11, fillstyle="none", color=colour(name)
                )
                ax.set(xlabel=x, ylabel=measure)
    fig.legend(*distinct(axes), loc="outside lower center", ncols=2, fontsize=9)
    return fig


def confusion(found: object, classes: list[str]) -> Figure:
    """Confusion matrices on the test set, a panel a model (its first seed); the shade is the share of the
    true class."""
    groups = by_model(found)
    fig, axes = canvas(len(groups), height=3.0)
    ticks = [name.replace(" ", "\n") for name in classes]
    for ax, (name, records) in zip(axes, groups.items()):
        matrix = np.array(records[0]["test"]["confusion"])
        counts = [[f"{count:,}" for count in row] for row in matrix]
        share = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
        look = {"cmap": "Blues", "vmin": 0, "vmax": 1, "cbar": False, "square": True, "linewidths": 0.5}
        sns.heatmap(share, annot=counts, fmt="", xticklabels=ticks, yticklabels=ticks, ax=ax, **look)
        ax.set(title=title(name), xlabel="predicted", ylabel="true")
    return fig


def distinct(axes: Iterable) -> tuple[list, list]:
    """Legend entries of all axes without the repetitions that several seeds and panels bring."""
    found = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def in_order(frame: pd.DataFrame, column: str = "model") -> pd.DataFrame:
    """The frame's rows with models in the registry's order, as legends should have them."""
    places = {name: place for place, name in enumerate(ordered(frame[column]))}
    return frame.sort_values(column, key=lambda names: names.map(places), kind="stable")
