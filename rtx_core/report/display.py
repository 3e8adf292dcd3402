"""How a table, a figure, a sample or a line of text reaches a page.

The book renders the `text/markdown` form, a MyST directive; JupyterLab shows the `text/html` form.  Captions and notes
are MyST, written by the author; cells, samples and what records hold are data, so they show as they are, whatever is in
them: `escape` and `for_script` alone put data into a page.
"""

import base64
import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import pandas as pd

from rtx_core.errors import RtxError
from rtx_core.paths import BOOK, REPOSITORY, home, write_atomically
from rtx_core.report.evidence import as_records, badge, device_of
from rtx_core.report.style import CONTROL, one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
# A cell that reads as a number: "12", "−0.3", "86.1 (85.2 to 87.0)", "1e-05", "11.0 M", "1,024 ms".
NUMBER = re.compile(r"[^A-Za-z]*\d([^A-Za-z]|e[-+]|E[-+]| to )*[A-Za-z]{0,2}")
MISSING = "–"
SOURCES = {"mirror": "local mirror", "embedded": "generated texts", "synthetic": "generated texts"}


@dataclass(frozen=True)
class Displayed:
    """One output in every form that a front end may ask for."""

    forms: dict[str, str]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return self.forms

    def __str__(self) -> str:
        return self.forms["text/plain"]

    @property
    def markdown(self) -> str:
        return self.forms["text/markdown"]


def markdown(text: str) -> Displayed:
    """A few paragraphs of MyST, written by the author."""
    return Displayed({"text/markdown": text, "text/plain": text})


def table(frame: pd.DataFrame, *, label: str, caption: str, note="", wide=False, board=False) -> Displayed:
    """A numbered table of the frame's columns (not its index), the first of which stays in view beside the others.

    Columns of numbers are aligned right.  Whole numbers get thousands separators, floats four significant digits, what
    is missing a dash; a column that wants another format is made of strings, one with links of `markdown`.  `wide` lets
    it reach into the right margin; a `board` can be filtered and sorted (`book/_static/board.js`).
    """
    caption, note = one_line(caption), one_line(note)
    head = [one_line(name) for name in frame.columns]
    columns = [[show(value) for value in column] for _, column in frame.items()]
    rules = ["--:" if is_numeric(column) else ":--" for column in columns]
    marked = [
        [v.markdown if isinstance(v, Displayed) else escape(show(v)) for v in series] for _, series in frame.items()
    ]
    top, *rows = [[escape(name) for name in head], *zip(*marked)]
    wide = wide and sum(max(map(len, column)) for column in zip(head, *zip(*columns))) > 100  # letters; else it fits
    classes = f"pinned{' full-width' * wide}{' board' * board}"
    lines = [f":::{{table}} {caption}", f":name: {label}", f":class: {classes}", ""]
    lines += [f"| {' | '.join(row)} |" for row in (top, rules, *rows)] + [":::"]
    lines += ["", "{.table-note}", note] * bool(note)
    plain_table = pd.DataFrame(zip(*columns), columns=head)
    with pd.option_context("display.max_colwidth", None):
        body = plain_table.to_html(index=False)
        html = f"<p>{escape_html(caption)}</p>\n{body}\n<p><small>{escape_html(note)}</small></p>"
    plain = f"{caption}\n{plain_table.to_string(index=False)}"
    return Displayed({"text/markdown": "\n".join(lines), "text/html": html, "text/plain": plain})


def figure(fig: Any, *, label: str, caption: str, alt: str, chart: Any = None, folded: str = "") -> Displayed:
    """A numbered figure of a matplotlib figure, of axes, or of a seaborn grid, saved as `book/figures/<label>.svg`
    while the book is built.  `alt` tells what a reader would see; an Altair `chart` takes its place for who asks.  In a
    closed box, if it is `folded` under a title."""
    caption, alt = one_line(caption), one_line(alt)
    if not alt:
        raise RtxError(f"Figure {label!r} has no alt text: say in a sentence what a reader would see in it.")
    fig = getattr(fig, "figure", fig)
    svg, broad = draw(fig), " broad" if fig.get_figwidth() > 5.7 else ""  # inches; on a telephone it scrolls
    path = REPOSITORY / "book" / "figures" / f"{label}.svg"
    same = path.exists() and path.read_bytes() == svg  # an untouched file keeps its date
    if os.environ.get(BOOK) and not same:
        write_atomically(path, svg)
    options = [f":name: {label}", f":alt: {json.dumps(alt, ensure_ascii=False)}", f":class: dark-light{broad}"]
    myst = "\n".join([f":::{{figure}} /figures/{label}.svg", *options, "", caption, ":::"])
    if chart is not None:
        myst += "\n\n" + for_script("chart", chart.to_dict(), label).markdown
    if folded:
        myst = f"::::{{dropdown}} {one_line(folded)}\n{myst}\n::::"
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    image = f'<img src="{source}" alt="{escape_html(alt)}" style="max-width: 100%; background: white">'
    html = f"<figure>{image}<figcaption>{escape_html(caption)}</figcaption></figure>"
    return Displayed({"text/markdown": myst, "text/html": html, "text/plain": f"{caption}\n[{alt}]"})


def for_script(kind: str, content: object, label: str) -> Displayed:
    """Data for a script of `book/_static`, which draws it at the figure or table of this label, or here.

    It is one line of ASCII without `<`, so no text in it can end the line or the element.
    """
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    script = f'<script type="application/json" class="{kind}" data-at="{label}">{data}</script>'
    return Displayed({"text/markdown": script, "text/plain": f"[{kind} of {label}]"})


