"""A run is a function of its configuration: found by it, or made now.  Torch is imported when one must be made."""

import fcntl
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import pandas as pd

from rtx_core import records
from rtx_core.data.config import DataConfig
from rtx_core.data.sources import sha256_of
from rtx_core.deprecated import warn_renamed
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import RunConfig, configure, distinct, find_experiment, sweep
from rtx_core.experiments.cost import announcement
from rtx_core.experiments.weights import find_record, load_weights, run_dir, save_run
from rtx_core.models import registry
from rtx_core.models.configs import least_parameters
from rtx_core.paths import BOOK, build, home, write_atomically
from rtx_core.progress import Interrupted, Interrupts
from rtx_core.progress import say as print_line
from rtx_core.records import Record, fingerprint, schema
from rtx_core.study import declaration

OUT_OF_MEMORY = ("DefaultCPUAllocator", "size calculation overflowed", "array is too big", "Maximum allowed dimension")
RESUMES = "The same command goes on from the last checkpoint, where there is one."


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


class RunSet(list[Run]):
    """Runs in the order of settings, models, seeds; in the book those that are not recorded are left out."""

    def __init__(self, configs: list[RunConfig], runs: list[Run]):
        super().__init__(runs)
        self.configs = configs  # of all that were requested

    def records_for(self, model: str) -> list[Record]:
        """The records of one model, a seed each."""
        return [run.record for run in self if run.record["model"] == model]

    def of(self, model: str) -> list[Record]:
        warn_renamed("runs.of", "runs.records_for")
        return self.records_for(model)

    @property
    def asked(self) -> list[RunConfig]:
        warn_renamed("runs.asked", "runs.configs")
        return self.configs

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
    name: str | DataConfig, /, models=None, seeds=None, replace=False, only_recorded=False, **settings: object
) -> RunSet:
    """Every run of these models, seeds and settings, a list of which is swept; what is not recorded is trained now, or
    with `only_recorded` left out.  The settings are those of `run`."""
    configs = run_configs(name, models, seeds, **settings)
    sources = () if only_recorded else ("embedded",) if os.environ.get(BOOK) else None
    return RunSet(configs, _find_or_train(configs, replace, sources))


def run_configs(name: str | DataConfig, /, models=None, seeds=None, **settings: object) -> list[RunConfig]:
    """The configurations of these runs, in the order of settings, models, seeds."""
    experiment = find_experiment(name)
    experiment.data.check()
    if "seed" in settings:
        raise RtxError(f"seed is {settings['seed']!r:.40}; `runs` expects a list, seeds=[0, 1].")
    models = distinct("models", experiment.default_models if models is None else models)
    seeds = distinct("seeds", experiment.seeds if seeds is None else seeds)
    combinations = product(sweep(settings), models, seeds)
    return [configure(name, model, seed, **combination) for combination, model, seed in combinations]


def run(name: str | DataConfig, model: str | Mapping = "recurrent", seed=0, replace=False, **settings: object) -> Run:
    """One run, found or made now, of an experiment or of data of your own (`data.from_files`, `data.from_text`, or a
    subclass of `data.SequenceTask`).  A recorded one is made again only with `replace=True`.

    `settings` are of the data (`source`, `fraction`, `block_size`, …), of training (`epochs` or `steps`, `batch_size`,
    `learning_rate`, …) and of the model (`num_layers`, `num_passes`, `hidden_size`, …), or `recipe`, `budget`, `device`
    and `compile`: `rtx.settings_of(name, model)` lists all of them with type, default and meaning.
    """
    find_experiment(name).data.check()
    return _find_or_train([configure(name, model, seed, **settings)], replace)[0]


