"""Which code made a record: a changed line counts for exactly the models and tasks that use it, a comment for none."""

import importlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import pytest
from IPython.core.interactiveshell import InteractiveShell

import study
from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.models.encoder import Encoder
from rtx_core.paths import PACKAGE, REPOSITORY
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
OTHER += [("text\n#", "text\n\n#"), ("text\n#", "text \n#"), ('module."""\n', 'module."""; scale = 2.0\n')]
OTHER += [('  b = "', '  b = "é" + "'), ("    return", "    'no docstring'\n    return")]


@pytest.mark.parametrize(("old", "new"), SAME + OTHER)
def test_only_code_changes_the_bare_source(old, new):
    changed = SOURCE.replace(old, new)
    assert changed != SOURCE
    assert (fingerprint.bare(changed) == fingerprint.bare(SOURCE)) == ((old, new) in SAME)


@pytest.mark.parametrize("sign", ["\f", "\x0b", "\x1c", "\u2028", "\x85"])
def test_signs_that_end_no_line_of_python_hide_no_change(sign):
    source = f'"""A module."""\nx = "{sign}"\n\f\ndef f():\n    """It doubles."""\n    return 2\n'
    assert fingerprint.bare(source) == fingerprint.bare(source.replace("It doubles.", "Doubles."))
    assert fingerprint.bare(source) != fingerprint.bare(source.replace("return 2", "return 3"))
    text = fingerprint._definition(source, "f")[0]
    assert "return 2" in text and "x =" not in text


TEXTS, A = fingerprint.TEXTS, "rtx_core.data.algorithmic"
LANGUAGE = ["rtx_core.data.characters:Characters", "rtx_core.data.stories:Stories"]
DRAWN = [f"{A}:KHop", f"{A}:GroupWords", f"{A}:GroupScan", f"{A}:Facts", "study.curriculum:GroupCurriculum"]
DRAWN.append("study.small_set:HopSet")
ENCODERS = {(name, TEXTS) for name in ("baseline", "recurrent", "recurrent-wide")}
LOOPED = set(product(("control", "frailt", "three-part", "relaxed", "looped"), LANGUAGE + DRAWN))
GPT, KAUSIK = ({(name, task) for task in LANGUAGE} for name in ("gpt", "kausik"))
ALL = ENCODERS | LOOPED | GPT | KAUSIK


def on(*tasks: str) -> set[tuple[str, str]]:
    return {pair for pair in ALL if pair[1].endswith(tasks)}


GROUPS = on("GroupWords", "GroupScan", "GroupCurriculum")
USED_BY = [  # files that count as a whole; a registry has names and colours, the configuration itself is in the record
    (ALL, ["models/packed", "models/layers", "models/build", "train/trainer"]),
    (ENCODERS, ["models/encoder", "fast/fused_block"]),
    (LOOPED, ["models/llama", "models/looped", "fast/causal"]),
    (GPT | KAUSIK, ["models/gpt"]),
    (KAUSIK, ["models/kausik", "fast/recurrence"]),
    (set(), ["models/registry", "data/sources", "data/texts"]),
]
CHANGES = [(pairs, file, "", "\nREMARK = 1\n") for pairs, files in USED_BY for file in files]
CHANGES += [  # whom a change concerns, the file, what is there, what comes in its place
    (LOOPED, "models/looped", "before + F.linear(before", "before + 0.5 * F.linear(before"),
    (on("HopSet"), "study/small_set", "RandomState([seed, i])", "RandomState([i, seed])"),
    (on("KHop", "HopSet"), "data/algorithmic", "random, random.randint(len", "random, 0 * random.randint(len"),
    (
        on("KHop", "HopSet"),
        "data/algorithmic",
        "after[matches] = before[matches] + 1",
        "after[matches] = before[matches]",
    ),
    (on("GroupScan"), "data/algorithmic", "torch.stack(losses).mean()", "torch.stack(losses).sum()"),
    (on("GroupScan"), "data/algorithmic", "state = layer(state, grid)", "state = layer(state + 1, grid)"),
    (GROUPS, "data/algorithmic", "n << halved", "n"),
    (GROUPS, "data/algorithmic", "element: i for i", "element: -i for i"),
    (on("Facts"), "data/algorithmic", "RandomState([seed, epoch])", "RandomState([epoch, seed])"),
    (on(*DRAWN), "data/algorithmic", "BATCH_TEXTS = 256", "BATCH_TEXTS = 128"),
    (on("GroupCurriculum"), "study/curriculum", "i // self.config.stage", "2 * i // self.config.stage"),
    (on("Characters"), "data/characters", "targets.chunk(self", "inputs.chunk(self"),
    (on("Stories"), "data/stories", "STORY = 0", "STORY = 1"),
    (ENCODERS, "data/tasks", 'reduction="sum"', 'reduction="mean"'),
    (ALL - ENCODERS, "data/tasks", "targets.numel() == step_examples", "targets.numel() >= step_examples"),
    (ALL - ENCODERS, "data/tasks", "EVALUATION_SEED = 5", "EVALUATION_SEED = 6"),
]