def draw(fig: "Figure") -> bytes:
    """The figure as SVG, the same bytes for the same figure; its letters are outlines, so it needs no font.

    Its text is plain, whatever `$` and `\\` a name holds; only the powers that matplotlib writes on a logarithmic axis
    are mathematics.
    """
    import matplotlib
    import matplotlib.pyplot as plt
    from matplotlib.axis import Axis
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter, LogitFormatter

    buffer, kinds = io.BytesIO(), (LogFormatter, LogitFormatter)
    undated = {"Date": None, "Creator": None}
    with matplotlib.rc_context({"svg.hashsalt": "rtx", "svg.fonttype": "path", "text.parse_math": False}):
        for text in fig.findobj(Text):
            text.set_parse_math(False)
        axes: list[tuple[Axis, Literal["major", "minor"]]] = []
        for axis in fig.findobj(Axis):
            if isinstance(axis, Axis):
                axes.extend([(axis, "major"), (axis, "minor")])
        powers = [pair for pair in axes if isinstance(getattr(pair[0], f"get_{pair[1]}_formatter")(), kinds)]
        if powers:
            fig.draw_without_rendering()  # which makes the labels
        for label in [label for axis, level in powers for label in axis.get_ticklabels(which=level)]:
            label.set_parse_math(True)
        fig.savefig(buffer, format="svg", bbox_inches="tight", transparent=True, metadata=undated)
    plt.close(fig)
    return buffer.getvalue()


def samples(texts: Mapping[str, str]) -> Displayed:
    """Texts to the letter, each under its heading, in a fence longer than any in the text, which nothing can end."""
    lines, parts, plain = [], [], []
    for heading, text in texts.items():
        split = re.split("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", str(text))
        text = "\n".join(CONTROL.sub(" ", line) for line in split)
        fence = max(["``", *re.findall("`+", text)], key=len) + "`"
        lines += [f"**{escape(heading)}**", "", f"{fence}text", text, fence, ""]
        parts.append(f"<p><b>{escape_html(one_line(heading))}</b></p><pre>{escape_html(text)}</pre>")
        plain.append(f"{one_line(heading)}\n{text}\n")
    forms = {"text/markdown": lines, "text/html": parts, "text/plain": plain}
    return Displayed({form: "\n".join(content) for form, content in forms.items()})


def escape(text: object) -> str:
    """MyST that shows `text` as it is, on one line: no markup, role, math, link or cell border in it has any effect."""
    return PUNCTUATION.sub(r"\\\1", one_line(text))


def show(value: object) -> str:
    """A cell's text."""
    if isinstance(value, Displayed):
        return value.forms["text/plain"]
    if pd.api.types.is_scalar(value) and pd.isna(value) is True:
        return MISSING
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    if pd.api.types.is_integer(value):
        return f"{value:,}"
    if pd.api.types.is_float(value):
        return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e15 else f"{value:.4g}"
    return one_line(value)


def is_numeric(column: list[str]) -> bool:
    """Whether every cell that is not missing reads as a number."""
    present = [cell for cell in column if cell not in ("", MISSING, "-")]
    return bool(present) and all(map(NUMBER.fullmatch, present))


def provenance(runs: object, *, notebook: str = "") -> Displayed | None:
    """A folded box of the records, a row a machine: a link to each, minutes, last date, commits, and what is stale;
    then the line that runs the `notebook`.  Nothing where there is no record."""
    records = as_records(runs)
    if not records:
        return None
    rows = {}
    for record in records:
        rows.setdefault((device_of(record), record.stale_reason()), []).append(record)
    lines = [f"````{{admonition}} Provenance {badge(records).circles}", ":class: note dropdown", ""]
    lines += ["| Records | Minutes | Finished | Commit | Machine | Stale |", "|---|--:|---|---|---|---|"]
    for (machine, stale), group in rows.items():
        commits = {(r["code"]["commit"] or "unknown")[:9] + " + changes" * (not r["code"]["clean"]) for r in group}
        minutes = sum(record.get("seconds") or 0 for record in group) / 60
        last = max(record["finished"] for record in group)[:16].replace("T", " ")
        cells = (f"{minutes:.1f}" if minutes else "", last, ", ".join(sorted(commits)), machine, stale)
        lines.append(f"| {_links(group)} | {' | '.join(map(escape, cells))} |")
    lines += ["", f"Data: {'; '.join(dict.fromkeys(_data(record['data']) for record in records))}."]
    if notebook:
        lines += ["", "```bash", f"papermill notebooks/{notebook}.ipynb _build/{notebook}.ipynb", "```"]
    return markdown("\n".join([*lines, "````"]))


def _links(records: list) -> str:
    """Folders, in each the models and their seeds, a seed a link to the copy of its record beside the page."""
    results, folders = home() / "results", {}
    for record in records:
        name, _, seed = record.path.stem.rpartition("-seed")
        text = escape(seed if name else record.path.stem)
        if record.path.is_relative_to(results):
            text = f'<a href="../records/{quote(record.path.relative_to(results).as_posix())}">{text}</a>'
        models = folders.setdefault(record.path.parent.name, {})
        models.setdefault(name, []).append(text)
    return "; ".join(
        f"{escape(folder)}: " + ", ".join(" ".join([escape(name), *links]).strip() for name, links in models.items())
        for folder, models in folders.items()
    )


def _data(data: dict) -> str:
    """A data set, its source, its split and the hash of its tokens."""
    fields = (data["name"], SOURCES.get(data.get("source", ""), data.get("source")), data.get("split"))
    return escape(f"{', '.join(map(str, filter(None, fields)))}, SHA-256 {str(data.get('sha256', ''))[:16]}…")
