"""Which code made a record: the commit, and a hash of all source that can change the numbers of a model.

The hash covers every file of `models/`, `fast/` and `train/` that the model's class, its fast path and the trainer
import, without comments, docstrings and blank lines; of a class defined elsewhere also the file or the notebook's cell
in which it stands.  Hashes that `golden --accept` has proven to give the same numbers stand in `same_numbers.json`.
"""

import ast
import hashlib
import inspect
import io
import json
import linecache
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

from rtx_core.models import registry
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.study import declared

ROOMS = ("models", "fast", "train", "evaluate")  # no run imports the last, but what is measured does
TASKS = "rtx_core.data.tasks"  # the losses that are trained on
NOT_NUMBERS = ("rtx_core.models.registry",)  # names and colors; the configuration itself is in the record
TRAINER = "rtx_core.train.trainer"
BUILD = "rtx_core.models.build"  # which draws the first weights
SAME_NUMBERS = Path(__file__).with_name("same_numbers.json")


@cache
def bare(source: str) -> str:
    """Python source without docstrings, comments and blank lines."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            if lines[first.lineno - 1].lstrip().startswith(('"', "'", "r")):  # on lines of its own
                lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
    text = "\n".join(lines) + "\n"
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    cuts = {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
    kept = (line[: cuts.get(i)].rstrip() for i, line in enumerate(text.splitlines(), start=1))
    return "\n".join(line for line in kept if line)


@cache
def _source(module: str) -> str | None:
    """The source of a module of this package's `ROOMS`, or beside one that the study measures with; else None."""
    if module.rpartition(".")[0] in {name.rpartition(".")[0] for name in declared("MEASUREMENTS").values()}:
        return _file_of(module)
    package, room, *_ = parts = [*module.split("."), ""]
    if package != PACKAGE.name or module in NOT_NUMBERS or (room not in ROOMS and module != TASKS):
        return None
    path = PACKAGE.joinpath(*parts[1:-1])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text(encoding="utf-8") if file.exists() else None


def _file_of(module: str) -> str | None:
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # a name in a module, and no module
        return None
    return Path(found.origin).read_text(encoding="utf-8") if found and found.has_location else None


@cache
def imports(source: str) -> tuple[str, ...]:
    """The modules of `ROOMS` that Python source names in its import statements, wherever they stand."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return tuple(sorted(name for name in found if _source(name) is not None))


@cache
def _digest(modules: tuple[str, ...]) -> str:
    """Of these modules and all that they import, directly or not, as far as they lie in `ROOMS`."""
    seen, waiting = set(), [module for module in modules if _source(module) is not None]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imports(_source(module))
    digest = hashlib.sha256()
    for module in sorted(seen):
        digest.update(f"{module}\n{bare(_source(module))}\n".encode())
    return digest.hexdigest()


def model_hash(architecture: str) -> str:
    """SHA-256 of the source that the numbers of a registered model depend on, as it was when first asked for."""
    from rtx_core.fast import FAST_PATHS

    kind = registry.find(architecture).kind
    if isinstance(kind, str):
        return _digest((kind.partition(":")[0], *FAST_PATHS.get(kind, ()), TRAINER, TASKS, BUILD))
    own, used = _own_source(kind, type(registry.find(architecture).config))
    rest = _digest((*sorted(used), TRAINER, TASKS, BUILD))
    return hashlib.sha256(f"{own}\n{rest}".encode()).hexdigest()


def _own_source(*classes: type) -> tuple[str, set[str]]:
    """The bare source of the files and notebook cells in which these classes stand, and what they use from elsewhere;
    and the modules of this package that they use."""
    files, texts, modules, waiting = {""}, set(), set(), {base for one in classes for base in one.__mro__}
    while waiting:
        if _in_library(thing := waiting.pop()):
            modules.add(thing.__module__)
            continue
        held = [one for one in (thing, *vars(thing).values()) if inspect.isfunction(one)]
        named = getattr(sys.modules.get(thing.__module__), "__file__", None) or ""
        for name in {named, *(function.__code__.co_filename for function in held)} - files:
            files.add(name)
            source = "".join(linecache.getlines(name))
            texts.add(bare(source))
            modules.update(imports(source))
            used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
            known = held[0].__globals__ if held else vars(sys.modules[thing.__module__])
            waiting |= {known[each] for each in used & known.keys() if isinstance(known[each], (type, FunctionType))}
    return "\n".join(sorted(texts)), modules


def _in_library(thing: type | FunctionType) -> bool:
    """Whether it is of Python, of an installed package or of this one, whose versions stand in the record."""
    name, file = thing.__module__, getattr(sys.modules.get(thing.__module__), "__file__", None)
    if name == "__main__" or name.partition(".")[0] == PACKAGE.name:
        return name != "__main__"
    return file is None or file.startswith(sysconfig.get_path("stdlib")) or "-packages/" in file


def module_hash(module: str) -> str:
    """SHA-256 of what a measurement depends on: a module's bare source and the source of `ROOMS` that it imports."""
    source = _file_of(module)
    return hashlib.sha256(f"{bare(source)}\n{_digest(imports(source))}".encode()).hexdigest()


@cache
def registered() -> dict:
    """What `rtx golden` has registered: `commit` whose golden runs are the reference, `hashes` of its models, and
    `same`, hash of a code -> those of earlier codes that give its numbers."""
    return json.loads(SAME_NUMBERS.read_text(encoding="utf-8"))


def is_current(hashes: Iterable[str], today: str) -> bool:
    """Whether today's code would give the numbers of a run that code of these hashes worked on, in turn."""
    return set(hashes) <= {today, *registered()["same"].get(today, ())}


def commit() -> dict:
    """The commit, and whether the package holds exactly that commit's code."""
    return {"commit": git("rev-parse", "HEAD"), "clean": git("status", "--porcelain", PACKAGE.name, "study") == ""}


def git(*arguments: str) -> str | None:
    """What git says; None where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
