"""Train a model on the suite, measure it, and write its card (`suite` says what is trained and compared).

    rtx.bench(MyLoop)                     a class, or a function of `task`, `vocab_size` and `max_length`
    rtx.bench("looped", num_passes=4)     a registered model with settings, or a name of the recorded ladder
    rtx bench file.py:MyLoop passes=4     the same from a terminal; settings are arguments of the class

A task that cannot be trained is one sentence on the card, and the others are made.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rtx_core import data, records
from rtx_core.benchmark import adapter
from rtx_core.benchmark.applications import place
from rtx_core.benchmark.card import Card, CheckLine, Counts, TaskResult, folder, write
from rtx_core.benchmark.check import FAIL, check
from rtx_core.benchmark.compare import places, with_verdicts
from rtx_core.benchmark.recorded import LENGTH, TOKENS, counts, point, recorded_points
from rtx_core.benchmark.subject import check_has_class, definition, passes_argument, vocabulary
from rtx_core.benchmark.suite import BUDGETS, LADDER, NATS, PREFIX, SUITE, TEXT, error, of_evaluation, unit_of, variant
from rtx_core.benchmark.words import at_an_end, score
from rtx_core.data.config import name_parts
from rtx_core.errors import RtxError, reason, unknown, whole_number
from rtx_core.experiments import cost
from rtx_core.experiments import run as runner
from rtx_core.experiments.configure import RunConfig
from rtx_core.models import registry
from rtx_core.models.build import build_model
from rtx_core.progress import say
from rtx_core.records import Record
from rtx_core.report.evidence import by_model, device_of
from rtx_core.report.rates import at_best_rate, by_rate
from rtx_core.study import declaration

BITS = (8, 4)
MOST_PASSES = 12  # numbers of passes that are tried at test time


@dataclass(frozen=True)
class Candidate:
    """A model to be benched: its name, what runs call it, a fresh module, and how another process registers it."""

    name: str
    request: str | Mapping
    fresh: Callable[[], nn.Module]
    address: str = ""
    settings: Mapping[str, object] | None = None


def find_candidate(model: object, name: str = "", settings: Mapping[str, object] | None = None) -> Candidate:
    """What is benched, of a class, a function, or a word as `rtx check` takes it."""
    settings = dict(settings or {})
    parts = name_parts(settings)
    if isinstance(model, str):
        model = declaration("RECURRENCES").get(model, model)
    if isinstance(model, nn.Module):
        raise RtxError("Got one module; give its class, or a function that makes one for each task and seed.")
    if isinstance(model, str) and ":" not in model:
        check_has_class(model)
        if model in LADDER:
            settings = LADDER[model].settings | settings
        base = LADDER[model].base if model in LADDER else model
        size = {"vocab_size": TOKENS} if "vocab_size" in registry.find(base).config.names() else {}
        label = name or "-".join([model, *parts])
        request = {"base": model, "name": label} | settings if parts or name else model
        return Candidate(label, request, lambda: build_model(base, seed=0, **settings | size))
    address = model if isinstance(model, str) else ""
    make = definition(address) if address else model
    if not callable(make):
        raise RtxError(f"Got {make!r:.60}; expected a class, or a function that makes an nn.Module.")
    label = name or "-".join([getattr(make, "__name__", "model"), *parts])
    adapter.register(label, make, settings)
    return Candidate(label, label, lambda: adapter.module(make, settings, TOKENS, LENGTH), address, settings)


def register_declared() -> None:
    """Make the study's recurrences known by name, as records of their runs call them."""
    for name in declaration("RECURRENCES"):
        find_candidate(name)


def controls(size: Counts) -> dict[str, dict]:
    """By name, stacks as large as the model, therefore narrow, and as deep, at its width: the role and settings of
    `looped`.  Those of a stack are one."""
    narrow, stacks = (size.weights / size.depth / 12.25) ** 0.5, {}
    for role, width, weights in (("as large", narrow, size.weights), ("as deep", size.width, size.applied)):
        step = 8 if width >= 64 else 4  # rotary pairs of four heads, or of two
        width = max(step, round(width / step) * step)
        mlp = max(8, round((weights / size.depth / width - 4 * width) / 24) * 8)
        name = f"stack-{size.depth}-w{width}-m{mlp}"
        stacks[name] = {"role": role} | variant(size.depth, 1, width, mlp).settings
    return stacks


def plan(
    budget: str, requests: list[str | Mapping], text: str = "", rate: float = 0.0, seeds: int = 0
) -> dict[str, list[RunConfig]]:
    """The configurations of all runs, by task."""
    configs, limits = {}, BUDGETS[budget]
    numbers = list(range(seeds)) if seeds else list(limits.seeds)
    for task in dict.fromkeys([*limits.tasks, *([TEXT] if text else [])]):
        settings: dict[str, Any] = {"budget": budget}
        where = f"{PREFIX}{task}"
        if task == TEXT and text:
            settings, where = {"steps": 2, "eval_every": 2} if budget == "trial" else {}, data.from_text(text)
        if rates := [rate] if rate else list(limits.rates):
            settings["learning_rate"] = rates
        configs[task] = runner.run_configs(where, models=requests, seeds=numbers, **settings)
    return configs


