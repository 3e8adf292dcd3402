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
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn

from rtx_core import data, records
from rtx_core.benchmark import adapter
from rtx_core.benchmark.applications import place
from rtx_core.benchmark.card import Card, CheckLine, Counts, Point, TaskResult, folder, page, read, write
from rtx_core.benchmark.check import check
from rtx_core.benchmark.compare import places, with_verdicts
from rtx_core.benchmark.subject import Subject, definition, passes_argument, vocabulary
from rtx_core.benchmark.suite import BUDGETS, LADDER, NATS, PREFIX, TEXT, error, kilobits, of_evaluation
from rtx_core.data.config import name_parts
from rtx_core.errors import RtxError, reason, unknown
from rtx_core.experiments import cost
from rtx_core.experiments import run as runner
from rtx_core.experiments.configure import RunConfig
from rtx_core.models import registry
from rtx_core.models.build import build_model
from rtx_core.paths import write_atomically
from rtx_core.progress import say
from rtx_core.records import Record
from rtx_core.report.evidence import device_of

TOKENS = 61  # of the module that is checked and counted: no other size of it is likely to be that
LENGTH = 32
BITS = (8, 4)
MOST_PASSES = 12  # numbers of passes that are tried at test time


@dataclass(frozen=True)
class Contender:
    """A model to be benched: its name, what runs call it, a fresh module, and how another process registers it."""

    name: str
    requested: str | Mapping
    fresh: Callable[[], nn.Module]
    address: str = ""
    settings: Mapping[str, object] | None = None


def contender(model: object, name: str = "", settings: Mapping[str, object] | None = None) -> Contender:
    """What is benched, of a class, a function, or a word as `rtx check` takes it."""
    settings = dict(settings or {})
    parts = name_parts(settings)
    if isinstance(model, nn.Module):
        raise RtxError("Got one module; give its class, or a function that makes one for each task and seed.")
    if isinstance(model, str) and ":" not in model:
        if model in LADDER:
            settings = LADDER[model].settings | settings
        base = LADDER[model].base if model in LADDER else model
        size = {"vocab_size": TOKENS} if "vocab_size" in registry.find(base).config.names() else {}
        label = name or "-".join([model, *parts])
        request = {"base": model, "name": label} | settings if parts or name else model
        return Contender(label, request, lambda: build_model(base, seed=0, **settings | size))
    address = model if isinstance(model, str) else ""
    make = definition(address) if address else model
    if not callable(make):
        raise RtxError(f"Got {make!r:.60}; expected a class, or a function that makes an nn.Module.")
    label = name or "-".join([getattr(make, "__name__", "model"), *parts])
    adapter.register(label, make, settings)
    return Contender(label, label, lambda: adapter.module(make, settings, TOKENS, LENGTH), address, settings)


def counts(module: nn.Module) -> Counts:
    """Matrices outside the vocabulary's, and how often a forward pass applies them; of a model that does not run, once.

    The width is the size that most of their sides have.
    """
    tokens, found = vocabulary(module, TOKENS), dict(module.named_parameters())
    try:
        subject = Subject(module, tokens, LENGTH, 0)
        times, passes = subject.applications[0], max(1, subject.in_depth)
    except Exception:  # the check says why
        times, passes = dict.fromkeys((name for name in found if found[name].dim() > 1), 1), 1
    times = {name: n for name, n in times.items() if tokens not in found[name].shape}
    sizes = [size for name in times for size in found[name].shape] or [1]
    width = max(set(sizes), key=lambda size: (sizes.count(size), size))
    weights = max(1, sum(found[name].numel() for name in times))
    applied = max(weights, sum(found[name].numel() * n for name, n in times.items()))
    return Counts(weights=weights, applied=applied, width=width, passes=passes)


def controls(of: Counts) -> dict[str, dict]:
    """Stacks as deep as the model, at its width, and as large as it, therefore narrow; as settings of `looped`."""
    deep = {"as deep": (of.width, of.applied), "as large": (round((of.weights / of.depth / 12.25) ** 0.5), of.weights)}
    found = {}
    for role, (width, weights) in deep.items():
        width = max(4, round(width / 4) * 4)
        mlp = max(8, round((weights / of.depth / width - 4 * width) / 24) * 8)
        heads = 4 if width % 8 == 0 and width >= 64 else 2
        sizes = {"num_layers": of.depth, "hidden_size": width, "intermediate_size": mlp, "num_heads": heads}
        found[role] = {"base": "looped", "name": f"stack-{of.depth}-w{width}-m{mlp}", "rope_base": 100.0, **sizes}
        found[role]["num_passes"] = 1
    return found


