"""The paper's figures: one look, readable in print, on a phone and by colour-blind readers, each with its alt text."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rtx_core.corpora.sources import CORPORA
from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.runs import Profiles, Runs, Studies, measured
from rtx_core.pages.table import labelled, median, title
from rtx_core.parameters import CLASSIFIERS
from rtx_core.results.statistics import accuracy_interval

PALETTE = sns.color_palette("colorblind").as_hex()
COLORS = dict(zip(CLASSIFIERS, PALETTE))
MARKERS = dict(zip(CLASSIFIERS, "osDv^"))  # so that colour is never the only sign
LOOK = {"axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold", "axes.titlesize": 11, "legend.frameon": False}


def canvas(columns: int = 1, *, rows: int = 1, height: float = 3.4, sharey: bool = False) -> tuple[Figure, np.ndarray]:
    """Axes in the paper's look, row by row in one array, together as wide as the text; `height` is that of a row."""
    with sns.axes_style("whitegrid", rc=LOOK), sns.plotting_context("notebook", font_scale=0.9):
        fig, axes = plt.subplots(rows, columns, figsize=(7.2, rows * height), sharey=sharey, squeeze=False, layout="constrained")
    return fig, axes.ravel()


def lengths(profiles: Profiles, *, label: str, unit: str = "words") -> Displayed:
    """Histogram of text lengths in each part, one panel for each split or subset."""
    fig, axes = canvas(len(profiles), sharey=True)
    longest = _longest(profiles, unit)
    for ax, (name, profile) in zip(axes, profiles.items()):
        for (part, facts), color, style in zip(profile["parts"].items(), PALETTE, STYLES):
            _histogram(ax, facts[unit], longest, color=color, linestyle=style, label=part, fill=part == "train")
        ax.set(title=name, xlabel=f"{unit} in a text", ylabel="share of texts (%)")
    axes[-1].legend()
    said = [
        f"under {name} the median text has " + ", ".join(f"{median(facts[unit])} {unit} in {part}" for part, facts in profile["parts"].items())
        for name, profile in profiles.items()
    ]
    return display.figure(
        fig, label=label,
        caption=labelled(f"Lengths of the texts in {unit}, by {profiles.heading.lower()} and part.", profiles),
        alt=f"Histograms of text length in {unit}, one panel for each {profiles.heading.lower()}: {'; '.join(said)}. The longest text has {longest} {unit}.",
    )  # fmt: skip


def overlaid(profiles: Profiles, *, label: str, part: str = "train", unit: str = "words") -> Displayed:
    """The length histograms and the label shares of one part, those of all splits or subsets in the same axes."""
    fig, (left, right) = canvas(2)
    longest, said, width = _longest(profiles, unit, part), [], 0.8 / len(profiles)
    for n, ((name, profile), color, style) in enumerate(zip(profiles.items(), PALETTE, STYLES)):
        facts, classes = profile["parts"][part], profile["classes"]
        _histogram(left, facts[unit], longest, color=color, linestyle=style, label=f"{name} ({facts['n']:,})", fill=n == 0)
        shares = [100 * count / facts["n"] for count in facts["labels"]]
        right.bar(np.arange(len(classes)) + (n - (len(profiles) - 1) / 2) * width, shares, width, color=color, alpha=0.6, edgecolor="black", linestyle=style)
        said.append(f"{name}: {facts['n']:,} texts, median {median(facts[unit])} {unit}, " + ", ".join(f"{s:.1f} % {c}" for s, c in zip(shares, classes)))
    left.set(xlabel=f"{unit} in a text", ylabel="share of texts (%)")
    right.set(ylabel="share of texts (%)", xticks=range(len(classes)), xticklabels=classes)
    left.legend(fontsize=9)
    return display.figure(
        fig, label=label,
        caption=labelled(f"Lengths (left) and labels (right) of the texts for {TASKS[part]}, by {profiles.heading.lower()}.", profiles),
        alt=f"Overlaid histograms of length in {unit}, and bars of label shares. {'; '.join(said)}.",
    )  # fmt: skip


STYLES = ("-", "--", ":", "-.")  # so that colour is never the only sign
TASKS = {"train": "training", "validation": "validation", "test": "testing"}


def _longest(profiles: Profiles, unit: str, *only: str) -> int:
    return max(int(length) for p in profiles.values() for part, facts in p["parts"].items() if not only or part in only for length in facts[unit])


def _histogram(ax, counted: dict[str, int], longest: int, fill: bool, **look) -> None:
    """Shares of texts by length; logarithmic where there are texts of hundreds of words, so that short ones can be seen too."""
    counts, width = pd.Series({int(k): v for k, v in counted.items()}).sort_index(), max(1, round(longest / 55))
    bins = {"log_scale": True, "bins": 40, "binrange": (0, np.log10(longest))} if longest > 200 else {"binwidth": width, "binrange": (0.5, longest + width)}
    sns.histplot(
        x=counts.index, weights=100 * counts / counts.sum(), element="step", fill=fill, alpha=0.25 if fill else 1.0, linewidth=1.4, ax=ax,
        **bins, **look,
    )  # fmt: skip


