"""Choose between a loop and stacks for a task of one's own: what *If you build one* advises, as one command.

    rtx.choose(task)                      a subclass of `data.SequenceTask`, `data.from_text(...)`, or an experiment
    rtx.choose(task, model=MyLoop)        the same for a loop of one's own
    rtx choose mine.txt steps=2000        from a terminal, on the characters of a text
    rtx choose mine.txt --model loop.py:MyLoop

Four decoders are trained, each at several learning rates with several seeds, and each is judged at the rate of its
lowest mean validation loss: the layers run once (2×1), the loop (2×2), a stack as deep and as wide (4×1), and a stack
as deep with the loop's parameters, which is therefore narrow.  The first three tell whether the task needs steps: what
share of the gain of more layers does a second pass have?  The fourth tells whether it is worth sharing layers.  As it
computes less than the loop, it is also trained for the loop's computation, at the rate picked before.  All is said only
as far as Welch's t-test over seeds bears it out, as in `suite`.

A loop of one's own is any class or function that `bench` takes.  It is trained beside the narrow and the deep stack,
whose sizes follow from what it stores and applies (`recorded.counts`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from rtx_core.benchmark.bench import Candidate, controls, find_candidate, train
from rtx_core.benchmark.card import Counts, Part, Point, Verdict
from rtx_core.benchmark.compare import ENOUGH, verdicts
from rtx_core.benchmark.recorded import TOKENS, counts, point
from rtx_core.benchmark.suite import variant
from rtx_core.benchmark.words import at_an_end, of_seeds, score
from rtx_core.data.config import TEXT_SUFFIXES, DataConfig
from rtx_core.errors import RtxError, whole_number
from rtx_core.experiments import run as runner
from rtx_core.experiments.configure import RunConfig, find_experiment, fits
from rtx_core.models.build import build_model
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from rtx_core.report.style import number
from rtx_core.train.config import TrainConfig

ONCE, LOOP, LARGE, DEEP, LONGER = "once", "loop", "as large", "as deep", "as large, for longer"
TITLES = {ONCE: "run once", LOOP: "loop", LARGE: "narrow stack", DEEP: "deep stack", LONGER: "narrow stack, longer"}
SET_HERE = ("num_layers", "num_passes", "hidden_size", "intermediate_size", "num_heads")
RATES, TEXT_RATES = (1e-3, 2e-3, 4e-3), (3e-3, 6e-3, 1.2e-2)  # at width 64 the best of loops and stacks lie in these
NEEDS_STEPS, NEEDS_PARAMETERS = 0.5, 0.25  # of the gain of more layers, what a second pass gains


class Choice(Part):
    """What four decoders get on a task, and what follows from it."""

    task: str
    unit: str  # error or nats
    points: list[Point]
    applied: dict[str, int]  # multiply-adds of a token outside the vocabulary, by role
    verdicts: dict[str, Verdict]  # on the loop beside the narrow stack, after equal steps and, as `LONGER`, after equal
    # computation; and, as "as deep", on the deep stack beside the layers run once, or on one's own loop beside it
    says: list[str]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each model."""
        rows = [
            {
                "Model": f"{TITLES[each.role]} {each.name}",
                "Parameters": each.weights,
                "Multiply-adds": self.applied[each.role],
                "Best rate": each.rate,
                self.unit: of_seeds(each, self.unit),
            }
            for each in self.points
        ]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return "\n".join([self.frame.to_string(index=False), "", *self.says])


def stacks_of(loop: Counts, name: str) -> dict[str, dict]:
    """The narrow and the deep stack of a loop as requests, by role."""
    stacks = {control.pop("role"): control for control in controls(loop).values()}
    if len(stacks) < 2:
        raise RtxError(f"{name} applies every weight once for a token, so it is no loop; give one, or use `rtx bench`.")
    return {role: request(settings) for role, settings in stacks.items()}


def models_of(layers: int, passes: int, width: int) -> dict[str, dict]:
    """The four models as requests, by role; sizes and applications are counted."""
    mlp = round(width * 11 / 32) * 8
    models = {role: request(variant(layers, n, width, mlp).settings) for role, n in ((ONCE, 1), (LOOP, passes))}
    return models | stacks_of(size_of(models[LOOP]), models[LOOP]["name"])


def request(settings: dict) -> dict:
    return {"base": "looped", "name": name_of(settings), **settings}


def size_of(request: dict) -> Counts:
    """What a model of this library stores and applies."""
    settings = {key: value for key, value in request.items() if key not in ("base", "name")}
    return counts(build_model("looped", seed=0, **settings | {"vocab_size": TOKENS}))


def name_of(settings: dict) -> str:
    """Layers × passes, width and width of the MLP: no two models of a task share a name."""
    shape = f"{settings['num_layers']}x{settings['num_passes']}"
    return f"{shape}-w{settings['hidden_size']}-m{settings['intermediate_size']}"


