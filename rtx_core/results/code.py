"""Which code made a record: the commit, and a fingerprint of the source that can change a number.

The fingerprint ignores comments, docstrings and blank lines, so explaining the code better leaves records current.
"""

import ast
import hashlib
import io
import subprocess
import tokenize
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rtx_core.paths import REPOSITORY

# The packages of rtx_core that a measured number depends on.  Pages and the store only show what is recorded.
MEASURING = ("corpora", "models", "training", "evaluation")


def bare(source: str) -> str:
    """Python source without docstrings, comments and blank lines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node, clean=False):
            first = node.body[0]
            for i in range(first.lineno - 1, first.end_lineno):
                lines[i] = ""
    text = "\n".join(lines) + "\n"
    cuts = {t.start[0]: t.start[1] for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT}
    kept = (line[: cuts.get(i)].rstrip() for i, line in enumerate(text.splitlines(), start=1))
    return "\n".join(line for line in kept if line)


def fingerprint(packages: Sequence[str] = MEASURING) -> str:
    """SHA-256 of the bare source of these packages of rtx_core."""
    return _fingerprint(tuple(packages))


@cache
def _fingerprint(packages: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((Path(__file__).parent.parent / package).rglob("*.py")):
            digest.update(f"{path.parent.name}/{path.name}\n{bare(path.read_text(encoding='utf-8'))}\n".encode())
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
