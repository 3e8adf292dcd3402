"""What makes a page of records a page of Sphinx.  Two jobs:

**Math without a network.**  MathJax is copied out of the installed `sphinx-mathjax-offline` into the html, so that
formulas are drawn from disk.

**Freshness.**  Sphinx reads a page again when the page's own text changed; a page that *executes* also depends on the
code it calls and on the records it draws.  Those inputs are hashed when a page is read, the hashes are kept in Sphinx's
environment, and a page is read, and so executed, again when at the next build

- a file of `rtx_core/`, or `requirements.lock`, is another,
- a file of `results/` that the page opened in its last execution (`rtx_core/pages/reads.py` notes them) is another, or
- a file has come or gone directly in `results/`, in `results/data/`, or in a folder of `results/` that the page names.  A
  folder is named when its name, or the beginning of it up to a `-`, is a word of the page's text or of its file name:
  the word `sst2` stands for `sst2/` and `sst2-epochs1/`.

The same holds for the records of quick runs in `_build/results/`.  The rule may take in too much, which costs
seconds; it takes in too little only if a page would read a new experiment that it does not name.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import files
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from rtx_core import paths
from rtx_core.pages.reads import READS, read_by

logger = logging.getLogger(__name__)

MATHJAX = "sphinx-mathjax-offline"
KERNELSPEC = re.compile(r"\A---\n(?:.*\n)*?kernelspec:")


def copy_mathjax(app: Sphinx) -> None:
    """Put MathJax's one-file build, and the TeX extensions it loads on demand, where `mathjax_path` says."""
    if app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "mathjax")
    for file in files(MATHJAX) or ():
        inside = file.as_posix().partition("static/mathjax/")[2]
        if inside == "tex-svg.js" or inside.startswith("input/tex/extensions/"):
            copy = target / inside
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), copy)


def inputs(page: Path, text: str) -> Iterator[Path]:
    """The files that a page with this source text depends on, in a fixed order."""
    words = {page.stem, *re.findall(r"[\w-]+", text)}
    yield paths.REPOSITORY / "requirements.lock"  # other versions may draw otherwise
    yield from tree(paths.REPOSITORY / "rtx_core")
    for results in (paths.home() / "results", paths.build() / "results"):
        for entry in sorted(results.glob("[!.]*")):
            parts = entry.name.split("-")
            names = {"-".join(parts[:n]) for n in range(1, len(parts) + 1)}
            if entry.is_file() or entry.name == "data" or names & words:
                yield from tree(entry)


def tree(path: Path) -> Iterator[Path]:
    """The files at or under a path, but for compiled Python and half-written (dotted) ones."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and file.suffix != ".pyc" and not file.name.startswith("."):
            yield file


def hashes(env: BuildEnvironment, docname: str) -> dict[str, str]:
    """The hash of every file that a page's outputs may depend on beside its own text; empty for one that executes nothing."""
    source = Path(env.doc2path(docname))
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".ipynb" and not KERNELSPEC.match(text):
        return {}
    return {str(file): file_hash(file, file.stat().st_mtime_ns) for file in inputs(source, text)}


@cache
def file_hash(file: Path, changed_ns: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def reads_log(env: BuildEnvironment, docname: str) -> Path:
    return Path(env.doctreedir, f"{docname}.reads")


def is_stale(env: BuildEnvironment, docname: str) -> bool:
    """Whether something that the page depends on is another than when it was executed."""
    now, then = hashes(env, docname), env.paper_inputs.get(docname, {})
    log = reads_log(env, docname)
    opened = read_by(log)
    unnamed = (opened or set()) - {Path(file) for file in now}
    if any(not file.exists() or file.stat().st_mtime > log.stat().st_mtime for file in unnamed):
        return True
    results = tuple(str(folder / "results") for folder in (paths.home(), paths.build()))
    return now.keys() != then.keys() or any(
        now[file] != then[file] and (opened is None or not file.startswith(results) or Path(file) in opened) for file in now
    )


def stale_pages(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """Executed pages whose inputs are not those of their last execution."""
    vars(env).setdefault("paper_inputs", {})
    stale = sorted(page for page in env.found_docs - added - changed - removed if is_stale(env, page))
    if stale:
        logger.info("their records or the code changed: %s", ", ".join(stale))
    return stale


def remember(app: Sphinx, docname: str, source: list[str]) -> None:
    """Hash a page's inputs just before it is executed, and have its kernel note what it opens."""
    app.env.paper_inputs[docname] = hashes(app.env, docname)
    log = reads_log(app.env, docname)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    os.environ[READS] = str(log)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    env.paper_inputs.pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what a parallel reader remembered."""
    env.paper_inputs.update((name, other.paper_inputs[name]) for name in docnames)


def setup(app: Sphinx) -> dict:
    os.environ["RTX_BOOK"] = "1"  # pages are drawn from what is recorded, and train nothing (rtx_core/pages/runs.py)
    app.config.mathjax_path = "mathjax/tex-svg.js"  # relative to _static/
    app.connect("builder-inited", copy_mathjax)
    app.connect("env-get-outdated", stale_pages)
    app.connect("source-read", remember)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
