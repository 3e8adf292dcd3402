"""The notebooks: clean files; pages that train run from first to last on generated text, the others on the records."""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import nbformat
import papermill
import pytest
from conftest import SERVER, shrink
from jupyter_cache import get_cache
from outputs import digest
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from rtx_core import records
from rtx_core.experiments import run as runner
from rtx_core.paths import PACKAGE, REPOSITORY
from rtx_core.report import statistics
from study import pages
from study.experiments import EXPERIMENTS

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

CLASSIFY = {"source": "embedded", "epochs": 1, "train_rows": 48, "seeds": [0]}
STEPS = {"source": "embedded", "steps": 2, "seeds": [0]}
DECODE = STEPS | {"batch_size": 2, "block_size": 32, "precision": "fp32"}
LOOPS = {"shapes": ["6x1", "3x2"], "widths": [32], "more_widths": [48]}
TRAINING = {  # notebook: parameters of a run of seconds
    "quickstart": {"train_rows": 48, "steps": 2, "width": 16, "heads": 2, "gate": True, "injection": "add"},
    "sst2": CLASSIFY | {"tenth_seeds": [0], "rungs": ["1x1", "1x2"], "rates": [1e-4, 1e-3], "ladder_epochs": 1},
    "data": CLASSIFY | {"split": ["seeded", "grouped"]},
    "reviews": CLASSIFY | {"length": ["short"], "max_length": [16, 32], "full_max_length": [16], "yelp_rows": 48},
    "shakespeare": DECODE
    | {"models": ["gpt-1", "kausik"], "recipes": ["nanogpt"], "small": ["gpt-1", "kausik"], "small_seeds": [0]},
    "iso-depth": STEPS | LOOPS,
    "tinystories": DECODE | {"models": ["control", "frailt"], "small": ["frailt"], "small_seeds": [0]},
}
ELSEWHERE = ["own-data"]  # test_make_it_yours runs it on a file
DRAWING = {"inside": {"texts": 16}}  # of the others, those that measure


def execute(environ: dict, small: bool, page: Path) -> list[dict]:
    """The outputs of a notebook, in a process of its own that is copied from one that imported what notebooks do."""
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    os.environ.clear()
    os.environ.update(environ)
    os.chdir(page.parent)
    statistics.RESAMPLES = 50  # of a bootstrap
    if small:
        shrink(pytest.MonkeyPatch())
        for name, experiment in EXPERIMENTS.items():
            if "eval_batches" in experiment.data.names():
                EXPERIMENTS[name] = replace(experiment, data=experiment.data.replace(eval_batches=2))
    HistoryManager.enabled, outputs = False, []
    shell = InteractiveShell.instance(colors="nocolor")
    for cell in nbformat.read(page, as_version=4).cells:
        if cell.cell_type == "code":
            with shell.display_trap, capture_output() as captured:  # the trap first: it would take the display
                done = shell.run_cell(cell.source)
            done.raise_error()
            outputs += [{"name": "stdout", "text": captured.stdout}, {"name": "stderr", "text": captured.stderr}]
            outputs += [{"data": shown.data} for shown in captured.outputs]
    return outputs


def kept_by_the_book(name: str) -> list[dict]:
    """What a page gave when `make book` ran it with this very code; nothing where it did not."""
    code = digest(PACKAGE, REPOSITORY / "study", REPOSITORY / "requirements.lock")
    if not (folder := REPOSITORY / "_build" / "outputs" / code).is_dir():
        return []
    page = nbformat.read(REPOSITORY / "notebooks" / f"{name}.ipynb", as_version=4)
    with suppress(KeyError):
        _, page = get_cache(folder).merge_match_into_notebook(page)
    return [output for cell in page.cells for output in cell.get("outputs", ())]


def run(name: str, home: Path, parameters: dict, small: bool = True) -> list[dict]:
    """Run a notebook as the book does; its outputs, none of which is a warning."""
    copy, notebook = home / f"{name}.ipynb", load_notebook_node(str(REPOSITORY / "notebooks" / f"{name}.ipynb"))
    nbformat.write(parameterize_notebook(notebook, parameters), copy)
    with ProcessPoolExecutor(1, SERVER) as process:
        environ = dict(os.environ) | {"MPLBACKEND": "agg"}
        outputs = process.submit(execute, environ, small, copy).result()
    assert not any(output["text"] for output in outputs if output.get("name") == "stderr")
    return outputs


@EACH
def test_a_notebook_is_a_clean_file_with_inputs_alone(path):
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert set(notebook.metadata) <= {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    for cell in json.loads(text)["cells"]:
        assert set(cell["metadata"]) <= {"tags"}
        assert isinstance(cell["source"], list) and "".join(cell["source"]).strip()
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1 and notebook.cells[0].source.startswith("# ")


@pytest.mark.parametrize("name", TRAINING)
def test_a_page_that_trains_runs_on_generated_text(name, home):
    run(name, home, TRAINING[name])
    made = records.records(source="embedded")
    assert made and all(record.synthetic for record in made)
    assert not (home / "results").exists()


def test_a_design_of_the_quick_start_learns_to_write_too(home):
    outputs = run("quickstart", home, TRAINING["quickstart"] | {"data": "text"})
    assert any(len(output["text"]) > 20 for output in outputs if output.get("name") == "stdout")
    assert all(f":name: fig-design-{drawn}" in str(outputs) for drawn in ("learning", "frontier"))


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem not in {*TRAINING, *ELSEWHERE}])
def test_a_page_that_draws_runs_on_the_records(name, home, monkeypatch):
    monkeypatch.setenv("RTX_BOOK", "1")
    monkeypatch.delenv("RTX_HOME")
    outputs = kept_by_the_book(name) or run(name, home, DRAWING.get(name, {}), small=False)
    assert any("text/markdown" in output.get("data", {}) for output in outputs)
    assert not any("ename" in output or output.get("name") == "stderr" and output["text"] for output in outputs)


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem not in {"quickstart", *ELSEWHERE}])
def test_with_its_own_parameters_a_page_trains_nothing(name, monkeypatch):
    """Its cells up to the one that reads the records, in JupyterLab, where a missing run would be trained."""
    missing = []

    def find(configs, replace, sources=None):
        found = [(config, runner.find_record(config)) for config in configs]
        missing.extend(config for config, record in found if record is None and sources is None)
        return [runner.Run(config, record) for config, record in found if record]

    monkeypatch.delenv("RTX_BOOK", raising=False)
    monkeypatch.delenv("RTX_HOME", raising=False)
    monkeypatch.setattr(runner, "_find_or_train", find)
    for page in vars(pages).values():
        if hasattr(page, "quantities"):
            monkeypatch.setattr(page, "quantities", lambda *runs, **more: None)
    path = REPOSITORY / "notebooks" / f"{name}.ipynb"
    monkeypatch.chdir(path.parent)
    names = {}
    for cell in [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"][:2]:
        exec(compile(cell.source, cell.id, "exec"), names)
    assert not missing


def test_a_bad_parameter_ends_in_one_sentence_alone(home, kernel):
    path, ways = REPOSITORY / "notebooks" / "sst2.ipynb", {"kernel_name": "python3", "progress_bar": False}
    with pytest.raises(papermill.PapermillExecutionError) as error:
        papermill.execute_notebook(path, home / "sst2.ipynb", {"epochs": "many"}, cwd=path.parent, **ways)
    said = "Parameter epochs is 'many' of type str; expected int."
    assert error.value.ename == "RtxError" and error.value.evalue.startswith(said)
    assert len("".join(error.value.traceback).splitlines()) == 1
    assert not (home / "_build").exists()
