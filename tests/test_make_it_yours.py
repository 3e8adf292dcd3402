"""Every snippet of the page that shows how to use the project, run as it stands there, in one go."""

import io
import re
import shlex
import subprocess
from dataclasses import replace

import pytest

import rtx_core as rtx
from rtx_core import records
from rtx_core.__main__ import main
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY
from rtx_core.report import style
from study.experiments import EXPERIMENTS

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
    """A line for a terminal: the command of this project in this process, which has imported it, others by bash."""
    before, _, command = line.rpartition(" | ")
    if command.startswith("python -m rtx_core "):
        said = subprocess.run(["bash", "-ec", before], capture_output=True, text=True, check=True).stdout
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        monkeypatch.setattr("sys.argv", ["rtx", *shlex.split(command)[3:]])
        main()
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
    looks = [(style.COLOURS[name], style.MARKERS[name]) for name in table["model"]]
    assert len(set(looks)) == 3 and style.title("gated") == "Gated"
    own = {record["name"] for record in records.records()}
    assert len(own) == 2 and all(name.startswith("own-reviews-") for name in own)
    assert (here / "_build" / "own-data.ipynb").exists() and (here / "my-model" / "model.safetensors").exists()
