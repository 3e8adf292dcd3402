"""Imports: the package is light, pages are drawn without torch, and an unknown name says what there is."""

import shutil
import subprocess
import sys

import pytest
from factory import runs_of

import rtx_core as rtx
from rtx_core.paths import REPOSITORY


def run_python(source: str, *arguments: object) -> str:
    done = subprocess.run([sys.executable, "-c", source, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_heavy():
    heavy = ("torch", "pandas", "numpy", "matplotlib", "scipy", "sklearn", "datasets", "jsonschema")
    assert run_python(f"import sys, rtx_core; print([name for name in {heavy} if name in sys.modules])").strip() == "[]"


def test_drawing_from_records_imports_no_torch(home):
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    shutil.copy(REPOSITORY / "results" / "architectures.json", home / "results")
    runs_of()
    said = run_python("""
import sys
from pathlib import Path
import rtx_core as rtx
from rtx_core.pages import display
from rtx_core.pages import runs as pages_runs
display.REPOSITORY = Path(sys.argv[1])
asked = rtx.settings("sst2", {"source": "hub"})
runs, profiles = rtx.runs(asked), rtx.profiles(asked, ["seeded", "official"])
for draw in (rtx.table.benchmark, rtx.table.latency, rtx.figure.bubble, rtx.figure.learning_curves, rtx.figure.confusion):
    draw(runs, label="fig-a" if "figure" in draw.__module__ else "tab-a")
rtx.text.comparison(runs), rtx.text.training(runs), rtx.provenance(runs, notebook="sst2")
rtx.table.configuration("recurrent", label="tab-a"), rtx.table.parameter_counts(label="tab-b")
rtx.table.label_distribution(profiles, label="tab-d"), rtx.table.lengths(profiles, label="tab-e"), rtx.text.labels(profiles)
rtx.table.preprocessing(["A  b!!"], label="tab-f"), rtx.figure.lengths(profiles, label="fig-b"), rtx.text.data_provenance(profiles)
print([name for name in ("torch", "datasets", "sklearn", "tokenizers") if name in sys.modules], len(runs.records))
""", home)
    assert said.strip() == "[] 2" and (home / "book/figures/fig-b.svg").exists()


def test_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"^module 'rtx_core' has no attribute 'tables'; it offers .*build_model.*settings.*table"):
        rtx.tables
    assert not hasattr(rtx, "nothing") and set(dir(rtx)) == set(rtx.__all__)
    for name in rtx.__all__:
        assert getattr(rtx, name) is not None
