"""One build of a book at a time, and a build that was stopped halfway, or failed, does not pass for a finished one.

Sphinx takes a page as done once it has read it, whatever is missing of the site.  So `book.lock` in the folder of the
built book says "unfinished" from a build's first moment to its last, and a build that finds this word reads all anew.
"""

import fcntl
import shutil
from pathlib import Path

from jupyter_cache import get_cache
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

UNFINISHED = "unfinished\n"
log = logging.getLogger(__name__)


def begin(app: Sphinx, config: Config) -> None:
    """Wait for another build of this folder; the lock goes when the process does, however it ends."""
    folder = Path(app.outdir).parent
    folder.mkdir(parents=True, exist_ok=True)
    app.build_lock = open(folder / "book.lock", "a+", encoding="utf-8")  # noqa: SIM115
    try:
        fcntl.flock(app.build_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.info("Another build of this book is running; this one waits for it.")
        fcntl.flock(app.build_lock, fcntl.LOCK_EX)
    app.build_lock.seek(0)
    app.was_stopped = bool(app.build_lock.read())
    if app.was_stopped:
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)
    mark(app, UNFINISHED)


def drop_half_outputs(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Outputs of notebooks that a stopped build wrote in part are no outputs."""
    folder = app.config.nb_execution_cache_path
    try:
        cache = get_cache(folder) if folder and app.was_stopped else None
        for record in cache.list_cache_records() if cache else ():
            cache.get_cache_bundle(record.pk)
    except Exception as error:  # of the database, the file system or the JSON
        log.info("The outputs of a stopped build are not whole (%s): all notebooks run again.", error)
        shutil.rmtree(folder, ignore_errors=True)


def end(app: Sphinx, error: Exception | None) -> None:
    if not error and not (app._warncount and app.keep_going):  # a warning fails the build under -W --keep-going
        mark(app, "")
    app.build_lock.close()


def mark(app: Sphinx, word: str) -> None:
    app.build_lock.truncate(0)
    app.build_lock.write(word)
    app.build_lock.flush()


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", begin, priority=1)
    app.connect("env-before-read-docs", drop_half_outputs, priority=1)
    app.connect("build-finished", end, priority=1000)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
