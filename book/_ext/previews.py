"""What a link leads to, for the script that shows it before one goes there."""

import json
import posixpath
from pathlib import Path

from bs4 import BeautifulSoup

from rtx_core.paths import write_atomically

TARGETS = "figure[id], table[id], div.citation[id], dl.glossary dt[id]"
ROWS = 6  # of a table


def write_previews(root: Path, file: Path) -> None:
    """A script that holds those of the book in `root`; of pages no newer than the script,
    those that it holds already."""
    before, after = "window.PREVIEWS = ", ";\n"
    known, since = {}, 0.0
    if file.exists():
        text = file.read_text(encoding="utf-8")
        known, since = json.loads(text.removeprefix(before).removesuffix(after)), file.stat().st_mtime
    found = json.dumps(previews(root, known, since), ensure_ascii=False, indent=0)
    write_atomically(file, (before + found + after).encode())


def previews(root: Path, known: dict[str, str], since: float) -> dict[str, str]:
    """The HTML of each figure, table, source and term by "page.html#id"; {root} stands for the way to the start."""
    found = {}
    for path in sorted(root.rglob("*.html")):
        page = path.relative_to(root).as_posix()
        if page.startswith("_static/"):
            continue
        if path.stat().st_mtime < since:
            found |= {name: html for name, html in known.items() if name.startswith(f"{page}#")}
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