def share_of_gain(once: Point, loop: Point, deep: Point) -> float | None:
    """What the passes gain, of what as many layers gain, in the means over seeds; None where layers gain nothing."""
    first, second, third = (float(np.mean(each.errors)) for each in (once, loop, deep))
    return (first - second) / (first - third) if third < first else None


def need(once: Point, loop: Point, deep: Point, unit: str, judged: Verdict) -> str:
    """A sentence: whether the task needs steps or parameters, as far as the deep stack is better than the layers run
    once."""
    if len(once.errors) < ENOUGH:
        return (
            f"This is a trial: from {ENOUGH} seeds on it is said whether the task needs steps, and which model to take."
        )
    share = share_of_gain(once, loop, deep)
    if share is None or judged.verdict != "better":
        then, now = (score(float(np.mean(each.errors)), unit) for each in (once, deep))
        return (
            f"More layers do not help significantly ({then} before, {now} with them), so this does not tell whether "
            "the task needs steps: take the smallest model, or train for longer."
        )
    gains = f"The extra passes gain {number(share, '.0%')} of what as many layers gain"
    if share >= NEEDS_STEPS:
        return f"{gains}, so the task seems to need steps."
    if share <= NEEDS_PARAMETERS:
        return f"{gains}, so the task seems to need parameters."
    return f"{gains}, which is neither clearly steps nor clearly parameters."


def advice(judged: Mapping[str, Verdict], times: float) -> str:
    """A sentence: which of two models of equal size to take; the loop does so many times the multiply-adds."""
    cost = f"{number(times, '.1f')} times the multiply-adds"
    if judged[LONGER].verdict != "better" and judged[LOOP].verdict == "better":
        return (
            "Take the narrow stack, trained for longer: the loop is better after equal steps, but after equal "
            f"computation this is not shown, and in use it does {cost}."
        )
    return {
        "better": f"Take the loop if you are short of parameters: it is better than the narrow stack, for {cost}.",
        "worse": "Take the narrow stack, trained for longer: it is better than the loop and cheaper to run.",
        "equal": f"Take the narrow stack: it is as good as the loop, which does {cost}.",
        "cannot say": "Take the narrow stack, which is cheaper to run, or train more seeds.",
    }[judged[LONGER].verdict]


def trained_longer(config: TrainConfig, times: float) -> dict[str, int]:
    """The setting that makes training so many times as long."""
    unit = "steps" if config.steps else "epochs"
    return {unit: max(1, round(times * getattr(config, unit)))}


def check_arguments(
    data: str | DataConfig,
    layers: int,
    passes: int,
    width: int,
    model: object,
    rates: Sequence[float],
    seeds: int,
    jobs: int,
    replace: bool,
    settings: Mapping[str, object],
) -> Sequence[float]:
    """The learning rates to try; what is wrong with an argument ends in a sentence."""
    for name, value, least in (("layers", layers, 1), ("passes", passes, 2), ("seeds", seeds, 1), ("jobs", jobs, 1)):
        whole_number(name, value, least, 100)
    if type(width) is not int or width % 8 or not 8 <= width <= 4096:
        raise RtxError(f"width is {width!r:.40}; expected a multiple of 8 up to 4096.")
    if not isinstance(rates, (list, tuple)) or not all(type(rate) in (int, float) for rate in rates):
        raise RtxError(f"rates is {rates!r:.40}; expected a list of learning rates, such as rates=[1e-3,2e-3].")
    if type(replace) is not bool:
        raise RtxError(f"replace is {replace!r:.40}; expected True or False.")
    if isinstance(data, str) and data.endswith(TEXT_SUFFIXES):
        raise RtxError(f"Got the file {data!r:.60}; give rtx.data.from_text({data!r:.60}).")
    read = find_experiment(data).data
    if not fits("looped", read):
        raise RtxError("Got labeled texts; choose compares decoders, so give a text or a sequence task.")
    if model is not None and (layers, passes, width) != (2, 2, 64):
        raise RtxError("Got layers, passes or width for a model of your own, which has its sizes; leave them out.")
    if taken := [name for name in SET_HERE if name in settings]:
        raise RtxError(f"{taken[0]} is set by choose; give layers, passes and width instead.")
    if "learning_rate" in settings:
        raise RtxError("Got learning_rate; expected rates, a list, since each model has its own.")
    return rates or (RATES if read.algorithmic else TEXT_RATES)


def models_to_train(
    layers: int, passes: int, width: int, model: object
) -> tuple[Candidate, dict[str, Any], dict[str, Counts]]:
    """The loop; and by role what is asked of `run_configs`, and what each model stores and applies."""
    if model is None:
        requests: dict[str, Any] = models_of(layers, passes, width)
        name = requests[LOOP]["name"]
        return Candidate(name, name, nn.Identity), requests, {role: size_of(each) for role, each in requests.items()}
    loop = find_candidate(model)
    size = counts(loop.fresh())
    stacks = stacks_of(size, loop.name)
    sizes = {LOOP: size} | {role: size_of(each) for role, each in stacks.items()}
    return loop, {LOOP: loop.request} | stacks, sizes


