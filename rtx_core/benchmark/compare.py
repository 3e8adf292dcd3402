"""Where a model stands on a task: its places among recorded stacks, of one seed; verdicts, of three seeds or more."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from rtx_core.benchmark.card import RECORDED, RECURRENCE, Card, Point, Verdict
from rtx_core.benchmark.suite import STACKS, logit
from rtx_core.benchmark.words import of_seeds
from rtx_core.report import statistics
from rtx_core.report.style import number, p_value

ENOUGH = statistics.ENOUGH_SEEDS
Test = tuple[tuple[float, float, float, float], float]  # (mean difference, low, high, p), adjusted p
MARGIN = float(np.log(1.5))  # of equivalence: odds of an error between 2/3 and 3/2 (Methods)


def by_seed(point: Point, unit: str) -> list[float]:
    """What tests compare: logits of the error, or nats."""
    return point.errors if unit == "nats" else [logit(error, point.answers) for error in point.errors]


def places(candidate: Point, others: list[Point], unit: str) -> list[str]:
    """Sentences: beside the recorded loop nearest in depth, beside the stacks nearest in parameters and in depth, and
    among stacks of one width."""
    known = [each for each in others if each.role == RECORDED]
    stacks, loops = ([each for each in known if (each.passes > 1) == looped] for looped in (False, True))

    def deeper(each: Point) -> int:
        return abs(each.depth - candidate.depth)

    def larger(each: Point) -> float:
        return round(abs(float(np.log(each.weights / candidate.weights))), 1)  # a tenth apart is as good as equal

    nearest: dict[str, Callable] = {
        "number of parameters": lambda each: (larger(each), deeper(each)),
        "depth": lambda each: (deeper(each), -each.weights),
    }
    sentences = []
    if loops:
        each = min(loops, key=lambda each: (deeper(each), larger(each)))
        sizes = f"{each.weights:,} parameters, run {each.passes} times"
        sentences.append(f"The recorded plain loop nearest in depth is {each.name} ({sizes}): {of_seeds(each, unit)}.")
    for control_name, distance in nearest.items() if stacks else ():
        each = min(stacks, key=distance)
        sizes = f"{each.weights:,} parameters in {each.depth} layer{'s' * (each.depth > 1)}"
        sentences.append(
            f"The recorded stack nearest in {control_name} is {each.name} ({sizes}): {of_seeds(each, unit)}."
        )
    ladder = [each for name in STACKS for each in stacks if each.name == name]
    if len(ladder) == len(STACKS):
        scores = by_seed(candidate, unit)
        rungs = [float(np.mean(by_seed(each, unit))) for each in ladder]
        of = "its error" if len(scores) == 1 else f"the mean error of its {len(scores)} seeds"
        sentence = f"Among the recorded stacks of width 64 {of} is {worth(float(np.mean(scores)), rungs)}"
        if len(scores) > 1:
            best, worst = (worth(end(scores), rungs) for end in (min, max))
            sentence += f" (best seed: {best}; worst seed: {worst})"
        sentences.append(f"{sentence}.")
    return sentences


def worth(score: float, ladder: list[float]) -> str:
    """How many layers run once have this score, between those of stacks of 1, 2, … layers."""
    best = np.minimum.accumulate(np.array(ladder))
    if score >= best[0]:
        return "no lower than that of one layer"
    for layers, (shallow, deep) in enumerate(pairwise(best), 1):
        if deep <= score < shallow:
            return f"that of about {number(layers + (shallow - score) / (shallow - deep), '.1f')} layers"
    return f"no higher than that of {len(best)} layers"


def with_verdicts(card: Card) -> Card:
    """The card with a verdict on every control that was made for it."""
    pairs = {
        (task.task, each.role): (candidate, each, task.unit)
        for task in card.tasks
        if (candidate := task.candidate)
        for each in task.others
        if each.role not in (RECORDED, RECURRENCE)
    }
    judged = verdicts(pairs)
    by_task = [[one for (name, _), one in judged.items() if name == task.task] for task in card.tasks]
    tasks = [task.model_copy(update={"verdicts": mine}) for task, mine in zip(card.tasks, by_task)]
    return card.model_copy(update={"tasks": tasks})


def verdicts(
    pairs: Mapping[Any, tuple[Point, Point, str]], called: Callable[[Any], str] = lambda key: "the control"
) -> dict[Any, Verdict]:
    """On the first of each pair of models, in a unit; `called` names the second by the pair's key.  The tests of all
    pairs with seeds enough are adjusted as one family."""
    enough = [key for key, (*pair, _) in pairs.items() if min(len(each.errors) for each in pair) >= ENOUGH]
    tests = [welch(*(by_seed(each, pairs[key][2]) for each in pairs[key][:2])) for key in enough]
    adjusted = statistics.scipy.stats.false_discovery_control([p for *_, p in tests]) if tests else []
    known = {key: (test, float(p)) for key, test, p in zip(enough, tests, adjusted)}
    return {key: verdict(*pair, known.get(key), called(key)) for key, pair in pairs.items()}


def welch(first: list[float], second: list[float]) -> tuple[float, float, float, float]:
    """(mean difference, low, high, p) by Welch's t-test; of scores without any spread the difference itself."""
    if max(np.ptp(first), np.ptp(second)) < 1e-12:
        value = float(np.mean(first) - np.mean(second))
        return value, value, value, 1.0 if abs(value) < 1e-12 else 0.0
    return statistics.unpaired(first, second)[:4]


def verdict(candidate: Point, control_point: Point, unit: str, test: Test | None, control_name: str) -> Verdict:
    """By the rule of Methods: better or worse, equal within the margin, or that the seeds do not bear it out."""
    control = {"control": control_point.role}
    if test is None:
        seeds = min(len(candidate.errors), len(control_point.errors))
        return Verdict(verdict="cannot say", says=f"A verdict needs {ENOUGH} seeds; here are {seeds}.", **control)
    (value, low, high, _), p = test
    if unit == "nats":
        size = f"{number(value, '+.3f')} nats ({number(low, '+.3f')} to {number(high, '+.3f')})"
    else:
        odds = [number(float(np.exp(each)), ".2g") for each in (value, low, high)]
        size = f"the odds of an error are {odds[0]} times those of {control_name} ({odds[1]} to {odds[2]})"
    sentence = f"{size[0].upper()}{size[1:]}, adjusted p = {p_value(p)}"
    if p < statistics.ALPHA:
        return Verdict(verdict="better" if value < 0 else "worse", says=f"{sentence}.", **control)
    differences = list(np.subtract(by_seed(candidate, unit), by_seed(control_point, unit)))
    if unit == "error" and equal(differences):
        return Verdict(verdict="equal", says=f"{sentence}; within the margin of 2/3 to 3/2.", **control)
    least = statistics.detectable(differences) if np.ptp(differences) > 1e-12 else 0.0
    could = f"{number(least, '.3f')} nats" if unit == "nats" else f"a factor of {number(float(np.exp(least)), '.2g')}"
    return Verdict(verdict="cannot say", says=f"{sentence}; so many seeds could have shown {could}.", **control)


def equal(differences: list[float]) -> bool:
    if np.ptp(differences) < 1e-12:
        return abs(differences[0]) < MARGIN
    return statistics.equivalent(differences, MARGIN)
