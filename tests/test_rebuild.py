"""What the book's extensions do: a page is executed again when, and only when, something it read changed; kernels are forked."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtx_core.pages.reads import READS, read_by
from rtx_core.paths import REPOSITORY

EXTENSIONS = REPOSITORY / "book" / "_ext"


def extension(name: str, monkeypatch):
    monkeypatch.syspath_prepend(EXTENSIONS)
    spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def book(home, monkeypatch):
    """A page that names `sst2` and opened one of its two records, as Sphinx's environment remembers it."""
    paper = extension("paper", monkeypatch)
    for name in ("sst2/read-seed0.json", "sst2/other-seed0.json", "yelp/read-seed0.json", "top.json"):
        (home / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "results" / name).write_text("1")
    page = home / "sst2.ipynb"
    page.write_text("{}")
    env = SimpleNamespace(doc2path=lambda name: page, doctreedir=home, paper_inputs={}, found_docs={"sst2"})
    app = SimpleNamespace(env=env)
    monkeypatch.setenv(READS, "")
    paper.remember(app, "sst2", [""])
    Path(os.environ[READS]).write_text(f"{home / 'results' / 'sst2' / 'read-seed0.json'}\n")
    return SimpleNamespace(stale=lambda: paper.stale_pages(app, env, set(), set(), set()) == ["sst2"], results=home / "results", paper=paper, home=home)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, ns=(10**18, 10**18))  # another time, on file systems with coarse ones too


def test_a_page_is_executed_again_when_a_record_that_it_read_changed(book):
    assert not book.stale()
    write(book.results / "sst2" / "read-seed0.json", "2")
    assert book.stale()


@pytest.mark.parametrize("name", ["sst2/other-seed0.json", "yelp/read-seed0.json", "top.json", "yelp/new.json"])
def test_and_not_when_another_one_did(book, name):
    write(book.results / name, "2")
    assert not book.stale()


@pytest.mark.parametrize("name", ["sst2/new-seed1.json", "sst2-epochs1/new.json", "data/new.json", "new.json"])
def test_but_when_one_came_that_it_may_want(book, name):
    write(book.results / name, "1")
    assert book.stale()


def test_and_when_one_went(book):
    (book.results / "sst2" / "other-seed0.json").unlink()
    assert book.stale()


def test_and_when_it_is_not_known_what_it_read(book):
    (book.home / "sst2.reads").unlink()
    write(book.results / "sst2" / "other-seed0.json", "2")
    assert book.stale()


def test_and_when_the_code_changed(book, monkeypatch, tmp_path):
    hashed = book.paper.file_hash
    monkeypatch.setattr(book.paper, "file_hash", lambda file, when: "new" if file.name == "errors.py" else hashed(file, when))
    assert book.stale()


def test_what_a_page_opens_is_noted(home, tmp_path):
    for name in ("results/sst2/a.json", "results/sst2/b.json", "_build/results/sst2/c.json", "elsewhere.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("1")
    line = (
        "import rtx_core, os, pathlib; pathlib.Path('results/sst2/a.json').read_text(); open('elsewhere.json').close(); "
        "open(os.path.abspath('_build/results/sst2/c.json'), 'rb').close(); open('results/sst2/a.json').close()"
    )
    log = tmp_path / "page.reads"
    subprocess.run([sys.executable, "-c", line], check=True, cwd=home, env=os.environ | {READS: str(log), "PYTHONPATH": str(REPOSITORY)})
    assert read_by(log) == {home / "results/sst2/a.json", home / "_build/results/sst2/c.json"}
    assert len(log.read_text().splitlines()) == 2 and read_by(tmp_path / "none") is None


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
def test_a_page_runs_in_a_forked_kernel(home, monkeypatch):
    import jupyter_client
    import nbclient
    import nbformat
    from jupyter_client.provisioning import local_provisioner

    monkeypatch.syspath_prepend(EXTENSIONS)
    import side_by_side

    monkeypatch.setattr(jupyter_client, "AsyncKernelManager", jupyter_client.AsyncKernelManager)  # both put back afterwards
    monkeypatch.setattr(local_provisioner, "launch_kernel", local_provisioner.launch_kernel)
    monkeypatch.setenv("A_VARIABLE", "of the page")
    app = SimpleNamespace()
    side_by_side.open_up(app, None, ["page"])
    try:
        cell = "import os, sys; print(os.getcwd(), os.environ['A_VARIABLE'], os.getpid(), os.getppid(), 'pandas' in sys.modules)"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
        nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(home)}}).execute()
    finally:
        side_by_side.close_down(app, None)
    *folder, pid, parent, loaded = notebook.cells[0].outputs[0].text.split()
    assert " ".join(folder) == f"{home} of the page" and int(parent) == app.kernels.pid and loaded == "True"
    assert not Path(f"/proc/{pid}").exists() and not Path(side_by_side.SocketKernels.folder).exists() and app.kernels.returncode == 0


def test_a_record_that_the_page_does_not_name_counts_once_it_was_read(book):
    unnamed = book.results / "yelp" / "read-seed0.json"
    log = book.home / "sst2.reads"
    log.write_text(log.read_text() + f"{unnamed}\n")
    assert not book.stale()
    os.utime(unnamed, (2e9, 2e9))
    assert book.stale()
