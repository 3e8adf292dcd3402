"""A run is a function of its configuration: found by it, or made now.  Torch is imported when something must be made.

rtx.run("sst2", "recurrent", seed=1, epochs=1)                   one run
rtx.runs("sst2", models=["baseline", "recurrent"], seeds=[0, 1])    several, as one table
"""

import json
import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial

import pandas as pd

from rtx_core import records, study
from rtx_core.data.config import FilesData
from rtx_core.data.sources import resolve, sha256_of
from rtx_core.errors import Busy, RtxError
from rtx_core.experiments.configure import RunConfig, configure, experiment, sweep
from rtx_core.experiments.lock import record_lock
from rtx_core.experiments.weights import MOST_KEPT, kept_at, load_weights, recorded, work
from rtx_core.models import registry
from rtx_core.paths import BOOK, build, write_atomically
from rtx_core.records import Record, fingerprint, schema

GOES_ON = "The same command goes on from the last checkpoint."


@dataclass(frozen=True)
class Run:
    """A recorded run and, where its weights still lie in `_build/runs/`, its model."""

    config: RunConfig
    record: Record

    @property
    def predictions(self) -> dict:
        return self.record.predictions

    @cached_property
    def model(self):
        """The trained model, in evaluation mode on the CPU."""
        return load_weights(self.record)


class Runs(list[Run]):
    """Runs in the order of settings, models, seeds; in the book those that are not recorded are left out."""

    def __init__(self, asked: list[RunConfig], found: list[Run]):
        super().__init__(found)
        self.asked = asked

    def of(self, model: str) -> list[Record]:
        return [run.record for run in self if run.record["model"] == model]

    @property
    def records(self) -> list[Record]:
        return [run.record for run in self]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(record["model"] for record in self.records))

    @property
    def frame(self) -> pd.DataFrame:
        """A row a run, as `rtx_core.records.results` gives them."""
        return records.frame(self.records)


def runs(
    name: str | FilesData, /, models: Sequence | None = None, seeds: Sequence | None = None, replace=False, **settings
) -> Runs:
    """Every run of these models, seeds and settings; a setting given as a list is swept.
    What is not recorded is trained now."""
    fixed = experiment(name)
    fixed.data.check()
    if odd := settings.keys() & {"seed", "model"}:
        raise RtxError(f"Unknown setting {min(odd)!r}: several runs take lists, {min(odd)}s=[…].")
    models = distinct("models", fixed.shown if models is None else models)
    seeds = distinct("seeds", fixed.seeds if seeds is None else seeds)
    asked = [configure(name, model, seed, **one) for one in sweep(settings) for model in models for seed in seeds]
    made: dict[int, Run | None] = {}
    for wait in (False, True):  # what another process is making comes last, and is waited for
        for n, config in enumerate(asked):
            if n not in made:
                with nullcontext() if wait else suppress(Busy):
                    made[n] = _run(config, replace, wait, train=not os.environ.get(BOOK))
    return Runs(asked, [found for _, found in sorted(made.items()) if found is not None])


def run(
    name: str | FilesData, model: str | Mapping = "recurrent", seed: int = 0, replace: bool = False, **settings: object
) -> Run:
    """One run, found or made now.  A recorded one is made again only with `replace=True`."""
    experiment(name).data.check()
    return _run(configure(name, model, seed, **settings), replace)


def _run(config: RunConfig, replace: bool, wait: bool = True, train: bool = True) -> Run | None:
    """A run, found or made now; without `train` one of real text is not made."""
    record = None if replace else recorded(config)
    if record is not None:
        return Run(config, record)
    return make(config, replace, wait) if train or resolve(config.data.source) == "embedded" else None


def distinct(name: str, values: object) -> list:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise RtxError(f"Parameter {name} is {values!r:.60}; expected a list, with papermill -y '{name}: [a, b]'.")
    if any(values.count(value) > 1 for value in values):
        raise RtxError(f"Parameter {name} is {values!r:.80}; every value may stand there once.")
    return list(values)


# -- making ------------------------------------------------------------------------------------------------------------


@contextmanager
def as_rtx_error() -> Iterator[None]:
    """What the machine refuses inside (memory, disk) ends in one sentence; the checkpoint stays."""
    import torch
    from safetensors import SafetensorError

    try:
        yield
    except torch.OutOfMemoryError as error:
        reason, do = str(error).partition(". ")[0], "lower batch_size, raise micro_batches, or use device='cpu'"
        raise RtxError(f"The GPU has too little memory for this run ({reason}); {do}.  {GOES_ON}") from error
    except (OSError, SafetensorError) as error:
        what = f"A file of this run cannot be read or written ({error})"
        raise RtxError(f"{what}; make room, or make its folder writable.  {GOES_ON}") from error


def try_out(model, task, config: RunConfig, where) -> None:
    """An error where a model of a class from elsewhere cannot read one step of the task;
    the model is not used again."""
    import torch

    from rtx_core.train.trainer import autocast_of

    inputs, targets = (part.to(where) for part in task.step(0, 0)[0])
    try:
        with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
            for training in (True, False):
                model.to(where).train(training)
                with autocast_of(config.train.precision, where):
                    objective, _ = task.loss(model, inputs, targets, max(1, targets.numel()))
                if training:
                    objective.backward()
            if hasattr(task, "answered"):
                task.answered(model, [(inputs.cpu(), targets.cpu())], where, nullcontext())
    except RtxError:
        raise
    except Exception as error:  # whatever it raises
        used, size = task.used_ids(), getattr(model.config, "vocab_size", math.inf)
        if used is not None and used[-1] >= size:
            what = f"its vocab_size is {size}, and the texts need {used[-1] + 1}"
        else:
            said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            what = f"{said}; expected a module with weights that maps {config.data.expects}"
        raise RtxError(f"{config.model} cannot be trained on this ({what}).") from error