def attempt(config: RunConfig, replace: bool) -> Record | str:
    """The record of a run, found or made now, or in one sentence why there is none."""
    try:
        return (None if replace else runner.find_record(config)) or runner.train_and_record(config, replace).record
    except RtxError as stop:
        return str(stop)
    except Exception as stop:
        return f"The run stopped ({reason(stop)})."


def _begin(name: str, address: str, settings: Mapping[str, object] | None) -> None:
    torch.set_num_threads(1)
    if address:
        find_candidate(address, name, settings or {})


def attempts(runs: list[tuple[RunConfig, bool]], model: Candidate, jobs: int) -> Iterator[tuple[int, Record | str]]:
    """(which of the runs, its record or why there is none), as they are done; a run says whether it is made anew."""
    if jobs == 1:
        yield from ((i, attempt(*run)) for i, run in enumerate(runs))
        return
    if model.settings is not None and not model.address:
        raise RtxError("Several jobs need a model that another process can find; name it as file.py:Name, or jobs=1.")
    arguments = (model.name, model.address, model.settings)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, arguments)
    try:
        futures = {pool.submit(attempt, *run): i for i, run in enumerate(runs)}
        for future in as_completed(futures):
            stop = future.exception()
            yield futures[future], f"The run's process ended ({reason(stop)})." if stop else future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def train(
    configs: list[RunConfig], model: Candidate, jobs: int, again: list[bool], called: str = "bench"
) -> list[Record | str]:
    """The record of every run, or why there is none; recorded ones are taken as they are, but those that are made
    `again`.  Says the time left."""
    outcomes: list = [None if new else runner.find_record(config) for config, new in zip(configs, again)]
    missing = [i for i, record in enumerate(outcomes) if record is None]
    minutes, finished, begin = [expected_minutes(configs[i]) for i in missing], 0.0, perf_counter()
    total = cost.duration(sum(minutes) / jobs)
    say(f"{called} · {model.name} · {len(configs)} runs, {len(missing)} to train, about {total}")
    for count, (i, outcome) in enumerate(attempts([(configs[i], again[i]) for i in missing], model, jobs), 1):
        outcomes[missing[i]], finished = outcome, finished + minutes[i]
        minutes_left = (sum(minutes) - finished) / finished * (perf_counter() - begin) / 60
        result_text = outcome if isinstance(outcome, str) else score_of(outcome)
        progress = f"{count} of {len(missing)}, about {cost.duration(minutes_left)} left"
        config = configs[missing[i]]
        say(f"{called} · {config.name} · {config.model} · seed {config.seed} · {result_text} · {progress}")
    return outcomes


def score_of(record: Record) -> str:
    """As its card has it, if the run is one of the suite's."""
    task = record["experiment"].removeprefix(PREFIX)
    if task not in SUITE:
        return record.score
    return f"{'loss' if task in NATS else 'test error'} {score(error(task, record)[0], unit_of(task))}"


def expected_minutes(config: RunConfig) -> float:
    """Those of a like run of this model, else of others under the same settings, else of another size, else one."""
    runs = records.records(experiment=config.experiment)
    like = [run["seconds"] / 60 for run in runs if run["name"] == config.name]
    of_others = float(np.median(like)) if like else cost.minutes(config, runs, same_model=False)
    return cost.minutes(config, runs) or of_others or 1.0


class AtPasses(nn.Module):
    """A trained model, run so many times at test time."""

    def __init__(self, model: nn.Module, passes: int):
        super().__init__()
        self.model, self.passes, self.config = model, passes, model.config

    def forward(self, *batch: Tensor) -> Tensor:
        return self.model(*batch, num_passes=self.passes)


