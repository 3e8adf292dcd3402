"""What is published, and whether today's code made it: `python -m rtx_core release FOLDER`, for a folder of release files.

Into it go `records.tar` (the folders of `results/`, as `python -m rtx_core bring` reads them; the counts beside them are the
models', not a run's), `manifest.json` (version, commit, and each file of `results/` with its hash and, if it is a record, the
commit that made it) and `SHA256SUMS` of all files there, which `sha256sum --check SHA256SUMS` reads.
"""

import argparse
import hashlib
import tomllib
from pathlib import Path

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, home, write_atomically, write_json
from rtx_core.results.code import _git as git
from rtx_core.results.code import code
from rtx_core.results.language import LanguageRecord
from rtx_core.results.measurement import MADE_BY, Measurement
from rtx_core.results.record import Record, read_json

SUMS = "SHA256SUMS"


def version() -> str:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def commit() -> str:
    """That of the whole repository, in short; it says so where a file differs from it or is not in it."""
    head = git("rev-parse", "--short=9", "HEAD")
    return (head or "unknown") + (" + changes" if head and git("status", "--porcelain") else "")


def files() -> dict[str, Path]:
    """Everything in `results/`, by its path from home, but for what is half written and so has a dot before its name."""
    found = sorted(path for path in (home() / "results").rglob("[!.]*") if path.is_file())
    return {path.relative_to(home()).as_posix(): path for path in found}


def records() -> dict[str, Record]:
    """The files of `results/` that carry the fingerprint of the code that made their numbers: runs and measurements.

    Counts and profiles carry none: tests, and the hash of the data, hold them to today's code.  Nor do benchmarks, which time a
    machine and name the commit.
    """
    found = {}
    for name, path in files().items():
        content = read_json(path) if path.suffix == ".json" else None
        if isinstance(content, dict) and "fingerprints" in content.get("code", {}):
            kind = name.split("/")[1]
            of = LanguageRecord if kind == "language" else Measurement if kind in MADE_BY else Record
            found[name] = of(content, path)
    return found


def earlier(made: dict[str, Record]) -> set[Path]:
    """Those of the records that today's code did not make."""
    return {record.path for record in made.values() if record.note()}


def manifest() -> dict:
    made, listed = records(), {}
    old = earlier(made)
    for name, path in files().items():
        listed[name] = {"sha256": sha256(path), "bytes": path.stat().st_size}
        if record := made.get(name):
            listed[name] |= {"commit": record["code"]["commit"], "clean": record["code"]["clean"], "current": path not in old}
    return {
        "version": version(), "commit": commit(), "requirements.lock": sha256(REPOSITORY / "requirements.lock"),
        "records": len(made), "records_of_earlier_code": len(old), "files": listed,
    }  # fmt: skip


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core release", description="Records, manifest and checksums for a release.")
    parser.add_argument("folder", type=Path, help="where they go; what lies there already, such as the PDF, is in the checksums too")
    folder = parser.parse_args(words).folder
    if folder.exists() and not folder.is_dir():
        raise RtxError(f"{folder} is a file; expected a folder for the files of a release, or a name that is free.")
    from rtx_core.travel import bundle

    folder.mkdir(parents=True, exist_ok=True)
    made = manifest()
    travelling = {name: path for name, path in files().items() if name.count("/") > 1}
    bundle.write(folder / "records.tar", bundle.RECORDS, {"schema": 1, "code": code()}, travelling)
    write_json(folder / "manifest.json", made)
    listed = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    write_atomically(folder / SUMS, "".join(f"{sha256(path)}  {path.name}\n" for path in listed).encode())
    names = ", ".join(path.name for path in listed)
    print(f"{folder}: {names} and {SUMS}; {made['records']} records, {made['records_of_earlier_code']} of earlier code; commit {made['commit']}.")
