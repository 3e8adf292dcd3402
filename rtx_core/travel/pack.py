"""Everything that a machine without a network needs for the pending runs, in one file: `python -m rtx_core pack -o bundle.tar`."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rtx_core import paper
from rtx_core.corpora.sources import SOURCES, resolve
from rtx_core.errors import RtxError, unknown
from rtx_core.language import LANGUAGE
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.results.code import code
from rtx_core.travel import bundle

# What a run imports, by the name of its import; torch is taken as given there, built for that machine's driver.
NEEDED = {
    "torch": "torch", "numpy": "numpy", "scipy": "scipy", "pandas": "pandas", "sklearn": "scikit-learn",
    "tokenizers": "tokenizers", "safetensors": "safetensors", "yaml": "PyYAML",
}  # fmt: skip
PENDING = "pending.json"


def pack(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core pack", description="One file with code, tokenised data and pending runs.")
    parser.add_argument("-o", "--output", type=Path, default=Path("bundle.tar"))
    parser.add_argument("--reduced", action="store_true", help="long runs at their reduced budget")
    parser.add_argument("--source", default="real", choices=SOURCES, help="of all texts; embedded: every run in seconds, as a trial")
    parser.add_argument("--only", nargs="+", metavar="VARIANT", help="runs of these names alone")
    parser.add_argument("--wheels", nargs="+", metavar="PLATFORM", help="with the wheels for it, such as manylinux_2_28_x86_64; all but torch's")
    parser.add_argument("--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}", metavar="VERSION", help="that the wheels are for")
    chosen = parser.parse_args(words)

    pending = pending_runs(chosen.reduced, chosen.source, chosen.only)
    files = {name: (REPOSITORY / name).read_bytes() for name in ("LICENSE", "README.md", "requirements.lock")}
    files |= {path.relative_to(REPOSITORY).as_posix(): path.read_bytes() for path in source_files()}
    files |= data_of(pending)
    files[PENDING] = json.dumps([as_plain(one) for one in pending], indent=1).encode()
    made_by = code()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.wheels:
            files |= {f"wheels/{path.name}": path for path in wheels(Path(folder), chosen.wheels, chosen.python)}
        size = bundle.write(chosen.output, bundle.BUNDLE, {"schema": 1, "code": made_by}, files)
    if not made_by["clean"]:
        print("The code is not that of a commit: the records will say so.")
    print(
        f"{chosen.output}, {size / 2**20:.1f} MiB, pending runs: {len(pending)}.  There: tar xf {chosen.output.name} && cd {bundle.BUNDLE} && "
        f"python -m rtx_core away.  Back here: python -m rtx_core bring records.tar"
    )


def pending_runs(reduced: bool, source: str, only: list[str] | None) -> list[paper.Run]:
    planned = list(paper.runs(reduced, source))
    for name in only or ():
        if name not in (variants := list(dict.fromkeys(one.variant for one in planned))):
            raise unknown("variant", name, variants)
    pending = [one for one in planned if (not only or one.variant in only) and one.state != "recorded"]
    if not pending:
        raise RtxError("Nothing is pending: every one of these runs is recorded; move a record away to make its run again.")
    return pending


def source_files() -> list[Path]:
    """The package's code and schemas as they are now; `code()` says whether that is a commit's."""
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".json") and not path.name.startswith("."))


def data_of(pending: list[paper.Run]) -> dict[str, bytes]:
    """Each data set that the runs read, once."""
    from rtx_core.travel import carried  # needs torch, which a refusal does not

    files: dict[str, bytes] = {}
    for one in pending:
        name, content = carried.of(one.settings)
        if name not in files:
            files[name] = content()
    return files


def as_plain(one: paper.Run) -> dict:
    """A run as JSON."""
    asked, inner = one.settings, "training" if one.settings.experiment in LANGUAGE else "protocol"
    given = {k: v for k, v in vars(asked).items() if k not in ("experiment", "corpus", inner)} | vars(getattr(asked, inner))
    return {"experiment": asked.experiment, "model": one.model, "seed": one.seed, "given": given | {"source": resolve(asked.source)}}


def wheels(folder: Path, platforms: list[str], python: str) -> list[Path]:
    """Those of the needed packages and of what they need, at the lock's versions."""
    asked = [name for name in NEEDED.values() if name != "torch"] + ["jsonschema"]
    options = [word for platform in platforms for word in ("--platform", platform)] + ["--python-version", python, "--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), "-c", str(REPOSITORY / "requirements.lock"), *options, *asked]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RtxError(f"pip found no wheels for {' '.join(platforms)} and Python {python} ({reason}); name other platforms, or leave --wheels out.")
    return sorted(folder.glob("*.whl"))