@measured
def bubble(runs: Runs, *, label: str) -> Displayed:
    """Figure 1: accuracy against latency, the area of a bubble being the size of the stored model."""
    fig, (ax,) = canvas()
    seen = []
    for record in runs:
        name, m = record["model"], record["latency"]["measured"][-1]
        x, y, (low, high) = m["per_sentence_ms"], record["test"]["accuracy"], accuracy_interval(record)
        batch = m["batch"]
        ax.errorbar(
            x, y, xerr=[[x - m["p10_ms"] / batch], [m["p90_ms"] / batch - x]], yerr=[[y - low], [high - y]],
            color=COLORS[name], capsize=3, linewidth=1, zorder=2,
        )  # fmt: skip
        ax.scatter(x, y, s=12 * record["size_mb"], color=COLORS[name], alpha=0.45, edgecolor="black", marker=MARKERS[name], zorder=3)
        ax.annotate(f"{title(name)}\n{record['size_mb']:.1f} MB", (x, y), xytext=(16, 14), textcoords="offset points", fontsize=9)
        seen.append(f"{title(name)} (seed {record['seed']}): {x:.3f} ms, accuracy {y:.4f}, {record['size_mb']:.1f} MB")
    ax.margins(0.35)
    ax.set_xlim(left=0)
    ax.set(xlabel=f"inference time for a text at batch {batch} (ms)", ylabel="test accuracy")
    caption = (
        "Accuracy against inference time; the area of a bubble is the size of the stored model. "
        "Bars: 10th to 90th percentile of the time, 95 % interval of the accuracy for a finite test set."
    )
    alt = f"Bubble plot of test accuracy against time a text. {'; '.join(seen)}."
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=alt)


@measured
def learning_curves(runs: Runs | Studies, *, label: str) -> Displayed:
    """Loss and accuracy by epoch, training and validation, with the selected checkpoint marked; a row for each study."""
    every = {name: one for name, one in Studies.of(runs).items() if one.records}
    fig, axes = canvas(2, rows=len(every), height=3.4 if len(every) == 1 else 2.8)
    said = [_curves(axes[2 * row : 2 * row + 2], name, one) for row, (name, one) in enumerate(every.items())]
    fig.legend(*_distinct(axes[0::2]), loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        "Loss and accuracy by epoch; a ring marks the checkpoint of lowest validation loss, which is the one tested. "
        "Training values are running means with dropout on."
    )
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=f"Panels of curves by epoch. {'; '.join(said)}.")


def _curves(axes: np.ndarray, study: str, runs: Runs) -> str:
    said = []
    for record in runs:
        name, history = record["model"], pd.DataFrame(record["history"])
        best = history.set_index("step").loc[record["selected"]["step"]]
        for ax, what in zip(axes, ("loss", "accuracy")):
            kind = {"color": COLORS[name], "marker": MARKERS[name], "markersize": 4}
            ax.plot(history["epoch"], history[f"train_{what}"], linestyle="--", **kind, label=f"{title(name)}, training")
            ax.plot(history["epoch"], history[f"validation_{what}"], **kind, label=f"{title(name)}, validation")
            ax.plot(best["epoch"], best[f"validation_{what}"], "o", markersize=11, fillstyle="none", color=COLORS[name])
            ax.set(xlabel="epoch", ylabel=what, title=study)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            if len(history) == 1:  # a point, in the middle
                ax.set_xlim(0, 2 * history["epoch"].iloc[0])
        said.append(
            f"{study}{', ' if study else ''}{title(name)} (seed {record['seed']}): validation loss {history['validation_loss'].iloc[0]:.3f} after "
            f"the first evaluation, lowest {record['selected']['validation_loss']:.3f} at epoch {best['epoch']:g}"
        )
    return "; ".join(said)


@measured
def confusion(runs: Runs, *, label: str) -> Displayed:
    """Confusion matrices on the test set, one panel a model (its first seed)."""
    records = list(runs.first.values())
    fig, axes = canvas(len(records), height=3.0)
    classes, said = _classes(runs), []
    ticks = [name.replace(" ", "\n") for name in classes]
    for ax, record in zip(axes, records):
        matrix = np.array(record["test"]["confusion"])
        sns.heatmap(
            matrix / matrix.sum(1, keepdims=True), annot=[[f"{n:,}" for n in row] for row in matrix], fmt="", cmap="Blues", vmin=0, vmax=1,
            cbar=False, square=True, xticklabels=ticks, yticklabels=ticks, linewidths=0.5, ax=ax,
        )  # fmt: skip
        ax.set(title=title(record["model"]), xlabel="predicted", ylabel="true")
        said.append(f"{title(record['model'])}: " + ", ".join(f"{n:,} of true {c} right" for c, n in zip(classes, np.diag(matrix))))
    caption = "Confusion matrices on the test set; the shade is the share of the true class."
    alt = f"Heat maps of true against predicted class. {'; '.join(said)}."
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=alt)


def _classes(runs: Runs) -> list[str]:
    return list(CORPORA[runs.settings.corpus].classes)


def _distinct(axes: np.ndarray) -> tuple[list, list]:
    """Legend entries without the repetitions that several seeds and panels bring."""
    found = [ax.get_legend_handles_labels() for ax in axes]
    entries = {label: handle for handles, labels in found for label, handle in zip(labels, handles)}
    return list(entries.values()), list(entries)


def _with_notes(caption: str, runs: Runs | Studies) -> str:
    return " ".join([caption, *runs.notes])
