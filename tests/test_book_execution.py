"""Notebooks in copied processes give what a kernel gives; an input that changed is another cache."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import nbclient
import nbformat
import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn

from rtx_core.paths import REPOSITORY

CELLS = [
    "import sys\nfrom rtx_core.report import markdown\nprint('said')",
    "display(markdown('*shown*'))\nmarkdown('a result')",
    "print('told', file=sys.stderr)\nfor n in range(2):\n    display(n)",
    "len(In)",
]


@pytest.fixture(scope="module")
def execution():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "book" / "_ext")
        import execution

        yield execution


def write(path, cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, path)
    return notebook


def shown(notebook) -> list[list]:
    return [[output.get("data") or output.text for output in cell.outputs] for cell in notebook.cells]


def test_a_copied_process_gives_what_a_kernel_gives(execution, tmp_path):
    notebook = write(tmp_path / "a.ipynb", CELLS)
    found, error = execution.apart(execution.execute, tmp_path / "a.ipynb")
    nbclient.execute(notebook, cwd=tmp_path, kernel_name="python3")
    assert error == "" and shown(found) == shown(notebook)
    assert "execution" in sys.modules and "In" not in globals()  # nothing ran here


def test_a_cell_that_fails_ends_it_and_is_told(execution, tmp_path):
    write(tmp_path / "a.ipynb", ["1 / 0", "2"])
    found, error = execution.apart(execution.execute, tmp_path / "a.ipynb")
    assert "ZeroDivisionError" in error and found.cells[1].outputs == []


def test_a_process_that_dies_is_an_error_and_no_wait(execution):
    assert execution.apart(os._exit, 7) == (None, "its process ended with exit code 7")


def test_a_changed_record_or_lost_figures_start_another_cache(execution, home, monkeypatch):
    monkeypatch.setattr(execution, "CACHES", home / "caches")
    monkeypatch.setattr(execution, "FIGURES", home / "figures")
    (home / "figures").mkdir()
    record = home / "results" / "sst2" / "a.json"
    record.parent.mkdir(parents=True)

    def chosen(text):
        record.write_text(text)
        config = SimpleNamespace()
        execution.choose_cache(None, config)
        return config.nb_execution_cache_path

    first = chosen("1")
    (home / "caches" / first / "kept").mkdir(parents=True)
    assert chosen("1") == first and (home / "caches" / first / "kept").exists()
    with_pages = get_cache(first)
    for name in ("quickstart", "sst2"):
        bundle = CacheBundleIn(write(home / f"{name}.ipynb", [f"'{name}'"]), str(home / f"{name}.ipynb"))
        with_pages.cache_notebook_bundle(bundle, check_validity=False)
    second = chosen("2")
    assert second != first and not (home / "caches" / first).exists()
    # a page that reads no record stays
    assert [Path(page.uri).stem for page in get_cache(second).list_cache_records()] == ["quickstart"]
    (home / "caches" / first / "kept").mkdir(parents=True)
    (home / "figures").rmdir()
    assert chosen("1") == first and not (home / "caches" / first).exists()
