"""What a link leads to, for the script that shows it before one goes there."""

import posixpath
from pathlib import Path

from bs4 import BeautifulSoup

TARGETS = "figure[id], table[id], div.citation[id], dl.glossary dt[id]"
ROWS = 6  # of a table


def previews(root: Path) -> dict[str, str]:
    """The HTML of each figure, table, source and term by "page.html#id"; {root} stands for the way to the start."""
    found = {}
    for path in sorted(root.rglob("*.html")):
        page = path.relative_to(root).as_posix()
        if page.startswith("_static/"):
            continue
        for target in BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select(TARGETS):
            name = f"{page}#{target['id']}"
            found[name] = preview(target, posixpath.dirname(page))
    return found


def preview(target, folder: str) -> str:
    """What is at a target of a page in `folder`, without ids, links and most rows of a table."""
    if target.name == "dt":
        target = BeautifulSoup(
            f"<p><b>{target.get_text(' ', strip=True)}</b></p>{target.find_next('dd')}", "html.parser"
        )
    for part in target.select(".headerlink, .backrefs, .label, .made, script"):
        part.decompose()
    for row in target.select("tbody tr")[ROWS:]:
        row.decompose()
    for image in target.select("img[src]"):
        image["src"] = "{root}" + posixpath.normpath(posixpath.join(folder, image["src"]))
    for part in [target, *target.select("[id]")]:
        part.attrs.pop("id", None)
    for link in target.select("a"):
        link.unwrap()
    return str(target)
