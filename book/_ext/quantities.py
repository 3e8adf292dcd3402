"""{eval}`q.key` writes a number of a notebook's `Quantities`, {eval}`page.key` one of another page.

Nothing is evaluated: a key is looked up in the output of the cell that made `q`, or of a page without a notebook in
`study/pages/<page>.py`.  A paragraph is marked (`sentences.py`) where a number is missing or its check fails; the
comment `% check: name` stands under a paragraph whose check belongs to no number.
"""

import json
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import nbformat
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from rtx_core import study
from rtx_core.paths import write_atomically
from rtx_core.report import filling

EXPRESSION = re.compile(r"[a-z]\w*\.[a-z]\w*")
COMMENT = re.compile(r"check: (\w+)")
SHOWN: dict[str, dict] = {}  # page -> what its notebook or module gives, of one build


class quantity(nodes.inline):  # noqa: N801, as all nodes of docutils
    """A number with its evidence as a tooltip."""


def visit_quantity(writer: nodes.NodeVisitor, node: quantity) -> None:
    writer.body.append(writer.starttag(node, "span", "", title=node["evidence"], CLASS="quantity"))


def depart_quantity(writer: nodes.NodeVisitor, node: quantity) -> None:
    writer.body.append("</span>")


class Eval(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list]:
        if not EXPRESSION.fullmatch(self.text):
            return self.failed(self.text, f"{self.text}: expected q.name, or page.name of another page")
        page, _, key = self.text.partition(".")
        shown = quantities(self.env, self.env.docname if page == "q" else page)
        number = shown["numbers"].get(key)
        if number is None:
            return self.failed(filling.NOT_AVAILABLE, f"{self.text}: the page has no number of this name")
        if number["reason"]:
            return self.failed(number["text"], f"{self.text}: {number['reason']}")
        about = [
            self.text,
            seeds(number["seeds"]),
            ", ".join(number["records"][:6]) + " …" * (len(number["records"]) > 6),
        ]
        made = quantity("", number["text"], evidence=" · ".join(filter(None, about)))
        if failures := shown["failures"].get(key):
            made["failed"] = "; ".join(failures)
        self.set_source_info(made)
        return [made], []

    def failed(self, text: str, reason: str) -> tuple[list[nodes.Node], list]:
        node = nodes.inline("", text, classes=["no-value"], failed=reason)
        self.set_source_info(node)
        return [node], []


def seeds(numbers: list[int]) -> str:
    return f"seed{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}" if numbers else ""


def quantities(env: BuildEnvironment, page: str) -> dict:
    """What a document, or the page of this name, quotes."""
    if page not in SHOWN:
        notebooks = {Path(name).name.replace("-", "_"): name for name in env.found_docs if is_notebook(env, name)}
        name = page if page in notebooks.values() else notebooks.get(page)
        SHOWN[page] = filling.quantities(executed(env, name)) if name else of_module(page)
    return SHOWN[page]


def is_notebook(env: BuildEnvironment, name: str) -> bool:
    path = Path(env.doc2path(name))
    return path.suffix == ".ipynb" or is_myst_markdown_notebook(path.read_text(encoding="utf-8"))


def executed(env: BuildEnvironment, name: str) -> dict:
    """A notebook with the outputs that the build keeps of it, or with its own."""
    text = Path(env.doc2path(name)).read_text(encoding="utf-8")
    notebook = read_myst_markdown_notebook(text) if is_myst_markdown_notebook(text) else nbformat.reads(text, 4)
    try:
        return get_cache(env.config.nb_execution_cache_path).merge_match_into_notebook(notebook)[1]
    except (KeyError, AttributeError, TypeError):
        return notebook


def of_module(page: str) -> dict:
    """Of a page without a notebook."""
    name = f"{study.study().__name__}.pages.{page}"
    try:
        known = find_spec(name)
    except ImportError:
        known = None
    return import_module(name).quantities().as_json() if known else filling.quantities({"cells": []})


def mark_comments(app: Sphinx, doctree: nodes.document) -> None:
    """Give the comment of a check what fails of it."""
    for comment in doctree.findall(nodes.comment):
        named = COMMENT.fullmatch(comment.astext().strip())
        if named and (failures := quantities(app.env, app.env.docname)["failures"].get(named[1])):
            comment["failed"] = "; ".join(failures)


def fill_downloads(app: Sphinx, error: Exception | None) -> None:
    """The notebook that a page's button gives has the numbers in its text."""
    for path in () if error else Path(app.outdir, "_sources").rglob("*.ipynb*"):
        before = path.read_text(encoding="utf-8")
        notebook, name = json.loads(before), path.relative_to(Path(app.outdir, "_sources")).as_posix()
        filling.plain(notebook, quantities(app.env, name.partition(".ipynb")[0]))
        if (text := json.dumps(notebook, indent=1, ensure_ascii=False) + "\n") != before:
            write_atomically(path, text.encode())


def forget(app: Sphinx, *about: object) -> None:
    SHOWN.clear()


def setup(app: Sphinx) -> dict:
    app.add_node(quantity, html=(visit_quantity, depart_quantity))
    app.connect("builder-inited", forget)
    app.connect("env-before-read-docs", forget, priority=900)
    app.connect("config-inited", lambda app, config: app.add_role("eval", Eval(), override=True), priority=900)
    app.connect("build-finished", fill_downloads)
    app.connect("doctree-read", mark_comments, priority=400)  # before `sentences` marks
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
