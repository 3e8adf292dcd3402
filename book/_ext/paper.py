"""What makes pages of records a book: formulas offline, folded code, a footer of what was built."""

import logging
import os
import shutil
import tomllib
from collections.abc import Iterator
from html import escape
from importlib.metadata import files
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

from docutils import nodes
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import WarningStreamHandler, WarningSuppressor

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
    """Code is folded; one click opens it, with that of the cells before it that show nothing."""
    for cell in [cell for cell in doctree.findall(nodes.container) if cell.get("nb_element") == "cell_code"]:
        if not cell.get("hide_mode"):
            cell.attributes.update(hide_mode="input", prompt_show="Code", prompt_hide="Code")
        at = cell.parent.index(cell)
        before = cell.parent[at - 1] if at else None
        if not isinstance(before, nodes.container) or before.get("nb_element") != "cell_code":
            continue
        if [part.get("nb_element") for part in (*before, cell[0])] == 2 * ["cell_code_source"]:
            cell[0].insert(0, before[0].children)
            cell.parent.remove(before)


def built_from() -> str:
    """Version and commit."""
    project = tomllib.loads((paths.REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commit = fingerprint.commit()
    changed = "" if commit["clean"] else " + changes"
    return f"Version {project['version']}, commit {(commit['commit'] or 'unknown')[:9]}{changed}"


def count_stale(app: Sphinx, env: BuildEnvironment) -> None:
    """How many records are stale, counted anew where code or records have changed."""
    if getattr(env, "counted_of", "") != env.asked_of:
        every = [records.sound(path, measured=True) for path in records.all_paths(records.folder())]
        stale = [bool(record.stale_reason()) for record in every if record]
        told = f"{sum(stale)} of {len(stale)} records were made by earlier code"
        env.stale, env.counted_of = told if any(stale) else "all records are current", env.asked_of


def put_footer(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """What a page is made of, as it was when the page was written: a page that stays the same is not written anew."""
    made = escape(f"{app.built_from}; {app.env.stale}.")
    context["theme_extra_footer"] = f'<div class="built-from">{made}</div>'


def point_to_repository(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Buttons name a notebook where it lies: `book/notebooks` is a link, which sites of repositories do not follow."""
    folder = "" if page.startswith("notebooks/") else "book"
    app.config.html_theme_options["path_to_docs"] = context["doc_path"] = folder


def prepare(app: Sphinx) -> None:
    app.built_from = built_from()
    if app.builder.name == "latex":
        app.builder.context["date"] = app.built_from


def listen(app: Sphinx) -> None:
    """Keep what a build warns of, as it is shown."""
    app.warned = StringIO()
    handler = WarningStreamHandler(app.warned)
    handler.setLevel(logging.WARNING)
    handler.addFilter(WarningSuppressor(SimpleNamespace(config=app.config, _warncount=0)))
    logging.getLogger("sphinx").addHandler(handler)


def tell_why(app: Sphinx, error: Exception | None) -> None:
    """Beside the built book, where and why it could not be built: what stopped it, else what it warned of."""
    page = app.env and app.env.temp_data.get("docname")
    stopped = f"{type(error).__name__}: {getattr(error, 'orig_exc', None) or error}"
    where = f"{app.env.doc2path(page, base=False)}: " if page else ""
    told = f"{where}{stopped}\n" if error else app.warned.getvalue()
    paths.write_atomically(Path(app.outdir).parent / "failed.txt", told.encode())


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
    listen(app)
    for start in (copy_mathjax, prepare):
        app.connect("builder-inited", start)
    app.connect("env-updated", count_stale)
    app.connect("doctree-read", fold_code)
    for add in (point_to_repository, put_footer):
        app.connect("html-page-context", add)
    app.connect("build-finished", tell_why)
    return {"version": "1", "env_version": 3, "parallel_read_safe": False, "parallel_write_safe": True}
