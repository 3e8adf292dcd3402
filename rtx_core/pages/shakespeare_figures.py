"""Figures of the Shakespeare study."""

import numpy as np
import seaborn as sns
from matplotlib.patches import Rectangle

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import canvas
from rtx_core.pages.runs import Studies
from rtx_core.pages.shakespeare import NAMES, models_counted, not_measured, noted

_PALETTE = sns.color_palette("colorblind").as_hex()
COLORS = dict(zip(NAMES, _PALETTE))
MARKERS = dict(zip(NAMES, "osD^v"))  # so that colour is never the only sign
STATE, TOKEN, THROUGH = _PALETTE[1], _PALETTE[9], "#eeeeee"


def windows(length: int, window: int) -> dict[str, dict[str, list[str]]]:
    """What T is applied to: the window of each state and of each output, and what an output of a standard layer attends to."""
    positions = range(1, length + 1)
    return {
        "states": {f"h{i}": [*(f"h{j}" for j in range(max(1, i - window + 1), i)), f"x{i}"] for i in positions},
        "outputs": {f"y{i}": [f"h{j}" for j in range(max(1, i - window + 2), i + 1)] for i in positions},
        "standard layer": {f"y{i}": [f"x{j}" for j in range(1, i + 1)] for i in positions},
    }


def architecture(*, label: str, length: int = 5) -> Displayed:
    """Figure 1: which window each state and output sees, drawn from the model's configuration."""
    window = models_counted()["kausik"]["config"]["window"]
    every = windows(length, window)
    fig, axes = canvas(len(every), height=2.7)
    for ax, (kind, made) in zip(axes, every.items()):
        for row, seen in enumerate(made.values()):
            shown = {int(name[1:]): name for name in seen}
            for place in range(1, row + 2):
                name = shown.get(place)
                color = THROUGH if name is None else STATE if name[0] == "h" else TOKEN
                ax.add_patch(Rectangle((place - 0.5, row + 0.5), 1, 1, facecolor=color, alpha=1 if name is None else 0.55, edgecolor="black", linewidth=0.8,
                                       hatch="////" if name is None else None))  # fmt: skip
                if name:
                    ax.text(place, row + 1, f"${name[0]}_{{{name[1:]}}}$", ha="center", va="center", fontsize=11)
        ticks = range(1, length + 1)
        ax.set(title=kind, xlim=(0.4, length + 0.6), ylim=(0.4, length + 0.6), aspect="equal", xticks=ticks, yticks=ticks, xlabel="position")
        ax.set_yticklabels([f"${name[0]}_{{{name[1:]}}}$" for name in made])
        ax.grid(False)
    last = {kind: (list(made)[-1], ", ".join(list(made.values())[-1])) for kind, made in every.items()}
    alt = "Three staircases of boxes, one row for each position. " + "; ".join(f"{kind}: {name} sees {seen}" for kind, (name, seen) in last.items()) + "."
    caption = (
        f"What the layer is applied to at each position, for a window of {window} and {length} characters: the states one after the other (left), the outputs all at "
        "once (middle), and for comparison the outputs of a standard layer (right). Hatched positions are seen through the states alone."
    )
    return display.figure(fig, label=label, caption=caption, alt=alt)


def curves(studies: Studies, *, label: str) -> Displayed:
    """Figures 2a and 2b: validation and training loss against the characters read, a row for each recipe."""
    if (nothing := not_measured(studies)) is not None:
        return nothing
    every = {recipe: one for recipe, one in studies.items() if one.records}
    fig, axes = canvas(2, rows=len(every), height=3.0)
    said = []
    for row, (recipe, one) in enumerate(every.items()):
        for ax, part, name in zip(axes[2 * row :], ("validation", "training_sample"), ("validation", "training")):
            for model in one.models:
                records = one.of(model)
                tokens = np.array([r["tokens"] for r in records[0]["history"]]) / 1e6
                loss = np.array([[r[f"{part}_loss"] for r in record["history"]] for record in records])  # (seeds, evaluations)
                ax.plot(tokens, loss.mean(0), color=COLORS[model], marker=MARKERS[model], markersize=4, markevery=max(1, len(tokens) // 8), label=NAMES[model])
                ax.fill_between(tokens, loss.min(0), loss.max(0), color=COLORS[model], alpha=0.2)
                if part == "validation":
                    said.append(f"{recipe}, {NAMES[model]}: validation loss from {loss.mean(0)[0]:.3f} to {loss.mean(0)[-1]:.3f}")
            ax.set(title=f"{recipe}, {name}", xlabel="characters read (millions)", ylabel="loss (nats a character)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    caption = "Loss on fixed windows of the validation and of the training part, without dropout; mean over seeds, the band from the lowest to the highest."
    return display.figure(fig, label=label, caption=noted(studies, caption), alt=f"Falling curves of loss by characters read. {'; '.join(said)}.")


def latency(studies: Studies, *, label: str) -> Displayed:
    """Time for one more character, of the trained models, from their records."""
    if (nothing := not_measured(studies)) is not None:
        return nothing
    fig, (ax,) = canvas()
    said, (recipe, one) = [], next((recipe, one) for recipe, one in studies.items() if one.records)
    for model in one.models:
        rows = one.of(model)[0]["latency"]["measured"]
        length, middle, low, high = ([row[key] for row in rows] for key in ("length", "median_ms", "p10_ms", "p90_ms"))
        ax.plot(length, middle, color=COLORS[model], marker=MARKERS[model], label=NAMES[model])
        ax.fill_between(length, low, high, color=COLORS[model], alpha=0.15)
        said.append(f"{NAMES[model]}: {middle[0]:.2f} ms at {length[0]}, {middle[-1]:.2f} ms at {length[-1]}")
    ax.set(xlabel="characters in the text", ylabel="ms for one more character")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=9)
    caption = (
        f"Time for one more character, median with 10th to 90th percentile, measured after the first seed's runs of recipe {recipe} on whatever machine made them, "
        "busy or not."
    )
    return display.figure(fig, label=label, caption=noted(studies, caption), alt=f"Time a character against length of text. {'; '.join(said)}.")
