"""What sharing layers changes: back-propagation, cache, halting, optimizer, rounding, a stack turned into a loop."""

from statistics import mean

from rtx_core.report.values import Unmeasured
from study import paper
from study.analysis import cache, retrofit, stopping
from study.analysis.facts import rounded
from study.analysis.hops import Rounding, wrong
from study.analysis.iso_depth import rounding_cost
from study.analysis.records import mean_loss
from study.verdicts.runs import RUNS, Conditions, planned


def backprop_passes() -> Conditions:
    """Of gradients through one, two and all four passes, on the same seeds."""
    one, two = (RUNS.hops(f"khop-backproppasses{n}") for n in (1, 2))
    every = RUNS.hops("khop").errors("1x4", 4)[:3]
    if min(len(runs.of("1x4")) for runs in (one, two)) < len(every):
        raise Unmeasured("There are no three seeds of 1x4 with truncated gradients; run them first.")
    errors = [mean(runs.errors("1x4", 4)) for runs in (one, two)]
    holds = errors[0] >= 0.4 and 0.1 <= errors[1] <= 0.4 and errors[1] > mean(every)
    holds = holds and all(a > b for a, b in zip(one.errors("1x4", 4), every, strict=True))
    return holds, errors[0] < 0.2 or errors[1] <= mean(every)


def cache_last() -> Conditions:
    """Of trained loops that are read with the keys and values of the last pass alone."""
    loop, two = (cache.hop_errors(paper.measurements("cache", "khop"), model, "last", 4) for model in ("1x4", "2x2"))
    text = paper.measurements("cache", "iso-depth")
    rises = [cache.loss_rise(text, model) for model in ("2x3-64", "1x6-64")]
    holds = min(loop) >= 0.4 and mean(two) >= 0.2 and all(0.05 <= rise <= 0.6 for rise in rises)
    return holds, mean(loop) < 0.2 or max(rises) < 0.02


def backprop_passes_elsewhere() -> Conditions:
    """On Shakespeare and on S3, on seeds 0 to 2, and with random cuts on pointers."""
    rises = [RUNS.text_loop(passes) - RUNS.text_loop() for passes in (1, 2)]
    s3, cut = (
        [run["test"]["accuracy"] for run in RUNS.records(name) if run["model"] == "1x8"]
        for name in ("state-tracking", "state-tracking-backproppasses1")
    )
    drawn, fixed = (RUNS.hops(f"khop-backproppasses{n}").error("1x4", 4) for n in ("random", 2))
    holds = rises[0] <= 0.1 and rises[1] <= 0.05 and mean(cut) < mean(s3) and drawn < fixed
    return holds, rises[1] > 0.2 or mean(cut) >= mean(s3)


def backprop_passes_injected() -> Conditions:
    """On Shakespeare, where a matrix injects the input before each pass, on seeds 0 to 2."""
    every, one, two = (RUNS.text_loop(passes, "linear") for passes in (0, 1, 2))
    return two - every <= 0.3 and one - every <= 0.5, two - every > 0.6


def cache_last_trained() -> Conditions:
    errors = RUNS.hops("khop-cachelast").errors("1x4", 4)
    in_turn = RUNS.records("iso-depth-cachelast")
    every = [run for run in RUNS.records("iso-depth") if run["model"] == "1x6-64" and run["seed"] == 0]
    rise = mean_loss(in_turn) - mean_loss(every)
    return max(errors) <= 0.05 and abs(rise) <= 0.05, min(errors) > 0.15 or rise > 0.1


def halting_gate() -> Conditions:
    """Of a gate and of a threshold on the probability, after as many steps, on the means over seeds."""
    measured = [*paper.measurements("stopping", "khop"), *paper.measurements("stopping", stopping.TRAINED["gate"][0])]
    planned(stopping.of(measured, "gate"))
    passes, wrong_there = stopping.mean_of(measured, "random, 4,000 steps", "confident 0.99", 4)
    gate_passes, gate_wrong = stopping.nearest(measured, "gate", "gate", 4, passes)
    after_six = stopping.mean_of(measured, "gate", "fixed 6", 4)[1]
    easier = stopping.mean_of(measured, "gate", "gate 0.9", 1)[0] < stopping.mean_of(measured, "gate", "gate 0.9", 4)[0]
    better = gate_wrong < wrong_there and gate_passes <= passes
    return after_six <= 0.1 and easier and gate_wrong >= wrong_there, better


def halting_control() -> Conditions:
    names = ("khop-steps4000", "khop-halting10-steps4000", "khop-halting0.1-steps4000")
    for name in names:
        planned(RUNS.hops(name).of("1x6"))
    alone, level, gate = (RUNS.hops(name).error("1x6", 4) for name in names)
    return alone >= 0.02 and level >= 0.2 and gate <= 0.005, alone < 0.005 or gate > 0.05


def muon() -> Conditions:
    two, twice, narrow = (
        mean(wrong(run, 4) for run in RUNS.with_muon("khop", model)) for model in ("2x1", "2x2", "4x1-w44")
    )
    return two >= 0.15 and twice <= 0.02 and narrow > twice, two < 0.05 or narrow <= twice


def muon_text() -> Conditions:
    deep, loop, shallow = (mean_loss(RUNS.with_muon("iso-depth", model)) for model in ("6x1-64", "3x2-64", "3x1-64"))
    holds = deep < loop < shallow and shallow - loop < loop - deep
    return holds, loop <= deep or loop > shallow + 0.005


def rounding() -> Conditions:
    runs = Rounding(paper.measurements("quantized", "khop"), RUNS.hops("khop"))
    loop, two, stack = (runs.cost(model, 4) for model in ("1x4", "2x2", "4x1"))
    by_passes = [runs.cost("1x4", 4, passes=passes) for passes in (1, 2, 3, 4)]
    holds = runs.most(8) <= 0.02 and min(loop, two) > stack and by_passes == sorted(by_passes)
    return holds and runs.cost("1x4-noise", 4) <= loop / 2, stack >= loop


def rounding_text() -> Conditions:
    measured, runs = paper.measurements("quantized", "iso-depth"), RUNS.records("iso-depth")
    (loop8, loop), (stack8, stack) = (
        [rounding_cost(measured, runs, model, bits) for bits in (8, 4)] for model in ("1x6-64", "6x1-64")
    )
    return max(loop8, stack8) <= 0.01 and loop > stack, loop <= stack


def ceiling() -> Conditions:
    measured = rounded(paper.measurements("capacity"), paper.records("facts-facts49152-epochs240"))
    if len(measured) < 4 * 6:
        raise Unmeasured(f"There are {len(measured)} of 24 planned measurements; make the others first.")
    eight, two = ([one.kept for one in measured if one.bits == bits] for bits in (8, 2))
    loop, once = (next(o.kept for o in measured if o.bits == 4 and o.run["model"] == model) for model in ("1x4", "1x1"))
    below = all(one.stored < one.ceiling for one in measured)
    return min(eight) >= 0.97 and below and loop < once and max(two) < 0.1, min(eight) < 0.9 or loop >= once


def stack_to_loop() -> Conditions:
    measured = paper.measurements("retrofit", "iso-depth")
    planned(measured)
    at_once, after = (retrofit.best(measured, tenth) for tenth in (False, True))
    on, scratch = retrofit.loss(measured, "stack"), retrofit.loss(measured, "anew")
    holds = at_once - retrofit.loss(measured, "stack", tenth=False) > 0.5 and after - on <= 0.1
    holds = holds and scratch - after > 0.2 and retrofit.anew(measured) < after
    return holds, after - on <= 0.02 or after >= scratch
