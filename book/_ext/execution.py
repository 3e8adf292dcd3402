"""Notebooks run in processes that have imported what they import, and go into Jupyter's cache.

Jupyter's cache knows code cells alone, so there is one for each state of what else a page depends on: its
folder is named after their digest, and a page in it knows the records that it looked for.  MyST-NB finds every
notebook there; the folder is one of its settings, so Sphinx reads all pages anew where an input changed.  In the
place of what a cell that fails shows stands a box that says why (`undrawn` of values_roles.py).
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import getLogger

from rtx_core import paths
from rtx_core.errors import RtxError

CACHES = paths.REPOSITORY / "_build" / ".jupyter_cache"
FIGURES = paths.REPOSITORY / "book" / "figures"

# A process of one thread imports once what all pages need, and each page runs in a copy of it.
SERVER = get_context("forkserver")
SHARED = ["pandas", "seaborn", "scipy.stats", "sklearn.metrics", "rtx_core.report.figures", "jupyter_book.cli.main"]


def hashes(*found: Path) -> dict[str, str]:
    """File -> hash of what it holds."""
    files = [file for file in sorted(found) if file.is_file() and file.suffix != ".pyc" and file.name[0] != "."]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def digest(of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:16]


def choose_cache(app: Sphinx, config: Config) -> None:
    """The cache of today's inputs: package, study and library versions, and records.  Others go, and so does this one
    where the figures that it drew are gone; where only records changed, pages stay that read none of these."""
    root = paths.REPOSITORY
    code = hashes(*root.glob("rtx_core/**/*"), *root.glob("study/**/*"), root / "requirements.lock", Path(__file__))
    results = hashes(*paths.home().glob("results/**/*"))
    cache = CACHES / f"{digest(code)}-{digest(results)}"
    for other in CACHES.glob("*"):
        if other != cache and other.name.startswith(digest(code)) and FIGURES.is_dir() and not cache.exists():
            kept = get_cache(str(other))
            for page in kept.list_cache_records():
                read = kept.get_cache_bundle(page.pk).nb.metadata["read"]
                if any(state(place) != before for place, before in read.items()):
                    kept.remove_cache(page.pk)
            other.rename(cache)  # when nothing in it is out of date, should this process be killed
        elif other != cache or not FIGURES.is_dir():
            shutil.rmtree(other, ignore_errors=True)
    config.nb_execution_cache_path = str(cache)


def state(place: str) -> str:
    """Of a file what it holds, of a folder what lies in it; empty where there is neither."""
    path = Path(place)
    if path.is_dir():
        return digest(sorted(found.name for found in path.iterdir() if found.name[0] != "."))
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def run_notebooks(app: Sphinx, env: BuildEnvironment, names: list[str]) -> None:
    """Those among the pages to be read whose outputs are not in the cache."""
    cache = get_cache(app.config.nb_execution_cache_path)
    pages = [Path(env.doc2path(name)) for name in names]
    waiting = [page for page in pages if page.suffix == ".ipynb" and not is_cached(cache, page)]
    if not waiting:
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for page, (notebook, error) in zip(waiting, pool.map(lambda page: apart(execute, page), waiting)):
            getLogger(__name__).info("executed %s %s", page.stem, error)
            if not error:
                bundle = CacheBundleIn(notebook, str(page))
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def is_cached(cache, page: Path) -> bool:
    try:
        return bool(cache.match_cache_notebook(nbformat.read(page, as_version=4)))
    except KeyError:
        return False


def apart(run: Callable, *given) -> tuple[nbformat.NotebookNode | None, str]:
    """What `run(*given)` returns, (notebook, error), from a process of its own; that it died is an error too."""
    ours, theirs = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_send, args=(theirs, run, *given))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        process.join()
        return None, f"its process ended with exit code {process.exitcode}"


def _send(answer: Connection, run: Callable, *given) -> None:
    answer.send(run(*given))


def execute(page: Path) -> tuple[nbformat.NotebookNode, str]:
    """(notebook with outputs, ""), run in this process: call it by `apart`."""
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    opened, results = set(), str(paths.home() / "results")
    looked = ("open", "os.scandir", "os.listdir")  # a file that was looked for in vain is opened, too
    sys.addaudithook(lambda event, given: event in looked and opened.add(str(given[0])))
    os.chdir(page.parent)
    os.environ |= {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # there is a process for every core
    HistoryManager.enabled = False
    shell = InteractiveShell.instance(colors="nocolor")
    notebook = nbformat.read(page, as_version=4)
    new, why = nbformat.v4.new_output, ""
    for cell in [cell for cell in notebook.cells if cell.cell_type == "code"]:
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
    return notebook, ""


def undrawn_why(error: BaseException, before: str) -> str:
    """What a cell is replaced by: one that lacks a name has the reason of the cell before it that could not be run."""
    if before and isinstance(error, NameError):
        return before
    said = " ".join(str(error).split())
    return said if isinstance(error, RtxError) else f"{type(error).__name__}: {said}"


def setup(app: Sphinx) -> dict:
    SERVER.set_forkserver_preload(SHARED)
    ensure_running()  # it imports while Sphinx reads its settings
    app.connect("config-inited", choose_cache)
    app.connect("env-before-read-docs", run_notebooks)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
