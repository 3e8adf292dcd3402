"""Notebooks in copied processes give what a kernel gives; they run again where something they read has changed."""

import os
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from types import SimpleNamespace

import execution
import nbclient
import nbformat
import pytest
from sphinx.errors import SphinxError

CELLS = [
    "import sys\nfrom rtx_core.report import markdown\nprint('said')",
    "display(markdown('*shown*'))\nmarkdown('a result')",
    "print('told', file=sys.stderr)\nfor n in range(2):\n    display(n)",
    "len(In)",
]

APART = execution.apart


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
    found = execution.apart(execution.execute, tmp_path / "a.ipynb")
    nbclient.execute(notebook, cwd=tmp_path, kernel_name="python3")
    assert shown(found) == shown(notebook)
    assert "In" not in globals()  # nothing ran here


def test_in_the_place_of_a_cell_that_fails_stands_why(tmp_path):
    fails = 'a = 1 / 0\nreport.figure(label="fig-a")'
    write(tmp_path / "a.ipynb", [fails, "a", "2"])
    found = execution.apart(execution.execute, tmp_path / "a.ipynb")
    first, second, third = (cell.outputs[0]["data"] for cell in found.cells)
    assert third == {"text/plain": "2"}
    assert not any(cell.metadata for cell in found.cells)  # by which, with the code, the cache knows a page
    assert "{undrawn} fig-a" in first["text/markdown"] and "ZeroDivisionError" in first["text/markdown"]
    assert "ZeroDivisionError" in second["text/markdown"]  # what it lacks, and not that it lacks a name


def test_a_process_that_dies_is_an_error_and_no_wait():
    with pytest.raises(BrokenProcessPool):
        execution.apart(os._exit, 7)


def test_a_notebook_runs_again_where_what_it_read_changed_and_its_page_where_it_shows_another(home, monkeypatch):
    monkeypatch.setattr(execution, "FIGURES", home / "figures")
    monkeypatch.setattr(execution, "execute", partial(execute_at, home))
    monkeypatch.setattr(execution, "code", lambda: "")
    for folder in ("figures", "results"):
        (home / folder).mkdir()
    ran, given = [], {}
    monkeypatch.setattr(execution, "apart", lambda run, page: ran.append(page.stem) or APART(run, page))
    env = SimpleNamespace(found_docs=["a", "b", "text"], doc2path=lambda name: PAGES.get(name, f"{name}.md"))
    PAGES = {name: str(home / f"{name}.ipynb") for name in "ab"}
    app = SimpleNamespace(outdir=str(home / "html"), env=env)

    def changed(**texts) -> tuple[list[str], list[str]]:
        """Which notebooks run, and which pages change, with these records."""
        for name, text in texts.items():
            (home / "results" / name).write_text(text)
        ran.clear()
        execution.start_notebooks(app, env)
        pages = execution.await_notebooks(app, env)
        for page in pages:
            source = [(home / f"{page}.ipynb").read_text()]
            execution.put_outputs(app, page, source)
            given[page] = shown(nbformat.reads(source[0], as_version=4))
        return pages, sorted(ran)

    for name in "ab":
        record = home / "results" / name
        write(home / f"{name}.ipynb", [f"from pathlib import Path; len(Path({str(record)!r}).read_text())"])
    assert changed(a="1", b="1") == (["a", "b"], ["a", "b"])
    assert changed() == ([], [])
    assert changed(b="2") == ([], ["b"])
    assert changed(b="12") == (["b"], ["b"])
    assert given["b"] == [[{"text/plain": "2"}]]
    (home / "figures").rmdir()
    assert changed() == ([], ["a", "b"])
    (home / "figures").mkdir()
    write(home / "a.ipynb", ["3"])
    assert changed() == (["a"], ["a"])
    write(home / "a.ipynb", ["import os; os._exit(7)"])
    with pytest.raises(SphinxError, match="a.ipynb: A process .* terminated abruptly"):
        changed()


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
    found = execution.apart(execute_at, home, home / "a.ipynb")
    read = found.metadata["read"]
    assert read[str(home / "results" / "none.json")] == ""
    folder = home / "results" / "a"
    assert read[str(folder)] == execution.state(folder)
    (folder / "new.json").touch()
    assert read[str(folder)] != execution.state(folder)
