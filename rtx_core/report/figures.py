"""The tables, and as matplotlib figures the pictures, that pages share, of runs, records or frames of results."""

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtx_core.errors import RtxError
from rtx_core.report import display, style
from rtx_core.report.display import Displayed
from rtx_core.report.evidence import Badge, as_records, badge, by_model, device_of, milliseconds
from rtx_core.report.statistics import Difference, accuracy, answers_all, common, difference, mean_auc, mean_or_range
from rtx_core.report.style import MINUS, interval, p_value, points, theme, title

METRICS = {"accuracy": "Accuracy (%)", "f1": "F1 (%)", "precision": "Precision (%)", "recall": "Recall (%)"}
GREY = "#5c6370"


def classifiers(runs: object) -> dict[str, list]:
    """Records by model; an error where one is of a decoder, which labels no texts."""
    groups = by_model(runs)
    if others := [record for records in groups.values() for record in records if "confusion" not in record["test"]]:
        raise RtxError(f"{others[0]} is of a decoder, and this shows classifiers of texts; take the runs' frame.")
    return groups


def benchmark(runs: object, *, label: str, caption: str, published: Sequence[dict] = (), note: str = "") -> Displayed:
    """Quality, size and speed of each model, with rows of published values and the difference.  Of several seeds the
    mean stands with `statistics.mean_or_range`; times stand only where all are of one machine."""
    groups = classifiers(runs)
    average = published[0].get("average") if published else None
    same_device = len({device_of(records[0], "latency") for records in groups.values()}) == 1
    rows = []
    for name, records in groups.items():
        by_metric = {metric: scores(records, metric, average) for metric in METRICS}
        row = {METRICS[metric]: _percents(*mean_or_range(values), len(values)) for metric, values in by_metric.items()}
        row |= {"ms": f"{milliseconds(records):.2f}" if same_device else None, "MiB": f"{records[0]['size_mb']:.1f}"}
        row |= {"Parameters": records[0]["parameters"]["total"], "Test texts": f"{records[0]['test']['n']:,}"}
        rows.append({"Model": f"{title(name)}, {badge(records)}"} | row)
    for entry in published:
        pairs = [(name, entry[name], records) for name, records in groups.items() if name in entry]
        for name, value, _ in pairs:
            row = {METRICS[metric]: f"{100 * value[metric]:.1f}" for metric in METRICS if metric in value}
            row |= {"ms": f"{value['ms']:.2f}"} if "ms" in value else {}
            row |= {"MiB": f"{value['size_mb']:.1f}"} if "size_mb" in value else {}
            row |= {"Parameters": value.get("total"), "Test texts": entry["test_set"]}
            rows.append({"Model": f"{title(name)}, {entry['source']}"} | row)
        for name, value, records in pairs:
            means = {m: np.mean(scores(records, m, entry.get("average"))) for m in METRICS if m in value}
            row = {METRICS[metric]: points(mean - value[metric]) for metric, mean in means.items()}
            reduced = "" if badge(records).budget == "full" else " (reduced)"
            rows.append({"Model": f"{title(name)}, ours{reduced} {MINUS} {entry['source']}"} | row)
    averages = f"F1, precision and recall are {average} averages over the classes, as in the published rows."
    times = "ms: inference time of a text in batches of 16."
    text = " ".join(filter(None, (times if same_device else "", averages if average else "", note)))
    frame = pd.DataFrame(rows).dropna(axis=1, how="all")
    return display.table(frame, label=label, caption=caption, note=text, wide=any(len(r) > 2 for r in groups.values()))


def loss(records: list) -> str | None:
    """Mean test loss: of two seeds with both, of three and more with Student's 95 % interval; None of none."""
    values = [record["test"]["loss"] for record in records]
    return _bounded(*mean_or_range(values), len(values), ".3f") if values else None


def scores(records: list, metric: str, average: str | None = None) -> list[float]:
    """A test metric of each record: its own, or precision, recall or F1 by another average, from the predictions."""
    if metric == "accuracy" or average in (None, records[0]["test"]["average"]):
        return [record["test"][metric] for record in records]
    from sklearn import metrics

    score = getattr(metrics, f"{metric}_score")
    predictions = [record.predictions for record in records]
    return [score(p["labels"], p["logits"].argmax(1), average=average, zero_division=0.0) for p in predictions]


def _percents(value: float, low: float, high: float, seeds: int) -> str:
    return _bounded(100 * value, 100 * low, 100 * high, seeds, ".1f")


