"""{val}`sst2.difference:+.1f` writes a value; a {holds} block under a paragraph, what must be so for it to stand.

The names are those of `study/values` (see `rtx_core/report/values.py`).  An unknown name, a value without a record and a
guard that is false stop the build, all told at once, each with file, line and sentence.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util.docutils import SphinxDirective, SphinxRole

from rtx_core.errors import RtxError
from rtx_core.report import values


class SentenceFails(SphinxError):
    category = "Sentences that the records do not bear out"


class Val(SphinxRole):
    """A value in the text; where there is none, its sentence is known when the page has been read."""

    def run(self) -> tuple[list[nodes.Node], list]:
        try:
            return [nodes.Text(values.shown(self.text))], []
        except RtxError as error:
            failed = nodes.inline("", f"⟦{self.text}⟧", failed=str(error))
            self.set_source_info(failed)
            return [failed], []


class Holds(SphinxDirective):
    """What the text above claims, a condition a line, a long one continued by indented lines; it shows nothing."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        failed = [(guard, why) for guard in values.conditions(self.content) if (why := fails(guard))]
        made = [nodes.comment("", guard, failed=why) for guard, why in failed]
        for node in made:
            self.set_source_info(node)
        return made


def fails(guard: str) -> str:
    """Why a condition does not hold; empty where it does."""
    try:
        return "" if values.look_up(guard) else f"{guard!r} does not hold{measured(guard)}."
    except RtxError as error:
        return str(error)


def measured(guard: str) -> str:
    """The values of the names in a guard that does not hold: ": sst2.difference is +1.4 (…)"."""
    found = dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)+", guard))
    return ": " * bool(found) + ", ".join(f"{name} is {values.shown(name)}" for name in found)


def tell(app: Sphinx, doctree: nodes.document) -> None:
    """Name what fails on a page: a value with its sentence, a guard with the text above it."""
    page = app.env.doc2path(app.env.docname)
    for failed in [
        node for node in doctree.findall() if isinstance(node, nodes.Element) and "failed" in node
    ]:
        guard = isinstance(failed, nodes.comment)
        text = above(failed) if guard else failed.parent.astext()
        parts = [] if guard else re.split(r"(?<=[.!?:;])\s+(?=[A-Z(\[])", text)
        sentence = " ".join(next((part for part in parts if failed.astext() in part), text).split())
        app.failed_sentences.append(f"{page}, {place(failed)}: {failed['failed']}\n    in: {sentence}")


def above(node: nodes.Node) -> str:
    """The text of what stands before a guard."""
    while isinstance(node, nodes.comment) and node.parent.index(node):
        node = node.parent[node.parent.index(node) - 1]
    return "" if isinstance(node, nodes.comment) else node.astext()


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
    app.add_role("val", Val())
    app.add_directive("holds", Holds)
    app.connect("doctree-read", tell)
    app.connect("env-updated", stop)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