def plan(budget: str, requests: list[str | Mapping], text: str = "") -> dict[str, list[RunConfig]]:
    """The configurations of all runs, by task."""
    found, chosen = {}, BUDGETS[budget]
    for task in dict.fromkeys([*chosen.tasks, *([TEXT] if text else [])]):
        settings, where = {"budget": budget}, f"{PREFIX}{task}"
        if task == TEXT and text:
            settings, where = {"steps": 2, "eval_every": 2} if budget == "trial" else {}, data.from_text(text)
        if chosen.rates:
            settings["learning_rate"] = list(chosen.rates)
        found[task] = runner.requested(where, models=requests, seeds=list(chosen.seeds), **settings)
    return found


def attempt(config: RunConfig, replace: bool) -> Record | str:
    """The record of a run, found or made now, or in one sentence why there is none."""
    try:
        return (None if replace else runner.recorded(config)) or runner.make(config, replace).record
    except RtxError as stop:
        return str(stop)
    except Exception as stop:
        return f"The run stopped ({reason(stop)})."


def _begin(name: str, address: str, settings: Mapping) -> None:
    torch.set_num_threads(1)
    if address:
        contender(address, name, settings)


def attempts(configs: list[RunConfig], of: Contender, jobs: int, replace: bool) -> Iterator[tuple[int, Record | str]]:
    """(which of the configurations, its record or why there is none), as they are done."""
    if jobs == 1:
        yield from ((i, attempt(config, replace)) for i, config in enumerate(configs))
        return
    if of.settings is not None and not of.address:
        raise RtxError("Several jobs need a model that another process can find; name it as file.py:Name, or jobs=1.")
    begin = (of.name, of.address, of.settings)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin, initargs=begin)
    try:
        waiting = {pool.submit(attempt, config, replace): i for i, config in enumerate(configs)}
        for done in as_completed(waiting):
            stop = done.exception()
            yield waiting[done], f"The run's process ended ({reason(stop)})." if stop else done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def train(configs: list[RunConfig], of: Contender, jobs: int, replace: bool) -> list[Record | str]:
    """Every run, with the time that is left; recorded ones are taken as they are."""
    known = records.records()
    found: list = [None if replace else runner.recorded(config) for config in configs]
    follow = [i for i, record in enumerate(found) if record is None]
    like = [cost.minutes(configs[i], known) or usual_minutes(configs[i], known) for i in follow]
    begin, done = perf_counter(), 0.0
    say(f"bench · {of.name} · {len(configs)} runs, {len(follow)} to train, about {cost.duration(sum(like) / jobs)}")
    for count, (i, outcome) in enumerate(attempts([configs[i] for i in follow], of, jobs, replace), 1):
        found[follow[i]], done = outcome, done + like[i]
        left = (sum(like) - done) * (perf_counter() - begin) / 60 / done
        said = outcome if isinstance(outcome, str) else outcome.score
        say(f"bench · {configs[follow[i]].name} · {said} · {count} of {len(follow)}, about {cost.duration(left)} left")
    return found


def usual_minutes(config: RunConfig, known: list[Record]) -> float:
    like = [r["seconds"] / 60 for r in known if (r["experiment"], r["name"]) == (config.experiment, config.name)]
    return max(like, default=1.0)


def at_best_rate(runs: list[Record]) -> list[Record]:
    """Those at the learning rate of the lowest mean validation loss."""
    by_rate: dict[float, list[Record]] = {}
    for record in runs:
        by_rate.setdefault(record["config"]["train"]["learning_rate"], []).append(record)
    return min(by_rate.values(), key=lambda each: np.mean([r["selected"]["validation_loss"] for r in each]))


def point(task: str, name: str, runs: list[Record], role: str = "recorded", size: Counts | None = None) -> Point:
    """A model on a task as the card shows it."""
    model, found = runs[0]["config"]["model"], [error(task, record) for record in runs]
    passes, layers = model.get("num_passes", 1), model.get("num_layers", 1)
    return Point(
        name=name,
        role=role,
        errors=[each for each, _ in found],
        answers=found[0][1],
        kilobits=[kilobits(record) for record in runs] if task == "facts" else [],
        weights=size.weights if size else runs[0]["parameters"]["non_embedding"],
        depth=size.depth if size else layers * passes,
        passes=size.passes if size else passes,
        rate=runs[0]["config"]["train"]["learning_rate"],
    )


def recorded(task: str, budget: str) -> dict[str, Point]:
    """Every recorded model on this task at this budget."""
    runs: dict[str, list[Record]] = {}
    for record in records.records(experiment=f"{PREFIX}{task}"):
        if (record.get("asked") or {}).get("settings", {}).get("budget") == budget:
            runs.setdefault(record["model"], []).append(record)
    return {name: point(task, name, at_best_rate(each)) for name, each in runs.items()}


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


