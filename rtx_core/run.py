"""A run is a function of (experiment, model, seed, protocol, data): found by that key, or made now.

    python -m rtx_core.run sst2 models=[baseline] seeds=[1]       makes the runs of these parameters, a notebook's own
    torchrun --nproc-per-node=2 -m rtx_core.run sst2 …            the same with two processes that share each batch
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import torch

from rtx_core.corpora.dataset import Dataset, dataset
from rtx_core.errors import Busy, RtxError
from rtx_core.evaluation.latency import latency
from rtx_core.evaluation.metrics import logits_of, metrics
from rtx_core.models import build_model, count_parameters, save_model
from rtx_core.models.serving import serving
from rtx_core.parameters import Settings
from rtx_core.parameters import settings as settings_of
from rtx_core.paths import build
from rtx_core.results import store
from rtx_core.results.code import code
from rtx_core.results.record import VERSION, Record, run_key
from rtx_core.training import checkpoint
from rtx_core.training.devices import device as choose_device
from rtx_core.training.devices import environment, peak_memory_mib, reset_peak_memory
from rtx_core.training.loop import train
from rtx_core.training.protocol import Seeds, as_config
from rtx_core.training.step import autocast_of
from rtx_core.training.team import team, together


GOES_ON = "The same command goes on from the last checkpoint."


def work(settings: Settings, key: str) -> Path:
    """The folder of a run's checkpoint and weights."""
    return build() / "runs" / f"{settings.variant}-{key}"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the run's folder: two processes writing one checkpoint would spoil it.  The lock goes when the process does.

    What the machine refuses inside (memory, disk) ends in one sentence; the checkpoint stays.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy(f"Another process is training {folder.name} now; wait for it, or stop it first.") from error
            yield
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        raise RtxError(f"The GPU has too little memory for this run ({reason}); lower batch_size or use device='cpu'. {GOES_ON}") from error
    except OSError as error:
        raise RtxError(f"A file of this run cannot be read or written ({error}); make room, or make its folder writable. {GOES_ON}") from error


def place(device: str, precision: str) -> torch.device:
    """The device of a run, which must have the precision, with the peak of its memory counted from here."""
    where = choose_device(device)
    if precision == "bf16" and where.type == "cpu":
        raise RtxError("precision='bf16' was asked for on the CPU, where it is not supported; use 'fp32' or device='cuda'.")
    reset_peak_memory(where)
    return where


def progress_line(variant: str, name: str, seed: int) -> Callable[[str], None]:
    """A function that prints a line with the run's name before it."""
    return lambda line: print(f"{variant} · {name} · seed {seed} · {line}", flush=True)


def made_meanwhile(found: Record | None, key: str) -> Record | None:
    """The record if it is this very run by today's code: another process made it since this one looked."""
    return found if found is not None and found["key"] == key and not found.note() else None


def run(settings: Settings, name: str, seed: int) -> Record:
    """Train, evaluate and record one model with one seed; resumes if it was interrupted."""
    made_by = code()  # now: the files may change while a long run goes on
    where = place(settings.device, settings.protocol.precision)
    seeds = Seeds.of(seed)
    data = dataset(**settings.data)
    overrides = {"num_labels": len(data.classes), "residual": settings.residual}
    model = build_model(name, seed=seeds.initialization, **overrides)
    config = {"model": asdict(model.config), "training": as_config(settings.protocol, seeds)}
    key = run_key(config, data.facts["sha256"], seed)
    folder = work(settings, key)
    say = progress_line(settings.variant, name, seed)

    mine = team()

    def recorded() -> Record:
        save_model(model, name, folder / "model.safetensors")
        logits = logits_of(model, data.test, where, autocast_of(settings.protocol.precision, where))
        parameters = count_parameters(model)
        content = {
            "schema": VERSION,
            "key": key,
            "experiment": settings.variant,
            "model": name,
            "seed": seed,
            "protocol": "reduced" if settings.reduced else "report",
            "config": config,
            "data": data.facts,
            "parameters": parameters,
            "size_mb": parameters["total"] * 4 / 2**20,
            "history": progress.history,
            "selected": {"step": progress.best_step, "validation_loss": progress.best_loss},
            "test": metrics(logits, data.test.labels),
            "latency": measure_latency(model, data, settings, where),
            "environment": environment(where),
            "code": made_by | {"fingerprints": progress.codes},
            "seconds": progress.seconds,
            "peak_memory_mib": peak_memory_mib(where),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        record = store.save(content, logits, data.test.labels)
        checkpoint.discard(folder / "checkpoint.safetensors")
        say(f"test accuracy {record['test']['accuracy']:.4f} in {progress.seconds / 60:.1f} min")
        return record

    with alone(folder) if mine.first else nullcontext():
        finished = mine.told(lambda: made_meanwhile(store.find(data.facts["source"], settings.variant, name, seed), key))
        if finished is not None:
            return finished
        progress = train(model, data, settings.protocol, seeds, where, folder / "checkpoint.safetensors", say if mine.first else silent)
        return mine.told(recorded)


def silent(line: str) -> None:
    """The progress of every process but the first."""


def runs(experiment: str, given: dict[str, object]) -> None:
    """Every run of these parameters."""
    chosen = settings_of(experiment, given)
    with together():
        for name in chosen.models:
            for seed in chosen.seeds:
                run(chosen, name, seed)


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
