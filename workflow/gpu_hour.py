"""The runs that are worth most on one GPU, in pieces that can be stopped and carried on: `make gpu-hour`.

    python workflow/gpu_hour.py --minutes 9 --together 6 --out OUT [--from OUT/*.tar]

Runs of the queue are trained side by side, each a process of its own, until the minutes are over; the others are then
told to stop, which saves their checkpoints.  OUT/records.tar holds the new records, OUT/weights-0.tar and on their
weights and the checkpoints of what is unfinished, each of a size that travels; the next piece begins `--from` them.
Records are packed whenever a run ends, so that a machine that goes away takes no finished run with it.  Nothing is
installed and no network is needed: torch 2.11 or newer, numpy, pandas, pydantic, safetensors and PyYAML are there.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import RunConfig, configure
from rtx_core.paths import build, home, write_atomically
from study.plan import FACTS_RATES, FACTS_SEEDS, LONGER, STATE_RATES, WIDE_FACTS, WIDE_POINTERS, WIDE_TEXT, WIDER_HOPS

POLL = 0.2  # seconds
OF_RUNS = re.compile(r"(results|results/weights|runs|_build/runs)(/\w[^/]*){2,3}\.(json|npz|safetensors)")  # files
PATIENCE = 60  # seconds that a run has to save its checkpoint
PART = 15 * 2**20  # bytes that one archive holds at most, unless one file is larger


def queue() -> Iterator[RunConfig]:
    """By what they are worth: pointers over 98 letters, seed by seed so that every model has the same seeds, with state
    tracking, text and facts at larger widths after three of them; then the rest of k-hop, and Yelp at 512 tokens."""
    graph = {"compile": "graph"} if torch.cuda.is_available() else {}

    def pointers(seeds: Iterable[int]) -> Iterator[RunConfig]:
        for seed in seeds:
            for study in WIDE_POINTERS:
                for model in study.models:
                    yield configure(study.experiment, model, seed, **study.settings, **graph)

    yield from pointers((0, 1, 2))
    for study in (*STATE_RATES, *WIDE_TEXT, *WIDE_FACTS):
        yield from study.runs(False, graph)
    yield from pointers((3, 4))
    for study in (*FACTS_RATES, *LONGER, *WIDER_HOPS, *FACTS_SEEDS):
        yield from study.runs(False, graph)
    for model in ("baseline", "recurrent"):
        yield configure("yelp", model, 0, max_length=512, compile="reduce-overhead" if graph else "")


def missing(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Those without a record, and whose data are here."""
    source = {"mirror", "hub"}
    available = [config for config in configs if config.source not in source or os.environ.get("RTX_DATA")]
    return [c for c in available if records.find(c.name, c.model, c.seed, c.source) is None]


def command(config: RunConfig) -> list[str]:
    settings = [f"{name}={value}" for name, value in config.settings.items()]
    words = [config.experiment, str(config.model_spec), f"seed={config.seed}", *settings]
    return [sys.executable, "-m", "rtx_core", "run", *words]


@dataclass
class Lanes:
    """So many processes side by side, each with a run of the queue."""

    together: int
    out: Path
    running: dict[subprocess.Popen, RunConfig] = field(default_factory=dict)

    def work(self, configs: list[RunConfig], seconds: float) -> list[RunConfig]:
        """Train until all are done or the time is over; those that were not finished."""
        queue, deadline, unfinished = list(configs), time.monotonic() + seconds, []
        while (queue or self.running) and time.monotonic() < deadline:
            while queue and len(self.running) < self.together:
                self.start(queue.pop(0))
            time.sleep(POLL)
            before = len(self.running)
            unfinished += self.collect()
            if len(self.running) < before:
                pack_records(configs, self.out)
        return unfinished + self.stop() + queue

    def start(self, config: RunConfig) -> None:
        log = self.out / f"{config.name}-{config.model}-seed{config.seed}.log"
        with open(log, "a", encoding="utf-8") as file:
            threads = {"OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(command(config), stdout=file, stderr=file, cwd=home(), env=os.environ | threads)
        self.running[process] = config

    def collect(self) -> list[RunConfig]:
        """Forget the processes that have ended; the runs of those that failed."""
        ended = [process for process in self.running if process.poll() is not None]
        return [config for process in ended if (config := self.running.pop(process)) and process.returncode]

    def stop(self) -> list[RunConfig]:
        """End all processes, with time to save their checkpoints."""
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        for process in self.running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        stopped = [config for process, config in self.running.items() if process.returncode]
        self.running.clear()
        return stopped


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
    unfinished = Lanes(options.together, options.out).work(todo, 60 * options.minutes)
    packed = pack(todo, options.out)
    finished = len(todo) - len(unfinished)
    print(f"{finished} runs finished, {len(unfinished)} to go; {packed} files in {options.out}/*.tar")


if __name__ == "__main__":
    try:
        main()
    except RtxError as error:
        sys.exit(str(error))
