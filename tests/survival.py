"""Runs in processes of their own, a second each, that die, are refused something or pause where a test says."""

import errno
import json
import multiprocessing
import os
import re
import resource
import runpy
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch
from factory import tiny
from safetensors.torch import load_file

import rtx_core as rtx
from rtx_core import parameters
from rtx_core.corpora import characters, sources
from rtx_core.evaluation import generation
from rtx_core.language import LANGUAGE
from rtx_core.training import checkpoint, loop

SERVER = multiprocessing.get_context("forkserver")  # whose processes are copies of one that has imported torch and not used it yet
SERVER.set_forkserver_preload(["torch._dynamo", "pytest", "rtx_core.run_language", "rtx_core.pages.runs"])

GIVEN = {"models": ["recurrent"], "source": "embedded", "device": "cpu", "train_rows": 48, "batch_size": 8, "epochs": 2, "eval_every": 4}
COMMANDS = {
    "classifier": ["rtx_core.run", "sst2", *(f"{name}={json.dumps(value)}" for name, value in GIVEN.items())],
    "language": ["rtx_core.run_language", "shakespeare", "--run", "models=[kausik]", "seeds=[0]", "recipe=nanogpt", "source=embedded", "device=cpu",
                 "steps=9", "batch_size=4", "block_size=16", "eval_every=4", "eval_batches=2"],
}  # fmt: skip
EVALUATIONS = {"classifier": [4, 6, 8, 12], "language": [4, 8, 9]}  # steps


def shrink() -> None:
    """Small models and corpora, until the process ends."""
    patch = pytest.MonkeyPatch()
    tiny(patch)
    patch.setattr(characters, "EMBEDDED_CHARACTERS", 3000)
    patch.setattr(generation, "SAMPLED", 20)
    fixed, small = LANGUAGE["shakespeare"], {"hidden_size": 12, "num_heads": 2, "intermediate_size": 16, "num_layers": 1}
    patch.setitem(LANGUAGE, "shakespeare", replace(fixed, models={name: (model, small | told) for name, (model, told) in fixed.models.items()}))


# -- what a process does -------------------------------------------------------------------------------------------------


def command(module: str, *words: str) -> None:
    """`python -m module words`."""
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def page(experiment: str, given: dict) -> None:
    """What a notebook does."""
    for record in rtx.runs(rtx.settings(experiment, given)):
        print(f"shown: {record['test']['accuracy']:.4f}")


# -- what happens to it --------------------------------------------------------------------------------------------------


def often() -> None:
    """A line and a checkpoint at every step."""
    loop.REPORT_SECONDS = loop.CHECKPOINT_SECONDS = 0


def at_step(n: int, act: Callable[[torch.optim.Optimizer], None]) -> None:
    """Do something before the process's n-th optimizer step."""
    original, steps = torch.optim.AdamW.step, iter(range(1, 10**6))

    def step(self, *arguments):
        if next(steps) == n:
            act(self)
        return original(self, *arguments)

    torch.optim.AdamW.step = step


def other_corpus() -> None:
    """The same name for the data, and other texts."""
    sources.CORPORA["sst2"] = replace(sources.CORPORA["sst2"], embedded_rows={"train": 290, "validation": 60})


def small_plan() -> None:
    """The first run of the paper's plan is the classifier's above, but for its model."""
    usual = parameters.settings("sst2", GIVEN)
    parameters.EXPERIMENTS["sst2"] = replace(usual, models=["baseline", "recurrent"])


def die(optimizer: torch.optim.Optimizer) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def no_memory(optimizer: torch.optim.Optimizer) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1.00 GiB")


def not_a_number(optimizer: torch.optim.Optimizer) -> None:
    with torch.no_grad():
        optimizer.param_groups[0]["params"][0].fill_(torch.nan)


def pause(folder: Path, optimizer: torch.optim.Optimizer) -> None:
    """Until the test goes on."""
    (folder / "paused").touch()
    until((folder / "go").exists)


def full_disk(module: str, function: str, call: int = 1, room: int = 100) -> None:
    """In one call of a function no file may grow beyond `room` bytes: the system refuses the write half way, as a full disk does."""
    owner = import_module(module)
    original, calls = getattr(owner, function), iter(range(1, 10**6))

    def called(*arguments, **options):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        if next(calls) == call:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            return original(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    setattr(owner, function, called)


def read_only() -> None:
    """No file can be made in results/."""
    make = tempfile.mkstemp

    def mkstemp(*arguments, dir, **options):
        if "results" in Path(dir).parts:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir))
        return make(*arguments, dir=dir, **options)

    tempfile.mkstemp = mkstemp


