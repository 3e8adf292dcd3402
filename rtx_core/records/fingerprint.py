"""Which code made a record: the commit, and a hash of all source that can change its numbers.

The hash of a run covers, without comments and docstrings: every file of `models/`, `fast/` and `train/` that the
model's class, its fast path and the trainer import; and the class of the task that was trained on, with what that uses
of its own module and of others: its generator, its loss, its schedule of lengths.  Code that only reads and cuts texts
does not count, as the hash of the data stands in the record.  Of a class defined elsewhere the file or cell in which it
stands counts, and what it uses.

Which earlier hashes give the numbers of today's code is certified by golden runs (`golden`) and stands in
`same_numbers.json`."""

import ast
import dis
import hashlib
import inspect
import io
import json
import linecache
import os
import re
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.study import declaration, study
from rtx_core.train.config import TrainConfig

ROOMS = ("models", "fast", "train", "evaluate")  # no run imports the last, but what is measured does
DRAWS = ("tasks", "tokens", "algorithmic", "characters", "stories")  # of `data`, by definition and not by file
NOT_NUMBERS = ("rtx_core.models.registry", "rtx_core.models.protocols")  # names and colors; what type checkers read
TRAINER = "rtx_core.train.trainer"
BUILD = "rtx_core.models.build"  # which draws the first weights
TEXTS = "rtx_core.data.tasks:Classification"
PLAIN = (bool, int, float, str, type(None))  # values that are told by their repr
STDLIB = sysconfig.get_path("stdlib")
SAME_NUMBERS = Path(__file__).with_name("same_numbers.json")
GOLDEN = Path(__file__).with_name("golden.json")
STRINGS = (tokenize.STRING, *(getattr(tokenize, f"{kind}STRING_MIDDLE", tokenize.STRING) for kind in "FT"))
EXACT = ("window", "weight_noise")  # numbers of which each is a way of its own
SIZES = ("vocab_size", "hidden_size", "num_heads", "intermediate_size", "block_size", "num_labels")

Definition = tuple[str, str]  # (a module, a name in it; "" for the whole)


def lines_of(source: str) -> list[str]:
    """Lines as Python counts them; `splitlines` also cuts at form feeds and other signs."""
    return re.split(r"\r\n|\r|\n", source)


@cache
def bare(source: str) -> str:
    """Python source without docstrings, comments and blank lines; what stands in other strings stays as it is."""
    lines, string_lines = [line.encode() for line in lines_of(source)], set()  # columns of `ast` are counted in bytes
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines_of(source))).readline):
        (row, column), (end, _) = token.start, token.end
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1].decode()[:column].rstrip().encode()
        elif token.type in STRINGS:
            string_lines.update(range(row - 1, end - 1))  # lines that end in a string
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            row, end = text.lineno - 1, (text.end_lineno or text.lineno) - 1
            lines[row] = lines[row][: text.col_offset] + lines[end][text.end_col_offset :]
            lines[row + 1 : end + 1] = [b""] * (end - row)
            string_lines.difference_update(range(row, end))
    rows = (line if i in string_lines else line.rstrip() for i, line in enumerate(lines))
    return b"\n".join(line for i, line in enumerate(rows) if line or i in string_lines).decode()


@cache
def _source(module: str) -> str | None:
    """The source of a module that counts: of `ROOMS` and `DRAWS`, or next to one that the study measures with."""
    package, room, *_ = [*module.split("."), ""]
    if module.rpartition(".")[0] in {name.rpartition(".")[0] for name in declaration("MEASUREMENTS").values()}:
        return _read(module)
    counts = package == PACKAGE.name and module not in NOT_NUMBERS and (room in ROOMS or _draws(module))
    return _read(module) if counts else None


def _draws(module: str) -> bool:
    return module.rpartition(".")[0] == f"{PACKAGE.name}.data" and module.rpartition(".")[2] in DRAWS