def sentences(
    points: Mapping[str, Point], judged: Mapping[str, Verdict], unit: str, times: float, rates: Sequence[float]
) -> list[str]:
    """What follows from the scores; the loop does so many times the multiply-adds of the narrow stack."""
    compared = "minus" if unit == "nats" else "beside"
    kinds = {role: verdict.verdict for role, verdict in judged.items()}
    if ONCE in points:
        first = need(points[ONCE], points[LOOP], points[DEEP], unit, judged[DEEP])
        bears_advice = "better" in kinds.values() or "worse" in (kinds[LOOP], kinds[LONGER])
    else:
        first = f"Loop {compared} deep stack: {kinds[DEEP]}. {judged[DEEP].says}"
        bears_advice = {kinds[LOOP], kinds[LONGER]} != {"cannot say"}
    says = [first, f"Loop {compared} narrow stack after equal steps: {kinds[LOOP]}. {judged[LOOP].says}"]
    says.append(f"Loop {compared} narrow stack after equal computation: {kinds[LONGER]}. {judged[LONGER].says}")
    says += [advice(judged, times)] if bears_advice else []
    says += at_an_end([each for role, each in points.items() if role != LONGER], rates)
    if len(set(rates)) > 1:
        says.append("The rates were picked on these seeds, so train the models you choose between on new ones.")
    return says


def choose(
    data: str | DataConfig,
    /,
    layers: int = 2,
    passes: int = 2,
    width: int = 64,
    *,
    model: object = None,
    rates: Sequence[float] = (),
    seeds: int = 3,
    jobs: int = 1,
    replace: bool = False,
    **settings: object,
) -> Choice:
    """Train a loop of `layers` × `passes` and three stacks on a task, and say which to take; or a loop of your own, a
    class or a function that makes a module for a `vocab_size`, and two stacks of its depth.  The narrow stack is also
    trained for the loop's computation.

    `rates` are the learning rates tried, and where none is given 1e-3, 2e-3 and 4e-3, or for a text 3e-3, 6e-3 and
    1.2e-2.  `settings` are those of the data and of training, such as `steps` and `batch_size`.  `jobs` is the number
    of runs at once, for data that another process can read: an experiment, a file, or a class in a module; a script
    then does its work under `if __name__ == "__main__":`.  Runs are records, so what is there is not trained again and
    a stopped command goes on; after a change of the file of your task `replace=True` trains all runs anew.
    """
    rates = check_arguments(data, layers, passes, width, model, rates, seeds, jobs, replace, settings)
    subject, requests, sizes = models_to_train(layers, passes, width, model)
    names = {role: subject.name if role == LOOP else each["name"] for role, each in requests.items()}
    settings = {"timed": 1} | settings  # latency is not compared

    def trained(models: list, rates: Sequence[float], **changes: object) -> tuple[list[RunConfig], list[Record]]:
        configs = runner.run_configs(
            data, models=models, seeds=list(range(seeds)), learning_rate=list(rates), **settings | changes
        )
        outcomes = train(configs, subject, jobs, [replace] * len(configs), called="choose")
        if problems := [outcome for outcome in outcomes if isinstance(outcome, str)]:
            raise RtxError(problems[0])
        return configs, [outcome for outcome in outcomes if isinstance(outcome, Record)]

    configs, outcomes = trained(list(requests.values()), rates)
    runs = by_model(outcomes)
    unit = "error" if "accuracy" in runs[names[LOOP]][0]["test"] else "nats"
    applied = {role: size.applied for role, size in sizes.items()}
    points = {role: point("", name, at_best_rate(runs[name]), role, sizes[role]) for role, name in names.items()}
    times = applied[LOOP] / applied[LARGE]
    longer = trained([requests[LARGE]], [points[LARGE].rate], **trained_longer(configs[0].train, times))[1]
    points[LONGER] = point("", names[LARGE], longer, LONGER, sizes[LARGE])
    applied[LONGER] = applied[LARGE]
    control = ONCE if ONCE in points else DEEP
    pairs = {role: (points[LOOP], points[stack], unit) for role, stack in ((LOOP, LARGE), (LONGER, LONGER))}
    pairs[DEEP] = (points[DEEP if control == ONCE else LOOP], points[control], unit)
    called = {role: "the narrow stack" for role in (LOOP, LONGER)} | {
        DEEP: "the layers run once" if control == ONCE else "the deep stack"
    }
    judged = verdicts(pairs, called.__getitem__)
    says = sentences(points, judged, unit, times, rates)
    models = list(points.values())
    return Choice(task=configs[0].experiment, unit=unit, points=models, applied=applied, verdicts=judged, says=says)
