"""Notebooks in copied processes give what a kernel gives; an input that changed is another cache."""

import os
from pathlib import Path
from types import SimpleNamespace

import execution
import nbclient
import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn

CELLS = [
    "import sys\nfrom rtx_core.report import markdown\nprint('said')",
    "display(markdown('*shown*'))\nmarkdown('a result')",
    "print('told', file=sys.stderr)\nfor n in range(2):\n    display(n)",
    "len(In)",
]


def write(path, cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, path)
    return notebook


def execute_at(home, page):
    os.environ["RTX_HOME"] = str(home)
    return execution.execute(page)


def shown(notebook) -> list[list]:
    return [[output.get("data") or output.text for output in cell.outputs] for cell in notebook.cells]


def test_a_copied_process_gives_what_a_kernel_gives(tmp_path):
    notebook = write(tmp_path / "a.ipynb", CELLS)
    found, error = execution.apart(execution.execute, tmp_path / "a.ipynb")
    nbclient.execute(notebook, cwd=tmp_path, kernel_name="python3")
    assert error == "" and shown(found) == shown(notebook)
    assert "In" not in globals()  # nothing ran here


def test_in_the_place_of_a_cell_that_fails_stands_why(tmp_path):
    fails = 'a = 1 / 0\nreport.figure(label="fig-a")'
    write(tmp_path / "a.ipynb", [fails, "a", "2"])
    found, error = execution.apart(execution.execute, tmp_path / "a.ipynb")
    first, second, third = (cell.outputs[0]["data"] for cell in found.cells)
    assert error == "" and third == {"text/plain": "2"}
    assert not any(cell.metadata for cell in found.cells)  # by which, with the code, the cache knows a page
    assert "{undrawn} fig-a" in first["text/markdown"] and "ZeroDivisionError" in first["text/markdown"]
    assert "ZeroDivisionError" in second["text/markdown"]  # what it lacks, and not that it lacks a name


def test_a_process_that_dies_is_an_error_and_no_wait():
    assert execution.apart(os._exit, 7) == (None, "its process ended with exit code 7")


def test_a_changed_record_leaves_pages_that_did_not_read_it_and_lost_figures_none(home, monkeypatch):
    monkeypatch.setattr(execution, "CACHES", home / "caches")
    monkeypatch.setattr(execution, "FIGURES", home / "figures")
    (home / "figures").mkdir()
    (home / "results").mkdir()

    def chosen(**texts):
        for name, text in texts.items():
            (home / "results" / name).write_text(text)
        config = SimpleNamespace()
        execution.choose_cache(None, config)
        cache = config.nb_execution_cache_path
        return cache, sorted(Path(page.uri).stem for page in get_cache(cache).list_cache_records())

    first, _ = chosen(a="1", b="1")
    for name in "ab":
        page, record = home / f"{name}.ipynb", home / "results" / name
        write(page, [f"from pathlib import Path; Path({str(record)!r}).read_text()"])
        found, error = execution.apart(execute_at, home, page)
        assert error == "" and list(found.metadata["read"]) == [str(record)]
        get_cache(first).cache_notebook_bundle(CacheBundleIn(found, str(page)), check_validity=False)
    assert chosen() == (first, ["a", "b"])
    second, kept = chosen(b="2")
    assert second != first and not Path(first).exists() and kept == ["a"]
    (home / "figures").rmdir()
    assert chosen() == (second, [])
    (home / "figures").mkdir()


def test_a_page_knows_what_it_looked_for_in_vain_and_which_folders_it_read(home):
    (home / "results" / "a").mkdir(parents=True)
    look = """
from pathlib import Path
from rtx_core import paths, records
try:
    (paths.home() / "results" / "none.json").read_text()
except OSError:
    print(list((paths.home() / "results").glob("a/*")))
"""
    write(home / "a.ipynb", [look])
    found, _ = execution.apart(execute_at, home, home / "a.ipynb")
    read = found.metadata["read"]
    assert read[str(home / "results" / "none.json")] == ""
    folder = home / "results" / "a"
    assert read[str(folder)] == execution.state(folder)
    (folder / "new.json").touch()
    assert read[str(folder)] != execution.state(folder)
