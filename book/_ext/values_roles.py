"""{val}`sst2.difference:+.1f` writes a value, {holds}`abs(sst2.difference) < 1` writes nothing.

The names are those of `book/values*.py` (see `rtx_core/report/values.py`).  An unknown name, a value without
a record and a guard that is false stop the build, all told at once, each with file, line and sentence.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util.docutils import SphinxRole

from rtx_core.errors import RtxError
from rtx_core.report import values


class SentenceFails(SphinxError):
    category = "Sentences that the records do not bear out"


class Role(SphinxRole):
    """Both roles; where one fails, its sentence is known when the page has been read."""

    def run(self) -> tuple[list[nodes.Node], list]:
        try:
            if self.name == "val":
                return [nodes.Text(values.shown(self.text))], []
            if values.look_up(self.text):
                return [], []
            why = f"{self.text!r} does not hold{measured(self.text)}."
        except RtxError as error:
            why = str(error)
        failed = nodes.inline("", f"⟦{self.text}⟧", failed=why)
        self.set_source_info(failed)
        return [failed], []


def measured(guard: str) -> str:
    """The values of the names in a guard that does not hold: ": sst2.difference is +1.4 (…)"."""
    found = dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+", guard))
    return ": " * bool(found) + ", ".join(f"{name} is {values.shown(name)}" for name in found)


def tell(app: Sphinx, doctree: nodes.document) -> None:
    """Name the sentence of each failure on a page, and drop paragraphs that held guards alone."""
    for failed in [node for node in doctree.findall(nodes.inline) if "failed" in node]:
        parts = re.split(r"(?<=[.!?:;])\s+(?=[A-Z(\[])", failed.parent.astext())
        sentence = " ".join(
            next((part for part in parts if failed.astext() in part), failed.parent.astext()).split()
        )
        page = app.env.doc2path(app.env.docname)
        app.failed_sentences.append(f"{page}, {place(failed)}: {failed['failed']}\n    in: {sentence}")
    for paragraph in list(doctree.findall(nodes.paragraph)):
        if all(isinstance(child, nodes.Text) and not child.strip() for child in paragraph):
            paragraph.parent.remove(paragraph)


def place(node: nodes.Node) -> str:
    """The line of a page, or cell and line of a notebook, as MyST-NB counts them."""
    while node is not None and not node.line:
        node = node.parent
    line = node.line if node is not None else 0
    return f"cell {line // 10000}, line {line % 10000}" if line >= 10000 else f"line {line}"


def stop(app: Sphinx, env: BuildEnvironment) -> None:
    """Before anything is kept or written."""
    if app.failed_sentences:
        raise SentenceFails("\n" + "\n".join(app.failed_sentences))


def setup(app: Sphinx) -> dict:
    app.failed_sentences = []
    app.add_role("val", Role())
    app.add_role("holds", Role())
    app.connect("doctree-read", tell)
    app.connect("env-updated", stop)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
