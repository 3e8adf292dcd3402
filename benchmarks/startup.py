"""How long a reader waits: importing the package, and rebuilding the book after one record changed.

`python -m benchmarks.startup` writes results/benchmarks/startup-cpu.json.  The book is built in a copy of the working tree.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import timing
from rtx_core.paths import REPOSITORY

IMPORTS = {
    "python alone": "pass",
    "torch": "import torch",
    "rtx_core": "import rtx_core",
    "everything a training run imports": "import rtx_core.train.trainer, rtx_core.data.texts, rtx_core.runner",
}


def seconds(*command: str, **settings) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, **settings)
    return time.perf_counter() - begin


def book() -> dict[str, float]:
    """Build, build again with nothing changed, and again after a record changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy, left_out = Path(folder) / "paper", ("_build", ".venv*", ".git", "__pycache__")
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=shutil.ignore_patterns(*left_out))
        program = str(Path(sys.executable).with_name("jupyter-book"))
        command = (program, "build", "book", "-W", "-n", "--keep-going")
        settings = {"cwd": copy, "env": os.environ | {"PYTHONPATH": str(copy)}}
        first, unchanged = seconds(*command, **settings), seconds(*command, **settings)
        path = copy / "results" / "sst2" / "recurrent-seed0.json"
        shown = path.read_text().replace('"median_ms": ', '"median_ms": 1')  # a number that pages show
        path.write_text(shown)
        changed = seconds(*command, **settings)
        return {"whole": first, "nothing changed": unchanged, "one record changed": changed}


def measure(asked: timing.Options) -> dict:
    rounds = range(asked.rounds(7))
    took = [[seconds(sys.executable, "-c", line) for line in IMPORTS.values()] for _ in rounds]
    medians = dict(zip(IMPORTS, np.median(took, axis=0).tolist()))
    return {"imports": medians, "book": None if asked.quick else book()}


if __name__ == "__main__":
    asked = timing.options(__doc__)
    timing.save("startup", measure(asked), asked)
