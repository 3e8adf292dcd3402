"""`python -m rtx_core doctor [--hub]`: is everything here that a run needs, and is what is here sound?  A line a finding.

A check is a function that yields findings.  It imports what it needs itself, so that a missing package spoils no other check.
"""

import argparse
import fcntl
import json
import os
import platform
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, build, home

if TYPE_CHECKING:  # needs packages that may be missing
    from rtx_core.results.record import Record

INSTALL = "python -m pip install -r requirements.lock"
RUNS = ("classifier", "language model")
LEAST, EASE = 1.5, 10.0  # GiB: two checkpoints of the largest classifier and a third while it is written; and several runs


@dataclass(frozen=True)
class Finding:
    level: str  # "ok", "warning", or "wrong", which fails the command
    said: str
    do: str = ""  # what to type

    def __str__(self) -> str:
        return f"{self.level:<8} {self.said}" + (f"  →  {self.do}" if self.do else "")


ok, warning, wrong = (partial(Finding, level) for level in ("ok", "warning", "wrong"))


def shortly(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# -- what a run needs --------------------------------------------------------------------------------------------------


def installed(name: str) -> str | None:
    try:
        return version(name).partition("+")[0]  # of torch, which build it is
    except PackageNotFoundError:
        return None


def packages() -> Iterator[Finding]:
    if sys.version_info >= (3, 11):
        yield ok(f"Python {platform.python_version()}")
    else:
        yield wrong(f"Python {platform.python_version()}, and 3.11 or newer is needed", "make PYTHON=/path/to/python3.11 test")
    lines = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = dict(line.split("==") for line in lines if "==" in line)
    found = {name: installed(name) for name in locked}
    if missing := [name for name, got in found.items() if got is None]:
        yield wrong(f"Not installed: {shortly(missing)}", INSTALL)
    if other := [f"{name} {got} instead of {locked[name]}" for name, got in found.items() if got not in (None, locked[name])]:
        yield warning(f"Other versions than in requirements.lock: {shortly(other)}", INSTALL)
    if found == locked:
        yield ok(f"The {len(locked)} packages are those of requirements.lock")


def backends() -> Iterator[Finding]:
    import torch

    from rtx_core.models.attention import usable

    gpu = torch.cuda.is_available()
    if gpu:
        yield ok(f"torch {torch.__version__} with {torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}")
    elif Path("/dev/nvidia0").exists():
        yield warning(f"Here is a GPU that torch {torch.__version__} cannot use: the driver, or torch's build, does not fit", "nvidia-smi")
    else:
        yield ok(f"torch {torch.__version__} without a GPU: runs use {torch.get_num_threads()} threads of the CPU")
    if find_spec("flash_attn") is None:
        yield ok("flash-attn is not installed: attention uses torch's own kernels")
    elif gpu and usable("flash", torch.device("cuda"), torch.bfloat16, 0.0):
        yield ok(f"flash-attn {version('flash-attn')}")
    else:
        yield warning("flash-attn is installed and does not work with this torch and device: torch's own kernels are used")
    compiler = next((name for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name and shutil.which(name)), None)
    yield ok(f"torch.compile finds {compiler}") if compiler else warning("torch.compile, which only benchmarks use, finds no C++ compiler")


def disk() -> Iterator[Finding]:
    place = next(folder for folder in (build(), *build().parents) if folder.exists())
    free = shutil.disk_usage(place).free / 2**30
    level = ok if free > EASE else warning if free > LEAST else wrong
    yield level(f"{free:,.1f} GiB free; a large run takes {LEAST}", "" if level is ok else f"du -sh {build()}/*")


def data() -> Iterator[Finding]:
    if not (root := os.environ.get("RTX_DATA")):
        yield warning("RTX_DATA is not set: real texts are fetched from the hub", "export RTX_DATA=/path/to/data")
        return
    from rtx_core.corpora.sources import CORPORA, Corpus

    def reads(module: str, function: str, *arguments: object) -> Callable[[], object]:
        return lambda: getattr(import_module(f"rtx_core.corpora.{module}"), function)(*arguments)

    corpora = {name: corpus for name, corpus in CORPORA.items() if isinstance(corpus, Corpus)}
    readers = {tuple(f"{c.folder}/{part}.parquet" for part in c.contents): reads("sources", "load", name, "mirror") for name, c in corpora.items()}
    readers |= {
        ("sst2/pooled_splits.parquet",): reads("splits", "parts", "sst2", "mirror", "published"),
        ("bert-base-uncased/vocab.txt",): reads("tokens", "vocabulary", "mirror", []),
        ("tinyshakespeare/input.txt",): reads("characters", "text", "mirror"),
        ("tinystories/train.parquet", "tinystories/validation.parquet"): reads("stories", "texts", "mirror"),
    }
    for files, read in readers.items():
        if absent := [file for file in files if not (Path(root).expanduser() / file).is_file()]:
            yield warning(f"RTX_DATA has no {' and no '.join(absent)}: what needs it cannot run here")
            continue
        try:
            read()
            yield ok(f"RTX_DATA: {' and '.join(files)} as expected, by hash")
        except RtxError as error:
            yield wrong(str(error))
        except ModuleNotFoundError as error:
            yield warning(f"{' and '.join(files)} cannot be checked without {error.name}", INSTALL)


def hub() -> Iterator[Finding]:
    from huggingface_hub import HfApi

    from rtx_core.corpora.sources import CORPORA, Corpus

    for name in (corpus.hub for corpus in CORPORA.values() if isinstance(corpus, Corpus)):
        try:
            HfApi().dataset_info(name, timeout=5)
            yield ok(f"The hub has {name}")
        except Exception as error:  # whatever the client raises, it comes to the same
            yield wrong(f"The hub does not give {name} ({type(error).__name__})", "export RTX_DATA=/path/to/data")


# -- what runs left ----------------------------------------------------------------------------------------------------


def unfinished() -> Iterator[Finding]:
    """Runs that go on now, checkpoints of those that do not, and what a killed process left half written."""
    from safetensors import SafetensorError, safe_open

    commands, running, roots = {}, set(), (home() / "results", build() / "results")
    for lock in sorted((build() / "locks").glob("*")):
        with open(lock, encoding="utf-8") as file:
            folder, command, *_ = [*file.read().splitlines(), "", ""]  # as `rtx_core.run.alone` left them
            commands[folder] = command
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                running.add(folder)
                yield ok(f"Held by a process that trains it now: {lock.name}")
    sound = (made for root in roots for _, kind, made in every(root) if kind in RUNS and not isinstance(made, RtxError))
    recorded = {made["key"] for made in sound if not made.note()}
    for folder in sorted({path.parent for path in (build() / "runs").glob("*/checkpoint*") if path.parent.name not in running}):
        steps = []
        for path in sorted(folder.glob("checkpoint*")):
            try:
                with safe_open(path, framework="numpy") as file:
                    steps.append(json.loads(file.metadata()["state"])["progress"]["step"])
            except (OSError, SafetensorError, TypeError, KeyError, ValueError):
                yield warning(f"The checkpoint {folder.name}/{path.name} is damaged and will not be used")
        if folder.name.rpartition("-")[2] in recorded:
            yield warning(f"{folder.name} is recorded and needs no checkpoint any more", f"rm {shlex.quote(str(folder))}/checkpoint*")
        else:
            at = f"at step {max(steps):,}" if steps else "without a sound checkpoint"
            yield warning(f"Unfinished {at}: {folder.name}", commands.get(folder.name) or "the command that began it")
    for path in (path for root in roots for path in root.rglob(".*") if path.is_file()):
        yield warning(f"A process was killed while it wrote {path.name}", f"rm {shlex.quote(str(path))}")


def every(root: Path) -> "Iterator[tuple[Path, str, Record | RtxError]]":
    """Every JSON file of a results folder: its path, its kind, and what is in it or wrong with it."""
    from rtx_core.results import language, measurement, record

    other = ("other file", record.read_json)
    kinds = {"data": other, "benchmarks": other, "language": ("language model", language.read)}
    kinds |= dict.fromkeys(measurement.MADE_BY, ("measurement", measurement.read))
    for path in sorted(root.rglob("*.json")):
        folder, *inside = path.relative_to(root).parts
        kind, read = kinds.get(folder, ("classifier", record.read)) if inside else other
        try:
            yield path, kind, read(path)
        except RtxError as error:
            yield path, kind, error


def records() -> Iterator[Finding]:
    """results/: forms, names and predictions, and how much of it is by today's code."""
    from rtx_core.results import language, store

    root, seen, today = home() / "results", Counter(), Counter()
    for path, kind, made in every(root):
        name = path.relative_to(root)
        if isinstance(made, RtxError):
            yield wrong(str(made))
            continue
        seen[kind] += 1
        today[kind] += kind == "other file" or not made.note()
        if kind in RUNS:
            address = (made["data"]["source"], made["experiment"], made["model"], made["seed"])
            if (there := (language if kind == "language model" else store).path_of(*address)) != path:
                yield wrong(f"{name} holds the record of another run", shlex.join(["mv", str(path), str(there)]))
        if kind == "classifier" or path.with_suffix(".npz").exists():
            try:
                right = made.arrays["logits"].argmax(1) == made.arrays["labels"]
            except RtxError as error:
                yield wrong(str(error))
                continue
            if len(right) != made["test"]["n"] or abs(right.mean() - made["test"]["accuracy"]) > 1e-9:
                yield wrong(f"{name} has predictions that do not give its accuracy", f"git checkout {shlex.quote(str(path.with_suffix('')))}.*")
    for path in sorted(root.rglob("*.npz")):
        if not path.with_suffix(".json").exists():
            yield wrong(f"{path.relative_to(root)} holds predictions without a record", f"rm {shlex.quote(str(path))}")
    for kind, n in seen.items():
        old = f", {n - today[kind]} made by other code than today's" if today[kind] < n else ""
        said, do = f"results/ has {n} {kind}s{old}", "python -m rtx_core.paper" if kind in RUNS else "less README.md"
        yield warning(said, do) if old else ok(said)


def git() -> Iterator[Finding]:
    from rtx_core.results.code import _git, code

    found = code()
    if found["commit"] is None:
        yield warning("No git repository is here: records will name no commit", "git init")
        return
    changed = (_git("status", "--porcelain", "results") or "").splitlines()
    yield ok(f"Commit {found['commit'][:9]}") if found["clean"] else warning(
        f"rtx_core is not as in commit {found['commit'][:9]}: records made now say so", "git status rtx_core"
    )
    if changed:
        yield warning(f"results/ has changes that are not committed: {len(changed)}", "git status results")


CHECKS = [packages, backends, disk, data, unfinished, records, git]


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core doctor", description="Is all here that a run needs, and is what is here sound?")
    parser.add_argument("--hub", action="store_true", help="ask the hub for the data sets, too")
    levels = Counter()
    for check in [*CHECKS, hub] if parser.parse_args(words).hub else CHECKS:
        for finding in survived(check):
            levels[finding.level] += 1
            print(finding, flush=True)
    print(", ".join(f"{levels[level]} {level}" for level in ("ok", "warning", "wrong")))
    sys.exit(1 if levels["wrong"] else 0)


def survived(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Its findings; what it dies of is one too."""
    try:
        yield from check()
    except ModuleNotFoundError as error:
        yield wrong(f"{error.name} is not installed: no {check.__name__} checked", INSTALL)
    except (RtxError, OSError, ValueError) as error:
        yield wrong(f"The check of {check.__name__} ended early: {error}")
