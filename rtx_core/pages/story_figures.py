"""Figures of the TinyStories study."""

import numpy as np
import seaborn as sns
from matplotlib.ticker import LogLocator, StrMethodFormatter

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import canvas
from rtx_core.pages.performance import benchmark, machine
from rtx_core.pages.runs import Runs, measured
from rtx_core.pages.published import published
from rtx_core.pages.stories import NAMES, relaxed_flops, training_flops
from rtx_core.pages.story_claims import exit_points, looped, mean
from rtx_core.results.record import Record

COLORS = dict(zip(NAMES, sns.color_palette("colorblind").as_hex()))
TIMED = "stories, bf16 products"  # the task of `benchmarks.decoder` that is the runs' own
MARKERS = dict(zip(NAMES, "osD^vPX"))  # so that colour is never the only sign


def _drawn(fig, runs: Runs, *, label: str, caption: str, alt: str) -> Displayed:
    return display.figure(fig, label=label, caption=" ".join([caption, *runs.notes]), alt=alt)


@measured
def cost(runs: Runs, *, label: str) -> Displayed:
    """The study's Figures 1 and 2: time to train and peak memory."""
    fig, (left, right) = canvas(2)
    minutes, memory, content = _costs(runs)
    for ax, values, name in ((left, minutes, "time to train (min)"), (right, memory, "memory of a training step (MiB)")):
        ax.barh([NAMES[m] for m in values], list(values.values()), color=[COLORS[m] for m in values])
        ax.invert_yaxis()
        ax.set(xlabel=name)
    right.set_yticklabels([])
    said = "; ".join(f"{NAMES[m]} {t:.1f} minutes" + (f", {memory[m]:,.0f} MiB" if m in memory else "") for m, t in minutes.items())
    measured_on = (
        f"Memory: what one training step of {content['tokens_a_step']:,} tokens at 32 bits adds to a process of its own, weights, gradients and moments included ({machine(content)})."
        if memory else "Memory is not measured yet: `python -m benchmarks.decoder` measures it."
    )
    caption = (
        "Time to train and memory of a step. Time: the steps, times the seconds a step in the fastest stretch between two evaluations of any seed, evaluation included: "
        f"the stretch that other work on the machine slowed least. {measured_on}"
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Bars of time and memory. {said}.")


@measured
def costs(runs: Runs) -> Displayed:
    """Ratios of time and memory, the study's and ours."""
    quoted, (_, memory, content) = published()["tinystories"]["cost"], _costs(runs)
    gigabytes, said = quoted["gigabytes"], []
    step = {m: tasks[TIMED]["ours"]["median_ms"] for m, tasks in content["models"].items()} if content else {}
    for name, found in (("time of a training step", step), ("its memory", memory)):
        ratios = [f"{NAMES[m]} {found[m] / found['control']:.2f}" for m in ("frailt", "three-part", "relaxed") if m in found and "control" in found]
        said += [f"{name}, over the control's: {', '.join(ratios)}"] if ratios else []
    if {"three-part", "relaxed"} <= set(memory):
        said.append(f"memory of Relaxed over Three Part's: {memory['relaxed'] / memory['three-part']:.2f}")
    ours = f"Ours ({TIMED}): {'; '.join(said)}." if said else "Ours are not measured yet: `python -m benchmarks.decoder` measures them."
    return display.text(
        f"In print the time of FraiLT and Three Part is {quoted['time']} the control's and their memory larger by {quoted['memory']}; Relaxed needs {gigabytes['relaxed']:g} GB, "
        f"{gigabytes['relaxed'] / gigabytes['three-part']:.2f} times Three Part's {gigabytes['three-part']:g}. {ours}"
    )


def _costs(runs: Runs) -> tuple[dict[str, float], dict[str, float], dict | None]:
    """Minutes and MiB of each model, and the benchmark that measured the latter."""
    minutes = {m: fastest(runs.of(m)) / 60 for m in runs.models}
    content = benchmark("decoder", runs.records[0]["environment"]["device_type"])
    return minutes, {m: content["memory_mib"][m] for m in runs.models if m in content["memory_mib"]} if content else {}, content


def fastest(records: list[Record]) -> float:
    """Seconds of a run had every step been as fast as in the fastest stretch of any seed."""
    stretches = [[np.diff([row[what] for row in record["history"]], prepend=0) for what in ("seconds", "step")] for record in records]
    return float(min((seconds / steps).min() for seconds, steps in stretches) * records[0]["history"][-1]["step"])


@measured
def curves(runs: Runs, *, label: str) -> Displayed:
    """The study's Figure 3: validation loss in the course of training."""
    fig, (ax,) = canvas()
    said = []
    for model in runs.models:
        records = runs.of(model)
        tokens = [row["tokens"] / 1e6 for row in records[0]["history"]]
        loss = mean(records, lambda r: [row["validation_loss"] for row in r["history"]])
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
        flops = [each * row["tokens"] / 1e12 for row in records[0]["history"]]
        ax.plot(flops, mean(records, lambda r: [row["validation_loss"] for row in r["history"]]), color=COLORS[model], linewidth=1, alpha=0.6)
        final = np.mean([r["test"]["loss"] for r in records])
        ax.scatter(flops[-1], final, s=12 * records[0]["size_mb"], color=COLORS[model], marker=MARKERS[model], edgecolor="black", zorder=3, label=NAMES[model])
        said.append(f"{NAMES[model]} ends at {final:.3f} after {flops[-1]:.1f} TFLOPs")
    ax.set(xscale="log", xlabel="training TFLOPs (products with weights, forward and backward)", ylabel="validation loss (nats a token)")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.minorticks_off()
    ax.legend(fontsize=9, markerscale=0.6)
    caption = (
        "Validation loss against computation, mean over seeds: curves on a sample of the validation stories, marks on all of them; the area of a mark is the size of "
        f"the model. {relaxed_flops()}"
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Curves of loss by training FLOPs. {'; '.join(said)}.")


@measured
def passes(runs: Runs, *, label: str) -> Displayed:
    """Loss and change of the state after 1 … twice the trained number of passes."""
    if not (models := looped(runs)):
        return display.text("No model with passes is measured yet.")
    fig, (left, right) = canvas(2)
    said = []
    for model in models:
        records, extra = runs.of(model), runs.of(model)[0]["extra"]
        trained, loss = extra["trained_passes"], mean(runs.of(model), lambda r: r["extra"]["passes"]["validation"])
        change = mean(records, lambda r: r["extra"]["change"][1:])
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
    if not (models := looped(runs)):
        return display.text("No model with passes is measured yet.")
    fig, axes = canvas(len(models), height=3.0)
    said = []
    for ax, model in zip(axes, models):
        extra, points = runs.of(model)[0]["extra"], exit_points(runs, model)
        trained, fixed = extra["trained_passes"], mean(runs.of(model), lambda r: r["extra"]["passes"]["validation"])
        ax.plot(np.array(extra["flops_per_token"][1:trained]) / 1e6, fixed[1:trained], color="grey", marker="|", linestyle="--", label="all tokens alike")
        loss = [p["validation_loss"] for p in points]
        ax.plot([p["cost"] / 1e6 for p in points], loss, color=COLORS[model], marker=MARKERS[model], markersize=4, label="exit by KL")
        ax.plot([p["free"] / 1e6 for p in points], loss, color=COLORS[model], linewidth=1, linestyle=":", label="were asking free")
        ax.set(title=NAMES[model], xlabel="MFLOPs a token", ylabel="validation loss" if ax is axes[0] else None)
        said.append(f"{NAMES[model]}: " + ", ".join(f"{p['validation_passes']:.2f} passes, {p['cost'] / 1e6:.1f} MFLOPs, loss {p['validation_loss']:.3f}" for p in points))
    axes[0].legend(fontsize=8)
    caption = (
        "Early exit: a token stops after the pass in which its prediction changes by a KL divergence below a threshold, which is chosen on training "
        "stories for an allowed loss. The criterion needs a prediction after every pass, and its computation is counted: the output matrix, and for Three Part the coda. "
        "Passes of tokens that stopped are not counted, though their states were computed for the others. Mean over seeds."
    )
    return _drawn(fig, runs, label=label, caption=caption, alt=f"Loss against computation a token, one panel a model. {'; '.join(said)}.")
