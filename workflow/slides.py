"""Six figures of the built book, each with the first sentence of its caption, to present: `make slides`.

Writes _build/slides.html, one file with a slide on each page, and prints it to _build/slides.pdf where Chromium is.
What a slide says is what the built page says, so it follows the records.
"""

import base64
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bs4 import BeautifulSoup

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, write_atomically

FIGURES = {  # figure -> its page
    "fig-looping-khop": "notebooks/looping",
    "fig-inside-patch": "notebooks/inside",
    "fig-facts-exposures": "notebooks/facts",
    "fig-state-walk": "notebooks/state-tracking",
    "fig-iso-depth": "notebooks/iso-depth",
    "fig-conclusions-gap": "notebooks/conclusions",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
@page { size: 13.33in 7.5in; margin: 0 }
body { margin: 0; font-family: sans-serif }
section { width: 13.33in; height: 7.5in; box-sizing: border-box; padding: 0.6in; display: flex; flex-direction: column;
          break-after: page }
h1 { font-size: 30px; font-weight: 600; margin: 0 0 0.3in }
img { flex: 1; min-height: 0; object-fit: contain }
footer { font-size: 15px; color: #5c6370; margin-top: 0.2in }
"""


def slide(folder: Path, page: str, figure: str) -> str:
    """A figure of a built page, as a section."""
    path = folder / f"{page}.html"
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") if path.exists() else None
    if not (element := soup and soup.find(id=figure)):
        raise RtxError(f"The built book has no figure {figure} on {page}; type: make book")
    words = element.find(class_="caption-text").get_text(" ", strip=True)
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", re.sub(r"\s+([.,;:)])", r"\1", words))[0]
    image = (path.parent / element.img["src"]).resolve()
    data = base64.b64encode(image.read_bytes()).decode()
    picture = f'<img alt="{html.escape(element.img.get("alt", ""))}" src="data:image/svg+xml;base64,{data}">'
    title = html.escape(soup.h1.get_text(" ", strip=True).rstrip("#"))
    return f"<section><h1>{html.escape(sentence)}</h1>{picture}<footer>{title}</footer></section>"


def main() -> None:
    built = REPOSITORY / "_build"
    slides = "\n".join(slide(built / "html", page, figure) for figure, page in FIGURES.items())
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Slides</title><style>{STYLE}</style>'
    write_atomically(built / "slides.html", f"{head}\n{slides}\n</html>\n".encode())
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        printing = [browser, *options, f"--print-to-pdf={built / 'slides.pdf'}", (built / "slides.html").as_uri()]
        subprocess.run(printing, check=True, capture_output=True, timeout=120)
    print(f"The slides: file://{built / 'slides'}.{'pdf' if browser else 'html'}")


if __name__ == "__main__":
    try:
        main()
    except RtxError as error:
        sys.exit(str(error))
