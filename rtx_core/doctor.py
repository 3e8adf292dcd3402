"""`python -m rtx_core doctor [--hub]`: is everything here that a run needs, and is what is here sound?  A line a finding.

A check is a function that yields findings.  It imports what it needs itself, so that a missing package spoils no other check.
"""

import argparse
import fcntl
import json
import os
import platform
import re
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

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, build, home

INSTALL = "python -m pip install -r requirements.lock"
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
        yield warning(f"There is an NVIDIA GPU that torch {torch.__version__} cannot use: its driver, or torch's build, does not fit", "nvidia-smi")
    else:
        yield ok(f"torch {torch.__version__} without a GPU: runs use {torch.get_num_threads()} threads of the CPU")
    if find_spec("flash_attn") is None:
        yield ok("flash-attn is not installed: attention uses torch's own kernels")
    elif gpu and usable("flash", torch.device("cuda"), torch.bfloat16, 0.0):
        yield ok(f"flash-attn {version('flash-attn')}")
    else:
        yield warning("flash-attn is installed and does not work with this torch and device: torch's own kernels are used")
    compiler = next((name for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name and shutil.which(name)), None)
    yield ok(f"torch.compile finds {compiler}") if compiler else warning("torch.compile, which benchmarks alone use, finds no C++ compiler")


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
    readers = {tuple(f"{c.folder}/{split}.parquet" for split in c.contents): reads("sources", "load", name, "mirror") for name, c in corpora.items()} | {
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

    commands, running = {}, set()
    for lock in sorted((build() / "locks").glob("*")):
        with open(lock, encoding="utf-8") as file:
            folder, command, *_ = [*file.read().splitlines(), "", ""]  # as `rtx_core.run.alone` left them
            commands[folder] = command
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                running.add(folder)
                yield ok(f"Held by a process that trains it now: {lock.name}")
    roots = [home() / "results", build() / "results"]
    recorded = {re.search(rb'"key": "(\w+)"|$', path.read_bytes())[1] for root in roots for path in root.rglob("*.json")}
    for folder in sorted({path.parent for path in (build() / "runs").glob("*/checkpoint*")}):
        steps = []
        for path in sorted(folder.glob("checkpoint*")) if folder.name not in running else []:
            try:
                with safe_open(path, framework="numpy") as file:
                    steps.append(json.loads(file.metadata()["state"])["progress"]["step"])
            except (OSError, SafetensorError, TypeError, KeyError, ValueError):
                yield warning(f"The checkpoint {folder.name}/{path.name} is damaged and will not be used")
        if folder.name.rpartition("-")[2].encode() in recorded:
            yield warning(f"{folder.name} is recorded and needs no checkpoint any more", f"rm {shlex.quote(str(folder))}/checkpoint*")
        elif folder.name not in running:
            at = f"at step {max(steps):,}" if steps else "without a sound checkpoint"
            yield warning(f"Unfinished {at}: {folder.name}", commands.get(folder.name) or "the command that began it")
    for path in (path for root in roots for path in root.rglob(".*") if path.is_file()):
        yield warning(f"A process was killed while it wrote {path.name}", f"rm {shlex.quote(str(path))}")


def records() -> Iterator[Finding]:
    """Every file of results/: its form, its name, its predictions, and whether it is by today's code."""
    from rtx_core.results import language, measurement, record, store
    from rtx_core.results.record import read_json

    root, seen, today = home() / "results", Counter(), Counter()
    kinds = {"language": ("language model", language, language.path_of)} | dict.fromkeys(measurement.MADE_BY, ("measurement", measurement, None))
    for path in sorted(root.rglob("*.json")):
        folder, *inside = path.relative_to(root).parts
        kind, module, place = kinds.get(folder, ("classifier", record, store.path_of))
        name = path.relative_to(root)
        try:
            if folder in ("data", "benchmarks") or not inside:
                read_json(path, needs=("code", "finished") if inside else ())
                continue
            made = module.read(path)
            if place and (there := place(made["data"]["source"], made["experiment"], made["model"], made["seed"])) != path:
                yield wrong(f"{name} holds the record of another run", shlex.join(["mv", str(path), str(there)]))
            if kind == "classifier" or path.with_suffix(".npz").exists():
                logits, labels = made.predictions["logits"], made.predictions["labels"]
                if len(labels) != made["test"]["n"] or abs((logits.argmax(1) == labels).mean() - made["test"]["accuracy"]) > 1e-9:
                    yield wrong(f"{name} has predictions that do not give its accuracy", f"git checkout {shlex.quote(str(path.with_suffix('')))}.*")
        except RtxError as error:
            yield wrong(str(error))
        else:
            seen[kind] += 1
            today[kind] += not made.note()
    for path in sorted(root.rglob("*.npz")):
        if not path.with_suffix(".json").exists():
            yield wrong(f"{path.relative_to(root)} holds predictions without a record", f"rm {shlex.quote(str(path))}")
    for kind, n in seen.items():
        said = f"results/ has {n} {kind}s" + (f", {n - today[kind]} made by other code than today's" if today[kind] < n else "")
        yield ok(said) if today[kind] == n else warning(said, "less README.md" if kind == "measurement" else "python -m rtx_core.paper")


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
    parser = argparse.ArgumentParser(prog="python -m rtx_core doctor", description="Is everything here that a run needs, and is what is here sound?")
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
