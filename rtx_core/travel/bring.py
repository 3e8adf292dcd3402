"""Records made elsewhere, proven and then put into `results/`, all of them or none: `python -m rtx_core bring PATH`.

PATH is the `records.tar` of `python -m rtx_core away`, or a folder: another clone, or its `results/`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

import numpy as np

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, home, write_atomically
from rtx_core.results.record import read_json
from rtx_core.travel import bundle
from rtx_core.travel.proof import Proven, Today, prove

ROOTS = ("results/", "_build/results/")  # of real text and, never to meet it, of the embedded corpus


def bring(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core bring", description="Verify records made elsewhere and put them into results/.")
    parser.add_argument("path", type=Path, help="the records.tar of another machine, or a folder with results/ in it")
    parser.add_argument("--older", action="store_true", help="also records by other code than today's; pages will say so")
    parser.add_argument("--replace", action="store_true", help="also where there is another record of that name")
    parser.add_argument("--mixed", action="store_true", help="also where runs of the same variant were timed on another device")
    parser.add_argument("--book", action="store_true", help="then build the pages")
    chosen = parser.parse_args(words)

    found = taken(chosen.path)
    new = {stem: files for stem, files in grouped(found).items() if any(content_at_home(name) != found[name] for name in files)}
    proven = proofs(found, new)
    for one in proven:
        if one.note and not chosen.older:
            raise RtxError(f"{one.name} was {one.note}; run it again with today's code, or bring it with --older, and the pages will say so.")
        if (home() / one.name).exists() and not chosen.replace:
            raise RtxError(f"{one.name} is another record than the one of that name here; --replace puts it in its place.")
    here = staying(proven)
    one_data_set(proven, here)
    known_runs(proven, here)
    if not chosen.mixed:
        one_device(proven, here)
    put({name: found[name] for files in new.values() for name in files})
    for one in proven:
        print(one.said + (f" · {one.note}" if one.note else ""))
    there = len(grouped(found)) - len(proven)
    print(f"{len(proven)} brought" + (f", {there} were here already" if there else "") + ("" if chosen.book else ".  Next: jupyter-book build book"))
    if chosen.book:
        build_book()


def build_book() -> None:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # this environment's first
    program = shutil.which("jupyter-book", path=programs)
    if program is None or subprocess.run([program, "build", "book"], cwd=REPOSITORY).returncode:
        raise RtxError("The records are in results/, but jupyter-book did not build the pages; build them with `make book`.")


# -- what is there ----------------------------------------------------------------------------------------------------


def taken(path: Path) -> dict[str, bytes]:
    """What wants to come home: path from home -> content."""
    if not path.exists():
        raise RtxError(f"There is no {path}; name the records.tar of another machine, or a folder with results/ in it.")
    files = folder(path) if path.is_dir() else bundle.read(path, bundle.RECORDS)[1]
    for name in files:
        if not name.startswith(ROOTS) or PurePosixPath(name).suffix not in (".json", ".npz"):
            raise RtxError(f"{path.name} holds {name}, which is no record or predictions inside results/; nothing of it was taken.")
    if not files:
        raise RtxError(f"{path} holds no records; name the records.tar of another machine, or a folder with results/ in it.")
    return files


def folder(path: Path) -> dict[str, bytes]:
    """The records in a folder; those of the embedded corpus, in its `_build/`, stay where they are."""
    root, files = path / "results" if (path / "results").is_dir() else path, {}
    for where, folders, names in os.walk(root):
        for entry in sorted(Path(where) / name for name in (*folders, *names) if not name.startswith(".")):
            if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
                raise RtxError(f"{entry} is no plain file but a link or a device; put the file itself there.")
            if entry.is_dir():
                continue
            if entry.stat().st_size > bundle.LARGEST:
                raise RtxError(f"{entry} has {entry.stat().st_size:,} bytes, and a record {bundle.LARGEST:,} at most; it is none.")
            files[f"results/{entry.relative_to(root).as_posix()}"] = entry.read_bytes()
    return files


def grouped(files: dict[str, bytes]) -> dict[str, list[str]]:
    """Path without its ending -> a record and its predictions, which go together."""
    groups: dict[str, list[str]] = {}
    for name in sorted(files):
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return groups


def content_at_home(name: str) -> bytes | None:
    return (home() / name).read_bytes() if (home() / name).is_file() else None


# -- what is proven of all of them ------------------------------------------------------------------------------------


def proofs(found: dict[str, bytes], new: dict[str, list[str]]) -> list[Proven]:
    today = Today()
    with tempfile.TemporaryDirectory() as elsewhere:  # where the files are read as they would be at home
        for files in new.values():
            for name in files:
                write_atomically(Path(elsewhere) / name, found[name])
        for stem in new:
            if f"{stem}.json" not in found:
                raise RtxError(f"{stem}.npz has no record beside it; predictions alone say nothing.")
        return [prove(Path(elsewhere), f"{stem}.json", today) for stem in new]


def staying(proven: list[Proven]) -> list[tuple[str, dict]]:
    """The records here that stay: (path from home, content)."""
    replaced = {one.name for one in proven}
    paths = [path for root in ROOTS for path in sorted((home() / root).glob("**/[!.]*.json"))]
    return [(name, read_json(path)) for path in paths if (name := path.relative_to(home()).as_posix()) not in replaced]


def group(name: str, content: dict) -> tuple[str, str]:
    """What shares data and device: the runs of a variant and the measurements of it, on real or on generated text."""
    return next(root for root in ROOTS if name.startswith(root)), content.get("experiment") or content.get("of") or name


def one_data_set(proven: list[Proven], here: list[tuple[str, dict]]) -> None:
    """All runs and measurements of a variant are of the same data, and those with predictions of the same test texts."""
    hashes, labels = {}, {}
    for name, content in (*here, *((one.name, one.content) for one in proven)):
        sha256 = content.get("data", {}).get("sha256")
        other, first = hashes.setdefault(group(name, content), (sha256, name))
        if sha256 != other and name not in dict(here):
            raise RtxError(f"{name} was made on other data ({str(sha256)[:12]}…) than {first} ({str(other)[:12]}…); the runs of a variant must share theirs.")
    for one in proven:
        if one.labels is not None and not np.array_equal(one.labels, labels.setdefault(group(one.name, one.content), one.labels)):
            raise RtxError(f"{one.name} has predictions for other labels than the runs of its variant that came with it; they must share the test texts.")


def known_runs(proven: list[Proven], here: list[tuple[str, dict]]) -> None:
    """A measurement of a trained model is of a run that is here or comes along."""
    keys = {content.get("key") for content in (*dict(here).values(), *(one.content for one in proven))}
    for one in proven:
        if one.content.get("run") not in {None, *keys}:
            raise RtxError(f"{one.name} measures the run {one.content['run']}, of which there is no record here; bring that too.")


def one_device(proven: list[Proven], here: list[tuple[str, dict]]) -> None:
    """Pages compare the times of a variant's runs, so these are of one device."""
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for name, content in (*here, *((one.name, one.content) for one in proven)):
        if "key" not in content:  # no run
            continue
        device = content["latency"]["environment"]["device"]
        other, first = seen.setdefault(group(name, content), (device, name))
        if device != other and name not in dict(here):
            raise RtxError(f"{name} was timed on {device!r} and {first} on {other!r}; pages compare such times, so bring both from one machine, or say --mixed.")


# -- into results/ ----------------------------------------------------------------------------------------------------


def put(files: dict[str, bytes]) -> None:
    """Write all of them or, where the disk refuses one, none: each first beside its place, and a record after its predictions."""
    waiting: list[tuple[Path, Path]] = []
    try:
        for name in sorted(files, key=lambda name: (name.endswith(".json"), name)):
            place = home() / name
            root = home() / next(root for root in ROOTS if name.startswith(root))
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.parent.resolve().is_relative_to(root.resolve()):
                raise RtxError(f"{place.parent} leads out of {root}; records are written inside it alone.")
            waiting.append((place.with_name(f".{place.name}.brought"), place))
            write_atomically(waiting[-1][0], files[name])
        for beside, place in waiting:
            os.replace(beside, place)
    except OSError as error:
        raise RtxError(f"{name} cannot be written ({error}); make room, or make its folder writable.") from error
    finally:
        for beside, _ in waiting:
            beside.unlink(missing_ok=True)