@torch.no_grad()
def rounded(model: nn.Module, bits: int) -> nn.Module:
    """A copy whose matrices, apart from embeddings, are rounded: each row on its own grid of 2^bits − 1 values."""
    model, most = deepcopy(model), 2 ** (bits - 1) - 1
    tables = {place(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    for weight in model.parameters():
        if weight.dim() > 1 and place(weight) not in tables:
            scale = weight.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(weight.dtype).tiny) / most
            weight.copy_((weight / scale).round() * scale)
    return model


def measure(task: str, run: runner.Run, passes: int) -> dict[str, list[tuple[int, float]]]:
    """The validation error with rounded weights, and with fewer and more passes than trained."""
    model, cpu = run.model, torch.device("cpu")
    examples = run.config.data.task(run.config.train.batch_size)

    def validation_error(model: nn.Module) -> float:
        return of_evaluation(task, examples.evaluate(model, cpu, nullcontext()))

    errors = {"rounded": [(32, validation_error(model))]}
    errors["rounded"] += [(bits, validation_error(rounded(model, bits))) for bits in BITS]
    if passes > 1 and passes_argument(getattr(model, "module", model)):
        numbers = {round(n) for n in np.linspace(1, 2 * passes, min(2 * passes, MOST_PASSES))} | {passes}
        errors["passes"] = [(n, validation_error(AtPasses(model, n))) for n in sorted(numbers)]
    return errors


def result(task: str, budget: str, size: Counts, outcomes: list[tuple], roles: Mapping[str, str]) -> TaskResult:
    """A task's part of the card, of the (configuration, record or problem) of its runs."""
    problems = list(dict.fromkeys(outcome for _, outcome in outcomes if isinstance(outcome, str)))
    runs = by_model([outcome for _, outcome in outcomes if isinstance(outcome, Record)])
    others = [point(task, name, at_best_rate(runs[name]), role) for name, role in roles.items() if name in runs]
    others = [each for each in others if each.role != "candidate"]
    if budget != "trial":
        others += [each for name, each in recorded_points(task, budget).items() if name not in roles]
    unit, name = unit_of(task), next(iter(roles))
    part = TaskResult(task=task, unit=unit, others=others, problem=" ".join(problems))
    if name not in runs:
        return part
    best = at_best_rate(runs[name])
    candidate = point(task, name, best, "candidate", size)
    sentences = places(candidate, others, unit)
    if task in BUDGETS[budget].cautions:
        sentences.append(BUDGETS[budget].cautions[task])
    sentences += at_an_end([candidate], [*by_rate(runs[name])])
    changes = {"candidate": candidate, "places": sentences, "memory_mib": best[0]["peak_memory_mib"]}
    changes["minutes"] = sum(record["seconds"] for record in runs[name]) / 60
    try:
        config = next(config for config, outcome in outcomes if outcome is best[0])
        changes |= measure(task, runner.Run(config, best[0]), size.passes)
    except RtxError as missing:  # the weights of a run that was made elsewhere
        changes["problem"] = " ".join([*problems, str(missing)])
    return part.model_copy(update=changes)


def bench(
    model: object, /, budget="quick", *, name="", text="", rate=0.0, seeds=0, jobs=1, replace=False, **settings: object
) -> Card:
    """Train a model on the suite at a budget ("quick", "standard" or "trial") and write its card.

    `name` is that of its records, `text` a file whose characters it reads as well, `jobs` the number of runs at once.
    `rate` is a learning rate and `seeds` a number of seeds in place of the budget's; `settings` are arguments of the
    class, or settings of the registered model.
    """
    if budget not in BUDGETS:
        raise unknown("budget", budget, BUDGETS)
    whole_number("jobs", jobs, 1, 256)
    whole_number("seeds", seeds, 0, 100)  # 0: the budget's
    subject = find_candidate(model, name, settings)
    module = subject.fresh()
    report, size = check(module, vocab_size=vocabulary(module, TOKENS), length=LENGTH), counts(module)
    for line in report:
        if line.verdict == FAIL:
            say(f"check · {subject.name} · {line.check}: {line.says}")
    stacks = controls(size) if BUDGETS[budget].makes_controls else {}
    roles = {subject.name: "candidate"} | {stack: settings.pop("role") for stack, settings in stacks.items()}
    requests = [{"base": "looped", "name": stack, **settings} for stack, settings in stacks.items()]
    by_task = plan(budget, [subject.request, *requests], text, rate, seeds)
    configs = [config for group in by_task.values() for config in group]
    again = [replace and config.model == subject.name for config in configs]  # and no control
    outcomes = iter(train(configs, subject, jobs, again))
    pairs = {task: list(zip(group, outcomes)) for task, group in by_task.items()}
    machine = next((device_of(run) for group in pairs.values() for _, run in group if isinstance(run, Record)), "")
    card = Card(
        name=subject.name,
        budget=budget,
        date=records.now(),
        machine=machine,
        counts=size,
        check=[CheckLine(check=line.check, verdict=line.verdict, says=line.says) for line in report],
        tasks=[result(task, budget, size, group, roles) for task, group in pairs.items()],
    )
    card = with_verdicts(card) if stacks else card
    write(card, folder() / f"{subject.name}-{budget}")
    return card


def ladder(jobs: int = 1, seeds: int = 0) -> None:
    """Record the models that `quick` compares with."""
    configs = [config for each in plan("quick", list(LADDER), seeds=seeds).values() for config in each]
    train(configs, Candidate("ladder", "ladder", nn.Identity), jobs, [False] * len(configs))
