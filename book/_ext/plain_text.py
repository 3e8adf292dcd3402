"""`llms.txt` and `llms-full.txt` beside the built pages: a list of them, and their text with the numbers filled in, for
readers that are programs."""

import re
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

from rtx_core.paths import write_atomically

CODE = (
    "details.hide, div.cell_input, div.made, script, style, a.headerlink, .toctree-wrapper, details.dropdown > summary"
)


def text_of(page: Path) -> str:
    """The text of a built page, without code: a line for each block, cells of a table set apart by bars."""
    html = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    article = html.find("article") or html.find(attrs={"role": "main"})
    for part in article.select(CODE):
        part.decompose()
    for level in range(1, 7):
        for heading in article.find_all(f"h{level}"):
            heading.string = f"{'#' * level} {heading.get_text(' ', strip=True)}"
    for row in article.find_all("tr"):
        row.string = " | ".join(cell.get_text(" ", strip=True) for cell in row.find_all(["th", "td"]))
    for block in article.find_all(["p", "li", "tr", "figcaption", "caption", "pre", "dt", "dd"]):
        block.insert_after("\n")
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in article.get_text().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    pages = [name for name in app.env.found_docs if Path(app.outdir, f"{name}.html").exists()]
    order = [app.config.root_doc, *below(app, app.config.root_doc)]
    pages.sort(key=lambda name: (order.index(name) if name in order else len(order), name))
    titles = {name: app.env.titles[name].astext() for name in pages}
    index = [f"# {app.config.html_title}", "", *(f"- [{titles[name]}]({name}.html)" for name in pages), ""]
    texts = [f"<!-- {name}.html -->\n\n{text_of(Path(app.outdir, f'{name}.html'))}\n" for name in pages]
    write_atomically(Path(app.outdir, "llms.txt"), "\n".join(index).encode())
    write_atomically(Path(app.outdir, "llms-full.txt"), "\n\n".join(texts).encode())


def below(app: Sphinx, name: str) -> list[str]:
    """The pages under one, in the order of the table of contents."""
    return [page for child in app.env.toctree_includes.get(name, []) for page in (child, *below(app, child))]


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", write, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
