"""Notebooks run in processes that have imported what they import, and go into Jupyter's cache.

Jupyter's cache knows code cells alone, so there is one for each state of what else a page depends on: its
folder is named after their digest, and a page in it knows the records that it read.  MyST-NB finds every
notebook there; the folder is one of its settings, so Sphinx reads all pages anew where an input changed.  A
notebook that fails is left to MyST-NB, which runs it in a kernel and tells where it fails.
"""

import hashlib
import os
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

CACHES = paths.REPOSITORY / "_build" / ".jupyter_cache"
FIGURES = paths.REPOSITORY / "book" / "figures"

# A process of one thread imports once what all pages need, and each page runs in a copy of it.
SERVER = get_context("forkserver")
SHARED = [
    "pandas",
    "seaborn",
    "scipy.stats",
    "sklearn.metrics",
    "rtx_core.report.figures",
    "jupyter_book.cli.main",
]


def hashes(*found: Path) -> dict[str, str]:
    """File -> hash of what it holds."""
    files = [
        file for file in sorted(found) if file.is_file() and file.suffix != ".pyc" and file.name[0] != "."
    ]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def digest(of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:16]


def choose_cache(app: Sphinx, config: Config) -> None:
    """The cache of today's inputs: package, values and library versions, and records.  Others go, and so does this one
    where the figures that it drew are gone; where only records changed, pages stay that read none of these."""
    root = paths.REPOSITORY
    code = [*root.glob("rtx_core/**/*"), *root.glob("study/**/*")]
    code = hashes(*code, root / "requirements.lock", Path(__file__))
    results = hashes(*paths.home().glob("results/**/*"))
    alike = f"{digest(code)}-{digest(list(results))}"
    cache = CACHES / f"{alike}-{digest(results)}"
    for other in CACHES.glob("*"):
        if other != cache and other.name.startswith(alike) and FIGURES.is_dir() and not cache.exists():
            kept = get_cache(str(other))
            for page in kept.list_cache_records():
                read = kept.get_cache_bundle(page.pk).nb.metadata["read"]
                if any(results[file] != held for file, held in read.items()):
                    kept.remove_cache(page.pk)
            other.rename(cache)  # when nothing in it is out of date, should this process be killed
        elif other != cache or not FIGURES.is_dir():
            shutil.rmtree(other, ignore_errors=True)
    config.nb_execution_cache_path = str(cache)


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
    """(notebook with outputs, what a cell that failed printed), run in this process: call it by `apart`."""
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    opened, results = set(), str(paths.home() / "results")
    sys.addaudithook(lambda event, given: event == "open" and opened.add(str(given[0])))
    os.chdir(page.parent)
    os.environ |= {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}  # there is a process for every core
    HistoryManager.enabled = False
    shell = InteractiveShell.instance(colors="nocolor")
    notebook = nbformat.read(page, as_version=4)
    new = nbformat.v4.new_output
    for cell in [cell for cell in notebook.cells if cell.cell_type == "code"]:
        with shell.display_trap, capture_output() as captured:  # the trap first: it would take the display
            done = shell.run_cell(cell.source, store_history=True)
        streams = {"stdout": captured.stdout, "stderr": captured.stderr}
        cell.outputs = [new("stream", name=name, text=text) for name, text in streams.items() if text]
        for shown in captured.outputs:
            cell.outputs.append(new("display_data", data=shown.data, metadata=shown.metadata))
        cell.execution_count = done.execution_count
        if not done.success:
            return notebook, captured.stdout or repr(done.error_before_exec)
    notebook.metadata["read"] = hashes(*(Path(file) for file in opened if file.startswith(results)))
    return notebook, ""


def setup(app: Sphinx) -> dict:
    SERVER.set_forkserver_preload(SHARED)
    ensure_running()  # it imports while Sphinx reads its settings
    app.connect("config-inited", choose_cache)
    app.connect("env-before-read-docs", run_notebooks)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
