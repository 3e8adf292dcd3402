"""Loops and stacks that follow pointers, with what they cost."""

import numpy as np

from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import words
from study.analysis import cache
from study.analysis.hops import AtOwnRates, Hops, wrong
from study.analysis.records import at_rate, multiply_adds, picked_on

RATES = (0.001, 0.002, 0.004, 0.008)  # of width 64
RIVALS = {"2x2": "2×2", "4x1-w44": "its narrow stack", "1x4": "1×4", "4x1-w32": "its narrow stack", "4x1": "4×1"}


def share(wrong: float) -> str:
    return number(wrong, ".1%" if wrong > 0.0005 else ".3%")


def rivals(
    short: list[Record],
    six: list[Record],
    narrow_six: list[Record],
    last_pass: list[Record],
    wide: list[Record],
    picking: int,
    hops: int = 4,
) -> list[dict]:
    """What loops and stacks cost and get wrong, a row each: of width 64 at their best rates, on seeds that did not pick
    them; one layer always run six times beside its narrow stack, and with the cache of the last pass; and of width 256
    at the rate that the seed `picking` picked."""
    tuned = AtOwnRates(hops, *(Hops(at_rate(short, rate), f"k-hop at {rate}") for rate in RATES))
    rows = []
    for model, title in RIVALS.items():
        runs = tuned.new(model)
        rows.append((title, runs, f"best of four rates, {words(len(runs))} seeds that did not pick it"))
    always = [run for run in six if not run["config"]["model"].get("halting")]
    rows.append(("1×6, always six passes", always, f"4,000 steps, one rate, {words(len(always))} seeds"))
    stack = picked_on(picking, narrow_six)
    training = f"4,000 steps, best of three rates, {words(len(stack))} seeds that did not pick it"
    rows.append(("its narrow stack", stack, training))
    last = [run for run in last_pass if run["model"] == "1x4"]
    rows.append(("1×4, cache of the last pass", last, f"one rate, {words(len(last))} seeds"))
    for model, width, title in (("1x4", 256, "1×4"), ("4x1", 128, "its narrow stack"), ("2x2", 256, "2×2")):
        runs = [run for run in wide if run["model"] == model and run["config"]["model"]["hidden_size"] == width]
        runs = picked_on(picking, runs)
        rows.append(
            (f"width 256: {title}", runs, f"better of two rates, {words(len(runs))} seeds that did not pick it")
        )
    units = {64: rows[0][1], 256: rows[-1][1]}
    return [
        {
            "Model": title,
            "Parameters in layers": number(runs[0]["parameters"]["non_embedding"], ","),
            "Multiply-adds": number(
                multiply_adds(runs[0]) / multiply_adds(units[256 if "256" in title else 64][0]), ".2f"
            ),
            "Cache, bytes per token": number(cache.of_config(runs[0]), ","),
            "Wrong": share(float(np.mean([wrong(run, hops) for run in runs]))),
            "Worst seed": share(max(wrong(run, hops) for run in runs)),
            "Training": training,
        }
        for title, runs, training in rows
        if runs
    ]