def _bounded(value: float, low: float, high: float, seeds: int, form: str) -> str:
    between = ", " if seeds == 2 else " to "  # two seeds are no interval
    bounds = f" ({low:{form}}{between}{high:{form}})" if low < high else ""
    return f"{value:{form}}{bounds}"


def accuracies(settings: dict[str, object], *, heading: str, label: str, caption: str, note: str = "") -> Displayed:
    """Two rows a setting, {reader's name: runs, records or frame}: Baseline's and Recurrent's quality (%); beside
    Baseline their paired difference in points with its p, beside Recurrent its share of Baseline's time of a text.

    The intervals are those of `statistics.accuracy`.  A model that never answers some class is not paired.
    """
    models = first, second = "baseline", "recurrent"
    gap = f"{title(first)} {MINUS} {title(second)} (points)"
    rows = []
    for name, runs in settings.items():
        records = [record for record in as_records(runs) if record["model"] in models]
        by_model = [[record for record in records if record["model"] == model] for model in models]
        pair = difference(by_model[0], by_model[1]) if common(*by_model) and all(map(answers_all, records)) else None
        for model, group in zip(models, by_model):
            row: dict[str, object] = {heading: name, "Model": f"{title(model)} {badge(group).circles}".strip()}
            area = mean_auc(group) if group else None
            if group:
                row["Accuracy (%)"] = _percents(*accuracy(group), len(group))
                for metric in ("precision", "recall", "f1"):
                    row[METRICS[metric]] = f"{100 * np.mean(scores(group, metric)):.1f}"
                row["AUC"] = f"{area:.3f}" if area else None
            else:
                row["Accuracy (%)"] = "not measured"
            if pair and model == first:
                row |= {gap: interval(pair), "p": p_value(pair.p) or None}
            if model == second and all(by_model) and len({device_of(group[0], "latency") for group in by_model}) == 1:
                row["Time (%)"] = f"{100 * milliseconds(group) / milliseconds(by_model[0]):.0f}"
            rows.append(row)
    frame = pd.DataFrame(rows).dropna(axis=1, how="all")
    return display.table(frame, label=label, caption=caption, note=note, wide=True)


def canvas(columns=1, rows=1, *, height: float = 3.4, width: float = 7.2, **options) -> tuple[Figure, np.ndarray]:
    """Axes in the book's look, row by row in one array; `height` of a row, `width` of all, in inches: 7.2 is as wide as
    the text, 5.4 can be read on a phone."""
    theme()
    fig, axes = plt.subplots(rows, columns, figsize=(width, rows * height), squeeze=False, **options)
    return fig, axes.ravel()


def forest(
    rows: Iterable[tuple[str, Difference, Badge]], *, models: tuple[str, str] = ("baseline", "recurrent")
) -> Figure:
    """A row for each (name, difference, badge): its value with the 95 % interval, or of two seeds a tick for each.

    Filled: at the full budget.  The color is that of the model that is ahead, grey where that is not significant; the
    band is ±1 point.
    """
    rows = list(rows)
    first, second = models
    colors = {name: style.color(name) for name in models}
    fig, (ax,) = canvas(height=0.9 + 0.36 * len(rows))
    ax.axvspan(-1, 1, color="#c9d5e8", alpha=0.45, linewidth=0)
    ax.axvline(0, color=GREY, linewidth=1)
    for y, (_, gap, evidence) in enumerate(rows):
        color = {1: colors[first], -1: colors[second], 0: GREY}[gap.sign]
        fill = color if evidence.budget == "full" else "white"
        if gap.seeds == 2:  # no interval: the seeds themselves
            ax.plot([100 * value for value in gap.by_seed], [y, y], "|", color=color, markersize=11)
        else:
            line: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.6, "solid_capstyle": "round"}
            ax.plot([100 * gap.low, 100 * gap.high], [y, y], color=color, **line)
        look: dict[str, Any] = {"markersize": 8, "markerfacecolor": fill, "markeredgewidth": 1.8}
        ax.plot(100 * gap.value, y, "o", color=color, **look)
    ax.set(yticks=range(len(rows)), ylim=(len(rows) - 0.4, -0.6))
    ax.set_yticklabels([f"{name}  {evidence.circles}" for name, _, evidence in rows])
    ax.set_xlabel(f"accuracy, {title(first)} {MINUS} {title(second)} (points, 95 % interval)")
    ax.grid(axis="y", visible=False)
    look = {"transform": ax.transAxes, "fontweight": "bold", "fontsize": "small", "va": "bottom"}
    ax.text(0, 1.01, f"← {title(second)} ahead", color=colors[second], ha="left", **look)
    ax.text(1, 1.01, f"{title(first)} ahead →", color=colors[first], ha="right", **look)
    return fig


