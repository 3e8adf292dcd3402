"""Every snippet of the page that shows how to use the project, run as it stands there, in one go."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sphinx_book_theme.header_buttons.launch import add_launch_buttons

import rtx_core as rtx
from rtx_core import experiments, records
from rtx_core.evaluate import latency
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY
from rtx_core.report import style
from rtx_core.report.values import load

PAGE = (REPOSITORY / "book" / "make-it-yours.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|bash)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SMALL_KERNEL = """
import conftest as _conftest, pytest as _pytest, rtx_core.evaluate.latency as _latency
_conftest.shrink(_pytest.MonkeyPatch())
_latency.TIMED, _latency.WARM_UP = 4, 1
"""


@pytest.fixture
def here(home, monkeypatch, small_models):
    """A folder with the notebooks, where the quick start is a run of 48 texts and a sample holds 60."""
    monkeypatch.chdir(home)
    (home / "notebooks").symlink_to(REPOSITORY / "notebooks")
    quick = experiments.EXPERIMENTS["quickstart"]
    small = replace(quick, data=quick.data.but(train_rows=48), train=quick.train.but(eval_every=0))
    monkeypatch.setitem(experiments.EXPERIMENTS, "quickstart", small)
    monkeypatch.setattr(rtx.data, "sample", lambda path, sample=rtx.data.sample: sample(path, rows=60))
    monkeypatch.setattr(latency, "TIMED", 4)
    monkeypatch.setattr(latency, "WARM_UP", 1)
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    monkeypatch.setattr(style, "MODELS", registry.MODELS)
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-small.py").write_text(SMALL_KERNEL)
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests"))))
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}")
    return home


def test_every_snippet_runs_as_it_stands(here):
    known = {"__name__": "page"}
    for language, source in BLOCKS:
        if language == "bash":
            done = subprocess.run(["bash", "-ec", source], capture_output=True, text=True, timeout=1800)
            assert done.returncode == 0, f"{source}\n{done.stderr[-3000:]}"
        elif "onnxruntime" in source:
            pytest.importorskip("onnxruntime")
            pytest.importorskip("onnxscript")
            exec(source, known)
        else:
            exec(source, known)
    table = known["runs"].frame
    assert (
        list(table["model"]) == ["baseline", "recurrent", "gated"] and table["accuracy"].between(0, 1).all()
    )
    assert list(table["num_passes"]) == [1, 2, 4] and len(set(table["parameters"])) == 3
    looks = [(style.COLOURS[name], style.MARKERS[name]) for name in table["model"]]
    assert len(set(looks)) == 3 and style.title("gated") == "Gated"
    own = {record["name"] for record in records.records()}
    assert len(own) == 2 and all(name.startswith("own-reviews-") for name in own)
    assert (here / "_build" / "own-data.ipynb").exists() and (here / "my-model" / "model.onnx").exists()


def test_the_model_of_the_page_is_short():
    (source,) = (source for language, source in BLOCKS if "@rtx.register" in source)
    assert len(source[source.index("class GatedConfig") :].splitlines()) < 40


class Config(dict):
    """Sphinx's: entries are attributes too."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(("page", "place"), [("notebooks/sst2", "notebooks/sst2"), ("index", "book/index")])
def test_a_button_names_the_notebook_where_it_lies(page, place):
    paper = load(REPOSITORY / "book" / "_ext" / "paper.py")
    site = "https://colab.research.google.com"
    options = {"repository_branch": "main", "path_to_docs": "book", "launch_buttons": {"colab_url": site}}
    config = Config(html_theme_options=options)
    env = SimpleNamespace(doc2path=lambda name: f"{name}.ipynb", metadata={page: {"kernelspec": {}}})
    app = SimpleNamespace(config=config, env=env)
    context = {"pagename": page, "sourcename": f"{page}.ipynb", "header_buttons": []}
    context |= {"github_url": "https://github.com", "github_user": "owner", "github_repo": "name"}
    paper.point_to_repository(app, page, "", context, None)
    add_launch_buttons(app, page, "", context, None)
    (group,) = context["header_buttons"]
    assert group["buttons"][0]["url"] == f"{site}/github/owner/name/blob/main/{place}.ipynb"
    assert (REPOSITORY / f"{place}.ipynb").exists()
