"""A run is a function of (experiment, model, seed, protocol, data): found by that key, or made now.

    python -m rtx_core.run sst2 models=[baseline] seeds=[1]       makes the runs of these parameters, a notebook's own
    torchrun --nproc-per-node=2 -m rtx_core.run sst2 …            the same with two processes that share each batch
"""

import fcntl
import gc
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

import torch
import yaml
from safetensors import SafetensorError
from torch import nn

from rtx_core.corpora.dataset import Dataset, dataset
from rtx_core.errors import Busy, RtxError
from rtx_core.evaluation.latency import latency
from rtx_core.evaluation.metrics import logits_of, metrics
from rtx_core.language import LanguageSettings
from rtx_core.models import build_model, count_parameters, save_model
from rtx_core.models.serving import serving
from rtx_core.parameters import EXPERIMENTS, Settings
from rtx_core.parameters import settings as settings_of
from rtx_core.paths import build, home
from rtx_core.results import store
from rtx_core.results.code import code
from rtx_core.results.record import VERSION, Record, run_key
from rtx_core.training import checkpoint
from rtx_core.training.devices import device as choose_device
from rtx_core.training.devices import environment, peak_memory_mib, reset_peak_memory
from rtx_core.training.language import Progress as LanguageProgress
from rtx_core.training.loop import Progress, train
from rtx_core.training.protocol import Seeds, as_config
from rtx_core.training.step import autocast_of
from rtx_core.training.team import team, together


GOES_ON = "The same command goes on from the last checkpoint."


def work(settings: Settings, key: str) -> Path:
    """The folder of a run's checkpoint and weights."""
    return build() / "runs" / f"{settings.variant}-{key}"


def command_line(module: str, experiment: str, **values: object) -> str:
    """What one types to make a run; read back by YAML, as the commands read it."""
    said = (f"{name}={yaml.safe_dump([value], default_flow_style=True, width=1000).strip()[1:-1]}" for name, value in values.items())
    return shlex.join(["python", "-m", module, experiment, *said])


@contextmanager
def plainly() -> Iterator[None]:
    """What the machine refuses inside (memory, disk) ends in one sentence; the checkpoint stays."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        raise RtxError(f"The GPU has too little memory for this run ({reason}); lower batch_size or use device='cpu'. {GOES_ON}") from error
    except (OSError, SafetensorError) as error:
        raise RtxError(f"A file of this run cannot be read or written ({error}); make room, or make its folder writable. {GOES_ON}") from error


def lock_of(record: Path) -> Path:
    return build() / "locks" / "-".join(record.relative_to(home()).with_suffix("").parts)


@contextmanager
def alone(record: Path, about: str = "", wait: bool = False, say: Callable[[str], None] = print) -> Iterator[None]:
    """Hold the name of a record, so that nobody else writes it or its checkpoint.  The lock goes when the process does.

    `about` is left in the lock for `rtx_core.doctor`: the run's folder, and the command that goes on with it.
    """
    lock = lock_of(record)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "a", encoding="utf-8") as file:  # not "w", which would empty the file of whoever holds it
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if not wait:
                raise Busy(f"Another process is training {lock.name} now; wait for it, or stop it first.") from error
            say("another process is training this; waiting until it is done")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(about)
        file.flush()
        yield


@contextmanager
def claimed(records: ModuleType, address: tuple, key: str, about: str, wait: bool, say: Callable[[str], None]) -> Iterator[Record | None]:
    """Hold a record's name; gives the record if it need not be made: it is of this very run, and by today's code or new since asked.

    `records` is the store of classifiers or that of language models, `address` what its `find` takes.
    """
    mine, path, before = team(), records.path_of(*address), records.find(*address)

    def made() -> Record | None:
        found = records.find(*address)
        if found is not None and found["key"] != key and found != before:
            raise RtxError(
                f"{path.parent.name}/{path.name} was made by another process meanwhile, under other settings or on other data; "
                f"move it away to make this one."
            )
        return found if found is not None and found["key"] == key and (found != before or not found.note()) else None

    with alone(path, about, wait and mine.size == 1, say) if mine.first else nullcontext():  # a team that waited would lose its connection
        yield mine.told(made)


def place(device: str) -> torch.device:
    """The device of a run, with the peak of its memory counted from here."""
    where = choose_device(device)
    gc.collect()  # a model with CUDA graphs refers to itself, and would stay on the device until some later collection
    reset_peak_memory(where)
    return where


def progress_line(variant: str, name: str, seed: int) -> Callable[[str], None]:
    """A function that prints a line with the run's name before it."""
    return lambda line: print(f"{variant} · {name} · seed {seed} · {line}", flush=True)