@as_rtx_error()
def make(config: RunConfig, replace: bool = False, wait: bool = True) -> Run:
    """Train, evaluate and record one run; goes on where it was interrupted.

    Another process that makes it is waited for; without `wait` that is `Busy`.
    """
    from rtx_core import evaluate
    from rtx_core.models import build_model, count_parameters, save_model
    from rtx_core.train.device import choose, environment, peak_memory_mib, reset_peak_memory
    from rtx_core.train.trainer import autocast_of, train

    made_by = fingerprint.commit()  # now: the files may change while a long run goes on
    where = choose(config.device)
    reset_peak_memory(where)
    task = config.data.task(config.train.batch_size, config.train.micro_batches)
    fields = registry.find(config.architecture).config.names()
    decided = {key: value for key, value in task.model_settings.items() if key in fields}
    new = partial(build_model, config.architecture, seed=config.seed, **{**decided, **config.overrides})
    if not isinstance(registry.find(config.architecture).kind, str) or "vocab_size" in config.overrides:
        try_out(new(), task, config, where)
    model = new()
    described = {
        "architecture": config.architecture,
        "model": model.config.model_dump(),
        "data": config.data.model_dump(mode="json") | {"source": task.facts["source"]},
        "train": config.train.model_dump(),
    } | ({"compile": config.compile} if config.compile else {})
    key = schema.run_key(described, task.facts["sha256"], config.seed)
    folder = work(config.name, config.model, config.seed, key)
    file = folder / "checkpoint.safetensors"
    path = records.path_of(config.name, config.model, config.seed, task.facts["source"])

    def say(line: str) -> None:
        print(f"{config.name} · {config.model} · seed {config.seed} · {line}", flush=True)

    def record_it() -> Record:
        autocast = autocast_of(config.train.precision, where)
        about = {"run_name": config.name, "run": key, "classes": task.classes, "unit": task.unit}
        about["max_length"] = described["data"].get("max_length")
        if "validation_loss" in best:
            save_model(model, config.architecture, folder / "last.safetensors", **about)
        weights = {"last": deepcopy(model.state_dict())} | best

        def test_of(by: str) -> tuple:
            model.load_state_dict(weights.get(by, weights["last"]))
            return task.test(model, where, autocast)

        more = {}
        if task.classes:  # what another rule of selection would have given
            more["most_accurate"] = progress.selected("validation_accuracy") | {
                "test": test_of("validation_accuracy")[0]
            }
        test, predictions = test_of("validation_loss")
        if "batch_losses" in test:
            test["last_loss"] = test_of("last")[0]["loss"] if "validation_loss" in best else test["loss"]
            model.load_state_dict(weights.get("validation_loss", weights["last"]))
        file_of_weights = folder / "model.safetensors"
        save_model(model, config.architecture, file_of_weights, **about)
        if task.classes:
            task.tokenizer().save(str(folder / "tokenizer.json"))
        parameters = count_parameters(model)
        content = {
            "schema": schema.VERSION,
            "key": key,
            **{name: getattr(config, name) for name in records.NAMES},
            "asked": {"model": config.asked, "settings": config.given},
            "config": described,
            "data": task.facts,
            "parameters": parameters,
            "size_mb": parameters["total"] * 4 / 2**20,
            "history": progress.history,
            "selected": progress.selected("validation_loss"),
            "test": test,
            **more,
            **evaluate.beside_the_test(model, task, config, where),
            "environment": environment(where),
            "code": made_by | {"hashes": progress.codes},
            "seconds": progress.seconds,
            "peak_memory_mib": peak_memory_mib(where),
            "finished": records.now(),
        }
        fixed = study.experiments().get(config.experiment)
        kept = fixed is not None and fixed.keep_weights and config.data.source != "embedded"
        if kept := kept and parameters["total"] <= MOST_KEPT:
            content["weights"] = sha256_of([file_of_weights.read_bytes()])
        record = records.save(content, predictions)
        if kept:
            write_atomically(kept_at(record), file_of_weights.read_bytes())
        file.unlink(missing_ok=True)
        say(f"{record.score} in {progress.seconds / 60:.1f} min")
        return record

    about = f"{folder.relative_to(build())}\n{command_of(config, replace)}\n"
    with record_lock(path, about, wait, say):
        found = None if replace else recorded(config)  # by somebody else meanwhile
        if found is not None:
            return Run(config, found)
        code_hash = fingerprint.model_hash(config.architecture)
        asked = (config.train, config.seed, where, file, code_hash, say)
        progress, best = train(model, task, *asked, compile=config.compile)
        return Run(config, record_it())


def command_of(config: RunConfig, replace: bool = False) -> str:
    """The line that makes this run, or goes on with it."""
    if config.data.made_by:
        return config.data.made_by
    asked = config.asked if isinstance(config.asked, str) else f"models=[{json.dumps(config.asked)}]"
    words = [asked, f"seed={config.seed}", *(f"{k}={json.dumps(v)}" for k, v in config.given.items())]
    words += ["--replace"] * replace
    return shlex.join(["python", "-m", "rtx_core", "run", config.experiment, *words])
