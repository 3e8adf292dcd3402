"""Which code made a record: the commit, and a fingerprint of the source that can change a number.

The fingerprint ignores comments, docstrings and blank lines, so explaining the code better leaves records current.
"""

import ast
import hashlib
import io
import subprocess
import tokenize
from functools import cache

from rtx_core.paths import PACKAGE, REPOSITORY

# The files that a classifier's numbers depend on.  The rest is proven otherwise: the data by its hash, the model and the
# protocol by the configuration in the record; pages only show what is recorded.
CLASSIFICATION = (
    "models/packed.py", "models/masks.py", "models/attention.py", "models/layers.py", "models/fused.py", "models/encoder.py",
    "training/team.py", "training/batches.py", "training/words.py", "training/step.py", "training/graph.py", "training/loop.py",
    "evaluation/metrics.py",
)  # fmt: skip


def bare(source: str) -> str:
    """Python source without docstrings, comments and blank lines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
            first = node.body[0]
            if lines[first.lineno - 1].lstrip().startswith(('"', "'", "r")):  # on lines of its own
                lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
    text = "\n".join(lines) + "\n"
    cuts = {t.start[0]: t.start[1] for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT}
    kept = (line[: cuts.get(i)].rstrip() for i, line in enumerate(text.splitlines(), start=1))
    return "\n".join(line for line in kept if line)


@cache
def fingerprint(files: tuple[str, ...] = CLASSIFICATION) -> str:
    """SHA-256 of the bare source of these files of rtx_core, as they were when first asked for."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\n{bare((PACKAGE / file).read_text(encoding='utf-8'))}\n".encode())
    return digest.hexdigest()


def code() -> dict:
    """The commit of the record's `code` entry.  `clean` says that the package held exactly that commit's code."""
    return {"commit": _git("rev-parse", "HEAD"), "clean": _git("status", "--porcelain", "rtx_core") == ""}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
