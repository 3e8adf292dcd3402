"""Figures of the TinyStories study."""

import numpy as np
import seaborn as sns

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import canvas
from rtx_core.pages.runs import Runs, measured
from rtx_core.pages.stories import NAMES, training_flops
from rtx_core.results.record import Record

COLORS = dict(zip(NAMES, sns.color_palette("colorblind").as_hex()))
MARKERS = dict(zip(NAMES, "osD^vPX"))  # so that colour is never the only sign


def _mean(records: list[Record], value) -> np.ndarray:
    """Mean over seeds of a list of numbers of each record."""
    return np.mean([value(record) for record in records], axis=0)


def _drawn(fig, runs: Runs, *, label: str, caption: str, alt: str) -> Displayed:
    return display.figure(fig, label=label, caption=" ".join([caption, *runs.notes]), alt=alt)


@measured
def cost(runs: Runs, *, label: str) -> Displayed:
    """The study's Figures 1 and 2: time to train and peak memory."""
    fig, (left, right) = canvas(2)
    minutes = [np.mean([r["seconds"] / 60 for r in runs.of(m)]) for m in runs.models]
    memory = [np.mean([r["peak_memory_mib"] for r in runs.of(m)]) for m in runs.models]
    for ax, values, name in ((left, minutes, "time to train (min)"), (right, memory, "peak memory (MiB)")):
        ax.barh([NAMES[m] for m in runs.models], values, color=[COLORS[m] for m in runs.models])
        ax.invert_yaxis()
        ax.set(xlabel=name)
    right.set_yticklabels([])
    said = "; ".join(f"{NAMES[m]} {t:.1f} minutes, {mib:,.0f} MiB" for m, t, mib in zip(runs.models, minutes, memory))
    caption = (
        "Time to train and peak memory, mean over seeds. Time is wall time on machines that may have done other things; "
        "memory is that of the whole process on a CPU, of the tensors on a GPU."
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Bars of time and memory. {said}.")


@measured
def curves(runs: Runs, *, label: str) -> Displayed:
    """The study's Figure 3: validation loss in the course of training."""
    fig, (ax,) = canvas()
    said = []
    for model in runs.models:
        records = runs.of(model)
        tokens = [row["tokens"] / 1e6 for row in records[0]["history"]]
        loss = _mean(records, lambda r: [row["validation_loss"] for row in r["history"]])
        ax.plot(tokens, loss, color=COLORS[model], marker=MARKERS[model], markersize=4, label=NAMES[model])
        said.append(f"{NAMES[model]} from {loss[0]:.3f} to {loss[-1]:.3f}")
    ax.set(xlabel="tokens read (millions)", ylabel="validation loss (nats a token)")
    ax.legend(fontsize=9)
    caption = "Validation loss on a fixed sample of validation stories, mean over seeds."
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Falling curves of loss by tokens. {'; '.join(said)}.")


@measured
def compute(runs: Runs, *, label: str) -> Displayed:
    """Loss against training FLOPs: what the study did not show."""
    fig, (ax,) = canvas()
    said = []
    for model in runs.models:
        records = runs.of(model)
        each = training_flops(records[0]) / records[0]["history"][-1]["tokens"]
        flops = [each * row["tokens"] for row in records[0]["history"]]
        ax.plot(flops, _mean(records, lambda r: [row["validation_loss"] for row in r["history"]]), color=COLORS[model], linewidth=1, alpha=0.6)
        final = _mean(records, lambda r: [r["history"][-1]["validation_loss"]])[0]
        ax.scatter(flops[-1], final, s=12 * records[0]["size_mb"], color=COLORS[model], marker=MARKERS[model], edgecolor="black", zorder=3, label=NAMES[model])
        said.append(f"{NAMES[model]} ends at {final:.3f} after {flops[-1]:.2e} FLOPs")
    ax.set(xscale="log", xlabel="training FLOPs (matrix products, forward and backward)", ylabel="validation loss (nats a token)")
    ax.legend(fontsize=9, markerscale=0.6)
    caption = "Validation loss against computation, mean over seeds; the area of a mark is the size of the model."
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Curves of loss by training FLOPs. {'; '.join(said)}.")


def _looped(runs: Runs) -> list[str]:
    return [model for model in runs.models if runs.of(model)[0]["extra"]["trained_passes"] > 1]


@measured
def passes(runs: Runs, *, label: str) -> Displayed:
    """Loss and change of the state after 1 … twice the trained number of passes."""
    if not (models := _looped(runs)):
        return display.text("No model with passes is measured yet.")
    fig, (left, right) = canvas(2)
    said = []
    for model in models:
        records, extra = runs.of(model), runs.of(model)[0]["extra"]
        trained, loss = extra["trained_passes"], _mean(runs.of(model), lambda r: r["extra"]["passes"]["validation"])
        change = _mean(records, lambda r: r["extra"]["change"][1:])
        share = np.arange(1, len(loss) + 1) / trained
        kind = {"color": COLORS[model], "marker": MARKERS[model], "markersize": 4}
        left.plot(share, loss, label=NAMES[model], **kind)
        right.plot(share[1:], change, **kind)
        said.append(
            f"{NAMES[model]}: loss {loss[0]:.3f} after one pass, {loss[trained - 1]:.3f} after the trained {trained}, {loss[-1]:.3f} after {len(loss)}; "
            f"the state changes by {change[trained - 2]:.1%} in the last trained pass"
        )
    for ax, name in ((left, "validation loss (nats a token)"), (right, "relative change of the state")):
        ax.axvline(1, color="grey", linewidth=1, linestyle=":")
        ax.set(xlabel="passes / trained passes", ylabel=name, yscale="log" if ax is right else "linear")
    left.legend(fontsize=9)
    caption = (
        "Left: loss after other numbers of passes than the trained one (dotted). Right: how far a pass still moves the state, "
        "‖s_r − s_{r−1}‖ / ‖s_r‖. Beyond the trained number FraiLT repeats its last vector and Relaxed its last corrections. "
        f"Mean over seeds, {extra['passes_tokens']:,} validation tokens."
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Two panels by number of passes. {'; '.join(said)}.")


@measured
def exits(runs: Runs, *, label: str) -> Displayed:
    """Loss against passes where each token stops once its prediction settles, beside stopping all after the same pass."""
    if not (models := _looped(runs)):
        return display.text("No model with passes is measured yet.")
    fig, axes = canvas(len(models), height=3.0)
    said = []
    for ax, model in zip(axes, models):
        records, extra = runs.of(model), runs.of(model)[0]["extra"]
        trained, fixed = extra["trained_passes"], _mean(runs.of(model), lambda r: r["extra"]["passes"]["validation"])
        x, y = (_mean(records, lambda r: [row[f"validation_{what}"] for row in r["extra"]["exits"]]) for what in ("passes", "loss"))
        ax.plot(range(2, trained + 1), fixed[1:trained], color="grey", marker="|", linestyle="--", label="all tokens alike")
        ax.plot(x, y, color=COLORS[model], marker=MARKERS[model], markersize=4, label="exit by KL")
        ax.set(title=NAMES[model], xlabel="mean passes a token", ylabel="validation loss" if ax is axes[0] else None)
        said.append(f"{NAMES[model]}: " + ", ".join(f"{p:.2f} passes at loss {v:.3f}" for p, v in zip(x, y)))
    axes[0].legend(fontsize=8)
    caption = (
        "Early exit: a token stops after the pass in which its prediction changes by a KL divergence below a threshold, which is chosen on training "
        "stories for an allowed loss. Passes of tokens that stopped are not counted, though their states were computed for the others. Mean over seeds."
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Loss against mean passes, one panel a model. {'; '.join(said)}.")
