"""A run that is killed at whatever moment, or refused disk or memory, ends as one does that nobody disturbs."""

import errno
import json
import os
import random
import re
import resource
import signal
import sys
from contextlib import redirect_stdout
from functools import cache, partial
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from conftest import SERVER, refused, shrink
from safetensors.torch import load_file, save_file

import rtx_core as rtx
from rtx_core import records as store
from rtx_core.errors import RtxError
from rtx_core.models import build
from rtx_core.train import checkpoint, trainer

KILLED, LONG = -signal.SIGKILL, os.environ.get("RTX_LONG")  # all moments, for minutes, or three
COMMON = {"source": "embedded", "device": "cpu", "eval_every": 4}
RUNS = {
    "classifier": ("sst2", "recurrent", {"train_rows": 48, "batch_size": 8, "epochs": 2}),
    "language": ("shakespeare", "kausik", {"steps": 9, "batch_size": 4, "block_size": 16, "eval_batches": 2}),
}


def small(patch: pytest.MonkeyPatch) -> None:
    """Small models and corpora, a line and a checkpoint at every step."""
    shrink(patch)
    patch.setattr(trainer, "REPORT_SECONDS", 0)
    patch.setattr(trainer, "CHECKPOINT_SECONDS", 0)


def run(kind: str) -> None:
    experiment, model, settings = RUNS[kind]
    rtx.run(experiment, model, 0, **COMMON, **settings)


def records(home: Path) -> list[Path]:
    return list(home.rglob("results/**/*-seed0.json"))


def result(home: Path) -> dict:
    """Everything that a run leaves and that no clock, load or commit decides: record, predictions, weights."""
    (path,) = records(home)
    content = json.loads(path.read_text())
    for name in ("seconds", "peak_memory_mib", "finished", "latency", "code"):
        del content[name]
    for row in content["history"]:
        del row["seconds"]
    content |= {path.name: path.read_bytes() for path in home.rglob("results/**/*.npz")}
    for path in (home / "_build/runs").rglob("*.safetensors"):
        content[path.name] = {name: tensor.tolist() for name, tensor in load_file(path).items()}
    return content


def live(home: Path, log: Path, kind: str, dies_at: int | None) -> None:
    """A process of its own; `dies_at` 0 only lists its moments."""
    os.environ["RTX_HOME"] = str(home)
    os.environ.pop("RTX_DATA", None)
    torch.set_num_threads(1)
    small(pytest.MonkeyPatch())
    with open(log, "a", buffering=1) as file, redirect_stdout(file):
        if dies_at is not None:
            mortal(dies_at)
        run(kind)


def mortal(at: int) -> None:
    """Number the moments of the process's life, and SIGKILL it at one of them.

    A moment: in the middle of a step, before a file, which is written under another one, gets its name, or is removed.
    """
    home, passed = os.environ["RTX_HOME"], count(1)

    def moment(name: str) -> None:
        if next(passed) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        print("moment:", name)

    def hook(event: str, arguments: tuple) -> None:
        if event in ("os.rename", "os.remove") and str(arguments[0]).startswith(home):
            moment(f"{event} {Path(arguments[event == 'os.rename']).name}")

    step = torch.optim.AdamW.step
    torch.optim.AdamW.step = lambda self, *arguments: (moment("step"), step(self, *arguments))[1]
    sys.addaudithook(hook)


def start(home: Path, kind: str, dies_at: int | None = None):
    home.mkdir(parents=True, exist_ok=True)
    log = home / f"said-{len(list(home.glob('said-*')))}"
    log.touch()
    process = SERVER.Process(target=live, args=(home, log, kind, dies_at))
    process.start()
    return process, log


def lived(home: Path, kind: str, dies_at: int | None = None) -> tuple[int, str]:
    """(exit code, what was said) of a process that runs to its end."""
    process, log = start(home, kind, dies_at)
    process.join(120)
    return process.exitcode, log.read_text()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """kind -> what a run leaves that nobody disturbs, and the moments of its life."""

    @cache
    def lived_whole(kind: str) -> tuple[dict, list[str]]:
        home = tmp_path_factory.mktemp(f"whole-{kind}")
        code, said = lived(home, kind, dies_at=0)
        assert code == 0, said
        return result(home), re.findall("^moment: (.*)$", said, re.MULTILINE)

    return lived_whole


