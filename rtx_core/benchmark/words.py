"""Scores in words, and sentences of what another number of passes, or rounded weights, change."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rtx_core.report.style import number

if TYPE_CHECKING:
    from rtx_core.benchmark.card import Point, TaskResult


def score(value: float, unit: str) -> str:
    if unit == "nats":
        return f"{number(value, '.3f')} nats"
    return number(value, ".2%" if value < 0.01 else ".1%")


def of_seeds(point: "Point", unit: str) -> str:
    """The mean, and of several seeds their range."""
    ends = f" ({score(min(point.errors), unit)} to {score(max(point.errors), unit)})" * (len(point.errors) > 1)
    return f"{score(float(np.mean(point.errors)), unit)}{ends}"


def change(condition: str, value: float, before: float, unit: str) -> str:
    """That under a condition a trained model has this score, and had that."""
    now, then = score(value, unit), score(before, unit)
    if now == then:
        same = "its loss is the same" if unit == "nats" else "it gets as many wrong"
        return f"{condition} {same}, {now}."
    size, is_more = abs(value - before), value > before
    if unit == "nats":
        says = f"its loss is {number(size, '.3f')} nats {'higher' if is_more else 'lower'}"
    else:
        form = ".2f" if size < 0.01 else ".1f"
        says = f"it gets {number(100 * size, form)} points {'more' if is_more else 'fewer'} wrong"
    return f"{condition} {says}, {now} in place of {then}."


def at_an_end(points: Sequence["Point"], rates: Sequence[float]) -> list[str]:
    """A sentence where a model's best rate is the lowest or the highest of those tried."""
    ends = [each.name for each in points if each.rate in (min(rates), max(rates))]
    if not ends or len(set(rates)) < 2:
        return []
    tried = f"{min(rates):g} to {max(rates):g}"
    return [f"Of {', '.join(ends)} the best rate is at an end of those tried, {tried}: try rates beyond it."]


def nearest(passes: Sequence[int], target: float) -> int | None:
    return min(passes, key=lambda n: abs(n - target), default=None)


def changes(task: "TaskResult", trained: int) -> list[str]:
    """A sentence for about half the passes, one for about twice as many, and one for each rounding, of the validation
    sequences and the one trained model that was measured."""
    sentences, passes, rounded = [], dict(task.passes), dict(task.rounded)
    if trained in passes:
        half = nearest([n for n in passes if n < trained], trained / 2)
        twice = nearest([n for n in passes if n > trained], 2 * trained)
        for n in filter(None, (half, twice)):
            condition = f"With {n} pass{'es' * (n > 1)} in place of {trained}"
            sentences.append(change(condition, passes[n], passes[trained], task.unit))
    if 32 in rounded:
        for bits in sorted(rounded.keys() - {32}, reverse=True):
            condition = f"With weights rounded to {bits} bits"
            sentences.append(change(condition, rounded[bits], rounded[32], task.unit))
    return sentences