def mortal(at: int = 0) -> None:
    """Number the moments of the process's life, and SIGKILL it at one of them; 0: at none, they are only listed.

    A moment: in the middle of a step, with half of a file written, before a file is given its name, before one is removed.
    """
    often()
    home, passed, opened = os.environ["RTX_HOME"], iter(range(1, 10**6)), []

    def moment(name: str) -> None:
        if next(passed) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        if not at:
            print("moment:", name)

    def hook(event: str, arguments: tuple) -> None:
        if event in ("open", "os.rename", "os.remove") and str(arguments[0]).startswith(home):
            name = re.sub(r"^\.|\.[a-z0-9_]{8}$|(?<=tokens-)\w+", "", Path(arguments[event == "os.rename"]).name)
            opened.append(name) if event == "open" else moment(f"{event} {name}")

    def fsync(handle: int) -> None:
        size = os.fstat(handle).st_size
        rest = os.pread(handle, size, size // 2)
        os.ftruncate(handle, size // 2)
        moment(f"half of {opened[-1]}")
        os.pwrite(handle, rest, size // 2)
        flush(handle)

    def save_file(tensors, file, metadata):
        write(tensors, file, metadata)
        os.truncate(file, file.stat().st_size // 2)
        moment("half of checkpoint.safetensors")
        write(tensors, file, metadata)

    flush, os.fsync = os.fsync, fsync
    write, checkpoint.save_file = checkpoint.save_file, save_file
    step = torch.optim.AdamW.step
    torch.optim.AdamW.step = lambda self, *arguments: (moment("step"), step(self, *arguments))[1]
    sys.addaudithook(hook)


# -- lives ---------------------------------------------------------------------------------------------------------------


@dataclass
class Life:
    """A process, and the file that holds what it says."""

    log: Path
    process: multiprocessing.Process

    @property
    def said(self) -> str:
        return self.log.read_text()

    def ends(self) -> int:
        """Its exit code; minus the signal's number if it was killed."""
        self.process.join(120)
        return self.process.exitcode


def born(home: Path, what: Callable[[], None], *happenings: Callable[[], None]) -> Life:
    """It begins."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / f"said-{len(list(home.glob('said-*')))}"
    log.touch()
    process = SERVER.Process(target=_live, args=(home, log, what, happenings))
    process.start()
    return Life(log, process)


def lived(home: Path, what: Callable[[], None], *happenings: Callable[[], None]) -> Life:
    """It begins and ends."""
    life = born(home, what, *happenings)
    life.ends()
    return life


def _live(home: Path, log: Path, what: Callable[[], None], happenings: tuple[Callable[[], None], ...]) -> None:
    os.environ["RTX_HOME"] = str(home)
    os.environ.pop("RTX_DATA", None)
    sys.stdout = sys.stderr = open(log, "a", buffering=1)
    torch.set_num_threads(1)
    shrink()
    for happen in happenings:
        happen()
    what()


def run(kind: str) -> Callable[[], None]:
    return partial(command, *COMMANDS[kind])


def until(true: Callable[[], bool]) -> None:
    for _ in range(1200):
        if true():
            return
        time.sleep(0.05)
    raise TimeoutError


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> dict[str, dict]:
    """kind -> what a run leaves that nobody disturbs."""
    homes = {kind: tmp_path_factory.mktemp(f"whole-{kind}") for kind in COMMANDS}
    assert [lived(home, run(kind)).ends() for kind, home in homes.items()] == [0, 0]
    return {kind: result(home) for kind, home in homes.items()}


# -- what they leave -----------------------------------------------------------------------------------------------------


def records(home: Path) -> list[Path]:
    return [*home.rglob("results/**/*-seed0.json")]


def result(home: Path) -> dict:
    """Everything that a run leaves and that no clock, load or commit decides: the record, the predictions, the weights."""
    (path,) = records(home)
    content = json.loads(path.read_text())
    for name in ("seconds", "peak_memory_mib", "finished", "latency", "code"):
        del content[name]
    for row in content["history"]:
        row.pop("seconds", None)
    content |= {path.name: path.read_bytes() for path in home.rglob("results/**/*.npz")}
    return content | {path.name: {k: v.tolist() for k, v in load_file(path).items()} for path in (home / "_build/runs").rglob("[lm]*.safetensors")}


def checkpoints(home: Path) -> list[Path]:
    """The newest first."""
    return sorted((home / "_build/runs").rglob("checkpoint*.safetensors"), key=lambda path: "previous" in path.name)
