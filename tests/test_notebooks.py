"""The notebooks: clean files, and pages that run from the first cell to the last on the embedded corpus."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from rtx_core.paths import REPOSITORY
from rtx_core.results.record import read

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

# A short measurement, and figures under RTX_HOME: run in the kernel before the notebook, leaving no name in it.
STARTUP = """
import os as _os, pathlib as _pathlib
import rtx_core.evaluation.latency as _latency
import rtx_core.pages.display as _display
_latency.TIMED, _latency.WARM_UP = 4, 1
_display.REPOSITORY = _pathlib.Path(_os.environ["RTX_HOME"])
if _os.environ.get("TINY"):  # small models and corpora as well, for the pages that compare many runs
    import factory as _factory
    import pytest as _pytest
    _factory.tiny(_pytest.MonkeyPatch())
"""


@pytest.fixture(autouse=True)
def kernel(home, monkeypatch):
    """The kernel of this environment, the repository's package, and a startup file of our own."""
    startup = home / "ipython" / "profile_default" / "startup" / "00-small.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(STARTUP)
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests"))))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


# -- the files --------------------------------------------------------------------------------------------------------


@EACH
def test_notebook_is_a_valid_and_clean_file(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook.metadata.language_info == {"name": "python"}
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"} and cell.source.strip()
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"


@EACH
def test_notebook_begins_with_its_only_title(path):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    titles = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines() if re.match(r"# ", line)]
    assert len(titles) == 1


