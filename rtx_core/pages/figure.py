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
from rtx_core.pages.runs import Profiles, Runs
from rtx_core.pages.table import labelled, median, title
from rtx_core.parameters import CLASSIFIERS
from rtx_core.results.statistics import accuracy_interval

_COLORBLIND = sns.color_palette("colorblind").as_hex()
COLORS = dict(zip(CLASSIFIERS, _COLORBLIND))
MARKERS = dict(zip(CLASSIFIERS, "osDv^"))  # so that colour is never the only sign
LOOK = {"axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold", "axes.titlesize": 11, "legend.frameon": False}


def canvas(columns: int = 1, *, height: float = 3.4, sharey: bool = False) -> tuple[Figure, np.ndarray]:
    """A row of axes in the paper's look, as wide as the text."""
    with sns.axes_style("whitegrid", rc=LOOK), sns.plotting_context("notebook", font_scale=0.9):
        fig, axes = plt.subplots(1, columns, figsize=(7.2, height), sharey=sharey, squeeze=False, layout="constrained")
    return fig, axes[0]


def lengths(profiles: Profiles, *, label: str, unit: str = "words") -> Displayed:
    """Histogram of text lengths in each part of each split."""
    fig, axes = canvas(len(profiles), sharey=True)
    longest = max(int(length) for profile in profiles.values() for facts in profile["parts"].values() for length in facts[unit])
    width = max(1, round(longest / 55))
    for ax, (split, profile) in zip(axes, profiles.items()):
        for (part, facts), color, style in zip(profile["parts"].items(), _COLORBLIND, ("-", "--", ":")):
            counts = pd.Series({int(k): v for k, v in facts[unit].items()}).sort_index()
            sns.histplot(
                x=counts.index, weights=100 * counts / counts.sum(), binwidth=width, binrange=(0.5, longest + width),
                element="step", fill=part == "train", alpha=0.25 if part == "train" else 1.0,
                linewidth=1.4, color=color, linestyle=style, ax=ax, label=part,
            )  # fmt: skip
        ax.set(title=split, xlabel=f"{unit} in a text", ylabel="share of texts (%)")
    axes[-1].legend()
    said = [
        f"under {split} the median text has " + ", ".join(f"{median(facts[unit])} {unit} in {part}" for part, facts in profile["parts"].items())
        for split, profile in profiles.items()
    ]
    return display.figure(
        fig, label=label,
        caption=labelled(f"Lengths of the texts in {unit}, by split and part.", profiles),
        alt=f"Histograms of text length in {unit}, one panel a split: {'; '.join(said)}. The longest text has {longest} {unit}.",
    )  # fmt: skip


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
    ax.set(xlabel=f"inference time for a sentence at batch {batch} (ms)", ylabel="test accuracy")
    caption = (
        "Accuracy against inference time; the area of a bubble is the size of the stored model. "
        "Bars: 10th to 90th percentile of the time, 95 % interval of the accuracy for a finite test set."
    )
    alt = f"Bubble plot of test accuracy against time a sentence. {'; '.join(seen)}."
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=alt)


def learning_curves(runs: Runs, *, label: str) -> Displayed:
    """Loss and accuracy by epoch, training and validation, with the selected checkpoint marked."""
    fig, (left, right) = canvas(2)
    said = []
    for record in runs:
        name, history = record["model"], pd.DataFrame(record["history"])
        at = history.set_index("step")
        for ax, what in ((left, "loss"), (right, "accuracy")):
            kind = {"color": COLORS[name], "marker": MARKERS[name], "markersize": 4}
            ax.plot(history["epoch"], history[f"train_{what}"], linestyle="--", **kind, label=f"{title(name)}, training")
            ax.plot(history["epoch"], history[f"validation_{what}"], **kind, label=f"{title(name)}, validation")
            best = at.loc[record["selected"]["step"]]
            ax.plot(best["epoch"], best[f"validation_{what}"], "o", markersize=11, fillstyle="none", color=COLORS[name])
            ax.set(xlabel="epoch", ylabel=what)
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        said.append(
            f"{title(name)} (seed {record['seed']}): validation loss {history['validation_loss'].iloc[0]:.3f} after the first evaluation, "
            f"lowest {record['selected']['validation_loss']:.3f} at epoch {best['epoch']:g}"
        )
    fig.legend(*_distinct(left), loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        "Loss and accuracy by epoch; a ring marks the checkpoint of lowest validation loss, which is the one tested. "
        "Training values are running means with dropout on."
    )
    alt = f"Two panels of curves by epoch. {'; '.join(said)}."
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=alt)


def confusion(runs: Runs, *, label: str) -> Displayed:
    """Confusion matrices on the test set, one panel a model (its first seed)."""
    records = [runs.of(model)[0] for model in runs.settings.models]
    fig, axes = canvas(len(records), height=3.0)
    classes, said = _classes(runs), []
    for ax, record in zip(axes, records):
        matrix = np.array(record["test"]["confusion"])
        sns.heatmap(
            matrix / matrix.sum(1, keepdims=True), annot=[[f"{n:,}" for n in row] for row in matrix], fmt="", cmap="Blues", vmin=0, vmax=1,
            cbar=False, square=True, xticklabels=classes, yticklabels=classes, linewidths=0.5, ax=ax,
        )  # fmt: skip
        ax.set(title=title(record["model"]), xlabel="predicted", ylabel="true")
        said.append(f"{title(record['model'])}: " + ", ".join(f"{n:,} of true {c} right" for c, n in zip(classes, np.diag(matrix))))
    caption = "Confusion matrices on the test set; the shade is the share of the true class."
    alt = f"Heat maps of true against predicted class. {'; '.join(said)}."
    return display.figure(fig, label=label, caption=_with_notes(caption, runs), alt=alt)


def _classes(runs: Runs) -> list[str]:
    return list(CORPORA[runs.settings.corpus].classes)


def _distinct(ax) -> tuple[list, list]:
    """Legend entries without the repetitions that several seeds bring."""
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles))
    return list(entries.values()), list(entries)


def _with_notes(caption: str, runs: Runs) -> str:
    return " ".join([caption, *runs.notes])
