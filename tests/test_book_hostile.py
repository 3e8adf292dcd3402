"""Nothing that a record, a data file or a cell's output holds is evaluated: it appears on the page as it is written."""

import json
import re
from html import unescape
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat import v4
from report_records import Record, record
from small_book import build_book

from rtx_core.paths import REPOSITORY
from rtx_core.report import display, figures, style

WRITES = "len.__self__.__import__('pathlib').Path('WRITTEN').touch()"
MARKUP = [  # of roles and directives, which do not work in any output
    f"` {{val}}`{WRITES}` `",
    f"{{val}}`{WRITES}`",
    "`{val}`777*11` `z",
    "{{ 777 * 11 }} {{ env.app.outdir }}",
    "{download}`/etc/hostname` {eval}`777*11`",
    "````{literalinclude} /etc/hostname\n````",
    ":::{include} /etc/hostname\n:::",
    "```{raw} html\n:file: /etc/hostname\n```",
    "a | b\n\n```{holds}\nFalse\n```",
]
TEXTS = [
    *MARKUP,
    "```{eval-rst}\n.. include:: /etc/hostname\n```",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "[link](javascript:alert(1)) ![image](/etc/hostname) <https://example.org>",
    "$x^2$ $$\\frac{$ \\(y\\)",
    "`````\nfence\n~~~\n+++\n# head\n{.class}\n---",
    "next\x85line\u2028and\u2029line \x1b]0;title\x07",
]


def filled(content: object, text: str) -> object:
    """JSON, each of its texts replaced."""
    if isinstance(content, dict):
        return {key: filled(value, text) for key, value in content.items()}
    if isinstance(content, list):
        return [filled(value, text) for value in content]
    return text if isinstance(content, str) else content


def hostile(text: str) -> Record:
    content = record()
    arrays = {name: content.pop(name) for name in ("logits", "labels")}
    return Record(filled(dict(content), text) | arrays)


def outputs() -> dict[str, display.Displayed]:
    """What pages show of records whose every text is hostile."""
    found = [hostile(text) for text in TEXTS]
    return {
        "provenance": display.provenance(found),
        "table": display.table(pd.DataFrame({f"h{t}": [t] for t in TEXTS}), label="tab-a", caption="Texts."),
        "benchmark": figures.benchmark(found, label="tab-b", caption="Runs."),
        "accuracies": figures.accuracies(
            {t: [r] for t, r in zip(TEXTS, found)}, heading="a", label="tab-c", caption="b"
        ),
        "samples": display.samples({f"h{text}": text for text in TEXTS}),
        "script": display.for_script("errors", TEXTS, "tab-a"),
        "figure": display.figure(plt.figure(), label="fig-a", caption="Runs.", alt=" ".join(TEXTS)),
    }


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> dict[str, BeautifulSoup]:
    """The cells of a notebook that shows hostile records, and of one that puts out their markup unescaped."""
    home = tmp_path_factory.mktemp("home")
    source = home / "book"
    (source / "figures").mkdir(parents=True)
    language = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("RTX_HOME", str(home))
        patch.setenv(display.BOOK, "1")
        patch.setattr(display, "REPOSITORY", home)
        shown = {name: made.markdown for name, made in outputs().items()}
        shown |= {f"raw {n}": text for n, text in enumerate(MARKUP)}
        made = [v4.new_output("display_data", {"text/markdown": text}) for text in shown.values()]
        cells = [v4.new_code_cell("draw()", outputs=[output], execution_count=1) for output in made]
        notebook = v4.new_notebook(cells=[v4.new_markdown_cell("# Page"), *cells], metadata=language)
        nbformat.write(notebook, source / "index.ipynb")
        config = yaml.safe_load((REPOSITORY / "_config.yml").read_text(encoding="utf-8"))
        settings = {"myst_enable_extensions": config["parse"]["myst_enable_extensions"]}
        built = build_book(source, "sentences", nb_render_markdown_format="myst", smartquotes=False, **settings)
    assert not list(home.rglob("WRITTEN")) and not list(home.rglob("sentences.txt"))
    soup = BeautifulSoup((built / "index.html").read_text(encoding="utf-8"), "html.parser")
    return dict(zip(shown, soup.select(".cell_output"), strict=True))


def cells_of(table: BeautifulSoup) -> list[str]:
    return [cell.get_text() for cell in table.select("th, td")]


def test_what_records_hold_appears_as_it_is_written(book):
    every = [display.one_line(text) for text in TEXTS]
    provenance = display.one_line(book["provenance"].get_text())
    hashes = [display.one_line(f"SHA-256 {text[:16]}…") for text in TEXTS]
    assert [text for text in (*every, *hashes) if text not in provenance] == []
    assert cells_of(book["table"]) == [*(f"h{text}" for text in every), *every]
    assert cells_of(book["benchmark"])[8::8] == [f"{style.title(text)}, ○ reduced" for text in TEXTS]
    assert [text for text in every if cells_of(book["accuracies"]).count(text) != 2] == []
    assert [tag.get_text() for tag in book["samples"].select("strong")] == [f"h{text}" for text in every]
    assert book["figure"].img["alt"] == display.one_line(" ".join(TEXTS))


def test_a_figure_shows_names_to_the_letter():
    fig, (ax,) = figures.canvas(height=8)
    figures.dots(pd.DataFrame({"model": TEXTS, "x": [10.0**n for n in range(len(TEXTS))]}), x="x", ax=ax)
    ax.set_xscale("log")
    drawn = display.draw(fig).decode()
    ElementTree.fromstring(drawn)
    written = [unescape(text).strip() for text in re.findall("<!--(.*?)-->", drawn, re.DOTALL)]
    assert [text for text in TEXTS if style.title(text) not in written] == []


def test_data_for_a_script_cannot_end_it(book):
    (script,) = book["script"].select("script")
    assert json.loads(script.string) == TEXTS
    assert not re.search(r"[<\x80-\U0010ffff\n]", script.string)


def test_outputs_hold_no_code_no_formula_and_no_link_of_a_record(book):
    alive = {
        name: cell.select("script:not(.errors), .math, [href^=javascript], [onerror]") for name, cell in book.items()
    }
    assert not any(alive.values()) and {name for name, cell in book.items() if cell.img} == {"figure"}


def test_roles_and_directives_do_not_work_in_an_output(book):
    every = {name: cell.get_text() for name, cell in book.items() if name.startswith("raw")}
    assert not any("8547" in text or "no value" in text for text in every.values())  # 777 * 11
    kinds = [re.search(r"\w+(?=\})|(?<=\{\{) 777", text)[0] for text in MARKUP]
    assert [kind for kind, text in zip(kinds, every.values(), strict=True) if kind not in text] == []
    told = {name for name, cell in book.items() if cell.select(".unparsed")}
    assert told == every.keys() - {"raw 0", "raw 2", "raw 3"}  # in which Markdown sees no role