@cache
def _read(module: str) -> str | None:
    package, *parts = module.split(".")
    if package == PACKAGE.name:
        path = PACKAGE.joinpath(*parts)
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        return file.read_text(encoding="utf-8") if file.exists() else None
    try:
        outer = find_spec(".".join([package, *parts[:-1]])) if parts else None
        if outer and outer.submodule_search_locations is None:  # a name in a module, which need not be imported
            return None
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.has_location and spec.origin else None


@cache
def imports(source: str) -> tuple[Definition, ...]:
    """What Python source imports of the modules that count, wherever its import statements stand."""
    return tuple(definition for definition in _all_imports(source) if _source(definition[0]) is not None)


@cache
def _all_imports(source: str) -> list[Definition]:
    return sorted({definition for node in ast.walk(ast.parse(source)) for definition, _ in _imported(node)})


def _imported(node: ast.AST) -> list[tuple[Definition, str]]:
    """(definition, the name that it gets) of an import statement: by name of a module of `DRAWS`, else whole files."""
    if isinstance(node, ast.Import):
        return [((alias.name, ""), alias.asname or alias.name.partition(".")[0]) for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or not node.module:
        return []
    aliases = [(alias.name, alias.asname or alias.name) for alias in node.names]
    pairs = [((node.module, name if _draws(node.module) else ""), binding) for name, binding in aliases]
    return pairs + [((f"{node.module}.{name}", ""), binding) for name, binding in aliases]  # a module in a package


@cache
def _statements(source: str) -> tuple[tuple[set, set, str, tuple[Definition, ...]], ...]:
    """Of every statement of a module: the names that it binds and uses, its bare text, and what it imports."""
    lines, statements = lines_of(source), []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for definition, name in _imported(node):
                statements.append(({name}, set(), f"{name} = {':'.join(definition)}", (definition,)))
            continue
        begin = min([node.lineno, *(child.lineno for child in getattr(node, "decorator_list", ()))])
        text = bare("\n".join(lines[begin - 1 : node.end_lineno]))
        names = [child for child in ast.walk(node) if isinstance(child, ast.Name)]
        bindings = {node.name} if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else set()
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            bindings = {child.id for child in names if isinstance(child.ctx, ast.Store)}
        imported = tuple(definition for child in ast.walk(node) for definition, _ in _imported(child))
        statements.append((bindings, {child.id for child in names}, text, imported))
    return tuple(statements)


@cache
def _definition(source: str, name: str) -> tuple[str, tuple[Definition, ...]]:
    """The bare source of what a module says of a name and of all that this uses of the module; and its imports.  What
    binds no name, as `if` or a call, always counts."""
    names_used, previous = {name}, set()
    while names_used != previous:
        previous = set(names_used)
        for bindings, uses, *_ in _statements(source):
            if not bindings or bindings & previous:
                names_used |= uses
    statements = [each for each in _statements(source) if not each[0] or each[0] & names_used]
    imported = tuple(definition for *_, imports in statements for definition in imports)
    return "\n".join(text for *_, text, _ in statements), imported


@cache
def _digest(roots: tuple[Definition, ...], package: str = "") -> str:
    """Of these modules and definitions and all that they import, directly or not, as far as it counts or lies in this
    `package`, a module or package."""
    texts, queue = {}, list(roots)
    while queue:
        module, name = queue.pop()
        is_inside = package and f"{module}.".startswith(f"{package}.")
        source = _read(module) if is_inside else _source(module)
        if (module, name) not in texts and source is not None:
            texts[module, name], imported = _definition(source, name) if name else (bare(source), imports(source))
            queue += imported
    digest = hashlib.sha256()
    for (module, name), text in sorted(texts.items()):
        digest.update(f"{module}:{name}\n{text}\n".encode())
    return digest.hexdigest()


def name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def run_hash(architecture: str, task: str | type) -> str:
    """SHA-256 of the source that the numbers of a registered model depend on which is trained on a task of this class,
    as the source was when first needed."""
    from rtx_core.fast import FAST_PATHS

    model = registry.find(architecture)
    roots = {(TRAINER, ""), (BUILD, "")}
    if not isinstance(model.kind, str):
        return _with_task(roots, task, model.kind, type(model.config))
    return _with_task(roots | {(m, "") for m in (model.kind.partition(":")[0], *FAST_PATHS.get(model.kind, ()))}, task)


def module_hash(module: str, task: str | type | None = None) -> str:
    """SHA-256 of what a measurement depends on: a module's bare source, what it imports of the code that counts, and
    the task whose texts it reads."""
    source = _read(module)
    return hashlib.sha256(f"{bare(source)}\n{_with_task(set(imports(source)), task)}".encode()).hexdigest()


def _with_task(roots: set[Definition], task: str | type | None, *elsewhere: type) -> str:
    """Of these definitions, of classes that are defined elsewhere, and of the class of a task, wherever that is."""
    package = ""
    while task:
        module, _, name = (task if isinstance(task, str) else name_of(task)).partition(":")
        if not is_elsewhere(module):
            roots = roots | {(module, name.partition(".")[0])}
            package = module if module.startswith(f"{PACKAGE.name}.") else module.partition(".")[0]
            break
        elsewhere += (_defined(task) if isinstance(task, str) else task,)
        task = getattr(elsewhere[-1], "task_class", None)
    text, modules = _own_source(*elsewhere)
    digest = _digest(tuple(sorted(roots | modules)), package)
    return hashlib.sha256(f"{text}\n{digest}".encode()).hexdigest() if elsewhere else digest


def task_of(data: object, task: object) -> type:
    """The class that stands for a task in a record: its own, or that of its settings where these are of one's own."""
    return type(data if is_elsewhere(type(data).__module__) else task)


def is_elsewhere(module: str) -> bool:
    """Whether a module is neither of this package nor of the study."""
    return module.partition(".")[0] not in (PACKAGE.name, study().__name__)


def _defined(name: str) -> type:
    """The class of that name, where its module has been imported: what a record names is not imported for it."""
    module, _, name = name.partition(":")
    if not isinstance(value := getattr(sys.modules.get(module), name, None), type):
        raise RtxError(f"There is no task {module}:{name} here; define or import it first.")
    return value


def _own_source(*classes: type) -> tuple[str, set[Definition]]:
    """The bare source of the files and cells of these classes, of their bases and of what their functions use by name
    (plain values as they are, bytecode where there is no source); and the modules of this package among it."""
    texts, modules, visited, queue = set(), set(), set(), list(classes)
    while queue:
        if id(thing := inspect.unwrap(queue.pop())) in visited:
            continue
        visited.add(id(thing))
        module = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", None) or ""
        file = getattr(sys.modules.get(module), "__file__", None)
        file = thing.__code__.co_filename if inspect.isfunction(thing) else file
        if module.partition(".")[0] == PACKAGE.name:
            modules.add((module, ""))
        elif module != "__main__" and (not file or file.startswith(STDLIB) or "-packages/" in file):
            continue  # of Python or an installed package, whose versions stand in the record
        elif inspect.isfunction(thing):
            code = thing.__code__
            texts.add(_bare_file(file, modules) or bytecode(code))
            values = {name: thing.__globals__[name] for name in _globals(code) & thing.__globals__.keys()}
            texts |= {f"{name} = {value!r}" for name, value in values.items() if isinstance(value, PLAIN)}
            queue += values.values()
        elif inspect.isclass(thing) or inspect.ismodule(thing):
            texts.add(_bare_file(file, modules))
            queue += [*thing.__mro__, *vars(thing).values()] if inspect.isclass(thing) else ()
    return "\n".join(sorted(texts)), modules


def _bare_file(name: str | None, modules: set[Definition]) -> str:
    """The bare source of a file or cell, "" where there is none; what it imports of this package joins `modules`."""
    source = "".join(linecache.getlines(name)) if name else ""
    modules.update(imports(source))
    return bare(source)


def _globals(code: CodeType) -> set[str]:
    """The global names that a function reads, and those within it."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return read.union(*(_globals(part) for part in code.co_consts if inspect.iscode(part)))


def compiled(source: str) -> str:
    """The bytecode of a module without docstrings, in which local variables have no names."""
    return bytecode(compile(bare(source), "", "exec"))


def bytecode(code: CodeType) -> str:
    plain = [sorted(map(repr, part)) if isinstance(part, frozenset) else part for part in code.co_consts]
    parts = [bytecode(part) if inspect.iscode(part) else repr(part) for part in plain]
    return f"{code.co_name} {code.co_code.hex()} {code.co_names} {parts}"


def way(task: str, config: Mapping) -> str:
    """Which way through the code a run takes, from its record's `config`: every switch as it is, and of numbers whether
    they are 0, 1 or more.  What the hash of the data fixes, and `SIZES`, do not count."""
    parts = {"model": registry.config_of(config["architecture"]).model_dump() | config["model"]}
    parts["data"] = {} if task == TEXTS else config["data"]
    parts["train"] = TrainConfig().model_dump() | config["train"]
    excluded = (*SIZES, "corpus", "source")
    switches = {
        part: {k: _kind(k, v) for k, v in fields.items() if k not in excluded} for part, fields in parts.items()
    }
    return json.dumps([config["architecture"], task, switches], sort_keys=True)


def _kind(name: str, value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "more" if number and value not in (0, 1) and name not in EXACT else value


@cache
def registered() -> dict:
    """What `rtx golden` has registered: `commit`, whose golden runs are the reference, and `codes`, of every model on a
    task and of every measurement the hashes of its code, the oldest first, each with the numbers of the one before."""
    return json.loads(SAME_NUMBERS.read_text(encoding="utf-8"))


@cache
def golden_runs() -> dict[str, dict]:
    """The recorded golden runs by name, with `task`, `config` and `since`, the first code that each ran on."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@cache
def since(architecture: str) -> dict[str, str]:
    """Of the golden runs of a model, by the way that each goes: the first code that it ran on."""
    runs = (run for run in golden_runs().values() if run["config"]["architecture"] == architecture)
    return {way(run["task"], run["config"]): run["since"] for run in runs}


def code_of(architecture: str, task: str) -> str:
    """The name in `registered` of a model on a task."""
    return f"{registry.find(architecture).kind} {task}"


def run_is_current(hashes: Iterable[str], task: str, config: Mapping) -> bool:
    """Whether today's code gives the numbers of a run that code of these hashes worked on, in turn: it is that code, or
    a golden run that goes the same way has given the same numbers by all of them."""
    today, codes = (
        run_hash(config["architecture"], task),
        registered()["codes"].get(code_of(config["architecture"], task), []),
    )
    begin = since(config["architecture"]).get(way(task, config))
    start = codes.index(begin) if begin in codes else len(codes)
    return set(hashes) <= {today, *(codes[start:] if today in codes[-1:] else ())}


def measurement_is_current(hashes: Iterable[str], task: str, module: str) -> bool:
    today, codes = module_hash(module, task), registered()["codes"].get(f"{module} {task}", [])
    return set(hashes) <= {today, *(codes if today in codes[-1:] else ())}


def commit() -> dict:
    """The commit, and whether package and study hold exactly that commit's code; nulls where that is not known."""
    top = git("rev-parse", "--show-toplevel")  # of none, or of one that git does not trust, nothing
    if not top or not os.path.samefile(top, REPOSITORY):  # a repository around this one knows nothing of it
        return {"commit": None, "clean": False}
    status = git("status", "--porcelain", "--untracked-files=all", PACKAGE.name, "study")
    return {"commit": git("rev-parse", "HEAD"), "clean": status == ""}


def git(*arguments: str) -> str | None:
    """What git says of this repository, whatever the environment names; None where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    options = {"capture_output": True, "text": True, "timeout": 10, "env": environment}
    try:
        process = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], **options)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