def _find_or_train(configs: list[RunConfig], replace: bool, sources: tuple[str, ...] | None = None) -> list[Run]:
    """These runs, found or made now, which is announced; of `sources` alone, where they are given, one is made."""
    if type(replace) is not bool:
        raise RtxError(f"replace is {replace!r:.40}; expected True or False.")
    existing = [None if replace else find_record(config) for config in configs]
    missing = [c for c, record in zip(configs, existing) if not record and (sources is None or c.source in sources)]
    if missing:
        announce(missing)
    pairs = [(c, record) for c, record in zip(configs, existing) if record or c in missing]
    return [Run(config, record) if record else train_and_record(config, replace) for config, record in pairs]


def announce(configs: list[RunConfig]) -> None:
    """Say which runs follow, and about how long they take."""
    import torch

    on_gpu = configs[0].device == "cuda" or (configs[0].device == "auto" and torch.cuda.is_available())
    print_line(announcement(configs, "cuda" if on_gpu else "cpu"))


@contextmanager
def as_rtx_error() -> Iterator[None]:
    """What the machine refuses inside (memory, disk) ends in one sentence; the checkpoint stays."""
    import torch
    from safetensors import SafetensorError

    try:
        yield
    except torch.OutOfMemoryError as error:
        reason, do = str(error).partition(". ")[0], "lower batch_size, raise micro_batches, or use device='cpu'"
        raise RtxError(f"The GPU has too little memory for this run ({reason}); {do}.  {RESUMES}") from error
    except torch.AcceleratorError as error:
        if "capture" not in str(error):
            raise
        problem = "This model's step cannot be captured as a CUDA graph, since it moves data from the CPU while it runs"
        raise RtxError(f"{problem}; leave out compile, or make constants on the GPU once.") from error
    except (MemoryError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].partition(". Error code")[0]
        reason = reason.rpartition("DefaultCPUAllocator: ")[2].replace(". ", " ")
        if type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise RtxError(f"torch.compile fails ({reason}); install a C++ compiler, or leave out compile.") from error
        if isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY):
            raise RtxError(
                f"This machine has too little memory ({reason:.200}); lower batch_size or the sizes of data and model."
            ) from error
        raise
    except (OSError, SafetensorError) as error:
        raise RtxError(f"A file was refused ({error}); make room, or make its folder writable.  {RESUMES}") from error


@contextmanager
def record_lock(record: Path, content: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the name of a record, so that nobody else writes it or its checkpoint, while the process lives.  `content`
    stays in the lock for `rtx doctor`: the run's folder, and the command that goes on."""
    lock = build() / "locks" / "-".join(record.relative_to(home()).with_suffix("").parts)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "a", encoding="utf-8") as file:  # not "w", which would empty the file of whoever holds it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is training this; waiting until it is done")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(content)
        file.flush()
        yield


@contextmanager
def resume_advice(checkpoint: Path, command: str, say: Callable[[str], None]) -> Iterator[None]:
    """Where a signal ends the run, say what is saved and what to type."""
    try:
        yield
    except Interrupted as stop:
        where = str(stop) or (
            "stopped after its last checkpoint" if checkpoint.exists() else "stopped before the first step"
        )
        say(f"{where}; {'to go on' if checkpoint.exists() else 'to begin again'}: {command}")
        raise


def prepare(config: RunConfig, device) -> tuple:
    """(task, model): the data of a run and a fresh model for them; one too large for this machine is refused."""
    from rtx_core.experiments.dry_run import try_task
    from rtx_core.models.build import build_model
    from rtx_core.train.device import memory

    task = config.data.task(config.train.batch_size, config.train.micro_batches)
    registered = registry.find(config.architecture)
    derived = {name: value for name, value in task.model_settings.items() if name in registered.config.names()}
    settings = derived | config.overrides
    if isinstance(registered.kind, str):
        parameters, available = least_parameters(registered.config.replace(**settings)), memory(device)
        required = 16 * parameters  # a weight, its gradient and AdamW's two means, of 4 bytes each
        if required > available:
            has = f"{config.model} would have {parameters:,} parameters or more, which take {required / 2**30:,.0f} GiB"
            raise RtxError(f"{has} to train, and this machine has {available / 2**30:,.0f}; choose smaller sizes.")
    model = build_model(config.architecture, seed=config.seed, **settings)
    vocab_size = getattr(getattr(model, "config", None), "vocab_size", None)
    tokens = 1 + max(int(part.ids.max()) for part in task.parts.values()) if task.classes and vocab_size else 0
    if vocab_size and vocab_size < tokens:
        problem = f"vocab_size is {vocab_size:,}, and these texts have {tokens:,} tokens"
        raise RtxError(f"{problem}; give {tokens:,} or more.")
    if fingerprint.is_elsewhere(type(task).__module__):
        try_task(task, model, config.train, device)
    return task, model


