"""Tables, figures and samples: data to the letter, the same bytes every time; parameters that papermill injects."""

import re
from contextlib import nullcontext
from html import escape as escape_html
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import example, given, settings
from hypothesis import strategies as st
from myst_parser.docutils_ import Parser
from report_records import record

from rtx_core.errors import RtxError
from rtx_core.models.registry import MODELS
from rtx_core.report import display, figures, notebook, style
from rtx_core.report.evidence import Badge, milliseconds
from rtx_core.report.statistics import difference
from rtx_core.report.values import Gap
from study import published

EXTENSIONS = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "dollarmath", "smartquotes"]
MYST = {"myst_enable_extensions": EXTENSIONS, "file_insertion_enabled": False, "smart_quotes": False}
MYST |= {"report_level": 1, "halt_level": 2}  # a warning is an error


def rendered(shown: display.Displayed):
    """The document tree that the book makes of an output."""
    return publish_doctree(shown.markdown, parser=Parser(), settings_overrides=MYST)


def cells(shown: display.Displayed) -> list[str]:
    return [entry.astext() for entry in rendered(shown).findall(nodes.entry)]


HOSTILE = (
    "a | b `code` {ref}`x` $x^2$ $$y$$ {{ sub }} ::: \\pipe \\| --- ... 'q' \"q\"",
    "<script>alert(1)</script> <b>bold</b> &amp; &#34; <!-- c --> **b** _e_ [l](u) https://x.com ![i](j)",
    "1. item\n\n# head\n- [ ] x\r\n\u2028::: \x0b\x1c\x85\xa0 end\0",
    "\u202eturned\u202c \u2066x\u2069 \u200f\u200b\ufeff",
    "{val}`sst2.n` {holds}`False`",
    "+++",
    "{.class}",
)


def hostile(test):
    """Any text, and these."""
    for text in HOSTILE:
        test = example(text)(test)
    return settings(deadline=None, max_examples=20)(given(st.text())(test))


@hostile
def test_cells_show_data_as_it_is(text):
    shown = display.table(pd.DataFrame({f"h{text}": [f"c{text}"]}), caption="A table.", label="tab-a")
    expected = [display.one_line(f"h{text}"), display.one_line(f"c{text}")]
    assert cells(shown) == expected
    page = BeautifulSoup(shown.forms["text/html"], "html.parser")
    assert [cell.get_text() for cell in page.find_all(["th", "td"])] == expected
    assert not display.CONTROL.search("".join(expected))


