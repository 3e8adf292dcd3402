"""Which code made a record: the commit, and a hash of all source that can change the numbers of a model.

The hash covers every file of `models/`, `fast/` and `train/` that the model's class, its fast path and the trainer
import, found by walking their imports, with comments, docstrings and blank lines left out; for a class defined
elsewhere (a notebook's cell, a user's file) its own source as well.  Hashes that `rtx golden --accept` has proven to
give the same numbers stand in `same_numbers.json`.  Nothing here imports torch, unless a class from elsewhere already
has."""

import ast
import dis
import hashlib
import inspect
import io
import json
import re
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType

from rtx_core import study
from rtx_core.models import registry
from rtx_core.paths import PACKAGE, REPOSITORY

ROOMS = ("models", "fast", "train", "evaluate")  # no run imports the last, but what is measured does
WRAPPED = {property: "fget", cached_property: "func", classmethod: "__func__", staticmethod: "__func__"}
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
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is None:
                continue
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
    """The source of a module of this package's `ROOMS`, or beside one that the study measures with; None of any other."""
    if module.rpartition(".")[0] in {name.rpartition(".")[0] for name in study.measurements().values()}:
        return _file_of(module)
    parts = module.split(".")
    if module in NOT_NUMBERS or parts[0] != PACKAGE.name or len(parts) < 2:
        return None
    if parts[1] not in ROOMS and module != TASKS:
        return None
    path = PACKAGE.joinpath(*parts[1:])
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
    own = _own_source(kind, type(registry.find(architecture).config))
    bases = [base.__module__ for base in kind.__mro__ if base.__module__.startswith(f"{PACKAGE.name}.")]
    rest = _digest((*sorted({*bases}), TRAINER, TASKS, BUILD))
    return hashlib.sha256(f"{own}\n{rest}".encode()).hexdigest()


def _own_source(*things: object) -> str:
    """The source of classes from elsewhere and of all that they use, up to what libraries hold.

    Constants, functions, classes and modules of layers count.  Arrays and other objects of libraries do not, which may be
    caches or of chance.
    """
    seen, waiting, texts = {}, [("", thing) for thing in things], []
    while waiting:
        name, thing = waiting.pop()
        if inner := WRAPPED.get(type(thing)):
            thing = getattr(thing, inner)
        own, called = not _in_library(thing), getattr(thing, "__name__", None)
        if thing is None or isinstance(thing, (int, float, complex, str, bytes)):
            texts.append(f"{name}={thing!r}")
        elif not own and isinstance(called, str):
            texts.append(f"{name}={called}")
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # which also keeps its id
        if isinstance(thing, dict):
            parts = [part for item in thing.items() if _counts(item[1]) for part in item]
            waiting += [(f"{name}[{i}]", part) for i, part in enumerate(parts)]
        elif isinstance(thing, (list, tuple)):
            waiting += [(f"{name}[{i}]", value) for i, value in enumerate(thing)]
        elif isinstance(thing, (set, frozenset)):
            texts.append(f"{name}={sorted(map(_repr, thing))}")
        elif isinstance(thing, partial):
            waiting += [(name, thing.func), (name, thing.args), (name, thing.keywords)]
        elif _is_layers(thing):
            texts.append(f"{name}={_repr(thing)}")
            waiting += [("", type(part)) for part in thing.modules()]
        elif not own:
            continue
        elif inspect.ismethod(thing):
            waiting += [(name, thing.__func__), (name, thing.__self__)]
        elif inspect.isclass(thing):
            held = [(k, v) for k, v in sorted(vars(thing).items()) if inspect.isfunction(v) or k[:2] != "__"]
            waiting += [("", base) for base in thing.__bases__] + held
        elif inspect.isfunction(thing):
            texts.append(_function_source(thing))
            waiting += _used(thing)
            waiting += [("default", value) for value in (thing.__defaults__, thing.__kwdefaults__) if value]
        elif not inspect.ismodule(thing):  # an object of an own class, or a function in a wrapper
            held = sorted(getattr(thing, "__dict__", {}).items())
            waiting += [("", type(thing)), *((k, v) for k, v in held if k[:2] != "__" or k == "__wrapped__")]
    return "\n".join(texts)


def _counts(thing: object) -> bool:
    """Whether it is told: what is of a library and neither plain, nor named, nor layers, is not."""
    kinds = (int, float, complex, str, bytes, dict, list, tuple, set, frozenset, partial)
    plain = thing is None or isinstance(thing, kinds) or isinstance(getattr(thing, "__name__", None), str)
    return plain or _is_layers(thing) or not _in_library(thing)


def _repr(thing: object) -> str:
    """Without the address, which is another in every process."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(thing))


def _is_layers(thing: object) -> bool:
    """Whether it is an object of torch's modules; torch need not be imported to tell."""
    return any(
        (base.__module__, base.__name__) == ("torch.nn.modules.module", "Module")
        for base in type(thing).__mro__
    )


def _used(function: FunctionType) -> list[tuple[str, object]]:
    """What a function names: globals, what it takes from modules among them, and variables around it."""
    names, attributes = _names(function.__code__)
    found = [(name, function.__globals__[name]) for name in sorted(names & function.__globals__.keys())]
    for _, module in found:  # those that are added, too
        if inspect.ismodule(module) and not _in_library(module):
            more = [(name, vars(module)[name]) for name in sorted(attributes & vars(module).keys())]
            found += [pair for pair in more if not any(pair[1] is value for _, value in found)]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):  # it is empty as yet
            found.append((name, cell.cell_contents))
    return found


def _in_library(thing: object) -> bool:
    """Of Python, of an installed package or of this one, whose versions stand in the record."""
    module = thing if inspect.ismodule(thing) else sys.modules.get(getattr(thing, "__module__", None) or "")
    name = getattr(module, "__name__", "builtins")
    if name == "__main__" or name.partition(".")[0] == PACKAGE.name:
        return name != "__main__"
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return file is None or file.startswith(sysconfig.get_path("stdlib")) or "-packages/" in file


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """The globals and the attributes that it reads, in functions inside it too."""
    steps = list(dis.get_instructions(code))
    names = {step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = set(code.co_names)
    for inner in filter(inspect.iscode, code.co_consts):
        names, attributes = (a | b for a, b in zip((names, attributes), _names(inner)))
    return names, attributes


def _function_source(function) -> str:
    try:
        return bare(inspect.cleandoc("\n" + inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # typed into a shell without a history, or made by a library
        return repr(_compiled(function.__code__))


def _compiled(code: CodeType) -> tuple:
    """What it does, without where it stands."""
    constants = [_compiled(c) if inspect.iscode(c) else c for c in code.co_consts]
    constants = [sorted(map(repr, c)) if isinstance(c, frozenset) else c for c in constants]
    return code.co_code, code.co_names, code.co_varnames, constants


def module_hash(module: str) -> str:
    """SHA-256 of one module's bare source and of the source of `ROOMS` that it imports: what a measurement depends on."""
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
    return {
        "commit": git("rev-parse", "HEAD"),
        "clean": git("status", "--porcelain", PACKAGE.name, "study") == "",
    }


def git(*arguments: str) -> str | None:
    """What git says; None where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