@as_rtx_error()
def train_and_record(config: RunConfig, replace: bool = False) -> Run:
    """Train, evaluate and record one run, or go on with it; another process that makes it is waited for."""
    from rtx_core.experiments.dry_run import dry_run
    from rtx_core.experiments.threads import set_threads
    from rtx_core.fast.layers import compile_layers
    from rtx_core.train.device import choose, reset_peak_memory
    from rtx_core.train.trainer import train

    made_by = fingerprint.commit()  # now: the files may change while a long run goes on
    device = choose(config.device)
    reset_peak_memory(device)
    task, model = prepare(config, device)
    registered = registry.find(config.architecture)
    config_fields = {"architecture": config.architecture, "model": model.config.model_dump(mode="json")}
    config_fields |= {"data": config.data.model_dump(mode="json") | {"source": task.facts["source"]}}
    config_fields |= {"train": config.train.model_dump()} | ({"compile": config.compile} if config.compile else {})
    key = schema.run_key(config_fields, task.facts["sha256"], config.seed)
    folder = run_dir(config.name, config.model, config.seed, key)
    task_class = fingerprint.task_of(config.data, task)
    code_hash = fingerprint.run_hash(config.architecture, task_class)
    user_code = not isinstance(registered.kind, str) or fingerprint.is_elsewhere(task_class.__module__)
    version = f"-{code_hash[:8]}" if user_code else ""  # an edited class begins anew
    file = folder / f"checkpoint{version}.safetensors"
    identity = {name: getattr(config, name) for name in records.NAMES}
    path = records.path_for(identity | {"data": task.facts})
    if path.parent.is_symlink():
        raise RtxError(f"{path.parent} is a symbolic link, in which no record is read; put a folder there.")

    def say(line: str) -> None:
        print_line(f"{config.name} · {config.model} · seed {config.seed} · {line}")

    if not made_by["commit"]:
        say("no commit of this code is known to git, so the record will name its code by a hash alone")
    command = command_of(config, replace)
    lock_note = f"{folder.relative_to(build())}\n{command}\n"
    with Interrupts() as interrupts, resume_advice(file, command, say), record_lock(path, lock_note, say):
        folders = (path.parent, path.parents[1] / "weights" / config.name)
        for leftover in [*folder.glob(".*"), *(file for place in folders for file in place.glob(f".{path.stem}.*"))]:
            if not leftover.is_dir():
                leftover.unlink(missing_ok=True)  # of writes that were killed
        if not replace and (record := find_record(config)):  # by somebody else meanwhile
            return Run(config, record)
        same_name = records.records(name=config.name, source=task.facts["source"])
        if others := [record for record in same_name if record["data"]["sha256"] != task.facts["sha256"]]:
            say(f"these are other texts than those of {others[0]}, by their hash: do not compare the two")
        if not isinstance(registered.kind, str):
            dry_run(config.architecture, model.config, task, config.train, device)
        if not file.exists():
            threads = set_threads(config, model, task, device)
            say(f"threads of the CPU: {threads} (OMP_NUM_THREADS sets another number)")
        arguments = (config.train, config.seed, device, file, code_hash, say)
        way = compile_layers(model, config.compile)
        progress, best = train(model, task, *arguments, compile=way, interrupts=interrupts)
        say("testing, and measuring how long an answer takes")
        results, predictions = evaluate_run(model, task, config, device, progress, best, folder, key)
        content = {"schema": schema.VERSION, "key": key} | identity
        content |= {"asked": {"model": config.model_spec, "settings": config.settings}}
        content |= {"config": config_fields, "data": task.facts}
        results |= {
            "code": made_by | {"hashes": progress.codes, "task": fingerprint.name_of(task_class)},
            "seconds": progress.seconds,
            "finished": records.now(),
        }
        record = save_run(config, content | results, predictions, folder)
        for leftover in folder.glob("checkpoint*.safetensors"):  # of other versions of a class, too
            leftover.unlink(missing_ok=True)
        say(f"{record.score} in {progress.seconds / 60:.1f} min")
        return Run(config, record)