@EACH
def test_notebook_has_one_cell_of_parameters_and_known_tags(path):
    tags = [tag for cell in nbformat.read(path, as_version=4).cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1 and set(tags) <= {"parameters", "hide-input", "remove-output"}


def test_notebooks_are_these():
    assert {"data", "quickstart", "sst2"} <= {path.stem for path in NOTEBOOKS}


# -- the pages --------------------------------------------------------------------------------------------------------


def execute(name: str, home, parameters: dict) -> str:
    """Run a notebook; all markdown that it shows, after a look for anything that should not be there."""
    out = home / f"{name}.ipynb"
    notebook = papermill.execute_notebook(
        str(REPOSITORY / "notebooks" / f"{name}.ipynb"), str(out), parameters, kernel_name="python3", cwd=str(REPOSITORY / "notebooks"),
        progress_bar=False,
    )  # fmt: skip
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    for cell in notebook.cells:  # what is shown is shown in every form, and a figure is shown once
        shown = [output for output in cell.get("outputs", []) if output.output_type == "execute_result"]
        assert len(shown) <= 1 and not any(output.output_type == "display_data" for output in cell.get("outputs", []))
    return "\n".join(output.data.get("text/markdown", "") for output in outputs if output.output_type == "execute_result")


def assert_shows(said: str, home, records: list) -> None:
    plain = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", said)
    assert "Synthetic: trained and tested on the embedded corpus" in plain and "train rows 48" in plain
    for path in records:
        record = read(path)
        assert record.synthetic and record["data"]["n_train"] == 48 and record["history"][-1]["step"] == 3
        assert f"| {record['test']['accuracy']:.4f} |" in plain and f"{path.parent.name}/{path.name}" in plain
    figures = re.findall(r"^:::\{figure\} /figures/(.+)\.\*$", said, flags=re.MULTILINE)
    assert len(figures) >= 2 and all((home / "book" / "figures" / f"{figure}.{kind}").exists() for figure in figures for kind in ("svg", "pdf"))
    assert sorted((home / "_build" / "results").rglob("*.json")) == sorted(records) and not (home / "results").exists()


def test_quickstart_runs(home):
    said = execute("quickstart", home, {"train_rows": 48})
    folder = home / "_build" / "results" / "quickstart-trainrows48"
    assert_shows(said, home, [folder / "baseline-seed0.json", folder / "recurrent-seed0.json"])
    assert "With 42% of the parameters, Recurrent reaches an accuracy of" in said or "McNemar" in said


def test_sst2_runs_and_its_provenance_line_gives_the_same_page(home):
    parameters = {"models": ["recurrent"], "source": "embedded", "train_rows": 48, "epochs": 1, "max_length": 32}
    said = execute("sst2", home, parameters)
    assert_shows(said, home, [home / "_build/results/sst2-maxlength32-trainrows48-epochs1/recurrent-seed0.json"])
    line = shlex.split(re.search(r"^papermill .*$", said, flags=re.MULTILINE).group())
    given = json.loads(line[line.index("-y") + 1]) | {name: value for flag, name, value in zip(line, line[1:], line[2:]) if flag == "-p"}
    assert given == {name: value if isinstance(value, list) else str(value) for name, value in (parameters | {"seeds": [0]}).items()}


def test_data_page_runs(home):
    said = execute("data", home, {"source": "embedded", "splits": ["seeded"]})
    assert "Synthetic data (embedded corpus)." in said and "4\\,400" in said  # 80 % of the embedded rows
    assert list((home / "_build" / "results" / "data").iterdir()) == [home / "_build/results/data/sst2-seeded-128.json"]


STUDIES = {  # notebook: (what it compares, results folders, parts of what it shows)
    "data-size": ({"fraction": [0.1, 0.5]}, ["sst2-10pct", "sst2-50pct"], ["**10 %.**", "Overlaid histograms", "Test accuracy by fraction."]),
    "length": ({"length": ["short", "all"]}, ["sst2-short", "sst2"], ["**shortest 30 %.**", "by length and part"]),
    "yelp": ({"max_length": [16, 32]}, ["yelp-maxlength16", "yelp-maxlength32"], ["embedded restaurant reviews", "**16 tokens.**"]),
    "multi-domain": ({"experiment": ["multi-domain", "multi-domain-imdb"]}, ["multi-domain", "multi-domain-imdb"],
                     ["embedded restaurant reviews + embedded movie phrases + embedded product reviews", "of true local business right", "plain averages"]),
    "leakage": ({"split": ["seeded", "grouped"]}, ["sst2", "sst2-grouped"], ["Under `grouped`, 0 of the", "points from the"]),
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_that_compares_settings_runs_and_its_provenance_line_gives_the_same_page(name, home, monkeypatch):
    monkeypatch.setenv("TINY", "1")
    compared, folders, shown = STUDIES[name]
    setting, values = next(iter(compared.items()))
    said = execute(name, home, {"source": "embedded", "epochs": 1} | compared)
    plain = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", said)
    records = sorted(home / "_build/results" / f"{folder}-epochs1" / f"{model}-seed0.json" for folder in folders for model in ("baseline", "recurrent"))
    assert sorted(path for path in (home / "_build/results").glob("*/*.json") if path.parent.name != "data") == records and not (home / "results").exists()
    for path in records:
        record = read(path)
        assert record.synthetic and f"{record['test']['accuracy']:.4f}" in plain and f"{path.parent.name}/{path.name}" in plain
    for fragment in ["Synthetic: trained and tested on the embedded corpus", "Synthetic data (embedded corpus).", *shown]:
        assert fragment in plain, fragment
    assert "published" not in re.sub(r"the following; the split `published`.*", "", plain.split("````{admonition}")[0])
    lines = [shlex.split(line) for line in re.findall(r"^papermill .*-y .*$", said, flags=re.MULTILINE)]
    assert [json.loads(line[line.index("-y") + 1])[setting] for line in lines] == [[value] for value in values]
    assert all({"source", "embedded", "epochs"} <= set(line) for line in lines)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_bad_parameter_stops_the_notebook_with_one_sentence(home):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        execute("sst2", home, {"epochs": "many"})
    assert error.value.ename == "RtxError" and error.value.evalue == "Parameter epochs is 'many' of type str; expected int."


def test_bad_parameter_fails_the_command_line(home):
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--kernel", "python3", "-p", "epoch", "1",
               str(REPOSITORY / "notebooks/quickstart.ipynb"), str(home / "out.ipynb")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "Unknown parameter 'epoch': did you mean 'epochs'?" in done.stderr
    assert not (home / "_build").exists()
