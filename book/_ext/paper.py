"""What makes pages of records a book: formulas offline, folded code, a footer of what was built."""

import os
import shutil
import tomllib
from collections.abc import Iterator
from html import escape
from importlib.metadata import files
from pathlib import Path

from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.config import Config

from rtx_core import paths, records
from rtx_core.records import fingerprint


def copy_mathjax(app: Sphinx) -> None:
    """Put MathJax's one-file build, and the TeX extensions it loads on demand, where `mathjax_path` says."""
    for file in files("sphinx-mathjax-offline") or () if app.builder.format == "html" else ():
        inside = file.as_posix().partition("static/mathjax/")[2]
        if inside == "tex-svg.js" or inside.startswith("input/tex/extensions/"):
            copy = Path(app.outdir, "_static", "mathjax", inside)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), copy)


def fold_code(app: Sphinx, doctree: nodes.document) -> None:
    """Code is folded; one click opens it."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and not cell.get("hide_mode"):
            cell.attributes.update(hide_mode="input", prompt_show="Code", prompt_hide="Code")


def built_from() -> str:
    """Version, commit, and how many records are stale."""
    project = tomllib.loads((paths.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commit = fingerprint.commit()
    every = [records.sound(path, measured=True) for path in records.all_paths(records.folder())]
    made = [record for record in every if record]
    stale = sum(bool(record.stale_reason()) for record in made)
    state = f"{stale} of {len(made)} records were made by earlier code" if stale else "all records are current"
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


class AuthorYear(BaseLabelStyle):
    """Labels of the bibliography as the text writes them, such as "Bae et al., 2025"."""

    def format_labels(self, entries: list) -> Iterator[str]:
        for entry in entries:
            names = [" ".join(map(str, person.rich_last_names)) for person in entry.persons["author"]]
            known = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
            yield f"{known}, {entry.fields['year']}"


class ByName(Style):
    default_label_style = AuthorYear


def setup(app: Sphinx) -> dict:
    register_plugin("pybtex.style.formatting", "by_name", ByName)
    os.environ["RTX_BOOK"] = "1"  # pages show what is recorded and train nothing; figures are written
    app.config.mathjax_path = "mathjax/tex-svg.js"  # relative to _static/
    app.connect("config-inited", put_footer)
    for prepare in (copy_mathjax, on_title_page):
        app.connect("builder-inited", prepare)
    app.connect("doctree-read", fold_code)
    app.connect("html-page-context", point_to_repository)
    return {"version": "1", "env_version": 3, "parallel_read_safe": False, "parallel_write_safe": True}
