"""Checks a built book as a reader without a network meets it: `python tests/check_html.py _build/html`."""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

# What a browser fetches by itself, beside what has a `src`, when it opens a page.
LOADED_LINKS = {"stylesheet", "preload", "modulepreload", "icon", "shortcut", "manifest", "preconnect", "dns-prefetch"}
REMOTE = re.compile(r"(https?:)?//", re.IGNORECASE)
REMOTE_CODE = re.compile(r"""(import\b[^;]*|\.src\s*=\s*|importScripts\()["'](https?:)?//""")
REMOTE_STYLE = re.compile(r"""(url\(|@import)\s*["']?(https?:)?//""")
ERROR = re.compile(r"Traceback \(most recent call last\)|CellExecutionError")
MARKUP = re.compile(r":::|\{(val|holds|numref|term|cite:[pt])\}|\[\]\(|⟦")  # of MyST: a reader never sees it


def problems(root: Path) -> list[str]:
    """Everything wrong with the html under a folder, one line each."""
    root = root.resolve()
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.relative_to(root).parts]
    pages = {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in files}
    anchors = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    found = [] if (root / "index.html").is_file() else ["there is no index.html"]
    for path, page in pages.items():
        complaints = [*loads(page), *links(path, page, anchors), *shown(page)]
        found += [f"{path.relative_to(root)}: {complaint}" for complaint in complaints]
    for style in root.rglob("*.css"):
        if match := REMOTE_STYLE.search(style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(root)}: loads from another host: {match[0]}")
    return found


def loads(page):
    """Resources that would come from another host."""
    for tag in page.select("[src], object[data]"):
        if REMOTE.match(target := tag.get("src") or tag["data"]):
            yield f"<{tag.name}> loads {target}"
    for link in page.find_all("link", href=REMOTE):
        if LOADED_LINKS & set(link.get("rel", ())):
            yield f"<link> loads {link['href']}"
    for script in page.find_all("script", src=False):
        if match := REMOTE_CODE.search(script.get_text()):
            yield f"a script loads from another host: {match[0]}"


def links(path, page, anchors):
    """Internal links and resources that lead nowhere."""
    targets = [(tag, tag[attribute]) for attribute in ("href", "src") for tag in page.find_all(**{attribute: True})]
    for tag, target in targets:
        url = urlsplit(target)
        if url.scheme or url.netloc or target == "#":
            continue
        file = (path.parent / unquote(url.path)).resolve() if url.path else path
        if not file.is_file():
            yield f"<{tag.name}> leads to {target}, which does not exist"
        elif url.fragment and file in anchors and unquote(url.fragment) not in anchors[file]:
            yield f"<{tag.name}> leads to {target}, which has no such anchor"


def shown(page):
    """Cells that failed, images without words, and markup that was not understood."""
    yield from (f"no alt text: {img.get('src')}" for img in page.find_all("img") if not img.get("alt", "").strip())
    if match := ERROR.search(page.get_text()):
        yield f"an error is shown: {match[0]}"
    yield from (f"a warning is shown: {each.get_text().strip()[:80]}" for each in page.select(".output.stderr"))
    yield from (f"no markup for an output: {each.get_text().strip()[:80]}" for each in page.select(".unparsed"))
    if not all(head.get_text().strip() for head in page.select("th")):
        yield "a table's header is empty"
    for tag in page.find_all(["pre", "code", "script", "style"]):
        tag.extract()
    if match := MARKUP.search(page.get_text()):
        yield f"markup is shown: {match[0]}"


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or f"{sys.argv[1]} is complete: nothing missing, nothing from another host.")
    sys.exit(bool(found))
