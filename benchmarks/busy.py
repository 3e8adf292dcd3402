"""How much longer the quick start takes beside other programs: `python -m benchmarks.busy`.

Writes results/benchmarks/busy-cpu.json.  The other programs are two processes that only compute, each in a session of
its own, as those of other users are.  A scheduler that shares two cores among three sessions leaves a third of the machine
to each, so that three times as long is the least that a program using both cores can take.  Six minutes on two cores.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import timing
from rtx_core.paths import REPOSITORY

OTHERS = 2  # processes
NOTEBOOK = REPOSITORY / "notebooks" / "quickstart.ipynb"


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


def quick_start() -> float:
    """Seconds of executing the notebook, which trains all of its runs: none is recorded in a new home."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "papermill",
            "--kernel",
            "python3",
            "--no-progress-bar",
            str(NOTEBOOK),
            str(Path(folder) / "out.ipynb"),
        ]
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", *command],
            check=True,
            capture_output=True,
            cwd=REPOSITORY,
            env=os.environ | {"RTX_HOME": folder},
        )
        return time.perf_counter() - begin


def measure(options: timing.Options) -> dict:
    if options.quick:
        return {"alone_s": 0.0, "beside_s": 0.0, "others": OTHERS}
    alone = quick_start()
    with beside(OTHERS):
        return {"alone_s": alone, "beside_s": quick_start(), "others": OTHERS}


if __name__ == "__main__":
    options = timing.options(__doc__)
    timing.save("busy", {"quick_start": measure(options)}, options)