@pytest.mark.parametrize("kind", RUNS)
def test_killed_at_any_moment_and_started_again(kind, whole, tmp_path):
    expected, moments = whole(kind)
    named, draw = list(dict.fromkeys(moments)), random.Random(f"moments of a {kind}")
    record = next(name for name in named if name.endswith("-seed0.json"))
    few = ["step", "os.rename checkpoint.safetensors", record, "os.remove checkpoint.safetensors"]
    assert set(few) <= set(named) and moments[-1] == few[-1]  # after the record
    for name in named if LONG else few:
        at = draw.choice([i for i, other in enumerate(moments, start=1) if other == name])
        home = tmp_path / str(at)
        assert lived(home, kind, at)[0] == KILLED, name
        assert bool(records(home)) == (at == len(moments)), name
        code, said = lived(home, kind)
        assert code == 0 and result(home) == expected, (name, said)
        assert list(home.rglob("checkpoint*")) == [], name


def test_of_two_processes_with_one_run_the_second_waits_and_reads_the_first_ones_record(whole, tmp_path):
    processes = [start(tmp_path, "classifier") for _ in range(2)]
    for process, _ in processes:
        process.join(120)
    assert [process.exitcode for process, _ in processes] == [0, 0]
    assert sum("test accuracy" in log.read_text() for _, log in processes) == 1
    assert result(tmp_path) == whole("classifier")[0]


def full_disk(patch, owner, function: str, call: int = 1) -> None:
    """In one call no file may grow beyond 100 bytes: the system refuses half way, as a full disk does."""
    original, calls = getattr(owner, function), count(1)

    def called(*arguments, **options):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        if next(calls) == call:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            return original(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    patch.setattr(owner, function, called)


def at_step_7(patch, act) -> None:
    original, steps = torch.optim.AdamW.step, count(1)

    def step(self, *arguments):
        if next(steps) == 7:
            act(self)
        return original(self, *arguments)

    patch.setattr(torch.optim.AdamW, "step", step)


def not_a_number(optimizer) -> None:
    optimizer.param_groups[0]["params"][0].data.fill_(torch.nan)


READ_ONLY = Mock(side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS), "a file"))
NO_MEMORY = Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."))
REFUSALS = {
    "the last one is whole": partial(full_disk, owner=checkpoint, function="save_file", call=5),
    "make room, or": partial(full_disk, owner=build, function="write_atomically"),
    "make its folder": partial(full_disk, owner=store, function="write_json"),
    "Read-only file system": lambda patch: patch.setattr(store, "write_atomically", READ_ONLY),
    "The GPU has too little memory for this run (CUDA out of memory)": partial(at_step_7, act=NO_MEMORY),
    "Training diverged: the weights are no longer finite": partial(at_step_7, act=not_a_number),
}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_a_refusal_is_one_sentence_and_the_same_command_goes_on(sentence, whole, home, monkeypatch, capsys):
    small(monkeypatch)
    with monkeypatch.context() as patch, pytest.raises(RtxError, match=f"{re.escape(sentence)}[^\n]*$"):
        REFUSALS[sentence](patch)
        run("classifier")
    assert records(home) == [] and capsys.readouterr()
    run("classifier")
    assert "resumed at step" in capsys.readouterr().out and result(home) == whole("classifier")[0]


def saved(path: Path, inputs: int = 3):
    """A model and its optimizer after a step, with their checkpoint in `path`."""
    model = torch.nn.Linear(inputs, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(inputs)).sum().backward()
    optimizer.step()
    checkpoint.save(path, model, optimizer, {"weight": model.weight.detach().clone()}, {"step": 7})
    return model, optimizer


UNUSABLE = {
    "damaged": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "size mismatch": lambda path: saved(path, inputs=4),
    "'state'": lambda path: save_file(load_file(path), path, metadata={"another": "file"}),
}


@pytest.mark.parametrize("said", UNUSABLE)
def test_what_cannot_be_used_is_one_sentence_and_stays(said, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    model, optimizer = saved(path)
    best, state = checkpoint.load(path, model, optimizer)
    assert state == {"step": 7} and torch.equal(best["weight"], model.weight)
    UNUSABLE[said](path)
    content = path.read_bytes()
    with refused("checkpoint.safetensors", "delete it", said):
        checkpoint.load(path, model, optimizer)
    assert path.read_bytes() == content
