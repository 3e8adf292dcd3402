"""What makes pages of records a book: formulas offline, no stale page, folded code, a footer of what was built."""

import hashlib
import os
import shutil
import tomllib
from html import escape
from importlib.metadata import files
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

from rtx_core import code, paths, records

CACHE = paths.REPOSITORY / "_build" / ".jupyter_cache"
FIGURES = paths.REPOSITORY / "book" / "figures"
STAMP = CACHE.with_name(".jupyter_cache.stamp")


def copy_mathjax(app: Sphinx) -> None:
    """Put MathJax's one-file build, and the TeX extensions it loads on demand, where `mathjax_path` says."""
    for file in files("sphinx-mathjax-offline") or () if app.builder.format == "html" else ():
        inside = file.as_posix().partition("static/mathjax/")[2]
        if inside == "tex-svg.js" or inside.startswith("input/tex/extensions/"):
            copy = Path(app.outdir, "_static", "mathjax", inside)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), copy)


def inputs_digest() -> str:
    """The hash of what a page may depend on but its own text: records, package, values, library versions."""
    root = paths.REPOSITORY
    found = [*root.glob("rtx_core/**/*"), *root.glob("book/values*.py"), root / "requirements.lock"]
    digest = hashlib.sha256()
    for file in sorted([*found, *paths.home().glob("results/**/*")]):
        if file.is_file() and file.suffix != ".pyc" and not file.name.startswith("."):
            digest.update(f"{file}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def empty_cache(app: Sphinx) -> None:
    """Jupyter's cache knows code cells alone: it is emptied when an input changed or the figures are gone."""
    app.inputs_digest = inputs_digest()
    if not FIGURES.is_dir() or not STAMP.exists() or STAMP.read_text() != app.inputs_digest:
        shutil.rmtree(CACHE, ignore_errors=True)
        paths.write_atomically(STAMP, app.inputs_digest.encode())


def stale_pages(app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set) -> set[str]:
    """Every page, where an input changed since the pages were read, or the figures are gone."""
    fresh = FIGURES.is_dir() and getattr(env, "inputs_digest", "") == app.inputs_digest
    env.inputs_digest = app.inputs_digest
    return set() if fresh else env.found_docs - added - changed - removed


def fold_code(app: Sphinx, doctree: nodes.document) -> None:
    """Code is folded; one click opens it."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and not cell.get("hide_mode"):
            cell.attributes.update(hide_mode="input", prompt_show="Show the code", prompt_hide="Hide it")


def built_from() -> str:
    """Version, commit, and how many records are stale."""
    project = tomllib.loads((paths.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commit = code.commit()
    made = [*records.records(), *(found for kind in records.KINDS for found in records.measurements(kind))]
    stale = sum(bool(record.note()) for record in made)
    state = (
        f"{stale} of {len(made)} records were made by earlier code" if stale else "all records are current"
    )
    changed = "" if commit["clean"] else " + changes"
    return f"Version {project['version']}, commit {(commit['commit'] or 'unknown')[:9]}{changed}; {state}."


def put_footer(app: Sphinx, config: Config) -> None:
    app.built_from = built_from()
    config.html_theme_options["extra_footer"] = f'<div class="built-from">{escape(app.built_from)}</div>'


def point_to_repository(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Buttons name a notebook where it lies: `book/notebooks` is a link, which sites of repositories do not follow."""
    folder = "" if page.startswith("notebooks/") else "book"
    app.config.html_theme_options["path_to_docs"] = context["doc_path"] = folder


def on_title_page(app: Sphinx) -> None:
    if app.builder.name == "latex":
        app.builder.context["date"] = app.built_from


def setup(app: Sphinx) -> dict:
    os.environ["RTX_BOOK"] = "1"  # pages show what is recorded and train nothing; figures are written
    app.config.mathjax_path = "mathjax/tex-svg.js"  # relative to _static/
    app.connect("config-inited", put_footer)
    for prepare in (copy_mathjax, empty_cache, on_title_page):
        app.connect("builder-inited", prepare)
    app.connect("env-get-outdated", stale_pages)
    app.connect("doctree-read", fold_code)
    app.connect("html-page-context", point_to_repository)
    return {"version": "1", "env_version": 3, "parallel_read_safe": False, "parallel_write_safe": True}
