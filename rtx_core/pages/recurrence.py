"""Tables and figures of `results/benchmarks/recurrence-*.json`, which `python -m benchmarks.recurrence` writes."""

import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import canvas
from rtx_core.pages.performance import benchmark, machine, missing
from rtx_core.pages.shakespeare import NAMES
from rtx_core.pages.shakespeare_figures import COLORS, MARKERS

NAME, PLAIN, OURS = "recurrence", "plain loop", "this project"
TARGETS = {"cpu": 6, "cuda": 20}  # times faster than the plain loop, asked for before anything was measured


def _milliseconds(t: dict) -> str:
    return f"{t['median_ms']:.1f} ({t['p10_ms']:.1f} to {t['p90_ms']:.1f})"


def steps(*, label: str, device: str = "cpu") -> Displayed:
    """One training step by the plain loop, by ours, and the floor with what it is made of."""
    if (content := benchmark(NAME, device)) is None:
        return missing(NAME, device)
    took, floor = content["steps"], content["floor"]
    plain, sizes = took[PLAIN]["median_ms"], content["sizes"]
    rows = [{"Way": way, "ms a step": _milliseconds(t), "Times faster than the plain loop": f"{plain / t['median_ms']:.2f}"} for way, t in took.items()]
    if floor:
        parts = (("matrix products of the loop", "sequential"), ("all other matrix products", "parallel"))
        rows += [{"Way": f"floor: {what}", "ms a step": f"{floor[f'{key}_ms']:.1f}", "GFLOP": f"{floor[f'{key}_gflop']:.2f}",
                  "GFLOP/s": f"{1e3 * floor[f'{key}_gflop'] / floor[f'{key}_ms']:.0f}"} for what, key in parts]  # fmt: skip
        rows += [{"Way": "floor: AdamW, 28 bytes a parameter", "ms a step": f"{floor['adamw_ms']:.1f}"},
                 {"Way": "floor", "ms a step": f"{floor['ms']:.1f}", "Times faster than the plain loop": f"{plain / floor['ms']:.2f}"}]  # fmt: skip
    caption = (
        f"One training step of the recurrent model on {sizes['batch']} sequences of {sizes['length']} characters, forward, backward and update: "
        "median with 10th and 90th percentile, the contestants taking turns in one process."
    )
    note = f"Without dropout, loss and gradients of both ways differ by {content['difference']:.1g} at most, relatively. {machine(content)}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=note)


def told(*, device: str = "cpu") -> Displayed:
    """Whether the aim is reached, and why it is or is not."""
    if (content := benchmark(NAME, device)) is None:
        return missing(NAME, device)
    took, floor, target = content["steps"], content["floor"], TARGETS[device]
    plain, ours = took[PLAIN]["median_ms"], min(t["median_ms"] for way, t in took.items() if way != PLAIN)
    outcome = "reached" if plain / ours >= target else "not reached"
    said = [f"The aim was {target} times the speed of the plain loop; it is {plain / ours:.1f} times, so the aim is {outcome}."]
    if floor:
        sequential, parallel = (floor[f"{part}_gflop"] / floor[f"{part}_ms"] * 1e3 for part in ("sequential", "parallel"))
        said.append(
            f"Position after position the matrix products have {content['sizes']['batch']} rows and run at {sequential:.0f} GFLOP/s; where all positions go "
            f"at once they run at {parallel:.0f}. "
            f"The products and AdamW alone take {floor['ms']:.0f} ms, so code with this arithmetic could be at most {plain / floor['ms']:.1f} times "
            f"as fast as the plain loop on this machine; ours takes {ours / floor['ms']:.2f} times the floor."
        )
    return display.text(" ".join(said))


def by_length(*, label: str, device: str = "cpu") -> Displayed:
    """Time of a forward and backward pass against the length of the sequence, on logarithmic axes."""
    if (content := benchmark(NAME, device)) is None:
        return missing(NAME, device)
    fig, (ax,) = canvas()
    said = []
    for who, rows in pd.DataFrame(content["by_length"]).groupby("who", sort=False):
        ax.plot(rows["length"], rows["median_ms"], color=COLORS[who], marker=MARKERS[who], label=NAMES[who])
        (n, m), (t, u) = rows["length"].iloc[-2:], rows["median_ms"].iloc[-2:]
        said.append(f"{NAMES[who]}: {rows['median_ms'].iloc[0]:.0f} ms at {rows['length'].iloc[0]:,}, {u:.0f} ms at {m:,}, {u / t:.2f} times that at {n:,}")
    ax.set(xscale="log", yscale="log", xlabel="characters in the sequence", ylabel="ms, forward and backward pass")
    lengths = content["sizes"]["lengths"]
    ax.set_xticks(lengths, labels=[f"{n:,}" for n in lengths])
    ax.minorticks_off()
    ax.legend(fontsize=9)
    caption = f"Time of one sequence against its length, without dropout. {'; '.join(said)}. {machine(content)}."
    return display.figure(fig, label=label, caption=caption, alt=f"Log-log plot of time against length. {'; '.join(said)}.")


def memory(*, label: str, device: str = "cpu") -> Displayed:
    """Memory and time of back-propagation through the sequence, with and without recomputing."""
    if (content := benchmark(NAME, device)) is None:
        return missing(NAME, device)
    rows = {}
    for row in content["memory"]:
        segment = row["segment"]
        way = PLAIN if segment is None else f"recomputed {segment} positions at a time" if segment else "everything kept"
        rows.setdefault(way, {"Way": way})[f"{row['length']:,} characters"] = f"{row['mib']:,.0f} MiB, {row['ms'] / 1e3:.2f} s"
    caption = (
        f"Most memory that forward and backward pass of {content['sizes']['batch']} sequences add to the model, and their time once, "
        "each in a process of its own."
    )
    return display.table(pd.DataFrame(rows.values()), label=label, caption=caption, note=f"{machine(content)}.")


def next_character(*, label: str, device: str = "cpu") -> Displayed:
    """Milliseconds for one more character against the length of the text before it."""
    if (content := benchmark(NAME, device)) is None:
        return missing(NAME, device)
    fig, (ax,) = canvas()
    said = []
    for who, rows in pd.DataFrame(content["next_character"]).groupby("who", sort=False):
        ax.plot(rows["length"], rows["median_ms"], color=COLORS[who], marker=MARKERS[who], label=NAMES[who])
        ax.fill_between(rows["length"], rows["p10_ms"], rows["p90_ms"], color=COLORS[who], alpha=0.2)
        (first, *_, last), (short, *_, long) = rows["median_ms"], rows["length"]
        said.append(f"{NAMES[who]}: {first:.2f} ms at {short:,}, {last:.2f} ms at {long:,}")
    ax.set(xscale="log", xlabel="characters in the text", ylabel="ms for one more character")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=9)
    kept = "The model of six layers keeps keys and values of the whole text, the recurrence one state."
    caption = f"Time for one more character: {'; '.join(said)}. {kept} {machine(content)}."
    return display.figure(fig, label=label, caption=caption, alt=f"Time a character against length. {'; '.join(said)}.")
