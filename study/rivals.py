"""Loops and stacks that follow pointers, with what they cost."""

from statistics import mean

from rtx_core.report import number
from rtx_core.report.quantities import words
from study.analysis import cache
from study.analysis.hops import wrong
from study.analysis.records import multiply_adds
from study.folders import WIDER, Folders

RIVALS = {"2x2": "2×2", "4x1-w44": "its narrow stack", "1x4": "1×4", "4x1-w32": "its narrow stack", "4x1": "4×1"}


def share(wrong: float) -> str:
    return number(wrong, ".1%" if wrong > 0.0005 else ".3%")


def rivals(runs: Folders) -> list[dict]:
    """What loops and stacks cost and get wrong, a row each: of width 64 at their best rates, on seeds that did not pick
    them; one layer always run six times beside its narrow stack, and with the cache of the last pass; and of width 256
    at the rate that another seed picked."""
    rows = []
    for model, title in RIVALS.items():
        group = runs.again(model)
        rows.append((title, group, f"best of four rates, {words(len(group))} seeds that did not pick it"))
    always = runs.hops("khop-steps4000").of("1x6")
    rows.append(("1×6, always six passes", always, f"4,000 steps, one rate, {words(len(always))} seeds"))
    training = f"4,000 steps, best of three rates, {words(len(runs.narrow_six()))} seeds that did not pick it"
    rows.append(("its narrow stack", runs.narrow_six(), training))
    last = runs.hops("khop-cachelast").of("1x4")
    rows.append(("1×4, cache of the last pass", last, f"one rate, {words(len(last))} seeds"))
    for model, width, title in (("1x4", 256, "1×4"), ("4x1", 128, "its narrow stack"), ("2x2", 256, "2×2")):
        group = runs.wider_runs(model, width)
        training = f"best of {words(len(WIDER[width][1]))} rates, {words(len(group))} seeds that did not pick it"
        rows.append((f"width 256: {title}", group, training))
    units = {64: rows[0][1], 256: rows[-1][1]}
    return [
        {
            "Model": title,
            "Parameters in layers": number(group[0]["parameters"]["non_embedding"], ","),
            "Multiply-adds": number(
                multiply_adds(group[0]) / multiply_adds(units[256 if "256" in title else 64][0]), ".2f"
            ),
            "Cache, bytes per token": number(cache.of_config(group[0]), ","),
            "Wrong": share(mean(wrong(run, 4) for run in group)),
            "Worst seed": share(max(wrong(run, 4) for run in group)),
            "Training": training,
        }
        for title, group, training in rows
    ]
