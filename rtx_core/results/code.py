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


# Fingerprint of a code -> those of earlier ones that give its numbers bit for bit, each seen by repeating recorded runs.
SAME_NUMBERS = {
    "83f2bc2127f4a3d7c372d2f8ebea5b253d4787c1d0c3064e49102d4b008f68b5": {
        # torchrun came: sst2-10pct, seed 0, recurrent whole (history, metrics, logits) and the first epoch of baseline
        "a674b3bc6d6e64da67a1818eadbd37edeb70c90cd2dd3c5f7bcbc4ea4deda7e5",
    },
    "8c2d77901fc05cc834c8b37b097029a36fd739e2ac9033b17367bcd66dba9929": {
        # outputs are recomputed in pieces where `checkpoint` asks for it: shakespeare-nanogpt-reduced, seed 0, kausik whole
        "888f5af68f6c845c4ee59728eba1e9fda55527f9133e6eb9733dd8e266d1884b",
        "f82a1042adebbd45afcbb2ac8b854e3a533b19950830ccad8eeab7b5c0e4b44d",  # the same code; the list of its files grew
    },
    "79277b8a839613f0b0d3bf43b21a1ddea3f23ec1691fba40b6b269ba54e7ce26": {
        # a kernel and graphs for a GPU with their check, which a CPU does not use: tinystories-report-reduced, seed 0, control to step 100,
        # three-part to step 50
        "6d115f684578e10fb76f9a04919268dbb46ee1ca1b67038b539148e9cd00d186",
        # the list of files grew, and stories say that their batches have many shapes: tinystories-report-reduced, seed 0, control to step 100
        "55510e382934c3a1c3b8e728f58418a9244c54ea74f462d8e40214a4aaf171a8",
    },
}


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
def _bare_file(file: str) -> str:  # several fingerprints share files
    return bare((PACKAGE / file).read_text(encoding="utf-8"))


@cache
def fingerprint(files: tuple[str, ...] = CLASSIFICATION) -> str:
    """SHA-256 of the bare source of these files of rtx_core, as they were when first asked for."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\n{_bare_file(file)}\n".encode())
    return digest.hexdigest()


def current(fingerprints: list[str], files: tuple[str, ...] = CLASSIFICATION) -> bool:
    """Whether today's code would give the numbers of a run that code of these fingerprints worked on, in turn."""
    today = fingerprint(files)
    return set(fingerprints) <= {today} | SAME_NUMBERS.get(today, set())


def code() -> dict:
    """The commit of the record's `code` entry.  `clean` says that the package held exactly that commit's code."""
    return {"commit": _git("rev-parse", "HEAD"), "clean": _git("status", "--porcelain", "rtx_core") == ""}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
