"""In an unpacked bundle, on a machine without a network: `python -m rtx_core away` makes its pending runs.

It needs no data set, no hub and no notebook.  Killed or out of time, the same command goes on; what is recorded at any time is in
`records.tar`, which `python -m rtx_core bring` takes at home.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

try:
    import jsonschema  # noqa: F401
except ModuleNotFoundError:  # then no record is checked against its schema here: `bring` does that at home
    stand_in = ModuleType("jsonschema")
    stand_in.Draft202012Validator = lambda schema: SimpleNamespace(iter_errors=lambda content: ())
    stand_in.exceptions = SimpleNamespace(best_match=lambda errors: None)
    sys.modules["jsonschema"] = stand_in

from rtx_core import paper
from rtx_core.errors import Busy, RtxError
from rtx_core.language import LANGUAGE
from rtx_core.parameters import settings
from rtx_core.paths import REPOSITORY, home
from rtx_core.travel import bundle
from rtx_core.travel.pack import NEEDED, PENDING

POLL_SECONDS = 2.0


def away(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core away", description="Make the pending runs of an unpacked bundle.")
    parser.add_argument("-o", "--output", type=Path, default=Path("records.tar"))
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs side by side")
    parser.add_argument("--minutes", type=float, default=0, metavar="M", help="stop after so long, each run at a checkpoint; 0: when all is done")
    chosen = parser.parse_args(words)
    if chosen.jobs < 1 or not 0 <= chosen.minutes < 1e6:
        raise RtxError(f"--jobs is {chosen.jobs} and --minutes is {chosen.minutes:g}; expected at least one job, and 0 minutes or more.")
    about = bundle.check_tree(REPOSITORY)
    if missing := [package for module, package in NEEDED.items() if find_spec(module) is None]:
        install = f"python -m pip install --no-index --find-links wheels {' '.join(missing)}"
        advice = install if (REPOSITORY / "wheels").is_dir() else "install them there, or `python -m rtx_core pack --wheels PLATFORM` at home"
        raise RtxError(f"The runs need {', '.join(missing)}, which Python at {sys.executable} does not have: {advice}.")
    pending, packed, told = pending_runs(), [], ""

    def pack() -> None:
        """All that is recorded by now, where it is more than before: the machine may be gone any time."""
        nonlocal packed, told
        done = [one for one in pending if current(one)]
        if done and len(done) > len(packed):
            files = {name: (home() / name).read_bytes() for one in done for name in files_of(one)}
            size = bundle.write(chosen.output, bundle.RECORDS, {"schema": 1, "code": about["code"]}, files)
            packed, told = done, f": {chosen.output}, {size / 2**20:.1f} MiB.  At home: python -m rtx_core bring {chosen.output.name}"

    failed = side_by_side(min(chosen.jobs, len(pending)), chosen.minutes, pack)
    pack()
    print(f"{len(packed)} of {len(pending)} runs are recorded{told}")
    if failed:
        raise RtxError("A run ended with an error (see above); the same command goes on with what is not recorded.")
    if len(packed) < len(pending):
        print("The same command goes on with the others.")


def side_by_side(jobs: int, minutes: float, meanwhile: Callable[[], None]) -> bool:
    """Start so many processes, each of which takes the next run that no other has; whether one of them failed."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    environment = {"OMP_NUM_THREADS": str(max(1, cores // jobs)), "HF_HUB_OFFLINE": "1"} | os.environ
    command = [sys.executable, "-m", "rtx_core.travel.away", str(minutes)]
    workers = [subprocess.Popen(command, cwd=REPOSITORY, env=environment) for _ in range(jobs)]

    def pass_on(*_: object) -> None:  # they stop at a checkpoint, and what is recorded is still packed
        for worker in workers:
            worker.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        while any(worker.poll() is None for worker in workers):
            time.sleep(POLL_SECONDS)
            meanwhile()
        return any([worker.wait() not in (0, -signal.SIGTERM) for worker in workers])  # the latter: stopped before it began
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pending_runs() -> list[paper.Run]:
    planned = json.loads((REPOSITORY / PENDING).read_text(encoding="utf-8"))
    return [paper.Run("", {}, settings(one["experiment"], one["given"]), one["model"], one["seed"]) for one in planned]


def current(one: paper.Run) -> bool:
    """Whether it is recorded by the bundle's code."""
    return one.found is not None and not one.found.note()


def files_of(one: paper.Run) -> list[str]:
    """A record and its predictions, as paths from home."""
    return [path.relative_to(home()).as_posix() for path in (one.record, one.record.with_suffix(".npz")) if path.exists()]


# -- one of the processes ---------------------------------------------------------------------------------------------


class Stopped(Exception):
    """The checkpoint that the process was asked to stop at is written."""


class Stop:
    """Asked to stop, a process ends the step that it is in, writes a checkpoint and does no more."""

    asked = False

    def __call__(self, *_: object) -> None:
        if self.asked:
            return
        from rtx_core.training import checkpoint, loop

        self.asked, save = True, checkpoint.save

        def last(*content: object) -> None:
            save(*content)
            raise Stopped

        loop.REPORT_SECONDS = loop.CHECKPOINT_SECONDS = 0  # a checkpoint is due now
        checkpoint.save = last


def work(minutes: float, eager: bool = False, skipped: tuple[str, ...] = ()) -> bool:
    """Make what is pending, run by run, until the time is up; whether all that was tried went well.

    An error of a library or a driver may leave a GPU unusable to the process, so it begins anew: without CUDA graphs, which may be
    the cause, and the next time without that run.
    """
    from rtx_core.training import language, loop, packed_graph
    from rtx_core.travel import carried

    carried.install(REPOSITORY)
    about, stop, well, began = bundle.check_tree(REPOSITORY), Stop(), not skipped, time.monotonic()
    if eager:
        loop.GraphStep, language.graphed, packed_graph.install = loop.Step, lambda model, *_: model, lambda *_: None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)  # of 0: never
    for one in pending_runs():
        module = import_module("rtx_core.run_language" if one.settings.experiment in LANGUAGE else "rtx_core.run")
        module.code = lambda: about["code"]  # the folder is no clone, and its manifest says what it is
        if stop.asked or one.name in skipped or current(one):
            continue
        try:
            module.run(one.settings, one.model, one.seed, wait=False)
        except Busy:  # another process here makes it
            pass
        except Stopped:
            print(f"{one.name} stopped at a checkpoint.", flush=True)
        except Exception as error:
            if isinstance(error, RtxError) and not isinstance(error.__cause__, RuntimeError):  # of this project, and not of a library
                print(f"{one.name} ended: {error}", flush=True)
                well = False
                continue
            traceback.print_exc()
            again = skipped + (one.name,) * eager
            print(f"{one.name} ended with the error above; going on without {'it' if eager else 'CUDA graphs'}.", flush=True)
            left = max(minutes - (time.monotonic() - began) / 60, 0.001) if minutes else 0
            signal.setitimer(signal.ITIMER_REAL, 0)  # it would outlive this program, and its handler not
            os.execv(sys.executable, [sys.executable, "-m", "rtx_core.travel.away", str(left), "eager", *again])
    return well


if __name__ == "__main__":
    sys.exit(0 if work(float(sys.argv[1]), "eager" in sys.argv[2:3], tuple(sys.argv[3:])) else 1)
