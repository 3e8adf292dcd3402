"""How long a reader waits: importing the package, and rebuilding the book after one record changed.

`python -m benchmarks.startup` writes results/benchmarks/startup-cpu.json.  The book is built in a copy of the working tree.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import save
from rtx_core.paths import REPOSITORY

IMPORTS = {
    "python alone": "pass",
    "torch": "import torch",
    "rtx_core": "import rtx_core",
    "everything a training run imports": "import rtx_core.run",
}


def seconds(*command: str, **options) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, **options)
    return time.perf_counter() - begin


def imports(rounds: int = 7) -> dict[str, float]:
    """Median seconds of a fresh interpreter, in turn."""
    took = {name: [] for name in IMPORTS}
    for _ in range(rounds):
        for name, line in IMPORTS.items():
            took[name].append(seconds(sys.executable, "-c", line))
    return {name: float(np.median(values)) for name, values in took.items()}


def book() -> dict[str, float]:
    """Build, build again with nothing changed, and again after a record changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "paper"
        shutil.copytree(REPOSITORY, copy, symlinks=True, ignore=shutil.ignore_patterns("_build", ".venv", ".git", "__pycache__"))
        command, options = (str(Path(sys.executable).parent / "jupyter-book"), "build", "book", "-W", "-n", "--keep-going"), {
            "cwd": copy, "env": os.environ | {"PYTHONPATH": str(copy)},
        }  # fmt: skip
        first, unchanged = seconds(*command, **options), seconds(*command, **options)
        path = copy / "results" / "sst2" / "recurrent-seed0.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record["latency"]["measured"][0]["median_ms"] *= 2  # any number that a page shows
        path.write_text(json.dumps(record), encoding="utf-8")
        return {"whole": first, "nothing changed": unchanged, "one record changed": seconds(*command, **options)}


if __name__ == "__main__":
    save("startup", {"imports": imports(), "book": book()})
