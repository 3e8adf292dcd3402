"""Marks where a sentence is not borne out, notebooks made for earlier versions, and notebooks that are run once."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import v4
from small_book import build_book

from rtx_core.report.evidence import Badge
from rtx_core.report.quantities import Quantities
from rtx_core.report.statistics import Difference
from rtx_core.report.values import Gap, Value


def test_values_are_texts_with_their_interval():
    gap = Gap(Difference(0.001, -0.003, 0.006, 0.5, 100, (0.001,), "a test"), Badge(1, 0))
    assert str(gap) == "+0.1 (−0.3 to +0.6)"
    assert str(Value(0.9, 0.893, 0.907, Badge(1, 0))) == "90.0\u202f% (89.3 to 90.7)"


def notebook(text: str, accuracy: float = 0.9) -> nbformat.NotebookNode:
    """As it is after a run."""
    numbers = {"accuracy": lambda: f"{accuracy:.0%}", "name": lambda: "text_with *marks*"}
    q = Quantities(numbers, {"accuracy": lambda: [accuracy > 0.8]})
    data, metadata = q._repr_mimebundle_()
    output = v4.new_output("execute_result", data=data, metadata=metadata, execution_count=1)
    cells = [v4.new_markdown_cell(text), v4.new_code_cell("q", outputs=[output], execution_count=1)]
    return v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


PAGE = """# Page

## A share of {eval}`two.accuracy`

:::{table} Of {eval}`two.accuracy` texts.
:name: tab-a

| a |
|---|
| {eval}`two.name` |
:::

```{toctree}
two
```
"""


def build(folder, text: str, accuracy: float = 0.9, builder: str = "html"):
    nbformat.write(notebook(text, accuracy), folder / "two.ipynb")
    (folder / "index.md").write_text(PAGE)
    overrides = [(builder, "text/markdown", 0)]
    extensions = ("sentences", "quantities")
    return build_book(
        folder, *extensions, builder=builder, latex_engine="xelatex", nb_mime_priority_overrides=overrides
    )


@pytest.mark.parametrize("builder", ["html", "latex"])
def test_numbers_stand_in_headings_prose_captions_cells_and_notebooks(tmp_path, builder):
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build" / "sentences.txt").write_text("index.md, line 3")  # of the build before
    made = build(tmp_path, "# Two\n\nOf {eval}`q.accuracy` named {eval}`q.name`.", builder=builder)
    assert not (tmp_path / "_build" / "sentences.txt").exists()  # as everything holds now
    name = {"html": "index.html", "latex": "projectnamenotset.tex"}[builder]
    page = (made / name).read_text(encoding="utf-8").replace("\\%", "%").replace("\\_", "_")
    text = BeautifulSoup(page, "html.parser").get_text() if builder == "html" else page
    assert [words for words in ("A share of 90%", "Of 90% texts.", "text_with *marks*") if words not in text] == []
    if builder == "html":
        assert "Of 90% named text_with *marks*." in BeautifulSoup((made / "two.html").read_text(), "html.parser").text
        downloaded = (made / "_sources" / "two.ipynb.txt").read_text(encoding="utf-8")
        assert "Of 90% named text\\\\_with" in downloaded  # a notebook's text is parsed once more


def test_every_failing_sentence_is_marked_counted_and_listed(tmp_path):
    text = "# Two\n\nOne is fine. The second says {eval}`q.accuracy` and\ngoes on.\n\nHere {eval}`q.none`."
    page = BeautifulSoup((build(tmp_path, text, 0.7) / "two.html").read_text(encoding="utf-8"), "html.parser")
    assert [tag.name for tag in page.select(".unborne-text")] == ["p", "p"]
    assert [len(box.select("li")) for box in page.select("div.unborne")] == [1, 1]
    listed = (tmp_path / "_build" / "sentences.txt").read_text(encoding="utf-8")
    parts = ("One is fine. The second says 70% and goes on.", "accuracy > 0.8", "q.none: the page has no number")
    assert [part for part in parts if part not in listed] == []
    assert len(re.findall(r"^two.ipynb, cell", listed, re.M)) == 2


def test_a_notebook_of_an_earlier_version_is_built_and_says_what_replaces_its_expressions(tmp_path):
    text = "# Old\n\nOf {val}`sst2.n` texts.\n\n```{holds}\nsst2.n > 1\n```\n"
    page = BeautifulSoup((build(tmp_path, text) / "two.html").read_text(encoding="utf-8"), "html.parser")
    assert page.find("code", "no-value").text == "sst2.n" and "holds" not in page.find("section").text
    assert "{eval}" in page.select_one("div.unborne").text


FAILS = 'import rtx_core\na = 1 / 0\nreport.figure(label="fig-a")'
COUNTS = "from rtx_core import records\nprint(len(list(records.folder().rglob('*'))), 'files')"
USERS = "# rtx.results()\nfrom rtx_core.paths import home\nprint(len(list((home() / 'runs').rglob('*'))), 'runs')"


def test_a_notebook_is_run_once_and_again_where_a_record_changed(tmp_path, home, kernel):
    source, text = home / "small" / "book", "# Page\n\nSee {numref}`fig-a`.\n\n```{toctree}\none\ntwo\nall\n```\n"
    for folder in (source, home / "runs", home / "results", home / "_build" / "results"):
        folder.mkdir(parents=True)
    for name, cells in {"one": [COUNTS], "two": [FAILS, "a", "2"], "all": [USERS]}.items():
        cells = [v4.new_markdown_cell("# A notebook"), *map(v4.new_code_cell, cells)]
        kernelspec = {"kernelspec": {"name": "python3", "display_name": "-"}}
        nbformat.write(v4.new_notebook(cells=cells, metadata=kernelspec), source / f"{name}.ipynb")
    (source / "index.md").write_text(text)
    settings = {"nb_execution_mode": "cache", "nb_execution_allow_errors": True}

    def built() -> tuple[str, str, str]:
        made = build_book(source, "paper", "sentences", **settings)
        return tuple((made / f"{name}.html").read_text(encoding="utf-8") for name in ("one", "two", "all"))

    first, second, all_runs = built()
    assert "0 files" in first and "0 runs" in all_runs
    assert second.count("ZeroDivisionError: division by zero") == 2 and "NameError" not in second  # what it lacks
    assert "Traceback" not in second and "unborne" in second
    assert "two.ipynb, cell" in (source / "_build" / "sentences.txt").read_text()
    kept = sorted((source / "_build" / "outputs").rglob("base.ipynb"))
    assert len(kept) == 3
    times = [path.stat().st_mtime_ns for path in kept]
    built()
    assert [path.stat().st_mtime_ns for path in kept] == times
    (home / "runs" / "one.json").write_text("{}")  # a run of the reader's own, which one page shows
    assert "1 runs" in built()[2] and sum(path.exists() and path.stat().st_mtime_ns in times for path in kept) == 2
    (home / "results" / "one.json").write_text("{}")  # which another page counts
    assert "1 files" in built()[0] and sum(path.exists() and path.stat().st_mtime_ns in times for path in kept) == 1
