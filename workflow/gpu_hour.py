"""The runs that are worth most on one GPU, in pieces that can be stopped and carried on: `make gpu-hour`.

    python workflow/gpu_hour.py --minutes 9 --together 6 --out OUT [--from OUT/*.tar]

Processes side by side train one run of the queue after another until the minutes are over; what is unfinished is then
told to stop, which saves its checkpoint.  OUT/records.tar holds the new records, OUT/weights-0.tar and on their
weights and the checkpoints of what is unfinished, each of a size that travels; the next piece begins `--from` them.
Records are packed whenever a run ends, so that a machine that goes away takes no finished run with it.  Nothing is
installed and no network is needed: torch 2.11 or newer and what `import rtx_core.report` needs are there.
"""

import argparse
import os
import re
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from multiprocessing import Queue, get_context
from pathlib import Path

import torch

from rtx_core import records
from rtx_core.benchmark.bench import register_declared
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import RunConfig
from rtx_core.experiments.run import train_and_record
from rtx_core.paths import build, home, write_atomically
from rtx_core.study import declaration
from study.bench_plan import bench_in_full
from study.plan import FACTS_AGAIN, LONG_PASS, LONGER, TWENTY, WIDE_FACTS, WIDE_POINTERS, WIDE_TEXT, WIDER_PASSES, Study

POLL = 3  # seconds
OF_RUNS = re.compile(r"(results|results/weights|runs|_build/runs)(/\w[^/]*){2,3}\.(json|npz|safetensors)")  # files
PATIENCE = 60  # seconds that a run has to save its checkpoint
PART = 15 * 2**20  # bytes that one archive holds at most, unless one file is larger


def queue() -> Iterator[RunConfig]:
    """By what they are worth, the models of a seed beside each other: text, pointers and facts at larger widths, on new
    seeds and for longer; then two recurrences on the bench, and pointers over 98 letters."""
    graph = {"compile": "graph"} if torch.cuda.is_available() else {}

    def by_seed(studies: Iterable[Study]) -> list[RunConfig]:
        return sorted((run for study in studies for run in study.runs(True, graph)), key=lambda run: run.seed)

    for studies in (WIDE_TEXT, WIDER_PASSES, TWENTY, FACTS_AGAIN, LONGER, LONG_PASS, WIDE_FACTS):
        yield from by_seed(studies)
    for run in bench_in_full():  # classes of their own make constants on the CPU, which no graph captures
        yield replace(run, **({} if run.architecture in declaration("RECURRENCES") else graph))
    yield from by_seed(WIDE_POINTERS)


def missing(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Those without a record, and whose data are here."""
    source = {"mirror", "hub"}
    available = [config for config in configs if config.source not in source or os.environ.get("RTX_DATA")]
    return [c for c in available if records.find(c.name, c.model, c.seed, c.source) is None]


def train_all(todo: Queue, log: Path) -> None:
    """What a process does: train one run of the queue after another, and note in the log what stopped one."""
    with open(log, "a", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        register_declared()
        while config := todo.get():
            try:
                train_and_record(config)
            except Exception as stop:
                print(f"{config.name} {config.model} seed {config.seed} stopped: {stop!r}")


def work(configs: list[RunConfig], out: Path, together: int, seconds: float) -> list[RunConfig]:
    """Train in so many processes until all are done or the time is over; those that were not finished.  A process
    makes many runs, since its start takes longer than some of them."""
    context, deadline, packed = get_context("spawn"), time.monotonic() + seconds, 0
    todo = context.Queue()
    for item in (*configs, *[None] * together):
        todo.put(item)
    logs = build() / "gpu-hour-logs"
    logs.mkdir(parents=True, exist_ok=True)
    processes = [context.Process(target=train_all, args=(todo, logs / f"{n}.log")) for n in range(together)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL)
        if (files := sum(1 for config in configs for _ in files_of(config))) > packed:
            packed = files
            pack_records(configs, out)
    for process in processes:
        process.terminate()  # with time to save a checkpoint
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0.1, deadline - time.monotonic()))
        process.kill()
        process.join()
    todo.cancel_join_thread()  # of what nobody will take
    write_atomically(out / "log.txt", b"".join(log.read_bytes() for log in sorted(logs.glob("*.log"))))
    return missing(configs)


def files_of(config: RunConfig) -> Iterator[Path]:
    """The record, weights and checkpoint of a run, as far as they are there."""
    record = records.path_of(config.name, config.model, config.seed, config.source)
    yield from (path for path in (record, record.with_suffix(".npz")) if path.exists())
    weights = home() / "results" / "weights" / config.name
    folders = build() / "runs" / config.name
    yield from weights.glob(f"{config.model}-seed{config.seed}.safetensors")
    yield from folders.glob(f"{config.model}-seed{config.seed}-*/*.safetensors")


def write(paths: Iterable[Path], archive: Path) -> None:
    """Into one file, under paths relative to the home; a kill leaves the archive of before."""
    part = archive.with_suffix(".part")
    with tarfile.open(part, "w") as tar:
        for path in paths:
            tar.add(path, path.relative_to(home()))
    part.replace(archive)


def pack_records(configs: Iterable[RunConfig], out: Path) -> int:
    """Write the records of these runs, as far as they are there; the number of files."""
    paths = [path for config in configs for path in files_of(config) if path.suffix != ".safetensors"]
    write(paths, out / "records.tar")
    return len(paths)


def pack(configs: Iterable[RunConfig], out: Path) -> int:
    """Write what these runs left: records, then weights and checkpoints in parts; the number of files."""
    configs, parts, size = list(configs), [[]], 0
    for path in (path for config in configs for path in files_of(config) if path.suffix == ".safetensors"):
        size += path.stat().st_size
        if parts[-1] and size > PART:
            parts, size = [*parts, []], path.stat().st_size
        parts[-1].append(path)
    for older in out.glob("weights-*.tar"):
        older.unlink()
    for number, paths in enumerate(filter(None, parts)):
        write(paths, out / f"weights-{number}.tar")
    return pack_records(configs, out) + sum(map(len, parts))


def unpack(archive: Path) -> None:
    """Take out what `pack` puts in, each file whole, records last; an archive with anything else, such as
    code, is refused."""
    try:
        with tarfile.open(archive) as tar:
            members = sorted(tar.getmembers(), key=lambda member: member.name.endswith(".json"))
            if refused := [m.name for m in members if not m.isfile() or not OF_RUNS.fullmatch(m.name)]:
                problem = f"{archive} holds {refused[0]!r:.80}, which no run leaves"
                raise RtxError(f"{problem}; give the archives of a piece.")
            for member in members:
                write_atomically(home() / member.name, tar.extractfile(member).read())
    except (OSError, tarfile.TarError) as error:
        raise RtxError(f"{archive} cannot be unpacked ({error}); give the archives of an earlier piece.") from error


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--together", type=int, default=6, help="runs side by side")
    parser.add_argument("--out", type=Path, default=build() / "gpu-hour")
    parser.add_argument("--from", dest="before", type=Path, nargs="+", default=[], help="archives of an earlier piece")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for archive in sorted(options.before, key=lambda path: path.name == "records.tar"):  # records after their weights
        unpack(archive)
    todo = missing(queue())
    unfinished = work(todo, options.out, options.together, 60 * options.minutes)
    packed = pack(todo, options.out)
    finished = len(todo) - len(unfinished)
    print(f"{finished} runs finished, {len(unfinished)} to go; {packed} files in {options.out}/*.tar")


if __name__ == "__main__":
    try:
        main()
    except RtxError as error:
        sys.exit(str(error))
