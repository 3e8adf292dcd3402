"""Which recorded files a process reads: a book executes a page again only where these change (`book/_ext/outputs.py`).

Python tells an audit hook of every file that is opened and every folder that is listed, whoever does it; a file that
was looked for and not found is told by `look_for`.
"""

import os
import sys
from pathlib import Path

from rtx_core.paths import build, home

LOG = "RTX_READS"  # names the file to which this process writes the paths that it reads
IS_THERE = "/."  # ends a path of which only whether it is there counts
OPEN, LIST, LOOK_FOR = "open", ("os.scandir", "os.listdir"), "rtx_core.look_for"


def look_for(path: Path) -> bool:
    """Whether there is such a file; if not, its appearance would be a change."""
    sys.audit(LOOK_FOR, str(path))
    return path.exists()


def log_reads() -> None:
    """Write every path under `results/`, `runs/` and `_build/results/` that this process reads, each once."""
    if not (name := os.environ.get(LOG)):
        return
    roots, seen = tuple(str(root) for root in (home() / "results", home() / "runs", build() / "results")), set()
    log = open(name, "a", encoding="utf-8")  # noqa: SIM115, for as long as the process lives
    log.writelines(f"{root}{IS_THERE}\n" for root in roots)

    def hook(event: str, arguments: tuple) -> None:
        if event not in (OPEN, *LIST, LOOK_FOR) or not isinstance(arguments[0], (str, os.PathLike)):
            return
        path = os.path.abspath(arguments[0])
        if path not in seen and path.startswith(roots):
            seen.add(path)
            log.write(f"{path}\n")
            log.flush()

    sys.addaudithook(hook)
