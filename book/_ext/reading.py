"""What helps a reader along: links from each figure and table to the records and the notebook that made it, previews of
what a link leads to, one script for charts, and what a shared link shows.  All of it works from a disk."""

import re
import shutil
from html import escape
from pathlib import Path

import vl_convert
from bs4 import BeautifulSoup
from docutils import nodes
from previews import write_previews
from sphinx.application import Sphinx

from rtx_core import paths

SHARED = "fig-facts-dissociation"  # the figure that stands for the book
# Light or dark as the reader's system has it; without a choice the theme writes an error to the console.
MODE = '<script>try { localStorage.mode ||= "auto"; } catch {}</script>\n'


def mark_outputs(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Below each figure and table of a notebook: its records, its notebook; of other pages: all runs, the source."""
    if app.builder.format != "html":
        return
    up = "../" * docname.count("/")
    found = provenance(doctree, up)
    source = app.env.doc2path(docname, base=False)
    for cell in list(doctree.findall(nodes.container)):
        made = [node for kind in (nodes.figure, nodes.table) for node in cell.findall(kind)]
        made = [node for node in made if node["ids"]]
        if cell.get("nb_element") != "cell_code" or not made:
            continue
        links = [("Records", "#provenance")] if found else []
        links += [("Notebook", f"{up}_sources/{source}")]
        put_below(made, links)
    if source.endswith(".md"):
        links = [("Records", f"{up}notebooks/runs.html")] if "notebooks/runs" in app.env.found_docs else []
        tables = [table for table in doctree.findall(nodes.table) if table["ids"]]
        put_below(tables, [*links, ("Source", f"{up}_sources/{source}")])


def put_below(made: list[nodes.Node], links: list[tuple[str, str]]) -> None:
    """A line of links, (name, address) each, below each of these."""
    html = " ".join(f'<a href="{escape(href)}">{name}</a>' for name, href in links)
    for node in made:
        mark = nodes.raw("", f'<div class="made">{html}</div>', format="html")
        node.parent.insert(node.parent.index(node) + 1, mark)


def provenance(doctree: nodes.document, up: str) -> bool:
    """Whether the page has a box of records; a table's row that is named after a record leads to its file."""
    for row in doctree.findall(nodes.row):
        for name in row[0].children[:1]:
            file = f"{name.astext()}.json"
            if re.fullmatch(r"[\w.-]+/[\w.-]+", file) and (paths.home() / "results" / file).is_file():
                link = nodes.reference("", name.astext(), refuri=f"{up}records/{file}", internal=True)
                name.children = []
                name += link
    boxes = [box for box in doctree.findall(nodes.admonition) if box[0].astext().startswith("Provenance")]
    for box in boxes[:1]:
        box["ids"].append("provenance")
    return bool(boxes)


def describe(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Title, description (the page's finding) and picture, for whoever gets the link."""
    context["metatags"] = context.get("metatags", "") + MODE
    if doctree is None:
        return
    bold = [node.astext() for node in doctree.findall(nodes.strong) if len(node.astext()) > 40]
    plain = [node.astext() for node in doctree.findall(nodes.paragraph)]
    root = app.config.html_baseurl or "../" * page.count("/")
    content = {
        "og:type": "article",
        "og:site_name": app.config.project,
        "og:title": BeautifulSoup(context["title"], "html.parser").get_text(),
        "og:description": " ".join([*bold, *plain, app.config.project][0].split())[:300],
        "og:image": f"{root}_static/share.png",
        "twitter:card": "summary_large_image",
    }
    tags = [f'<meta property="{name}" content="{escape(text)}">' for name, text in content.items()]
    tags.append(f'<meta name="description" content="{escape(content["og:description"])}">')
    context["metatags"] += "\n".join(tags)


def write_files(app: Sphinx, error: Exception | None) -> None:
    """The records, the scripts of *Try it* (those in `_static` are loaded by every page), the chart library, the shared
    picture and the previews, beside the pages."""
    if error or app.builder.format != "html":
        return
    root = Path(app.outdir)
    shutil.copytree(
        paths.home() / "results", root / "records", ignore=shutil.ignore_patterns("*.npz"), dirs_exist_ok=True
    )
    static, demo = root / "_static", Path(app.srcdir, "demo")
    if demo.exists():
        shutil.copytree(demo, static / "demo", ignore=shutil.ignore_patterns("*.json"), dirs_exist_ok=True)
    charts, version = static / "vega.js", f"// vl-convert {vl_convert.__version__}\n"
    if not charts.exists() or not charts.read_text(encoding="utf-8").startswith(version):  # it takes seconds
        paths.write_atomically(charts, f"{version}(() => {{{vl_convert.javascript_bundle()}}})();".encode())
    if (drawn := Path(app.srcdir, "figures", f"{SHARED}.svg")).exists():
        head, _, rest = drawn.read_text(encoding="utf-8").partition("<defs>")
        white = f'{head}<rect width="100%" height="100%" fill="white"/><defs>{rest}'
        (static / "share.png").write_bytes(vl_convert.svg_to_png(white, scale=2))
    write_previews(root, static / "previews.js")


def setup(app: Sphinx) -> dict:
    for event in ("env-before-read-docs", "doctree-resolved"):  # scripts of another host, written twice
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    app.config.html_context.setdefault("default_mode", "auto")  # without a mode the theme complains
    app.connect("doctree-resolved", mark_outputs)
    app.connect("html-page-context", describe)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
