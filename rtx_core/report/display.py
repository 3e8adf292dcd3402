"""How a table, a figure, a sample or a line of text reaches a page.

The book renders the `text/markdown` form, a MyST directive, which it numbers, captions and can refer to.
JupyterLab and a notebook that papermill saves show the `text/html` form.  Captions and notes are MyST,
written by the author; cells and samples are data, so they show as they are, whatever is in them.
"""

import base64
import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING

import pandas as pd

from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY, write_atomically

if TYPE_CHECKING:  # a page without a figure does not wait for matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOOK = "RTX_BOOK"  # set while the book is built
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# Control characters, separators of lines, and marks that turn the direction of writing or cannot be seen.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
# A cell that reads as a number: "12", "−0.3", "86.1 (85.2 to 87.0)", "1e-05", "11.0 M", "1,024 ms".
NUMBER = re.compile(r"[^A-Za-z]*\d([^A-Za-z]|e[-+]|E[-+]| to )*[A-Za-z]{0,2}")
MISSING = "–"
UNDATED = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class Displayed:
    """One output in every form that a front end may ask for."""

    forms: dict[str, str]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return self.forms

    @property
    def markdown(self) -> str:
        return self.forms["text/markdown"]


def markdown(text: str) -> Displayed:
    """A few paragraphs of MyST, written by the author."""
    return Displayed({"text/markdown": text, "text/plain": text})


def table(frame: pd.DataFrame, *, label: str, caption: str, note: str = "", wide: bool = False) -> Displayed:
    """A numbered table of the frame's columns (not its index); the first column stays in view when a reader
    scrolls sideways.

    Columns of numbers are aligned right.  Whole numbers get thousands separators, floats four significant
    digits, what is missing a dash; a column that wants another format is made of strings.  `wide` lets it
    reach into the right margin.
    """
    check(label, "tab")
    if not len(frame.columns):
        raise RtxError(f"Table {label!r} has no columns: got an empty frame, expected at least one column.")
    caption = one_line(caption)
    note = one_line(note)
    head = [one_line(name) for name in frame.columns]
    columns = [[show(value) for value in frame.iloc[:, n]] for n in range(len(head))]
    rows = list(zip(*columns))
    align = ["right" if is_numeric(column) else "left" for column in columns]
    rules = ["--:" if side == "right" else ":--" for side in align]
    grid = [[escape(cell) for cell in head], rules, *([escape(cell) for cell in row] for row in rows)]
    classes = "pinned full-width" if wide else "pinned"
    lines = [f":::{{table}} {caption}", f":name: {label}", f":class: {classes}", ""]
    lines += [f"| {' | '.join(line)} |" for line in grid] + [":::"]
    if note:
        lines += ["", "{.table-note}", note]

    def html_row(tag: str, cells: Iterable[str]) -> str:
        styled = (
            f'<{tag} style="text-align: {side}">{escape_html(cell)}</{tag}>'
            for side, cell in zip(align, cells)
        )
        return f"<tr>{''.join(styled)}</tr>"

    body = "\n".join(html_row("td", row) for row in rows)
    top = f"<caption>{escape_html(caption)}</caption>\n<thead>{html_row('th', head)}</thead>"
    html = f"<table>{top}\n<tbody>{body}</tbody></table>"
    if note:
        html += f"\n<p><small>{escape_html(note)}</small></p>"
    plain = f"{caption}\n{pd.DataFrame(rows, columns=head).to_string(index=False)}"
    return Displayed({"text/markdown": "\n".join(lines), "text/html": html, "text/plain": plain})


def figure(drawn: "Figure | Axes | object", *, label: str, caption: str, alt: str) -> Displayed:
    """A numbered figure of a matplotlib figure, of axes, or of a seaborn grid; `alt` tells what a reader
    would see in it.

    While the book is built it is saved as `book/figures/<label>.svg` for a screen and `.pdf` for print;
    elsewhere no file is written.
    """
    check(label, "fig")
    caption = one_line(caption)
    alt = one_line(alt)
    if not alt:
        raise RtxError(
            f"Figure {label!r} has no alt text: say in a sentence or two what a reader would see in it."
        )
    files = draw(getattr(drawn, "figure", drawn))
    for kind, content in files.items() if os.environ.get(BOOK) else ():
        path = REPOSITORY / "book" / "figures" / f"{label}.{kind}"
        if not path.exists() or path.read_bytes() != content:  # an untouched file keeps its date
            write_atomically(path, content)
    options = [f":name: {label}", f":alt: {json.dumps(alt, ensure_ascii=False)}", ":class: dark-light"]
    myst = "\n".join([f":::{{figure}} /figures/{label}.*", *options, "", caption, ":::"])
    source = f"data:image/svg+xml;base64,{base64.b64encode(files['svg']).decode()}"
    image = f'<img src="{source}" alt="{escape_html(alt)}" style="max-width: 100%; background: white">'
    html = f"<figure>{image}<figcaption>{escape_html(caption)}</figcaption></figure>"
    return Displayed({"text/markdown": myst, "text/html": html, "text/plain": f"{caption}\n[{alt}]"})


def draw(fig: "Figure") -> dict[str, bytes]:
    """The figure as svg and pdf, the same bytes for the same figure; letters of the svg are outlines, so it
    needs no font."""
    import matplotlib
    import matplotlib.pyplot as plt

    files = {}
    with matplotlib.rc_context({"svg.hashsalt": "rtx", "svg.fonttype": "path"}):
        for kind, metadata in UNDATED.items():
            buffer = io.BytesIO()
            fig.savefig(buffer, format=kind, bbox_inches="tight", transparent=True, metadata=metadata)
            files[kind] = buffer.getvalue()
    plt.close(fig)
    return files


def samples(texts: Mapping[str, str] | Iterable[tuple[str, str]]) -> Displayed:
    """Texts that a model wrote or that a data set holds, each under its heading, to the letter: {heading:
    text}, or pairs.

    Each stands in a fence that is longer than any in the text, so that nothing in a text can end it or be
    read as markup.
    """
    pairs = list(texts.items() if isinstance(texts, Mapping) else texts)
    lines = []
    parts = []
    for heading, text in pairs:
        text = "\n".join(
            CONTROL.sub(" ", line) for line in re.split("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", str(text))
        )
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        lines += [f"**{escape(heading)}**", "", f"{fence}text", text, fence, ""]
        parts.append(f"<p><b>{escape_html(one_line(heading))}</b></p><pre>{escape_html(text)}</pre>")
    plain = "\n\n".join(f"{one_line(heading)}\n{text}" for heading, text in pairs)
    return Displayed({"text/markdown": "\n".join(lines), "text/html": "\n".join(parts), "text/plain": plain})


def escape(text: object) -> str:
    """MyST that shows `text` as it is, on one line: no markup, role, math, link or cell border in it has any
    effect."""
    return PUNCTUATION.sub(r"\\\1", one_line(text))


def one_line(text: object) -> str:
    """The text with every run of white space and control characters (line breaks too) made one blank.

    A no-break space inside, as before %, stays.
    """
    return " ".join(re.split(r"[^\S\u202f\u00a0]+", CONTROL.sub(" ", str(text)))).strip()


def show(value: object) -> str:
    """A cell's text."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
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


def check(label: str, kind: str) -> None:
    """Raises RtxError where a label is not one that a page can refer to."""
    if not re.fullmatch(rf"{kind}-[a-z0-9.-]+", label):
        raise RtxError(
            f"Bad label {label!r}: expected small letters, digits, dots, hyphens, like '{kind}-sst2'."
        )
