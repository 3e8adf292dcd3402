"""The book's one Sphinx extension.  Two jobs:

**Math without a network.**  MathJax is copied out of the installed `sphinx-mathjax-offline` into the html, so that
formulas are drawn from disk.

**Freshness.**  Sphinx reads a page again when the page's own text changed; a page that *executes* also depends on the
code it calls and on the records it draws.  Those inputs are hashed when a page is read, the hash is kept in Sphinx's
environment, and a page whose hash differs at the next build is read, and so executed, again.  The inputs of a page:

- every file of `rtx_core/`;
- every file that lies directly in `results/`, and everything in `results/data/`;
- every other folder of `results/` that the page names.  A folder is named when its name, or the beginning of it up to
  a `-`, is a word of the page's text or of its file name: the word `sst2` stands for `sst2/` and `sst2-epochs1/`.

The same holds for the records of quick runs in `_build/results/`.  The rule may take in too much, which costs
seconds; it takes in too little only if a page reads an experiment that it does not name.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from rtx_core import paths

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


def fingerprint(env: BuildEnvironment, docname: str) -> str | None:
    """The hash of all that a page's outputs depend on beside its own text; None for a page that executes nothing."""
    source = Path(env.doc2path(docname))
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".ipynb" and not KERNELSPEC.match(text):
        return None
    digest = hashlib.sha256()
    for file in inputs(source, text):
        digest.update(f"{file}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def stale_pages(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> list[str]:
    """Executed pages whose inputs are not those of their last execution."""
    known = vars(env).setdefault("paper_fingerprints", {})
    kept = env.found_docs - added - changed - removed
    stale = sorted(page for page in kept if fingerprint(env, page) != known.get(page))
    if stale:
        logger.info("their records or the code changed: %s", ", ".join(stale))
    return stale


def remember(app: Sphinx, docname: str, source: list[str]) -> None:
    """Hash a page's inputs just before it is executed."""
    app.env.paper_fingerprints[docname] = fingerprint(app.env, docname)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    env.paper_fingerprints.pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """Take over what a parallel reader remembered."""
    env.paper_fingerprints.update((name, other.paper_fingerprints[name]) for name in docnames)


def setup(app: Sphinx) -> dict:
    os.environ["RTX_BOOK"] = "1"  # pages are drawn from what is recorded, and train nothing (rtx_core/pages/runs.py)
    app.config.mathjax_path = "mathjax/tex-svg.js"  # relative to _static/
    app.connect("builder-inited", copy_mathjax)
    app.connect("env-get-outdated", stale_pages)
    app.connect("source-read", remember)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
