"""Marks on sentences that the records at hand do not bear out, and the list of them.

Where a number is missing, a check fails (`quantities.py`) or a cell could not be run, the place is marked, and
`sentences.txt` beside the built book lists it: file, line, sentence, and why.  In a cell's output, which holds records
and data, only the markup of tables, figures, notes and references works.
"""

from pathlib import Path

from docutils import nodes
from docutils.utils import get_source_line
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import CustomReSTDispatcher, SphinxDirective, SphinxRole

from rtx_core.paths import write_atomically

TITLE = "The records at hand do not bear this out"
AROUND = (nodes.document, nodes.section, nodes.container, nodes.admonition, nodes.block_quote, nodes.list_item)
AROUND += (nodes.definition,)
# What works in a cell's output; everything else stands there as it is written.
DIRECTIVES = {"admonition", "dropdown", "figure", "note", "table"}
ROLES = {"cite:p", "cite:t", "cite:year", "eq", "numref", "ref", "term"}
RENDER = NbElementRenderer.render_markdown


REPLACED = "Expressions in text are no longer evaluated: quote a key, {eval}`q.key`, as the page Make it yours shows"


class Val(SphinxRole):
    """An expression of a notebook made for an earlier version: shown as it is written, and marked."""

    def run(self) -> tuple[list[nodes.Node], list]:
        failed = nodes.literal("", self.text, classes=["no-value"], failed=REPLACED)
        self.set_source_info(failed)
        return [failed], []


class Holds(SphinxDirective):
    """Conditions of a notebook made for an earlier version: they show nothing, and are marked."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        failed = nodes.comment("", REPLACED, failed=REPLACED)
        self.set_source_info(failed)
        return [failed]


class Written(SphinxDirective):
    """A directive that does not work here, as it is written."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.literal_block("", "\n".join([f"{{{self.name}}}", *self.content]), classes=["unparsed"])]


class OfOutputs(CustomReSTDispatcher):
    """The directives and roles of what a cell puts out."""

    def directive(self, name: str, *where: object) -> tuple:
        return super().directive(name, *where) if name in DIRECTIVES else (Written, [])

    def role(self, name: str, *where: object) -> tuple:
        return super().role(name, *where) if name in ROLES else (written, [])


def written(name: str, raw: str, text: str, *where: object) -> tuple[list[nodes.Node], list]:
    return [nodes.literal("", f"{{{name}}}`{text}`", classes=["unparsed"])], []


def render_output(renderer: NbElementRenderer, data: MimeData) -> list[nodes.Element]:
    with OfOutputs():
        return RENDER(renderer, data)


def guarded(failed: nodes.Node) -> nodes.Node:
    """The block that a failure is about: around a value, before a guard."""
    while not isinstance(failed.parent, AROUND):
        failed = failed.parent
    while isinstance(failed, nodes.comment) and not failed.get("alone") and failed.parent.index(failed):
        failed = failed.parent[failed.parent.index(failed) - 1]
    return failed


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Mark what fails on a page, and keep it for the list; in the place of a failed cell's traceback stands its end."""
    why = ""
    for trace in [block for block in doctree.findall(nodes.literal_block) if "traceback" in block["classes"]]:
        end = trace.astext().strip().splitlines()[-1].removeprefix("RtxError: ")
        why = why if why and end.startswith("NameError") else end  # it lacks what the cell before it did not make
        failed = nodes.comment("", why, failed=why, alone=True)
        failed.source, failed.line = trace.source, trace.line
        trace.replace_self(failed)
    blocks: dict[int, tuple[nodes.Node, list]] = {}
    for failed in list(doctree.findall(lambda node: isinstance(node, nodes.Element) and "failed" in node)):
        block = guarded(failed)
        blocks.setdefault(id(block), (block, []))[1].append(failed)
    page, listed = app.env.doc2path(app.env.docname, base=False), []
    for block, failures in blocks.values():
        whys = list(dict.fromkeys(failed["failed"] for failed in failures))
        sentence = "" if isinstance(block, nodes.comment) else " ".join(block.astext().split())
        listed.append((f"{page}, {place(failures[0])}", sentence, whys))
        items = [nodes.list_item("", nodes.paragraph("", why)) for why in whys]
        box = nodes.admonition("", nodes.title("", TITLE), nodes.bullet_list("", *items), classes=["unborne"])
        block["classes"].append("unborne-text")
        block.parent.insert(block.parent.index(block) + 1, box)
    for failed in [node for node in doctree.findall(nodes.comment) if "failed" in node]:
        failed.parent.remove(failed)
    app.env.metadata[app.env.docname]["unborne"] = listed


def place(node: nodes.Node) -> str:
    """The line of a page, or cell and line of a notebook, as MyST-NB counts them."""
    line = get_source_line(node)[1] or 0
    return f"cell {line // 10000}, line {line % 10000}" if line >= 10000 else f"line {line}"


def undrawn(app: Sphinx, env: BuildEnvironment, node: nodes.Element, shown: nodes.Node) -> nodes.Node | None:
    """A reference to what no cell drew is no warning where a place is marked, which then says why."""
    told = any(known.get("unborne") for known in env.metadata.values())
    return nodes.inline("", "(not drawn)") if told and node["reftarget"].startswith(("fig-", "tab-")) else None


def tell(app: Sphinx, error: Exception | None) -> None:
    """Write the list beside the book; none where everything holds."""
    file = Path(app.outdir).parent / "sentences.txt"
    pages = [] if error else sorted(app.env.metadata)
    listed = [one for page in pages for one in app.env.metadata[page].get("unborne", ())]
    text = ""
    for where, sentence, whys in listed:
        shown = sentence if len(sentence) < 300 else f"{sentence[:300]}…"
        text += "\n    ".join([where, *([shown] if shown else []), *(f"- {why}" for why in whys)]) + "\n"
    file.unlink(missing_ok=True)
    if listed:
        write_atomically(file, f"{text}{len(listed)} places of the book are not borne out by the records.\n".encode())


def setup(app: Sphinx) -> dict:
    app.setup_extension("outputs")
    NbElementRenderer.render_markdown = render_output
    app.add_role("val", Val())
    app.add_directive("holds", Holds)
    app.connect("doctree-read", mark)
    app.connect("missing-reference", undrawn)
    app.connect("build-finished", tell)
    return {"version": "3", "parallel_read_safe": False, "parallel_write_safe": True}
