"""The page that shows how to use the project: every snippet runs as it stands, and so does its study of one's own."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from papermill.__main__ import papermill

import rtx_core as rtx
from rtx_core import records
from rtx_core.__main__ import main
from rtx_core.models import registry
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.report import style
from study.experiments import EXPERIMENTS

PYTHON = "python -m rtx_core "
PAGE = (REPOSITORY / "book" / "make-it-yours.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|bash)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SMALL_KERNEL = "import conftest as _conftest, pytest as _pytest\n_conftest.shrink(_pytest.MonkeyPatch())\n"


@pytest.fixture
def here(home, monkeypatch, small_models, kernel):
    """A folder with the notebooks, where the quick start is a run of 48 texts and a sample holds 60."""
    monkeypatch.chdir(home)
    (home / "notebooks").symlink_to(REPOSITORY / "notebooks")
    quick = EXPERIMENTS["quickstart"]
    small = replace(quick, data=quick.data.replace(train_rows=48), train=quick.train.replace(eval_every=0))
    monkeypatch.setitem(EXPERIMENTS, "quickstart", small)
    monkeypatch.setattr(rtx.data, "sample", lambda path, sample=rtx.data.sample: sample(path, rows=60))
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    monkeypatch.setattr(style, "MODELS", registry.MODELS)
    startup = kernel / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-small.py").write_text(SMALL_KERNEL)
    return home


def typed(line: str, monkeypatch) -> None:
    """A line for a terminal: the commands of this project and of papermill in this process, which has imported them,
    others by bash."""
    before, _, command = line.rpartition(" | ")
    if command.startswith(PYTHON):
        said = subprocess.run(["bash", "-ec", before], capture_output=True, text=True, check=True).stdout
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        monkeypatch.setattr("sys.argv", ["rtx", *shlex.split(command)[3:]])
        main()
    elif command.startswith("papermill "):
        papermill.main(shlex.split(command)[1:], standalone_mode=False)
    else:
        subprocess.run(["bash", "-ec", line], check=True, timeout=600)


def test_every_snippet_runs_as_it_stands(here, monkeypatch):
    known = {"__name__": "page"}
    for language, source in BLOCKS:
        if language == "bash":
            for line in source.splitlines():
                typed(line, monkeypatch)
        else:
            exec(source, known)
    table = known["runs"].frame
    assert list(table["model"]) == ["baseline", "recurrent", "gated"]
    assert table["accuracy"].between(0, 1).all()
    assert list(table["num_passes"]) == [1, 2, 4] and len(set(table["parameters"])) == 3
    looks = [(style.color(name), style.marker(name)) for name in table["model"]]
    assert len(set(looks)) == 3 and style.title("gated") == "Gated"
    own = {record["name"] for record in records.records()}
    assert {name.split("-")[1] for name in own} == {"reviews", "book", "reverse"} and len(own) == 9
    assert set(known["choice"].frame["Parameters"]) and len(known["choice"].points) == 5
    assert known["table"][["error_place_0", "error_place_2"]].notna().all(axis=None) and len(known["table"]) == 4
    page = nbformat.read(here / "_build" / "own-data.ipynb", as_version=4)
    assert [out.text for cell in page.cells for out in cell.get("outputs", ()) if out.get("name") == "stderr"] == []
    assert (here / "my-model" / "model.safetensors").exists()


BLOCK = r"^(`{3,4})\{code-block\} \w+\n:caption: `(mine/\S+)`\n(.*?)^\1$"
COMMANDS = re.search(r"^```\{code-block\} bash\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)[1]
TRAIN_AND_USE = """
import sys
from pathlib import Path
import rtx_core as rtx
from rtx_core.__main__ import main

for words in COMMANDS:
    sys.argv = ["rtx", *words]
    main()
assert Path(rtx.__file__).parent.parent == Path.cwd(), rtx.__file__
assert set(rtx.results(source="embedded")["experiment"]) == {"few", "many"}
answers = rtx.load("few/twice-seed0", source="embedded").classify(["a fine film"], passes=True)
assert len(answers) == 2 and not [name for name in sys.modules if name.partition(".")[0] == "study"]
try:
    rtx.run("sst2")
except rtx.RtxError as error:
    print(error)
"""


def test_the_library_works_alone_with_a_study_of_one_s_own(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "rtx_core", ignore=ignore)
    shutil.copytree(REPOSITORY / "book" / "_ext", tmp_path / "book" / "_ext", ignore=ignore)
    files = {name: text for _, name, text in re.findall(BLOCK, PAGE, flags=re.MULTILINE | re.DOTALL)}
    assert sum(len([line for line in text.splitlines() if line]) for text in files.values()) <= 40
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PATH": path, "RTX_STUDY": "mine"}
    environment["RTX_HOME"] = str(tmp_path)  # as a clone is, from wherever a kernel starts

    def do(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    commands = [shlex.split(line.removeprefix(PYTHON)) for line in COMMANDS.splitlines() if line.startswith(PYTHON)]
    assert commands == [["run", "few"], ["run", "many"]]  # in one process, and in it what they made is used
    said = do(sys.executable, "-W", "error::UserWarning", "-c", TRAIN_AND_USE.replace("COMMANDS", repr(commands)))
    assert said.endswith(", few, many.\n")
    do("bash", "-ec", re.sub(f"^{PYTHON}.*$", "", COMMANDS, flags=re.MULTILINE))
    made = {"/".join(path.parts[-2:]) for path in tmp_path.glob("_build/results/*/*.json")}
    assert made == {f"{name}/{model}-seed0.json" for name in ("few", "many") for model in ("once", "twice")}
    page = BeautifulSoup((tmp_path / "mine/book/_build/html/index.html").read_text(), "html.parser")
    run = json.loads((tmp_path / "_build/results/many/twice-seed0.json").read_text())
    assert page.find("span", "quantity").text == style.number(run["test"]["accuracy"], ".0%")
    assert page.find(id="tab-many") and "checks hold" not in page.text
    assert not (tmp_path / "mine/book/_build/sentences.txt").exists()