@hostile
def test_alt_text_arrives_as_it_is(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(display, "draw", lambda fig: b'<svg width="300pt"/>')
        shown = display.figure(plt.Figure(), caption="A figure.", label="fig-a", alt=f"a{text}")
    image = next(rendered(shown).findall(nodes.image))
    assert image["alt"] == display.one_line(f"a{text}")
    assert f'alt="{escape_html(image["alt"])}"' in shown.forms["text/html"]


@hostile
@example("```\nout\n````text\n~~~~\n:::\n`````")
@example("`" * 30)
@example("    indented\n\n\n  ```")
def test_samples_show_texts_to_the_letter(text):
    tree = rendered(display.samples({f"h{text}": f"x{text}", "next": "end"}))
    blocks = [block.astext() for block in tree.findall(nodes.literal_block)]
    lines = re.split("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", f"x{text}")
    expected = "\n".join(display.CONTROL.sub(" ", line) for line in lines)
    assert blocks == [f"{expected}\n", "end\n"]
    assert len(tree) == 4 and tree[0].astext() == display.one_line(f"h{text}")


def test_numbers_stand_right_and_have_separators():
    columns = [["a", "b"], [25912706, 3], [0.123456, None], [True, False], ["−1.2 (−2 to 0)", "+0.1"]]
    shown = display.table(pd.DataFrame(dict(zip("abcde", columns))), caption="C", label="tab-a")
    rows = list(rendered(shown).findall(nodes.row))[1:]
    texts = [[entry.astext() for entry in row] for row in rows]
    assert texts == [["a", "25,912,706", "0.1235", "yes", "−1.2 (−2 to 0)"], ["b", "3", "–", "no", "+0.1"]]
    assert ["text-right" in entry["classes"] for entry in rows[0]] == [False, True, True, False, True]


def test_a_figure_is_written_for_the_book_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(display, "REPOSITORY", tmp_path)

    def drawn() -> display.Displayed:
        _, ax = plt.subplots(figsize=(5.4, 3))
        ax.plot([1, 4, 9])
        return display.figure(ax, caption="Squares of $n$.", label="fig-a", alt="A line.")

    monkeypatch.delenv(display.BOOK, raising=False)
    first = drawn()
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(display.BOOK, "1")
    second = drawn()
    assert first.forms == second.forms  # the same bytes
    files = {path.name: path.read_bytes() for path in (tmp_path / "book" / "figures").iterdir()}
    assert files.keys() == {"fig-a.svg"} and b"<text" not in files["fig-a.svg"]
    figure = next(rendered(second).findall(nodes.figure))
    names = figure["names"] or figure[0]["names"]  # where docutils, or Sphinx once it has run, puts them
    assert names == ["fig-a"] and figure[0]["classes"] == ["dark-light"]
    assert figure[0]["uri"] == "/figures/fig-a.svg"


def test_numbers_and_names_as_they_are_shown():
    assert style.number(0.9007, ".1%") == "90.1\u202f%" and display.show(9999.6) == "10,000"
    assert [style.points(x) for x in (0.001, -0.031, -0.0001)] == ["+0.1", "−3.1", "0.0"]
    assert [style.p_value(p) for p in (None, 0.0001, 0.0123)] == ["", "< 0.001", "0.012"]
    for name, model in [(name, model) for name, model in MODELS.items() if model.title]:
        assert style.look(name) == (model.title, model.colour, model.marker)
    assert style.ordered(["mine", "recurrent", "baseline", "mine"]) == ["baseline", "recurrent", "mine"]
    assert style.title("recurrent-3-passes") == "Recurrent 3 passes" and style.color("1x6-random") == "#d6457f"


def test_benchmark_subtracts_only_what_is_of_one_kind():
    found = [record(wrong=range(20)), record("recurrent", wrong=range(10))]
    entries = [entry for entry in published.benchmarks("sst2") if not published.apart(entry, found[0])]
    shown = figures.benchmark(found, label="tab-a", caption="C", published=entries)
    rows = [row.split(" | ") for row in shown.markdown.splitlines() if row.startswith("| Baseline")]
    accuracies = [row[1].replace("\\", "") for row in rows]
    assert len(rows) == 5 and accuracies[0] == "90.0" and "−0.6" in accuracies  # ours, two published, two differences
    assert cells(figures.benchmark(found, label="tab-a", caption="C")).count("0.62") == 2  # ms
    found[0]["latency"] = found[0]["latency"] | {"environment": found[0]["latency"]["environment"] | {"threads": 7}}
    assert "ms" not in cells(figures.benchmark(found, label="tab-a", caption="C"))


def test_published_values_are_set_apart_from_those_of_other_texts():
    entry, found = {"split": ["seeded"], "max_length": 128, "length_fraction": 0.5}, record()
    assert not published.apart(entry, found)
    for change in ({"split": "official"}, {"max_length": 64}, {"length": "short"}):
        assert published.apart(entry, record(config={"data": found["config"]["data"] | change}))
    found.synthetic = True
    assert published.apart(entry, found)


def test_accuracies_pair_what_can_be_paired():
    three = [record(name, seed, range(20 + seed)) for name in ("baseline", "recurrent") for seed in range(3)]
    lone = [record(wrong=range(20), budget="reduced")]
    shown = figures.accuracies({"10 %": three, "50 %": lone}, heading="Data", label="tab-a", caption="C")
    head, *rows = [[entry.astext() for entry in row] for row in rendered(shown).findall(nodes.row)]
    columns = dict(zip(head, zip(*rows)))
    assert columns["Model"] == ("Baseline ●●●", "Recurrent ●●●", "Baseline ○", "Recurrent")
    assert columns["Baseline − Recurrent (points)"] == ("0.0 (0.0 to 0.0)", "–", "–", "–")
    assert columns["Accuracy (%)"][3] == "not measured" and len(set(columns["Recall (%)"][:2])) == 1
    assert columns["Time (%)"] == ("–", "100", "–", "–")


def marks(marker: str, *rows: tuple) -> list:
    """The lines of a forest plot that have this marker."""
    return [line for line in figures.forest(rows).axes[0].lines if line.get_marker() == marker]


def test_a_forest_has_the_color_of_who_is_ahead_and_is_filled_at_the_full_budget():
    few = [record(seed=seed, wrong=range(5)) for seed in range(3)]
    many = [record("recurrent", seed, range(40)) for seed in range(3)]
    pairs = ((few, many, Badge(1, 0)), (many, few, Badge(0, 1)), (few, few, Badge(1, 0)))
    dots = marks("o", *(("a", difference(a, b), badge) for a, b, badge in pairs))
    colors = [style.color("baseline"), style.color("recurrent"), figures.GREY]
    assert [dot.get_color() for dot in dots] == colors
    assert [dot.get_markerfacecolor() for dot in dots] == [colors[0], "white", colors[2]]


def test_two_seeds_are_two_ticks_and_no_line():
    a = [record(seed=seed, wrong=range(40)) for seed in range(2)]
    found = difference(a, [record("recurrent", seed, range(5 + 15 * seed)) for seed in range(2)])
    (ticks,) = marks("|", ("a", found, Badge(2, 0)))
    assert list(ticks.get_xdata()) == pytest.approx([-17.5, -10]) and ticks.get_linestyle() in ("-", "None")
    assert style.interval(found) == "−13.7 (−17.5, −10.0)"
    assert Gap(found, Badge(2, 0)).interval == "the two seeds: −17.5 and −10.0"
    assert style.interval(difference(a[:1], a[:1])) == "0.0 (0.0 to 0.0)"


def test_losses_and_times_are_those_of_all_seeds_on_one_machine():
    found = [record(seed=seed, test={"loss": loss}) for seed, loss in enumerate((2.0, 2.2, 2.4))]
    assert [figures.loss(found[:n]) for n in range(3)] == [None, "2.000", "2.100 (2.000, 2.200)"]
    assert figures.loss(found) == "2.200 (1.703 to 2.697)"
    elsewhere = {"environment": found[0]["environment"] | {"threads": 7}}
    for one in found[1:]:
        one["latency"] = elsewhere | {"measured": [{"per_sentence_ms": 99.0}] * 2}
    assert milliseconds(found) == 10 / 16


def test_provenance_has_a_row_for_records_of_a_machine_and_links_those_in_results(monkeypatch):
    made = [record(model, seed) for model in ("baseline", "recurrent") for seed in range(2)]
    monkeypatch.setattr(display, "home", Path)
    shown = display.provenance([*made, record(name="other"), record(stale="made by `other` code")], notebook="sst2")
    found = [BeautifulSoup(cell, "html.parser").get_text() for cell in cells(shown)]
    assert found[6:8] == ["sst2: baseline 0 1, recurrent 0 1; other: baseline 0", "7.5"]
    assert found[12:14] == ["sst2: baseline 0", "1.5"]
    assert found[14:] == ["2026-11-21 02:55", "012345678", "A | machine (2 threads)", "made by `other` code"]
    assert "\npapermill notebooks/sst2.ipynb _build/sst2.ipynb\n" in shown.markdown
    assert display.provenance([]) is None
    assert '<a href="../records/sst2/recurrent-seed1.json">1</a>' in shown.markdown
    monkeypatch.setattr(display, "home", lambda: Path("elsewhere"))
    assert "<a" not in display.provenance(made).markdown


OWN = "models = ['baseline', 'recurrent']\nepochs = 5\nlearning_rate = 3e-5\n"
FINE = [
    "models = ['recurrent']",
    "epochs = 1",
    "learning_rate = 1",
    "learning_rate = '1e-4'",
    "learning_rate = float('nan')",
    "",
]
WRONG = [
    ("epoch = 1", "Unknown parameter 'epoch': did you mean 'epochs'?"),
    ("epochs = 1.5", "Parameter epochs is 1.5 of type float; expected int."),
    ("epochs = True", "Parameter epochs is True of type bool; expected int."),
    ("models = 'recurrent'", "expected list.  With papermill: -y 'models: [a, b]'."),
    ("epochs = float('inf')", "Parameter epochs is inf of type float; expected int."),
    ("models = [float('nan')]\nepoch = 1", "Unknown parameter 'epoch'"),
    ("learning_rate = []", "Parameter learning_rate is [] of type list; expected float."),
]


@pytest.mark.parametrize(("cell", "said"), [*((cell, "") for cell in FINE), *WRONG])
def test_another_name_or_type_is_one_sentence(cell, said, monkeypatch):
    cells = ["", "import rtx_core as rtx", OWN, f"# Parameters\n{cell}\n", "rtx.check_parameters()"]
    shell = SimpleNamespace(user_ns={"In": cells}, set_custom_exc=lambda kinds, show: None)
    monkeypatch.setattr(notebook.IPython, "get_ipython", lambda: shell)
    with pytest.raises(RtxError, match=re.escape(said) + "[^\n]*$") if said else nullcontext():
        notebook.check_parameters()


def test_dots_are_a_row_for_each_model_and_in_it_a_mark_for_each_value():
    frame = pd.DataFrame({"model": ["1x4", "2x2", "1x4"], "loss": [3.0, 1.0, 2.0]})
    fig, (ax,) = figures.canvas(width=5.4)
    figures.dots(frame, x="loss", ax=ax, names=["2x2", "1x4", "4x1"])
    assert fig.get_size_inches()[0] == 5.4
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2×2", "1×4"]  # the third has no value
    assert [sorted(line.get_xdata()) for line in ax.lines] == [[1.0], [2.0, 3.0]]
    assert all(abs(y - row) < 0.5 for row, line in enumerate(ax.lines) for y in line.get_ydata())
