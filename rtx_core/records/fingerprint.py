"""Which code made a record: the commit, and a hash of all source that can change the numbers of a model.

The hash covers every file of `models/`, `fast/` and `train/` that the model's class, its fast path and the trainer
import, without comments, docstrings and blank lines; of a class defined elsewhere also the file or cell in which it
stands, and what it uses.  Hashes that `golden --accept` has proven equal in numbers stand in `same_numbers.json`.
"""

import ast
import dis
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
from types import CodeType

from rtx_core.models import registry
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.study import declared

ROOMS = ("models", "fast", "train", "evaluate")  # no run imports the last, but what is measured does
TASKS = "rtx_core.data.tasks"  # the losses that are trained on
NOT_NUMBERS = ("rtx_core.models.registry",)  # names and colors; the configuration itself is in the record
TRAINER = "rtx_core.train.trainer"
BUILD = "rtx_core.models.build"  # which draws the first weights
PLAIN = (bool, int, float, str, type(None))  # values that are told by their repr
STDLIB = sysconfig.get_path("stdlib")
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
    """The bare source of the files and cells of these classes, of their bases and of what their functions use by name
    (plain values as they are, bytecode where there is no source); and the modules of this package among it."""
    texts, modules, seen, waiting = set(), set(), set(), list(classes)
    while waiting:
        if id(thing := inspect.unwrap(waiting.pop())) in seen:
            continue
        seen.add(id(thing))
        module = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", None) or ""
        file = getattr(sys.modules.get(module), "__file__", None)
        file = thing.__code__.co_filename if inspect.isfunction(thing) else file
        if module.partition(".")[0] == PACKAGE.name:
            modules.add(module)
        elif module != "__main__" and (not file or file.startswith(STDLIB) or "-packages/" in file):
            continue  # of Python or an installed package, whose versions stand in the record
        elif inspect.isfunction(thing):
            code = thing.__code__
            texts.add(_bare_file(file, modules) or _bytecode(code))
            used = {name: thing.__globals__[name] for name in _globals(code) & thing.__globals__.keys()}
            texts |= {f"{name} = {value!r}" for name, value in used.items() if isinstance(value, PLAIN)}
            waiting += used.values()
        elif inspect.isclass(thing) or inspect.ismodule(thing):
            texts.add(_bare_file(file, modules))
            waiting += [*thing.__mro__, *vars(thing).values()] if inspect.isclass(thing) else ()
    return "\n".join(sorted(texts)), modules


def _bare_file(name: str | None, modules: set[str]) -> str:
    """The bare source of a file or cell, "" where there is none; what it imports of this package joins `modules`."""
    source = "".join(linecache.getlines(name)) if name else ""
    modules.update(imports(source))
    return bare(source)


def _globals(code: CodeType) -> set[str]:
    """The global names that a function reads, and those within it."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return read.union(*(_globals(part) for part in code.co_consts if inspect.iscode(part)))


def _bytecode(code: CodeType) -> str:
    plain = [sorted(map(repr, part)) if isinstance(part, frozenset) else part for part in code.co_consts]
    parts = [_bytecode(part) if inspect.iscode(part) else repr(part) for part in plain]
    return f"{code.co_name} {code.co_code.hex()} {code.co_names} {parts}"


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
