"""The notebooks: clean files; pages that train run from first to last on generated text, the others on the records."""

import json
import os
import sys
from multiprocessing import get_context
from pathlib import Path

import nbformat
import papermill
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "book" / "_ext"))
import execution
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from rtx_core import records
from rtx_core.paths import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

# Small models and a short measurement: run in the kernel before the notebook, leaving no name in it.
STARTUP = """
import conftest as _conftest, pytest as _pytest
import rtx_core.evaluate.latency as _latency, rtx_core.evaluate.generation as _generation, rtx_core.evaluate.stories as _stories
_conftest.shrink(_pytest.MonkeyPatch())
_latency.TIMED, _latency.WARM_UP, _generation.SAMPLED = 4, 1, 20
_stories.PROMPTS, _stories.LONGEST = 2, 8
"""
CLASSIFY = {"source": "embedded", "epochs": 1, "train_rows": 48, "seeds": [0]}
DECODE = {
    "source": "embedded",
    "seeds": [0],
    "steps": 2,
    "batch_size": 2,
    "block_size": 32,
    "precision": "fp32",
}
TRAINING = {  # notebook: parameters of a run of seconds
    "quickstart": {"train_rows": 48},
    "own-data": {"epochs": 1, "hidden_size": 16},
    "sandbox": {"steps": 2, "width": 16, "heads": 2, "gate": True, "injection": "add"},
    "sst2": CLASSIFY,
    "leakage": CLASSIFY | {"split": ["seeded", "grouped"]},
    "data-size": CLASSIFY | {"fraction": [0.5, 1.0]},
    "length": CLASSIFY | {"length": ["short"]},
    "yelp": CLASSIFY | {"max_length": [16, 32]},
    "multi-domain": CLASSIFY,
    "shakespeare": DECODE | {"models": ["gpt-1", "kausik"], "recipes": ["nanogpt"]},
    "tinystories": DECODE | {"models": ["control", "frailt"]},
}
BY_PAPERMILL = ("quickstart", "sst2", "shakespeare")


@pytest.fixture
def kernel(home, monkeypatch):
    """The kernel of this environment and the repository's package."""
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests"))))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return home / "ipython" / "profile_default" / "startup" / "00-small.py"


def fork(name: str, home: Path, parameters: dict, small: bool) -> list[dict]:
    """Run a notebook as the book does, in a fork of this process; its outputs, none of which is a warning."""
    path = REPOSITORY / "notebooks" / f"{name}.ipynb"
    notebook = load_notebook_node(str(path))
    if small:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(STARTUP, metadata={"tags": []}))
    notebook = parameterize_notebook(notebook, parameters)
    copy = home / path.name
    nbformat.write(notebook, copy)
    with get_context("fork").Pool(1) as pool:
        _, notebook, error = pool.apply(execution.execute, (copy,))
    assert error == ""
    return outputs_of(notebook)


def outputs_of(notebook) -> list[dict]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    return outputs


def execute(name: str, home: Path, parameters: dict) -> list[dict]:
    """Run a notebook with papermill, in a kernel."""
    path, out = REPOSITORY / "notebooks" / f"{name}.ipynb", home / f"{name}.ipynb"
    notebook = papermill.execute_notebook(
        str(path), str(out), parameters, kernel_name="python3", cwd=str(path.parent), progress_bar=False
    )
    return outputs_of(notebook)


# -- the files ---------------------------------------------------------------------------------------------------------


@EACH
def test_a_notebook_is_a_clean_file_with_inputs_alone(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert (
        set(notebook.metadata) <= {"kernelspec", "language_info"}
        and notebook.metadata.kernelspec.name == "python3"
    )
    for cell in json.loads(text)["cells"]:
        assert (
            set(cell["metadata"]) <= {"tags"}
            and isinstance(cell["source"], list)
            and "".join(cell["source"]).strip()
        )
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1
    assert notebook.cells[0].source.startswith("# ")


def test_every_notebook_is_run_here_or_drawn_below():
    assert set(TRAINING) <= {path.stem for path in NOTEBOOKS}


# -- the pages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAINING)
def test_a_page_that_trains_runs_on_generated_text(name, home, kernel):
    if name in BY_PAPERMILL:
        kernel.parent.mkdir(parents=True)
        kernel.write_text(STARTUP)
        execute(name, home, TRAINING[name])
    else:
        fork(name, home, TRAINING[name], small=True)
    made = records.records(source="embedded")
    assert made and all(record.synthetic for record in made)
    assert not (home / "results").exists()


def test_the_sandbox_learns_to_write_too(home, kernel):
    outputs = fork("sandbox", home, TRAINING["sandbox"] | {"data": "text"}, small=True)
    assert any(len(output.text) > 20 for output in outputs if output.get("name") == "stdout")
    assert sum("text/html" in output.get("data", {}) for output in outputs) == 2  # the curve and the frontier


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem not in TRAINING])
def test_a_page_that_draws_runs_on_the_records(name, home, kernel, monkeypatch):
    monkeypatch.setenv("RTX_BOOK", "1")
    monkeypatch.delenv("RTX_HOME")
    outputs = fork(name, home, {}, small=False)
    assert any("text/markdown" in output.get("data", {}) for output in outputs)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": "many"}, "Parameter epochs is 'many' of type str; expected int."),
        ({"epoch": 1}, "Unknown parameter 'epoch': did you mean 'epochs'?"),
    ],
)
def test_a_bad_parameter_ends_in_one_sentence_alone(given, said, home, kernel):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        execute("sst2", home, given)
    assert error.value.ename == "RtxError" and error.value.evalue.startswith(said)
    assert len("".join(error.value.traceback).splitlines()) == 1
    assert not (home / "_build").exists()
