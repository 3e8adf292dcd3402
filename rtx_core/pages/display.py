"""How a table, a figure or a line of text reaches a page.

The book renders the `text/markdown` form, a MyST directive, which it numbers, captions and can refer to.  JupyterLab
and the notebook that papermill saves show the `text/html` form.  Captions and notes are MyST, written by the author;
cells are data, so they are escaped and show as they are, whatever is in them.
"""

import base64
import io
import json
import re
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING

import pandas as pd

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, write_atomically

if TYPE_CHECKING:  # a page without a figure does not wait for matplotlib
    from matplotlib.figure import Figure

PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# A cell that reads as a number: "12", "-0.3", "86.1 ± 0.4", "1e-05", "11.0 M", "1,024 ms".
NUMBER = re.compile(r"[^A-Za-z]*\d([^A-Za-z]|e[-+]|E[-+])*[A-Za-z]{0,2}")
MISSING = "–"


@dataclass(frozen=True)
class Displayed:
    """One output in every form that a front end may ask for."""

    forms: dict[str, str]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return self.forms


def escape(text: object) -> str:
    """MyST that shows `text` as it is, on one line: no markup, role, math, link or cell border in it has any effect."""
    return PUNCTUATION.sub(r"\\\1", one_line(text))


def text(markdown: str) -> Displayed:
    """A paragraph, or a few, of MyST."""
    return Displayed({"text/markdown": markdown, "text/plain": markdown})


def table(frame: pd.DataFrame, *, caption: str, label: str, note: str = "") -> Displayed:
    """A numbered table: the frame's columns, not its index.  Columns of numbers are aligned right.

    Whole numbers get thousands separators, floats four significant digits, and what is missing a dash; a column that
    wants another format is made of strings.
    """
    check(label, "tab")
    if not len(frame.columns):
        raise RtxError(f"Table {label!r} has no columns: got an empty frame, expected at least one column.")
    caption, note = one_line(caption), one_line(note)
    head = [one_line(name) for name in frame.columns]
    columns = [[show(value) for value in frame.iloc[:, n]] for n in range(len(head))]
    rows = list(zip(*columns))
    align = ["right" if is_numeric(column) else "left" for column in columns]

    rules = ["--:" if side == "right" else ":--" for side in align]
    grid = [map(escape, head), rules, *(map(escape, row) for row in rows)]
    lines = [f":::{{table}} {caption}", f":name: {label}", "", *(f"| {' | '.join(line)} |" for line in grid), ":::"]
    markdown = "\n".join(lines + (["", "{.table-note}", note] if note else []))

    def html_row(tag: str, cells) -> str:
        styled = (f'<{tag} style="text-align: {side}">{escape_html(cell)}</{tag}>' for side, cell in zip(align, cells))
        return f"<tr>{''.join(styled)}</tr>"

    body = "\n".join(html_row("td", row) for row in rows)
    html = (
        f"<table><caption>{escape_html(caption)}</caption>\n"
        f"<thead>{html_row('th', head)}</thead>\n<tbody>{body}</tbody></table>"
        + (f"\n<p><small>{escape_html(note)}</small></p>" if note else "")
    )
    plain = f"{caption}\n{pd.DataFrame(rows, columns=head).to_string(index=False)}"
    return Displayed({"text/markdown": markdown, "text/html": html, "text/plain": plain})


def figure(fig: "Figure", *, caption: str, label: str, alt: str) -> Displayed:
    """A numbered figure, saved as `book/figures/<label>.svg` for a screen and `.pdf` for print.  `alt` tells what the figure shows."""
    check(label, "fig")
    caption, alt = one_line(caption), one_line(alt)
    if not alt:
        raise RtxError(f"Figure {label!r} has no alt text: say in a sentence or two what a reader would see in it.")
    drawn = draw(fig)
    for kind, content in drawn.items():
        path = REPOSITORY / "book" / "figures" / f"{label}.{kind}"
        if not path.exists() or path.read_bytes() != content:  # an untouched file does not make its page stale
            write_atomically(path, content)
    options = [f":name: {label}", f":alt: {json.dumps(alt, ensure_ascii=False)}"]
    markdown = "\n".join([f":::{{figure}} /figures/{label}.*", *options, "", caption, ":::"])
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn['svg']).decode()}"
    image = f'<img src="{source}" alt="{escape_html(alt)}" style="max-width: 100%">'
    html = f"<figure>{image}<figcaption>{escape_html(caption)}</figcaption></figure>"
    return Displayed({"text/markdown": markdown, "text/html": html, "text/plain": f"{caption}\n[{alt}]"})


UNDATED = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}


def draw(fig: "Figure") -> dict[str, bytes]:
    """The figure in both kinds of file, the same bytes for the same figure; letters are outlines in the SVG, so it needs no font."""
    import matplotlib
    import matplotlib.pyplot as plt

    drawn = {}
    with matplotlib.rc_context({"svg.hashsalt": "rtx", "svg.fonttype": "path"}):
        for kind, metadata in UNDATED.items():
            buffer = io.BytesIO()
            fig.savefig(buffer, format=kind, bbox_inches="tight", metadata=metadata)
            drawn[kind] = buffer.getvalue()
    plt.close(fig)
    return drawn


def check(label: str, kind: str) -> None:
    if not re.fullmatch(rf"{kind}-[a-z0-9.-]+", label):
        raise RtxError(f"Bad label {label!r}: expected {kind}- and small letters, digits, dots, hyphens, like '{kind}-sst2'.")


def one_line(text: object) -> str:
    """The text with every run of white space and control characters (line breaks too) made one blank."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", str(text)).split())


def show(value: object) -> str:
    """A cell's text."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if pd.api.types.is_integer(value):
        return f"{value:,}"
    if pd.api.types.is_float(value):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return one_line(value)


def is_numeric(column: list[str]) -> bool:
    """Whether every cell that is not missing reads as a number."""
    present = [cell for cell in column if cell not in ("", MISSING, "-")]
    return bool(present) and all(NUMBER.fullmatch(cell) for cell in present)