def dots(frame: pd.DataFrame, *, x: str, ax: Axes, names: Iterable[str] = ()) -> None:
    """A row for each model of the column `model`, in the order of `names`, and in it a mark for each of its values."""
    names = _present(frame, names)
    for y, name in enumerate(names):
        values = sorted(frame.loc[frame["model"] == name, x])
        places = [y + 0.16 * (i % 3 - 1) for i in range(len(values))]  # so that neighbors do not hide one another
        look: dict[str, Any] = {"color": style.color(name), "marker": style.marker(name), "markeredgecolor": "white"}
        ax.plot(values, places, linestyle="", markersize=8, markeredgewidth=0.3, **look)
    ax.set(yticks=range(len(names)), ylim=(len(names) - 0.4, -0.6))
    ax.set_yticklabels([title(name) for name in names])
    ax.grid(axis="y", visible=False)


def _present(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    available = dict.fromkeys(frame["model"])
    return [name for name in names or available if name in available]


def lines(frame: pd.DataFrame, *, x: str, y: str, ax: Axes, names: Iterable[str] = (), **look) -> None:
    """A line for each model of the column `model`, in the order of `names`: the mean over its rows and their range."""
    names = _present(frame, names)
    colors, markers = ({name: pick(name) for name in names} for pick in (style.color, style.marker))
    options: dict[str, Any] = {"hue": "model", "hue_order": names, "palette": colors}
    options |= {"style": "model", "style_order": names, "markers": markers, "dashes": False, "errorbar": ("pi", 100)}
    sns.lineplot(frame, x=x, y=y, ax=ax, **options | look)
    legend(ax)


def legend(first: Axes, *others: Axes, **look) -> None:
    """The models' titles in place of what seaborn writes: in the panel, or of several panels once, below them."""
    handles, names = first.get_legend_handles_labels()
    for ax in (first, *others):
        if present := ax.get_legend():
            present.remove()
    below = {"loc": "outside lower center", "ncols": 3} if others else {}
    write = first.figure.legend if below else first.legend
    if handles:
        write(handles, [title(name) for name in names], **{"fontsize": 9} | below | look)


def bubble(runs: object) -> Figure:
    """Accuracy, with its interval, against inference time of a text, with its 10th and 90th percentile: a bubble a
    model, its area the size of the stored model."""
    fig, (ax,) = canvas(width=5.4)
    for n, (name, records) in enumerate(classifiers(runs).items()):
        _, color, marker = style.look(name)
        y, low, high = (100 * share for share in accuracy(records))
        x, size, latency = milliseconds(records), records[0]["size_mb"], records[0]["latency"]["measured"][-1]
        errors = [[abs(x - latency[end] / latency["batch"])] for end in ("p10_ms", "p90_ms")]
        bars = {"xerr": errors, "yerr": [[y - low], [high - y]], "capsize": 3, "linewidth": 1}
        ax.errorbar(x, y, color=color, zorder=2, **bars)
        ax.scatter(x, y, s=12 * size, zorder=3, color=color, alpha=0.45, edgecolor="black", marker=marker)
        words = f"{title(name)}\n{size:.1f} MiB"
        ax.annotate(words, (x, y), xytext=(16, -36 if n % 2 else 14), textcoords="offset points", fontsize=9)
    ax.margins(0.35)
    ax.set_xlim(left=0)
    ax.set(xlabel="inference time of a text, in batches (ms)", ylabel="test accuracy (%)")
    return fig


def learning_curves(runs: object) -> Figure:
    """Loss and accuracy in training (dashed) and validation by epoch, a line a run; a ring marks the selected
    checkpoint."""
    fig, axes = canvas(2, height=3.0, width=5.4)
    for name, records in by_model(runs).items():
        _, color, marker = style.look(name)
        for n, record in enumerate(records):
            history = pd.DataFrame(record["history"]).set_index("epoch")
            history[["train_accuracy", "validation_accuracy"]] *= 100
            selected = history[history["step"] == record["selected"]["step"]]
            look = {"color": color, "alpha": 0.5 if n else 1.0}
            labels = [None if n else f"{title(name)}, {part}" for part in ("training", "validation")]
            for ax, measure in zip(axes, ("loss", "accuracy")):
                ax.plot(history[f"train_{measure}"], "--", label=labels[0], **look)
                ax.plot(history[f"validation_{measure}"], label=labels[1], marker=marker, markersize=4, **look)
                ax.plot(selected[f"validation_{measure}"], "o", markersize=11, fillstyle="none", color=color)
                ax.set(xlabel="epoch", ylabel=measure if measure == "loss" else "accuracy (%)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    return fig
