"""{val}`sst2.difference:+.1f` writes a value; a {holds} block under a paragraph, what must be so for it to stand.

The names are those of `study/values` (see `rtx_core/report/values.py`).  Where a value cannot be computed, a condition
does not hold or a cell could not be run (`undrawn`), the place is marked, a line at the top of its page counts the
marks, and `sentences.txt` beside the built book lists them: file, line, sentence, and what the records say.
"""

import json
import re
from pathlib import Path

import execution
from docutils import nodes
from docutils.utils import get_source_line
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

from rtx_core.errors import RtxError
from rtx_core.paths import write_atomically
from rtx_core.report import values

TITLE = "The records at hand do not bear this out"
AROUND = (nodes.document, nodes.section, nodes.container, nodes.admonition, nodes.block_quote, nodes.list_item)
AROUND += (nodes.definition,)


def ask(kind: str, asked: str) -> tuple[str, str]:
    """What stands for a value, and why there is none; nothing for a condition, and why it does not hold."""
    try:
        if kind == "val":
            return values.shown(asked), ""
        return "", "" if values.look_up(asked) else f"{asked}: {values.parts(asked) or 'it does not hold'}"
    except RtxError as error:
        return "no value", f"{asked}: {str(error).removeprefix(f'{asked!r} ')}"


def quote(env: BuildEnvironment, kind: str, asked: str) -> tuple[str, str]:
    """The answer, which the page remembers."""
    answer = env.quoted.setdefault(env.docname, {})[kind, asked] = ask(kind, asked)
    return answer


class Val(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list]:
        shown, why = quote(self.env, "val", self.text)
        if not why:
            return [nodes.Text(shown)], []
        failed = nodes.inline("", shown, classes=["no-value"], failed=why)
        self.set_source_info(failed)
        return [failed], []


class Holds(SphinxDirective):
    """What the text above claims, a condition a line, a long one continued by indented lines; it shows nothing."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        asked = [quote(self.env, "holds", guard) for guard in values.conditions(self.content)]
        made = [nodes.comment("", why, failed=why) for _, why in asked if why]
        for node in made:
            self.set_source_info(node)
        return made


class Undrawn(SphinxDirective):
    """In the place of a cell's outputs, why there are none; the arguments are labels, so that references find them."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        why = " ".join(self.content)
        made = [nodes.comment("", why, failed=why, alone=True)]
        self.set_source_info(made[0])
        for label in self.arguments[0].split() if self.arguments else ():
            empty = nodes.figure("", nodes.paragraph(), nodes.caption("", "Not drawn."))
            if label.startswith("tab-"):
                row = nodes.row("", nodes.entry("", nodes.paragraph()))
                group = nodes.tgroup("", nodes.colspec(colwidth=1), nodes.tbody("", row), cols=1)
                empty = nodes.table("", nodes.title("", "Not made."), group)
            empty["names"].append(label)
            self.state.document.note_explicit_target(empty, empty)
            made.append(empty)
        return made


def guarded(failed: nodes.Node) -> nodes.Node:
    """The block that a failure is about: around a value, before a guard."""
    while not isinstance(failed.parent, AROUND):
        failed = failed.parent
    while isinstance(failed, nodes.comment) and not failed.get("alone") and failed.parent.index(failed):
        failed = failed.parent[failed.parent.index(failed) - 1]
    return failed


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Mark what fails on a page, count it at the top, and keep it for the list."""
    blocks: dict[int, tuple[nodes.Node, list]] = {}
    for failed in list(doctree.findall(lambda node: isinstance(node, nodes.Element) and "failed" in node)):
        block = guarded(failed)
        blocks.setdefault(id(block), (block, []))[1].append(failed)
    docname = app.env.docname
    page = app.env.doc2path(docname, base=False)
    listed = []
    for block, failures in blocks.values():
        whys = list(dict.fromkeys(failed["failed"] for failed in failures))
        sentence = " ".join(block.astext().split()) if not isinstance(block, nodes.comment) else ""
        listed.append((f"{page}, {place(failures[0])}", sentence, whys))
        items = [nodes.list_item("", nodes.paragraph("", why)) for why in whys]
        box = nodes.admonition("", nodes.title("", TITLE), nodes.bullet_list("", *items), classes=["unborne"])
        block["classes"].append("unborne-text")
        block.parent.insert(block.parent.index(block) + 1, box)
    for failed in list(doctree.findall(nodes.comment)):
        if "failed" in failed:
            failed.parent.remove(failed)
    app.env.unborne[docname] = listed
    if listed:
        n = f"{len(listed)} places on this page are" if len(listed) > 1 else "One place on this page is"
        count = nodes.paragraph("", f"{n} not borne out by the records at hand, and marked.", classes=["unborne"])
        (doctree.next_node(nodes.section) or doctree).insert(1, count)


def place(node: nodes.Node) -> str:
    """The line of a page, or cell and line of a notebook, as MyST-NB counts them."""
    line = get_source_line(node)[1] or 0
    return f"cell {line // 10000}, line {line % 10000}" if line >= 10000 else f"line {line}"


def find_changed(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """The pages that quote what another code or other records answer differently."""
    today = execution.code() + execution.digest(*execution.folders())
    before, env.asked_of = getattr(env, "asked_of", today), today
    env.quoted, env.unborne = (getattr(env, name, {}) for name in ("quoted", "unborne"))
    if before == today:
        return []
    return [page for page, quoted in env.quoted.items() if any(ask(*asked) != told for asked, told in quoted.items())]


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    for known in (env.quoted, env.unborne):
        known.pop(docname, None)


def tell(app: Sphinx, error: Exception | None) -> None:
    """Write the list beside the book; none where everything holds."""
    file = Path(app.outdir).parent / "sentences.txt"
    listed = [] if error else [one for page in sorted(app.env.unborne) for one in app.env.unborne[page]]
    text = ""
    for where, sentence, whys in listed:
        shown = sentence if len(sentence) < 300 else f"{sentence[:300]}…"
        text += "\n    ".join([where, *([shown] if shown else []), *(f"- {why}" for why in whys)]) + "\n"
    if listed:
        write_atomically(file, f"{text}{len(listed)} places of the book are not borne out by the records.\n".encode())
    else:
        file.unlink(missing_ok=True)


def fill(app: Sphinx, error: Exception | None) -> None:
    """The notebook that a page's button gives has the numbers in its text."""
    for docname, quoted in () if error else app.env.quoted.items():
        for page in Path(app.outdir, "_sources").glob(f"{docname}.ipynb*"):
            before = page.read_text(encoding="utf-8")
            notebook = json.loads(before)
            for cell in [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]:
                text = "".join(cell["source"])
                cell["source"] = re.sub(r"\{val\}`([^`]+)`", lambda val: quoted.get(("val", val[1]), val)[0], text)
            if (text := json.dumps(notebook, indent=1, ensure_ascii=False) + "\n") != before:
                write_atomically(page, text.encode())


def setup(app: Sphinx) -> dict:
    app.add_role("val", Val())
    app.add_directive("holds", Holds)
    app.add_directive("undrawn", Undrawn)
    app.connect("env-get-outdated", find_changed)
    app.connect("env-purge-doc", forget)
    app.connect("doctree-read", mark)
    app.connect("build-finished", tell)
    app.connect("build-finished", fill)
    return {"version": "2", "env_version": 2, "parallel_read_safe": False, "parallel_write_safe": True}
