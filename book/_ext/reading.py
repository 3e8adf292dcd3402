"""What helps a reader along: links from each figure and table to the records and the notebook that made it, previews of
what a link leads to, and one script for charts.  All of it works from a disk."""

import json
import posixpath
import re
import shutil
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path

import vl_convert
from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx

from rtx_core import paths, records
from rtx_core.foreign import MAX_JSON_BYTES, read_bytes

ROWS = 6  # of a table in a preview
# Light or dark as the reader's system has it; without a choice the theme writes an error to the console.
MODE = '<script>try { localStorage.mode ||= "auto"; } catch {}</script>\n'


def set_mode(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    context["metatags"] = context.get("metatags", "") + MODE


def mark_outputs(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Below each figure and table of a notebook: its records, its notebook."""
    if app.builder.format != "html":
        return
    up, source = "../" * docname.count("/"), app.env.doc2path(docname, base=False)
    links = {"Records": "#provenance"} if provenance(doctree, up) else {}
    links["Notebook"] = f"{up}_sources/{source}"
    html = " ".join(f'<a href="{escape(href)}">{name}</a>' for name, href in links.items())
    for cell in [cell for cell in doctree.findall(nodes.container) if cell.get("nb_element") == "cell_code"]:
        for node in [node for kind in (nodes.figure, nodes.table) for node in cell.findall(kind) if node["ids"]]:
            mark = nodes.raw("", f'<div class="made">{html}</div>', format="html")
            node.parent.insert(node.parent.index(node) + 1, mark)


def keep_together(app: Sphinx, doctree: nodes.document) -> None:
    """A percent sign stays on the line of its number, which may be a node of its own."""
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, (nodes.FixedTextElement, nodes.literal, nodes.math)):
            text.parent.replace(text, nodes.Text(re.sub(r"(^|\d) %", "\\1\u202f%", text)))


def provenance(doctree: nodes.document, up: str) -> bool:
    """Whether the page has a box of records; a table's row that is named after a record leads to its file."""
    for row in doctree.findall(nodes.row):
        for name in row[0].children[:1]:
            file = f"{name.astext()}.json"
            if re.fullmatch(r"[\w.-]+/[\w.-]+", file) and records.read_or_none(records.folder() / file):
                link = nodes.reference("", name.astext(), refuri=f"{up}records/{file}", internal=True)
                name.children = []
                name += link
    boxes = [box for box in doctree.findall(nodes.admonition) if box[0].astext().startswith("Provenance")]
    for box in boxes[:1]:
        box["ids"].append("provenance")
    return bool(boxes)


def write_files(app: Sphinx, error: Exception | None) -> None:
    """The records, the scripts of *Try it* (those in `_static` are loaded by every page), the chart library and the
    previews, beside the pages."""
    if error or app.builder.format != "html":
        return
    root = Path(app.outdir)
    copy_records(root / "records")
    static, demo = root / "_static", Path(app.srcdir, "demo")
    if demo.exists():
        shutil.copytree(demo, static / "demo", dirs_exist_ok=True)
    charts, version = static / "vega.js", f"// vl-convert {vl_convert.__version__}\n"
    if not charts.exists() or not charts.read_text(encoding="utf-8").startswith(version):  # it takes seconds
        paths.write_atomically(charts, f"{version}(() => {{{vl_convert.javascript_bundle()}}})();".encode())
    shown = json.dumps(dict(previews(root)), ensure_ascii=False, indent=0)
    paths.write_atomically(static / "previews.js", f"window.PREVIEWS = {shown};\n".encode())


def copy_records(to: Path) -> None:
    """The files that can be read as records and measurements, and no other; what an older build copied goes."""
    shutil.rmtree(to, ignore_errors=True)
    results = records.folder()
    for path in filter(partial(records.read_or_none, measurement=True), records.paths_in(results)):
        copy = to / path.relative_to(results)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(read_bytes(path, MAX_JSON_BYTES))


def previews(root: Path) -> Iterator[tuple[str, str]]:
    """("page.html#id", HTML) of each figure, table, source and term of a book, for the script that shows what a link
    leads to: without ids, links and most rows of a table; {root} stands for the way to the start."""
    for path in sorted(path for path in root.rglob("*.html") if "_static" not in path.parts):
        page, soup = path.relative_to(root).as_posix(), BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for target in soup.select("figure[id], table[id], div.citation[id], dl.glossary dt[id]"):
            name = f"{page}#{target['id']}"
            if target.name == "dt":
                term = f"<p><b>{escape(target.get_text(' ', strip=True))}</b></p>{target.find_next('dd')}"
                target = BeautifulSoup(term, "html.parser")
            out = target.select(".headerlink, .backrefs, .label, .made, script")
            for part in [*out, *target.select("tbody tr")[ROWS:]]:
                part.decompose()
            for image in target.select("img[src]"):
                image["src"] = "{root}" + posixpath.normpath(posixpath.join(posixpath.dirname(page), image["src"]))
            for part in [target, *target.select("[id]")]:
                part.attrs.pop("id", None)
            for link in target.select("a"):
                link.unwrap()
            yield name, str(target)


def setup(app: Sphinx) -> dict:
    for event in ("env-before-read-docs", "doctree-resolved"):  # scripts of another host, written twice
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    app.config.html_context.setdefault("default_mode", "auto")  # without a mode the theme complains
    app.connect("doctree-read", keep_together)
    app.connect("doctree-resolved", mark_outputs)
    app.connect("html-page-context", set_mode)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