def forget() -> None:
    for cached in (fingerprint._source, fingerprint._read, fingerprint.imports, fingerprint._digest):
        cached.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package, next to one of the study, to change."""
    for folder in (PACKAGE, REPOSITORY / "study"):
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", tmp_path / "rtx_core")
    monkeypatch.setattr(study, "__path__", [str(tmp_path / "study")])
    for name in [name for name in sys.modules if name.startswith("study.")]:  # which would be found where they are
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path / "rtx_core"
    forget()


@contextmanager
def changed(package, name: str, old: str, new: str):
    """A file of the package or the study in which `new` stands for `old`, or at the end."""
    file = (package.parent if name.startswith("study") else package) / f"{name}.py"
    source = file.read_text()
    assert not old or source.count(old) == 1, old
    file.write_text(source.replace(old, new) if old else source + new)
    forget()
    yield source
    file.write_text(source)
    forget()


def hashes() -> dict[tuple[str, str], str]:
    return {pair: fingerprint.run_hash(*pair) for pair in ALL}


def test_a_change_makes_exactly_the_records_stale_whose_model_or_task_uses_it(package):
    forget()
    before = hashes()
    assert {name for name, _ in ALL} == set(registry.MODELS)
    for pairs, name, old, new in CHANGES:
        with changed(package, name, old, new):
            assert {pair for pair, value in hashes().items() if value != before[pair]} == pairs, (name, new)
    for name in ("models/looped", "data/algorithmic", "study/curriculum"):
        with changed(package, name, "", "\n# a remark\n"):
            assert hashes() == before, name


MEASURED = (("study.measurements.growth", f"{A}:KHop"), ("study.measurements.attention", TEXTS))


@pytest.mark.parametrize(("name", "old", "new", "stale"), [
    ("data/algorithmic", "random, random.randint(len", "random, 0 * random.randint(len", (True, False)),
    ("evaluate/inside", "", "\nREMARK = 1\n", (True, False)),
    ("models/layers", "", "\nREMARK = 1\n", (True, True)),
    ("models/encoder", "", "\nREMARK = 1\n", (False, False)),
])  # fmt: skip
def test_a_measurement_counts_with_its_task_and_what_both_import(package, name, old, new, stale):
    forget()
    before = [fingerprint.module_hash(*each) for each in MEASURED]
    with changed(package, name, old, new):
        assert tuple(fingerprint.module_hash(*each) != then for each, then in zip(MEASURED, before)) == stale


@pytest.mark.parametrize("base", ["rtx_core.data.tasks:Language", "rtx_core.data.config:SequenceTask"])
@pytest.mark.parametrize("defined", [True, False])
def test_a_task_of_ones_own_counts_with_its_code_and_is_not_imported_for_a_record(defined, base, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module, _, kind = base.partition(":")
    source = f"from {module} import {kind}\n\n\nclass Mine({kind}):\n    def draw(self):\n        return 1\n"
    made = []
    for text in (source, source.replace("return 1", "return 2"), source):
        name = f"own_{kind}_{defined}_{len(made)}"
        (tmp_path / f"{name}.py").write_text(text)
        if defined:
            made.append(fingerprint.run_hash("looped", importlib.import_module(name).Mine))
            assert fingerprint.run_hash("looped", f"{name}:Mine") == made[-1]
        else:
            with pytest.raises(RtxError, match="There is no task"):
                fingerprint.run_hash("looped", f"{name}:Mine")
            assert name not in sys.modules
    assert not defined or made[0] == made[2] != made[1]


def test_only_the_commit_of_this_very_code_is_named(tmp_path, monkeypatch):
    def git(*words):
        about = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        return subprocess.run(["git", "-C", tmp_path, *about, *words], capture_output=True, text=True, check=True)

    clone = tmp_path / "clone"
    (clone / "rtx_core").mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "REPOSITORY", clone)
    assert fingerprint.commit() == {"commit": None, "clean": False}  # no repository
    git("init")
    git("commit", "--allow-empty", "-m", "foreign")
    assert fingerprint.commit() == {"commit": None, "clean": False}  # one around it
    monkeypatch.setattr(fingerprint, "REPOSITORY", tmp_path)
    head = git("rev-parse", "HEAD").stdout.strip()
    monkeypatch.setenv("GIT_DIR", str(REPOSITORY / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(REPOSITORY))
    assert fingerprint.commit() == {"commit": head, "clean": True}
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    git("config", "status.showUntrackedFiles", "no")
    (tmp_path / "rtx_core").mkdir()
    (tmp_path / "rtx_core/more.py").write_text("MORE = 1\n")
    assert fingerprint.commit() == {"commit": head, "clean": False}


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
found = fingerprint.run_hash("mine", fingerprint.TEXTS)
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


def test_what_a_class_inherits_counts(package, monkeypatch):
    mine = replace(registry.MODELS["baseline"], kind=type("Mine", (Encoder,), {}))
    monkeypatch.setitem(registry.MODELS, "mine", mine)
    forget()
    before = fingerprint.run_hash("mine", TEXTS)
    for module, differs in (("layers", True), ("encoder", True), ("kausik", False)):
        with changed(package, f"models/{module}", "", "\nREMARK = 1\n"):
            assert (fingerprint.run_hash("mine", TEXTS) != before) == differs, module


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