def evaluate_run(model, task, config: RunConfig, device, progress, best: dict, folder: Path, key: str) -> tuple:
    """(what a record says of a trained model, predictions or None); the `best` weights go to the run's folder."""
    from rtx_core.models.build import count_parameters, save_model
    from rtx_core.train.device import environment, peak_memory_mib
    from rtx_core.train.trainer import autocast_of

    metadata = {"run_name": config.name, "run": key, "classes": task.classes, "unit": task.unit}
    metadata["max_length"] = getattr(config.data, "max_length", None)
    autocast, last = autocast_of(config.train.precision, device), deepcopy(model.state_dict())

    def test_of(rule: str) -> tuple:
        model.load_state_dict(best.get(rule, last))
        return task.test(model, device, autocast)

    results = {"history": progress.history, "selected": progress.selected("validation_loss")}
    if task.classes:  # what another rule of selection would have given
        test = test_of("validation_accuracy")[0]
        results["most_accurate"] = progress.selected("validation_accuracy") | {"test": test}
        tokenizer = task.tokenizer().to_str(pretty=True)
        write_atomically(folder / "tokenizer.json", tokenizer.encode())
        metadata["tokenizer"] = sha256_of([tokenizer])
    test, predictions = test_of("validation_loss")
    save_model(model, config.architecture, folder / "model.safetensors", **metadata)
    parameters = count_parameters(model)
    results |= {"parameters": parameters, "size_mb": parameters["total"] * 4 / 2**20, "test": test}
    results |= measure_run(model, task, config, device) | {"environment": environment(device)}
    results["latency"] = {"measured": results["latency"], "environment": results["environment"]}
    return results | {"peak_memory_mib": peak_memory_mib(device)}, predictions


def measure_run(model, task, config: RunConfig, device) -> dict:
    """A record's `latency`; of language models also its `samples` or `extra`."""
    from rtx_core.evaluate import generation, latency

    if config.data.labeled:
        return {"latency": latency.of_classifier(model, task, config.train, device, config.timed)}
    if not hasattr(model, "advance"):
        return {"latency": generation.latency_of_forward(model, task, device)}
    if config.data.generates == "stories":
        from rtx_core.evaluate import stories  # with scikit-learn, two seconds' work

        return stories.measure(model, task, device)
    if config.data.generates == "characters":
        return generation.of_characters(model, task, device)
    return generation.of_generated(model, task, device)


def command_of(config: RunConfig, replace: bool = False) -> str:
    """The line that makes this run, or goes on with it."""
    if config.experiment == "own-data" and not config.data.command_words:
        return f"the command, cell or script that began it, of the data {config.data.slug!r}"
    is_declared = config.architecture in declaration("RECURRENCES")  # which `run` finds by its name
    if not is_declared and not isinstance(registry.find(config.architecture).kind, str):
        return f"the command, cell or script that began it, with the class of {config.architecture!r}"
    model = config.model_spec if isinstance(config.model_spec, str) else f"models=[{json.dumps(config.model_spec)}]"
    words = [model, f"seed={config.seed}", *(f"{k}={json.dumps(v)}" for k, v in config.settings.items())]
    data_words = config.data.command_words if config.experiment == "own-data" else [config.experiment]
    return shlex.join(["python", "-m", "rtx_core", "run", *data_words, *words, *["--replace"] * replace])
