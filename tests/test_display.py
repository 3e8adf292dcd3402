"""Tables and figures: numbered on the page, literal in their cells, the same bytes every time."""

import re
from html import escape as escape_html

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from docutils.core import publish_doctree
from hypothesis import example, given, settings
from hypothesis import strategies as st
from myst_parser.docutils_ import Parser

from rtx_core.errors import RtxError
from rtx_core.pages import display

MYST = {
    "myst_enable_extensions": ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "dollarmath", "smartquotes"],
    "report_level": 1,
    "halt_level": 2,  # a warning is an error
    "file_insertion_enabled": False,
    "smart_quotes": False,
}


def rendered(shown: display.Displayed):
    """The document tree that the book makes of an output."""
    return publish_doctree(shown.forms["text/markdown"], parser=Parser(), settings_overrides=MYST)


def cells(shown: display.Displayed) -> list[str]:
    return [entry.astext() for entry in rendered(shown).findall(lambda node: node.tagname == "entry")]


def html_cells(shown: display.Displayed) -> list[str]:
    page = BeautifulSoup(shown.forms["text/html"], "html.parser")
    return [cell.get_text() for cell in page.find_all(["th", "td"])]


@pytest.fixture
def plot(tmp_path, monkeypatch):
    """A function that draws the same small figure anew; what it shows is saved under a temporary folder."""
    monkeypatch.setattr(display, "REPOSITORY", tmp_path)
    plt.switch_backend("agg")

    def draw(**words):
        fig, ax = plt.subplots()
        ax.plot([1, 2, 3], [1, 4, 9])
        ax.fill_between([1, 2], [0, 1], alpha=0.5)
        words = {"caption": "Squares of $n$.", "label": "fig-a", "alt": "A rising line."} | words
        return display.figure(fig, **words)

    return draw


@given(st.text())
@example("a | b `code` {ref}`x` $x^2$ $$y$$ {{ sub }} ::: \\pipe \\| --- ... 'q' \"q\"")
@example("<script>alert(1)</script> <b>bold</b> &amp; &#34; <!-- c --> **b** _e_ [l](u) https://x.com ![i](j)")
@example("1. item\n\n# head\n- [ ] x\r\n\u2028::: \x0b\x1c\x85\xa0 end\0")
@example("+++")
@example("\x85\x1b")
@example("{.class}")
@settings(deadline=None, max_examples=60)
def test_cells_show_data_as_it_is(text):
    shown = display.table(pd.DataFrame({f"h{text}": [f"c{text}"]}), caption="A table.", label="tab-a")
    expected = [display.one_line(f"h{text}"), display.one_line(f"c{text}")]
    assert cells(shown) == expected
    assert html_cells(shown) == expected


@given(st.text())
@settings(deadline=None, max_examples=60)
def test_alt_text_arrives_as_it_is(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "draw", lambda fig: {"svg": b"<svg/>"})
        patch.setattr(display, "write_atomically", lambda path, content: None)
        shown = display.figure(plt.Figure(), caption="A figure.", label="fig-a", alt=f"a{text}")
    image = next(rendered(shown).findall(lambda node: node.tagname == "image"))
    assert image["alt"] == display.one_line(f"a{text}")
    assert f'alt="{escape_html(image["alt"])}"' in shown.forms["text/html"]


def test_table_has_name_caption_and_note():
    shown = display.table(pd.DataFrame({"x": [1]}), caption="Of $n$ and\n`code`.", label="tab-a", note="*Not* ours.")
    tree = rendered(shown)
    table = next(tree.findall(lambda node: node.tagname == "table"))
    assert table["names"] == ["tab-a"]
    assert table[0].astext() == "Of n and code."
    assert tree[-1].astext() == "Not ours." and tree[-1]["classes"] == ["table-note"]
    assert shown._repr_mimebundle_() == shown.forms


def test_numbers_are_formatted_and_aligned_right():
    frame = pd.DataFrame(
        {
            "name": ["4 layers", "sst2"],
            "acc": ["86.1 ± 0.4", "–"],
            "n": [11_030_000, 872],
            "loss": [1 / 3, None],
            "rate": [3e-5, 123456.7],
            "best": [True, False],
        }
    )
    shown = display.table(frame, caption="Numbers.", label="tab-a")
    assert html_cells(shown)[6:] == [
        *["4 layers", "86.1 ± 0.4", "11,030,000", "0.3333", "3e-05", "yes"],
        *["sst2", "–", "872", "–", "123,457", "no"],
    ]
    assert "| :-- | --: | --: | --: | --: | :-- |" in shown.forms["text/markdown"]


def test_figure_is_saved_named_and_closed(plot, tmp_path):
    before = plt.get_fignums()
    shown = plot()
    assert plt.get_fignums() == before
    svg = (tmp_path / "book/figures/fig-a.svg").read_text()
    assert svg.rstrip().endswith("</svg>") and "<dc:date>" not in svg
    figure = next(rendered(shown).findall(lambda node: node.tagname == "figure"))
    assert figure[0]["names"] == ["fig-a"]  # Sphinx moves the name to the figure, plain docutils does not
    assert figure[0]["uri"] == "/figures/fig-a.*"  # the builder takes the kind it can show
    assert figure[1].astext() == "Squares of n."


def test_figure_is_deterministic_and_left_alone_when_equal(plot, tmp_path):
    first = plot()
    files = [tmp_path / f"book/figures/fig-a.{kind}" for kind in ("svg", "pdf")]
    before = [(file.stat().st_mtime_ns, file.read_bytes()) for file in files]
    assert plot() == first
    assert [(file.stat().st_mtime_ns, file.read_bytes()) for file in files] == before


@pytest.mark.parametrize("label", ["", "a", "tab-", "tab-A", "fig-a", "tab-a b", "tab-a\n", "tab-../x"])
def test_bad_table_labels(label):
    with pytest.raises(RtxError, match=f"(?s){re.escape(repr(label))}.*expected tab-"):
        display.table(pd.DataFrame({"x": [1]}), caption="x", label=label)


def test_bad_figures_and_empty_tables(plot):
    with pytest.raises(RtxError, match="no alt text"):
        plot(alt=" \n")
    with pytest.raises(RtxError, match="expected fig-"):
        plot(label="tab-a")
    with pytest.raises(RtxError, match="no columns"):
        display.table(pd.DataFrame(), caption="x", label="tab-a")
    plt.close("all")
