"""Which records a page reads: the book notes them, to draw a page again when one of them changed and not when another did.

While a page is executed, `RTX_READS` names the file that gets a line for each file of `results/` that Python opens.
"""

import os
import sys
from pathlib import Path

from rtx_core import paths

READS = "RTX_READS"


def note_reads() -> None:
    """From now on, in this process.  Python tells an audit hook of each file before it opens it (PEP 578)."""
    log = open(os.environ[READS], "a", encoding="utf-8", buffering=1)  # noqa: SIM115: open for as long as the process lives
    folders, seen = tuple(f"{folder}{os.sep}" for folder in (paths.home() / "results", paths.build() / "results")), set()

    def opened(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            name = os.path.abspath(arguments[0])
            if name not in seen and name.startswith(folders):
                seen.add(name)
                log.write(f"{name}\n")

    sys.addaudithook(opened)


def read_by(log: Path) -> set[Path] | None:
    """The files noted; None where nothing was, so nothing is known."""
    return {Path(line) for line in log.read_text(encoding="utf-8").splitlines()} if log.exists() else None