@plainly()
def run(settings: Settings, name: str, seed: int, wait: bool = True) -> Record:
    """Train, evaluate and record one model with one seed; resumes if it was interrupted.

    If another process makes this run now, its record is waited for; without `wait`, that is `Busy`.
    """
    made_by = code()  # now: the files may change while a long run goes on
    where = place(settings.device)
    if settings.protocol.precision == "bf16" and where.type == "cpu":
        raise RtxError("precision='bf16' was asked for on the CPU, where classifiers train in 'fp32' only; use that or device='cuda'.")
    seeds = Seeds.of(seed)
    data = dataset(**settings.data)
    model = build_model(name, seed=seeds.initialization, num_labels=len(data.classes), **settings.overrides)
    config = {"model": asdict(model.config), "training": as_config(settings.protocol, seeds)}
    key = run_key(config, data.facts["sha256"], seed)
    folder = work(settings, key)
    mine = team()
    say = progress_line(settings.variant, name, seed) if mine.first else silent

    def recorded() -> Record:
        save_model(model, name, folder / "model.safetensors")
        logits = logits_of(model, data.test, where, autocast_of(settings.protocol.precision, where))
        content = described(settings, name, seed, config, data.facts, model, progress, where, made_by) | {
            "key": key,
            "protocol": "reduced" if settings.reduced else "report",
            "test": metrics(logits, data.test.labels),
            "latency": measure_latency(model, data, settings, where),
        }
        record = store.save(content, logits, data.test.labels)
        checkpoint.discard(folder / "checkpoint.safetensors")
        say(f"test accuracy {record['test']['accuracy']:.4f} in {progress.seconds / 60:.1f} min")
        return record

    address = (data.facts["source"], settings.variant, name, seed)
    about = f"{folder.name}\n{command_of(settings, name, seed)}\n"
    with claimed(store, address, key, about, wait, say) as found:
        if found is not None:
            say(f"recorded, test accuracy {found['test']['accuracy']:.4f}")
            return found
        progress = train(model, data, settings.protocol, seeds, where, folder / "checkpoint.safetensors", say)
        return mine.told(recorded)


def described(
    settings: Settings | LanguageSettings, name: str, seed: int, config: dict, facts: dict, model: nn.Module,
    progress: Progress | LanguageProgress, where: torch.device, made_by: dict,
) -> dict:  # fmt: skip
    """What every record says of its run, classifier or language model."""
    parameters = count_parameters(model)
    return {
        "schema": VERSION,
        "experiment": settings.variant,
        "model": name,
        "seed": seed,
        "config": config,
        "data": facts,
        "parameters": parameters,
        "size_mb": parameters["total"] * 4 / 2**20,
        "history": progress.history,
        "selected": {"step": progress.best_step, "validation_loss": progress.best_loss},
        "environment": environment(where),
        "code": made_by | {"fingerprints": progress.codes},
        "seconds": progress.seconds,
        "peak_memory_mib": peak_memory_mib(where),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def silent(line: str) -> None:
    """The progress of every process but the first."""


def command_of(settings: Settings, name: str, seed: int) -> str:
    """The line that makes this run, or goes on with it."""
    asked, usual = ({**vars(s), **vars(s.protocol)} for s in (settings, EXPERIMENTS[settings.experiment]))
    changed = {k: v for k, v in asked.items() if v != usual[k] and k not in ("models", "seeds", "protocol")}
    return command_line("rtx_core.run", settings.experiment, models=[name], seeds=[seed], **changed)


def make_all(asked: Iterable[tuple[object, str, int]], make: Callable[..., object]) -> None:
    """Make each of these runs: first those that nobody else makes now, so that processes side by side share them; then wait."""
    left = []
    for one in asked:
        try:
            make(*one, wait=False)
        except Busy:
            if team().size > 1:  # the processes of a team must all do the same
                raise
            left.append(one)
    for one in left:
        make(*one)


def runs(experiment: str, given: dict[str, object]) -> None:
    """Every run of these parameters."""
    chosen = settings_of(experiment, given)
    with together():
        make_all(((chosen, name, seed) for name in chosen.models for seed in chosen.seeds), run)


def measure_latency(model, data: Dataset, settings: Settings, where: torch.device) -> dict:
    """At batch 1 and at the protocol's batch size, on the test sentences."""
    autocast = autocast_of(settings.protocol.precision, where)
    return {
        "measured": latency(serving(model.eval()), data.test, (1, settings.protocol.batch_size), where, autocast),
        "environment": environment(where),
    }


if __name__ == "__main__":
    from rtx_core.evaluation.command import command

    command(runs, "EXPERIMENT")
