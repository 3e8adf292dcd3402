"""The repository: rooms know only those below them, pages are drawn without torch, pins agree, all Python is linted."""

import ast
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import distributions, metadata, packages_distributions, requires

import jedi
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from setuptools import find_packages

import rtx_core as rtx
from rtx_core import models
from rtx_core.paths import PACKAGE, REPOSITORY

ROOMS = [  # each imports from those before it; one of a line knows no other of that line
    ["errors", "deprecated"],
    ["lazy", "paths", "metrics", "progress", "reads"],
    ["settings", "study", "foreign", "inputs"],
    ["models"],
    ["fast", "data"],
    ["train"],
    ["records", "evaluate"],
    ["experiments"],
    ["report"],
    ["benchmark"],
    ["__main__", "rtx_core"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def imported(tree: ast.AST, everywhere: bool) -> set[str]:
    """The modules of this package that a module imports, in functions too or as it is loaded."""
    found, waiting = set(), list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "rtx_core":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, (ast.FunctionDef, ast.If)) and not everywhere:
            continue  # what only type checkers read, too
        waiting += ast.iter_child_nodes(node)
    return {name.removeprefix("rtx_core.") for name in found}


FILES = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in PACKAGE.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in FILES.items()}


def test_rooms_import_downwards_only():
    for module, tree in MODULES.items():
        module = module.removeprefix("rtx_core.")
        room = module.partition(".")[0]
        for other in imported(tree, everywhere=True):
            to = other.partition(".")[0]
            assert to == room or LEVEL[to] < LEVEL[room], f"{module} imports {other}"
            light = other in ("models.packed", "models.configs", "models.protocols")
            assert (room, to) != ("data", "models") or light, f"{module} imports {other}"
            assert (
                room != "report"
                or to in ("report", "errors", "lazy", "paths", "reads", "study")
                or other == "models.registry"
            )


def test_the_library_names_no_study():
    """It finds one by the hook of `rtx_core.study` alone."""
    for module, tree in MODULES.items():
        named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not [name for name in named if name.partition(".")[0] == "study"], module
        told = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not [text for text in told if isinstance(text, str) and re.match(r"study\.\w", text)], module


def test_no_imports_go_in_circles():
    graph = {name.removeprefix("rtx_core."): imported(tree, False) for name, tree in MODULES.items()}
    TopologicalSorter(graph).prepare()


def test_a_page_of_records_imports_no_torch():
    source = """
import sys, rtx_core as rtx, rtx_core.data
light = [name for name in ("torch", "pandas", "numpy", "matplotlib", "datasets", "tokenizers") if name in sys.modules]
assert len(rtx.results()) > 70 and len(rtx.runs("sst2", models=["baseline", "recurrent"], seeds=[0])) == 2
assert rtx.report and rtx.records.measurements("transfer")
print(light, [name for name in ("torch", "datasets", "sklearn", "tokenizers", "transformers") if name in sys.modules])
"""
    environment = {"PATH": "", "RTX_HOME": str(REPOSITORY), "RTX_BOOK": "1"}
    words = [sys.executable, "-c", source]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=REPOSITORY, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, "[] []"), done.stderr


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match="has no attribute 'tables'; it offers .*build_model"):
        rtx.tables  # noqa: B018
    for package in (rtx, rtx.data, rtx.report, models):
        assert set(dir(package)) == set(package.__all__)
        assert all(getattr(package, name) is not None for name in package.__all__)


@pytest.mark.parametrize("typed", ["run", "data.from_files", "report.table", "settings_of", "run('khop').record"])
def test_an_editor_completes_public_names(typed):
    """From the source alone, as a type checker reads it, too."""
    (found,) = [c for c in jedi.Script(f"import rtx_core as rtx\nrtx.{typed}").complete() if typed.endswith(c.name)]
    assert found.type in ("function", "statement", "param", "instance"), found.type


def pins(lines: list[str]) -> dict[str, str]:
    """Name -> version of lines that are no comments and no options; each pins exactly, and a name stands once."""
    pinned = [line for line in lines if not line.startswith(("#", "--"))]
    matches = [re.fullmatch(r"([\w.-]+)==([\w.!]+)", line) for line in pinned]
    assert all(matches), pinned
    found = {canonicalize_name(match[1]): match[2] for match in matches}
    assert len(found) == len(pinned)
    return found


PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {"": PROJECT["dependencies"]} | PROJECT["optional-dependencies"]  # extra -> its requirements
IMPORTED_BY = {  # folders -> extras that what they import may come from
    ("rtx_core", "study"): ("", "judge", "gpu"),
    ("notebooks", "book"): ("", "book"),
    ("benchmarks", "tests", "workflow"): ("", "book", "dev", "judge", "browser"),
}


def names(*extras: str) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for extra in extras for line in DECLARED[extra]}


def test_pins_are_exact_and_agree_and_install_on_every_python():
    workflow = pins((REPOSITORY / "requirements-workflow.lock").read_text().splitlines())
    assert {"snakemake", "snakemake-executor-plugin-slurm"} <= workflow.keys()
    locked = pins((REPOSITORY / "requirements.lock").read_text().splitlines())
    assert not [name for name in locked if name.startswith("nvidia") or name in {"triton", "rtx-core"}]
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    listed = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    direct = pins(listed)
    assert direct == {name: locked.get(name) for name in direct}
    assert names("", "book", "dev", "judge") <= direct.keys()
    for name in locked.keys() & {canonicalize_name(found.name) for found in distributions()}:
        for python in ("3.11.0", "3.14.0"):
            assert python in SpecifierSet(metadata(name).get("Requires-Python", "")), (name, python)
        wanted = [Requirement(line) for line in requires(name) or ()]
        wanted = [each.name for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})]
        lacking = {canonicalize_name(each) for each in wanted} - locked.keys()
        assert all(re.match("nvidia|cuda|triton", each) for each in lacking), (name, lacking)
    for line in sum(DECLARED.values(), []):
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name not in locked or locked[name] in requirement.specifier, (line, locked[name])


def test_every_import_is_declared():
    provided, ours = packages_distributions(), {"rtx_core", "study", "benchmarks"}
    for folders, extras in IMPORTED_BY.items():
        declared = names(*extras)
        for path in [path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")]:
            if path.name == "engine.py":
                continue  # which papermill itself loads
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
            modules |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
            for top in {module.partition(".")[0] for module in modules} - ours - sys.stdlib_module_names:
                brought = {canonicalize_name(name) for name in provided.get(top, [top])}
                assert brought & declared or [*REPOSITORY.glob(f"*/{top}.py"), *REPOSITORY.glob(f"*/*/{top}.py")], top


def test_a_wheel_holds_the_library_alone():
    """An installed package called `study` would meet the user's own."""
    tool = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert {name.partition(".")[0] for name in find_packages(REPOSITORY, **tool["packages"]["find"])} == {"rtx_core"}


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff(command):
    words = [sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", "."]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
