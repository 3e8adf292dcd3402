"""A run that is killed at whatever moment, or refused disk or memory, ends as one does that nobody disturbs."""

import errno
import io
import json
import os
import random
import re
import resource
import signal
import sys
import threading
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
from rtx_core import progress
from rtx_core import records as store
from rtx_core.__main__ import main
from rtx_core.data import tasks
from rtx_core.errors import RtxError
from rtx_core.models import build
from rtx_core.progress import Interrupted, Interrupts
from rtx_core.records.released import tensors_sha256
from rtx_core.train import checkpoint, trainer

KILLED, LONG = -signal.SIGKILL, os.environ.get("RTX_LONG")  # all moments, for minutes, or three
COMMON = {"device": "cpu", "eval_every": 4}
EMBEDDED = {"source": "embedded"}
LANGUAGE = {"steps": 9, "batch_size": 4, "block_size": 16, "eval_batches": 2}
RUNS = {
    "classifier": ("sst2", "recurrent", EMBEDDED | {"train_rows": 48, "batch_size": 8, "epochs": 2}),
    "language": ("shakespeare", "kausik", EMBEDDED | LANGUAGE),
    # whose weights are kept beside the record
    "hops": ("khop", "1x1", {"steps": 4, "batch_size": 4, "eval_texts": 20, "test_texts": 20}),
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
    for path in home.rglob("results/weights/*/[!.]*"):
        content[str(path.relative_to(home))] = tensors_sha256(path.read_bytes())
    for path in (home / "_build/runs").rglob("*.safetensors"):
        content[path.name] = {name: tensor.tolist() for name, tensor in load_file(path).items()}
    return content


def live(home: Path, log: Path, kind: str, dies_at: int | None) -> None:
    """A process of its own; `dies_at` 0 only lists its moments."""
    os.environ["RTX_HOME"] = str(home)
    os.environ.pop("RTX_DATA", None)
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
    if kind == "hops":
        few = ["os.rename 1x1-seed0.safetensors", record]
        assert any(name.startswith("results/weights/") for name in expected)
    for name in named if LONG else few:
        at = draw.choice([i for i, other in enumerate(moments, start=1) if other == name])
        home = tmp_path / str(at)
        assert lived(home, kind, at)[0] == KILLED, name
        assert bool(records(home)) == (at == len(moments)), name
        for folder in () if records(home) else home.glob("_build/runs/*/*"):
            (folder / ".tmpAbC123").touch()  # as safetensors calls a file until it is whole
        code, said = lived(home, kind)
        assert code == 0 and result(home) == expected, (name, said)
        assert [*home.rglob("checkpoint*"), *home.rglob(".*")] == [], name


def test_of_two_processes_with_one_run_the_second_waits_and_reads_the_first_ones_record(whole, tmp_path):
    processes = [start(tmp_path, "classifier") for _ in range(2)]
    for process, _ in processes:
        process.join(120)
    assert [process.exitcode for process, _ in processes] == [0, 0]
    assert sum("test accuracy" in log.read_text() for _, log in processes) == 1
    assert result(tmp_path) == whole("classifier")[0]


SIGNALED = {  # what the process is in the middle of -> (what it says, the step at which the next one goes on)
    "AdamW.step": ("stopped at step 5 of 12, which is saved; to go on: python -m rtx_core run sst2 recurrent", 5),
    "Classification.evaluate": ("stopped at step 6 of 12, which is saved; to go on: ", 6),
    "Classification.test": ("stopped after its last checkpoint; to go on: ", 12),
}


def signaled(home: Path, log: Path, number: int, during: str, call: int) -> None:
    """The command line, in a process that sends itself a signal in the middle of a call; no checkpoint is due then."""
    os.environ["RTX_HOME"] = str(home)
    os.environ.pop("RTX_DATA", None)
    patch, calls = pytest.MonkeyPatch(), count(1)
    small(patch)
    patch.setattr(trainer, "CHECKPOINT_SECONDS", 999)
    owner, name = during.split(".")
    owner = getattr(torch.optim if name == "step" else tasks, owner)

    def called(*arguments, original=getattr(owner, name)):
        if next(calls) == call:
            os.kill(os.getpid(), number)
        return original(*arguments)

    patch.setattr(owner, name, called)
    words = [f"{key}={value}" for key, value in (COMMON | RUNS["classifier"][2]).items()]
    patch.setattr(sys, "argv", ["rtx", "run", *RUNS["classifier"][:2], *words])
    with open(log, "a", buffering=1) as file, redirect_stdout(file):
        main()


MOMENTS = [("AdamW.step", number) for number in progress.SIGNALS]
MOMENTS += [("Classification.evaluate", signal.SIGTERM), ("Classification.test", signal.SIGINT)]


@pytest.mark.parametrize("during, number", MOMENTS, ids=str)
def test_a_signal_ends_the_step_saves_and_ends_the_process_with_its_status(during, number, whole, tmp_path):
    said, step = SIGNALED[during]
    log = tmp_path / "said"
    call = {"AdamW.step": 5, "Classification.evaluate": 2}.get(during, 1)
    process = SERVER.Process(target=signaled, args=(tmp_path, log, number, during, call))
    process.start()
    process.join(60)
    assert process.exitcode == -number and said in log.read_text(), log.read_text()
    code, said = lived(tmp_path, "classifier")
    assert code == 0 and f"resumed at step {step} of 12" in said and result(tmp_path) == whole("classifier")[0]


def test_in_a_notebook_an_interrupt_is_a_keyboard_interrupt_and_the_run_goes_on(whole, home, monkeypatch, capsys):
    small(monkeypatch)
    before = [signal.getsignal(number) for number in progress.SIGNALS]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        at_step_7(patch, lambda optimizer: signal.raise_signal(signal.SIGINT))
        run("classifier")
    assert [signal.getsignal(number) for number in progress.SIGNALS] == before
    assert "stopped at step 7 of 12, which is saved" in capsys.readouterr().out
    run("classifier")
    assert "resumed at step 7" in capsys.readouterr().out and result(home) == whole("classifier")[0]


def test_before_the_first_step_nothing_is_said_to_be_saved(home, monkeypatch, capsys):
    small(monkeypatch)
    monkeypatch.setattr(trainer.Loop, "resume", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run("classifier")
    assert "stopped before the first step; to begin again: " in capsys.readouterr().out


def test_a_second_signal_has_its_usual_effect_at_once_and_what_is_ignored_stays_so():
    received, previous = [], [signal.getsignal(number) for number in progress.SIGNALS]
    signal.signal(signal.SIGTERM, lambda *_: received.append("SIGTERM"))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with pytest.raises(Interrupted), Interrupts() as interrupts, interrupts.deferred():
            for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):  # the last two are one request
                signal.raise_signal(number)
            assert received == []
            interrupts.received_at -= 2 * progress.ONE_REQUEST
            signal.raise_signal(signal.SIGTERM)
            assert received == ["SIGTERM"]
        assert received == 2 * ["SIGTERM"]  # at the end of the block
    finally:
        for number, handler in zip(progress.SIGNALS, previous):
            signal.signal(number, handler)


def test_in_another_thread_no_handler_is_set(whole, home, monkeypatch):
    small(monkeypatch)
    monkeypatch.setattr(signal, "signal", Mock(side_effect=ValueError))
    thread = threading.Thread(target=run, args=("classifier",))
    thread.start()
    thread.join(60)
    assert result(home) == whole("classifier")[0]


@pytest.mark.parametrize("encoding", ["iso8859-2", "euc-jp", "ascii"])
def test_what_a_terminal_cannot_show_or_take_stops_no_run(encoding, monkeypatch):
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding))
    progress.say("sst2 · step 1")
    assert buffer.getvalue().decode(encoding).replace("·", "?") == "sst2 ? step 1\n"
    sys.stdout.close()
    progress.say("sst2 · step 2")


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
