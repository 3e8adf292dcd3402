"""Notebooks run in processes that have imported what they import, and run again where something they read has changed.

`_build/executed` keeps what a page's cells gave, with the code and the files of `results/` behind it; MyST-NB finds
these outputs in the notebook that it reads, and Sphinx reads a page anew only where they are others than before.  In
the place of what a cell that fails shows stands a box that says why (`undrawn` of values_roles.py).
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util.logging import getLogger

from rtx_core import paths, records
from rtx_core.errors import RtxError
from rtx_core.paths import write_json

FIGURES = paths.REPOSITORY / "book" / "figures"

# A process of one thread imports once what all pages need, and each page runs in a copy of it.
SERVER = get_context("forkserver")
SHARED = ["pandas", "seaborn", "scipy.stats", "sklearn.metrics", "rtx_core.report.figures", "jupyter_book.cli.main"]


def state(place: str | Path) -> str:
    """Of a file what it holds, of a folder what lies in it; empty where there is neither."""
    path = Path(place)
    if path.is_dir():
        held = "\n".join(sorted(found.name for found in path.iterdir() if found.name[0] != ".")).encode()
    elif path.is_file():
        held = path.read_bytes()
    else:
        return ""
    return hashlib.sha256(held).hexdigest()


def digest(*folders: Path) -> str:
    """Of all files below these."""
    files = sorted(path for folder in folders for path in folder.rglob("[!.]*") if path.suffix != ".pyc")
    return hashlib.sha256("".join(f"{path} {state(path)}\n" for path in files).encode()).hexdigest()


def code() -> str:
    """Of package, study and versions of libraries."""
    root = paths.REPOSITORY
    folders = [root / "rtx_core", root / os.environ.get("RTX_STUDY", "study")]
    return digest(*folders) + state(root / "requirements.lock") + state(__file__)


def folders() -> list[Path]:
    """Where records lie, of real and of generated texts."""
    return [records.folder(source) for source in ("hub", "embedded")]


def cells_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def sources(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in cells_of(notebook)]


def kept(app: Sphinx, docname: str) -> Path:
    return Path(app.outdir).parent / "executed" / f"{docname}.json"


def start_notebooks(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Run the notebooks whose cells, code or records changed since they ran, while other listeners work."""
    pages = {name: Path(env.doc2path(name)) for name in sorted(env.found_docs)}
    app.notebooks = {name: page for name, page in pages.items() if page.suffix == ".ipynb"}
    app.code = code()
    pool = ThreadPoolExecutor(os.cpu_count())
    waiting = [name for name, page in app.notebooks.items() if is_old(kept(app, name), page, app.code)]
    app.running = {name: pool.submit(apart, execute, app.notebooks[name]) for name in waiting}
    return []


def await_notebooks(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Keep what they gave; the pages that show other outputs than before."""
    for name, run in app.running.items():
        try:
            notebook = run.result()
        except BrokenProcessPool as error:
            raise SphinxError(f"{app.notebooks[name].name}: {error}") from error
        getLogger(__name__).info("executed %s", name)
        outputs = [cell.outputs for cell in cells_of(notebook)]
        made = {"code": app.code, "cells": sources(notebook), "read": notebook.metadata["read"], "outputs": outputs}
        write_json(kept(app, name), made)
    env.shows = getattr(env, "shows", {})  # page -> hash of the outputs that it was read with
    return [name for name in app.notebooks if env.shows.get(name) != outputs_of(kept(app, name))[0]]


def is_old(file: Path, page: Path, today: str) -> bool:
    """Whether a notebook or anything that it read is another than what this file was made from, or figures are gone."""
    if not FIGURES.is_dir() or not file.exists():
        return True
    made = json.loads(file.read_text(encoding="utf-8"))
    same = (made["code"], made["cells"]) == (today, sources(nbformat.read(page, as_version=4)))
    return not same or any(state(place) != before for place, before in made["read"].items())


def outputs_of(file: Path) -> tuple[str, list[list[dict]]]:
    """Their hash, and for each code cell what it gave."""
    outputs = json.loads(file.read_text(encoding="utf-8"))["outputs"]
    return hashlib.sha256(repr(outputs).encode()).hexdigest(), outputs


def put_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give a notebook that is read what its cells gave."""
    if app.env.doc2path(docname).endswith(".ipynb"):
        app.env.shows[docname], outputs = outputs_of(kept(app, docname))
        notebook = nbformat.reads(source[0], as_version=4)
        for number, (cell, shown) in enumerate(zip(cells_of(notebook), outputs), 1):
            cell.outputs, cell.execution_count = nbformat.from_dict(shown), number
        source[0] = nbformat.writes(notebook)


def apart(run: Callable, *given: object) -> object:
    """What `run(*given)` returns, from a process of its own; BrokenProcessPool where that dies."""
    with ProcessPoolExecutor(1, SERVER) as process:
        return process.submit(run, *given).result()


def execute(page: Path) -> nbformat.NotebookNode:
    """The notebook with outputs, run in this process: call it by `apart`."""
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    opened, results = set(), tuple(map(str, folders()))
    looked = ("open", "os.scandir", "os.listdir")  # a file that was looked for in vain is opened, too
    sys.addaudithook(lambda event, given: event in looked and opened.add(str(given[0])))
    os.chdir(page.parent)
    os.environ |= {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # there is a process for every core
    HistoryManager.enabled = False
    shell = InteractiveShell.instance(colors="nocolor")
    notebook = nbformat.read(page, as_version=4)
    new, why = nbformat.v4.new_output, ""
    for cell in cells_of(notebook):
        with shell.display_trap, capture_output() as captured:  # the trap first: it would take the display
            done = shell.run_cell(cell.source, store_history=True)
        streams = {"stdout": captured.stdout, "stderr": captured.stderr}
        cell.outputs = [new("stream", name=name, text=text) for name, text in streams.items() if text]
        for shown in captured.outputs:
            cell.outputs.append(new("display_data", data=shown.data, metadata=shown.metadata))
        cell.execution_count = done.execution_count
        if not done.success:
            why = undrawn_why(done.error_in_exec or done.error_before_exec, why)
            labels = " ".join(re.findall(r'label="([\w-]+)"', cell.source))
            box = f"````````{{undrawn}} {labels}\n{why}\n````````"
            cell.outputs = [new("display_data", data={"text/markdown": box})]
    notebook.metadata["read"] = {place: state(place) for place in opened if place.startswith(results)}
    return notebook


def undrawn_why(error: BaseException, before: str) -> str:
    """What a cell is replaced by: one that lacks a name has the reason of the cell before it that could not be run."""
    if before and isinstance(error, NameError):
        return before
    said = " ".join(str(error).split())
    return said if isinstance(error, RtxError) else f"{type(error).__name__}: {said}"


def setup(app: Sphinx) -> dict:
    SERVER.set_forkserver_preload(SHARED)
    ensure_running()  # it imports while Sphinx reads its settings
    app.connect("env-get-outdated", start_notebooks, priority=100)
    app.connect("env-get-outdated", await_notebooks, priority=900)
    app.connect("source-read", put_outputs)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
