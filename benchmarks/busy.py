"""How much longer the quick start and some tests take beside other programs: `python -m benchmarks.busy`.

Writes results/benchmarks/busy-cpu.json.  The other programs are two processes that only compute, each in a session of
its own, as those of other users are.  A scheduler that shares two cores among three sessions leaves a third of the
machine to each, so three times as long is then the least that a program that uses both cores can take.  Ten minutes.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import timing
from rtx_core.paths import REPOSITORY

OTHERS = 2  # processes
QUICK_START = ["papermill", "--kernel", "python3", "--no-progress-bar", "notebooks/quickstart.ipynb", os.devnull]
FILES = [f"tests/test_{name}.py" for name in ("golden", "trainer", "runner", "decoders", "parity", "survive")]
TESTS = ["pytest", "-q", "-n", "3", "--dist", "worksteal", *FILES]  # which train


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many processes that compute all the time, until the block ends."""
    loop = [sys.executable, "-c", "while True: sum(range(1_000_000))"]
    processes = [subprocess.Popen(loop, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def seconds(words: list[str], **more: str) -> float:
    """Of a command in a session of its own; `more` is put into its environment."""
    begin = time.perf_counter()
    where = {"cwd": REPOSITORY, "env": os.environ | more, "start_new_session": True}
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, **where)
    return time.perf_counter() - begin


def quick_start() -> float:
    """In a new home, where nothing is recorded and all is trained."""
    with tempfile.TemporaryDirectory() as home:
        return seconds(QUICK_START, RTX_HOME=home)


def measure(options: timing.Options) -> dict[str, dict[str, float]]:
    ways = {} if options.quick else {"quick start": quick_start, "tests that train": lambda: seconds(TESTS)}
    results = {}
    for name, run in ways.items():
        alone = run()
        with beside(OTHERS):
            results[name] = {"alone_s": alone, "beside_s": run()}
    return results


if __name__ == "__main__":
    options = timing.options(__doc__)
    timing.save("busy", {"others": OTHERS, "took": measure(options)}, options)
