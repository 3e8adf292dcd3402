"""Which code made a record: a changed line counts for exactly the models that import it, its comments for none."""

import importlib
import shutil
from dataclasses import replace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from rtx_core.models import registry
from rtx_core.models.encoder import Encoder
from rtx_core.paths import PACKAGE
from rtx_core.records import fingerprint

SOURCE = '''"""A module."""

import os  # the system


def f(a):
    \'\'\'Two
    lines.  # no comment
    \'\'\'
    b = "# no comment"  # but this is
    return b, """text
# in a string"""
'''
SAME = [
    ("A module.", "Another text, in\n\nthree lines."),
    ('"""A module."""\n', ""),
    ("  # the system\n", "\n# another\n\n"),
    ("lines.  # no comment", "Lines."),
]
OTHER = [("import os", "import sys"), ('"# no comment"', '"# other"'), ("# in a string", "# in the string")]


@pytest.mark.parametrize(("old", "new"), SAME + OTHER)
def test_only_code_changes_the_bare_source(old, new):
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE
    assert (fingerprint.bare(changed) == fingerprint.bare(SOURCE)) == ((old, new) in SAME)


ENCODERS = {"baseline", "recurrent", "recurrent-wide"}
LOOPED = {"control", "frailt", "three-part", "relaxed", "looped"}
ALL = ENCODERS | LOOPED | {"gpt", "kausik"}
USED_BY = {
    "models/encoder": ENCODERS,
    "models/layers": ENCODERS | LOOPED,
    "models/gpt": {"gpt", "kausik"},
    "models/kausik": {"kausik"},
    "models/llama": LOOPED,
    "models/looped": LOOPED,
    "models/packed": ALL,
    "fast/fused_block": ENCODERS,
    "fast/causal": LOOPED,
    "fast/recurrence": {"kausik"},
    "train/trainer": ALL,
    "data/tasks": ALL,
    "models/registry": set(),  # names and colours; the configuration itself is in the record
    "fast/serving": set(),
    "data/stories": set(),
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package to change."""
    copy = shutil.copytree(PACKAGE, tmp_path / "rtx_core", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", copy)
    yield copy
    forget()


def forget() -> None:
    for cached in (fingerprint._source, fingerprint.imports, fingerprint._digest):
        cached.cache_clear()


def hashes() -> dict[str, str]:
    forget()
    return {name: fingerprint.model_hash(name) for name in registry.MODELS}


def test_a_changed_line_changes_the_hash_of_exactly_the_models_that_import_it(package):
    before = hashes()
    assert set(before) == ALL
    for module, models in USED_BY.items():
        file = package / f"{module}.py"
        source = file.read_text()
        file.write_text(source.replace('"""', '"""Otherwise: ', 1) + "\n# a remark\n")
        assert hashes() == before, module
        file.write_text(source + "\nREMARK = 1\n")
        assert {name for name, value in hashes().items() if value != before[name]} == models, module
        file.write_text(source)


MINE = '''"""Mine."""
from torch import nn
from rtx_core import Settings

SCALE = 2


def helper(x):
    return SCALE * x  # twice


class Base(nn.Module):
    def size(self):
        return 3


class Mine(Base):
    """A model."""

    def forward(self, batch):
        return helper(batch)


class MineConfig(Settings):
    width: int = 4
'''
COUNTS = [("SCALE = 2", "SCALE = 3"), ("return 3", "return 5"), ("SCALE * x", "x"), ("int = 4", "int = 5")]
COUNTS_NOT = [("  # twice", ""), ('    """A model."""\n', ""), ('"""Mine."""', "")]
HASHED = """
from rtx_core.models import registry
from rtx_core.records import fingerprint
registry.MODELS.pop("mine", None)
registry.register("mine", Mine, MineConfig())
found = fingerprint.model_hash("mine")
"""


def in_cells(source: str) -> str:
    """The hash of the classes of a notebook's cell, registered in the next one."""
    shell = InteractiveShell()
    for cell in (source, HASHED):
        shell.run_cell(cell).raise_error()
    return shell.user_ns["found"]


@pytest.mark.parametrize(("old", "new"), COUNTS + COUNTS_NOT)
def test_a_class_from_elsewhere_counts_with_its_file_or_cell(old, new, tmp_path, monkeypatch, kernel):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    files, cells = [], []
    for source in (MINE, MINE.replace(old, new), MINE):
        name = f"mine_{len(files)}_{abs(hash((old, new)))}"
        (tmp_path / f"{name}.py").write_text(source)
        module = importlib.import_module(name)
        registry.MODELS.pop("mine", None)
        registry.register("mine", module.Mine, module.MineConfig())
        files.append(fingerprint.model_hash("mine"))
        cells.append(in_cells(source))
    for first, changed, again in (files, cells):
        assert first == again and (first == changed) == ((old, new) in COUNTS_NOT)


def test_what_a_class_inherits_and_a_measurement_imports_counts(package, monkeypatch):
    mine = replace(registry.MODELS["baseline"], kind=type("Mine", (Encoder,), {}))
    monkeypatch.setitem(registry.MODELS, "mine", mine)

    def found():
        forget()
        return fingerprint.model_hash("mine"), fingerprint.module_hash("study.measurements.attention")

    before = found()
    for module, differ in (("layers", [True, True]), ("encoder", [True, False]), ("kausik", [False, False])):
        with (package / "models" / f"{module}.py").open("a") as file:
            file.write("\nREMARK = 1\n")
        assert [now != then for now, then in zip(found(), before)] == differ, module
        before = found()
