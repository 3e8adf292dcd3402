"""How far loops come from their layers run once to as many separate layers, each model at its own learning rate."""

from functools import partial

import numpy as np

from study.analysis.hops import wrong
from study.analysis.records import gap_closed, test_loss
from study.folders import Folders

PASSES = ("1x1", "1x2", "2x1"), ("1x1", "1x4", "4x1"), ("2x1", "2x2", "4x1")  # layers once, loop, as many layers
HARD = ("2x1", "2x3", "6x1"), ("2x1", "1x6", "6x1")
TEXT = ("1x1-64", "1x2-64", "2x1-64"), ("1x1-64", "1x6-64", "6x1-64"), ("3x1-64", "3x2-64", "6x1-64")
WIDE_TEXT = ("1x1", "1x2", "2x1"), ("1x1", "1x6", "6x1"), ("2x1", "2x3", "6x1"), ("3x1", "3x2", "6x1")


def gains(runs: Folders) -> dict[str, dict[str, list[float]]]:
    """Task -> loop -> of each seed, 0 where it is as good as the mean of its layers run once, 100 as the stack's."""
    hard = runs.khop_hard_at_best_rates()
    rows = (
        ("pointers, four hops", PASSES, runs.again, partial(wrong, hops=4)),
        ("the same, width 256", PASSES, runs.wider_runs, partial(wrong, hops=4)),
        ("pointers, eight hops", HARD, lambda m: hard.runs(m) + hard.later(m), partial(wrong, hops=8)),
        ("facts, 60 exposures", PASSES[:1], runs.facts_again, test_loss),  # on new seeds
        ("facts, 60 exposures", PASSES[1:], runs.facts_at_own_rate, test_loss),
        ("facts, width 128", PASSES[:1], runs.wide_facts_runs, test_loss),
        ("Shakespeare", TEXT, runs.text_again, test_loss),
        ("Shakespeare, width 256", WIDE_TEXT, runs.wide_text, test_loss),
    )
    every: dict[str, dict[str, list[float]]] = {}
    for task, loops, of, measure in rows:
        for each in loops:
            closed = gap_closed([run for m in each for run in of(m)], *each, measure=measure, average=np.mean)
            every.setdefault(task, {})[each[1]] = closed
    injected = [*runs.text_again("1x1-64"), *runs.text_again("6x1-64"), *runs.injected_again()]
    closed = gap_closed(injected, "1x1-64", "1x6-64", "6x1-64", measure=test_loss, average=np.mean)
    return every | {"Shakespeare, input injected": {"1x6-64": closed}}