def measured(task: str, run: runner.Run, passes: int) -> dict[str, list[tuple[int, float]]]:
    """The validation error with fewer and more passes than trained, and with rounded weights."""
    model, cpu = run.model, torch.device("cpu")
    examples = run.config.data.task(run.config.train.batch_size)

    def score(variant: nn.Module) -> float:
        return of_evaluation(task, examples.evaluate(variant, cpu, nullcontext()))

    found = {"rounded": [(32, score(model)), *((bits, score(rounded(model, bits))) for bits in BITS)], "passes": []}
    if passes > 1 and passes_argument(getattr(model, "module", model)):
        tried = sorted({round(n) for n in np.linspace(1, 2 * passes, min(2 * passes, MOST_PASSES))} | {passes})
        found["passes"] = [(n, score(AtPasses(model, n))) for n in tried]
    return found


def result(task: str, budget: str, size: Counts, outcomes: list[tuple], roles: Mapping[str, str]) -> TaskResult:
    """A task's part of the card, of the (configuration, record or problem) of its runs."""
    runs: dict[str, list[Record]] = {}
    problems = list(dict.fromkeys(found for _, found in outcomes if isinstance(found, str)))
    for config, found in outcomes:
        if isinstance(found, Record):
            runs.setdefault(roles[config.model], []).append(found)
    shown = {} if budget == "trial" else recorded(task, budget)
    others = [point(task, role, at_best_rate(each), role) for role, each in runs.items() if role != "own"]
    others += [each for name, each in shown.items() if name not in roles]
    found = TaskResult(task=task, unit="nats" if task in NATS else "error", others=others, problem=" ".join(problems))
    if "own" not in runs:
        return found
    best = at_best_rate(runs["own"])
    config = next(config for config, record in outcomes if record is best[0])
    own = point(task, config.model, best, "own", size)
    more = {"minutes": sum(r["seconds"] for r in runs["own"]) / 60, "memory_mib": best[0]["peak_memory_mib"]}
    try:
        more |= measured(task, runner.Run(config, best[0]), size.passes)
    except RtxError as lacking:
        more["problem"] = " ".join([*problems, str(lacking)])  # the weights of a run that was made elsewhere
    return found.model_copy(update={"own": own, "places": places(own, others, found.unit), **more})


def bench(
    model: object, /, budget="quick", *, name="", text="", jobs=1, replace=False, vocab_size=0, **settings: object
) -> Card:
    """Train a model on the suite at a budget ("quick", "standard" or "trial") and write its card.

    `name` is that of its records, `text` a file whose characters it reads as well, `jobs` the number of runs at once;
    `settings` are arguments of the class or settings of the registered model.
    """
    if budget not in BUDGETS:
        raise unknown("budget", budget, BUDGETS)
    if type(jobs) is not int or not 1 <= jobs <= 256:
        raise RtxError(f"jobs is {jobs!r:.40}; expected a number of runs at once, from 1 to 256.")
    of = contender(model, name, settings)
    module = of.fresh()
    report, size = check(module, length=LENGTH), counts(module)
    made = controls(size) if BUDGETS[budget].makes_controls else {}
    roles = {of.name: "own"} | {control["name"]: role for role, control in made.items()}
    by_task = plan(budget, [of.requested, *made.values()], text)
    configs = [config for each in by_task.values() for config in each]
    outcomes = list(zip(configs, train(configs, of, jobs, replace)))
    tasks = []
    for task, each in by_task.items():
        tasks.append(result(task, budget, size, [pair for pair in outcomes if pair[0] in each], roles))
    machine = next((device_of(found) for _, found in outcomes if isinstance(found, Record)), "")
    lines = [CheckLine(check=line.check, verdict=line.verdict, says=line.says) for line in report]
    card = Card(name=of.name, budget=budget, made=records.now(), machine=machine, counts=size, check=lines, tasks=tasks)
    card = with_verdicts(card) if made else card
    write(card, folder() / f"{of.name}-{budget}")
    return card


def ladder(jobs: int = 1) -> None:
    """Record the models that `quick` compares with."""
    configs = [config for each in plan("quick", list(LADDER)).values() for config in each]
    train(configs, Contender("ladder", "ladder", nn.Identity), jobs, replace=False)


def compare(*files: str) -> Path:
    """A page that draws two cards together, of the JSON of each."""
    if len(files) != 2:
        raise RtxError(f"Got {len(files)} cards to compare; give the JSON files of two.")
    cards = [read(file) for file in files]
    path = folder() / f"{cards[0].name}-and-{cards[1].name}.html".replace("/", "-")
    write_atomically(path, page(*cards).encode())
    return path
