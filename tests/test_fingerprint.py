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
USED_BY = [  # a registry has names and colours; the configuration itself is in the record
    (ALL, ["models/packed", "train/trainer", "data/tasks"]),
    (ENCODERS | LOOPED, ["models/layers"]),
    (ENCODERS, ["models/encoder", "fast/fused_block"]),
    (LOOPED, ["models/llama", "models/looped", "fast/causal"]),
    ({"gpt", "kausik"}, ["models/gpt"]),
    ({"kausik"}, ["models/kausik", "fast/recurrence"]),
    (set(), ["models/registry", "fast/serving", "data/stories"]),
]


def forget() -> None:
    for cached in (fingerprint._source, fingerprint.imports, fingerprint._digest):
        cached.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package to change."""
    copy = shutil.copytree(PACKAGE, tmp_path / "rtx_core", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", copy)
    yield copy
    forget()


def hashes() -> dict[str, str]:
    forget()
    return {name: fingerprint.model_hash(name) for name in registry.MODELS}


def test_a_changed_line_changes_the_hash_of_exactly_the_models_that_import_it(package):
    before = hashes()
    assert set(before) == ALL
    for module, models in ((module, models) for models, modules in USED_BY for module in modules):
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
    shell = InteractiveShell()
    for cell in (*source.split("# next cell"), HASHED):
        shell.run_cell(cell).raise_error()
    return shell.user_ns["found"]


def in_a_file(source: str, path) -> str:
    path.write_text(source)
    exec(HASHED, found := vars(importlib.import_module(path.stem)))
    return found["found"]


@pytest.mark.parametrize(("old", "new"), COUNTS + COUNTS_NOT)
def test_a_class_from_elsewhere_counts_with_its_file_or_cell(old, new, tmp_path, monkeypatch, kernel):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    sources = (MINE, MINE.replace(old, new), MINE)
    files = [in_a_file(source, tmp_path / f"mine_{i}_{abs(hash((old, new)))}.py") for i, source in enumerate(sources)]
    for first, changed, again in (files, map(in_cells, sources)):
        assert first == again and (first == changed) == ((old, new) in COUNTS_NOT)


def test_what_a_class_inherits_and_a_measurement_imports_counts(package, monkeypatch):
    mine = replace(registry.MODELS["baseline"], kind=type("Mine", (Encoder,), {}))
    monkeypatch.setitem(registry.MODELS, "mine", mine)
    for module, differ in (("layers", (True, True)), ("encoder", (True, False)), ("kausik", (False, False))):
        found = []
        for remark in ("", "\nREMARK = 1\n"):
            with (package / "models" / f"{module}.py").open("a") as file:
                file.write(remark)
            forget()
            found.append((fingerprint.model_hash("mine"), fingerprint.module_hash("study.measurements.attention")))
        assert tuple(now != then for now, then in zip(*found)) == differ, module


COMPOSED = """from torch import nn
from rtx_core import Settings
from rtx_core.models.layers import RMSNorm
SCALE = 1
# next cell
class Mine(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norms = nn.ModuleList(RMSNorm(4 * SCALE) for _ in range(2))
class MineConfig(Settings):
    width: int = 4
"""


def test_the_layers_that_a_class_is_composed_of_count(package, tmp_path, monkeypatch, kernel):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    for hashed in (lambda: in_a_file(COMPOSED, tmp_path / "composed.py"), lambda: in_cells(COMPOSED)):
        found = {"none": hashed()}
        for module in ("layers", "kausik"):
            with (package / "models" / f"{module}.py").open("a") as file:
                file.write("\nREMARK = 1\n")
            forget()
            found[module] = hashed()
        assert found["none"] != found["layers"] == found["kausik"]
    assert in_cells(COMPOSED.replace("SCALE = 1", "SCALE = 2")) != found["kausik"]
    plain = COMPOSED.replace("# next cell", "")
    typed = [in_cells(f"exec({part!r})") for part in (plain, plain.replace("4 *", "8 *"), plain)]
    assert typed[0] == typed[2] != typed[1]  # no source
