"""Numbers and checks of a page: as texts in Python, in an executed notebook, and in the book."""

import nbformat
import pytest
from bs4 import BeautifulSoup
from small_book import build_book

from rtx_core.errors import RtxError
from rtx_core.reads import remember, remembered
from rtx_core.records import Record
from rtx_core.report import filling
from rtx_core.report.quantities import Quantities, words


def example(error: float = 0.25) -> Quantities:
    record = Record({"seed": 3, "model": "1x4", "test": {"error": error}}, None)
    numbers = {
        "error": lambda: f"{record['test']['error']:.0%}",
        "odd": lambda: "1 * 2",
        "model": lambda: record["model"],
        "missing": lambda: record["none"],
    }
    checks = {
        "error": lambda: [record["test"]["error"] < 0.3, record["test"]["error"] > 0],
        "in_words": lambda: [record["test"]["error"] < 0.2],
    }
    return Quantities(numbers, checks)


@pytest.fixture(autouse=True)
def names_of_records(monkeypatch):
    monkeypatch.setattr(Record, "__repr__", lambda record: "folder/1x4-seed3.json")


def test_numbers_are_texts_with_their_evidence():
    q = example()
    assert (q.error, q.odd, q.model, q.missing) == ("25%", "1 * 2", "1x4", "n/a")
    numbers = q.as_json()["numbers"]
    assert (numbers["error"]["seeds"], numbers["error"]["records"]) == ([3], ["folder/1x4-seed3.json"])
    assert numbers["model"]["records"] == []  # a name is no result
    assert "KeyError" in numbers["missing"]["reason"]
    with pytest.raises(RtxError, match="quantity 'eror'.*'error'"):
        _ = q.eror


def test_what_is_computed_once_is_evidence_of_every_number_that_uses_it():
    record = Record({"seed": 3, "test": {"error": 0.25}}, None)

    class Errors:
        @remembered
        def error(self) -> float:
            return record["test"]["error"]

    errors, cached = Errors(), remember(lambda scale: scale * record["test"]["error"])
    numbers = {"first": lambda: str(errors.error), "again": lambda: str(errors.error)}
    numbers |= {"scaled": lambda: str(cached(2)), "scaled_again": lambda: str(cached(2))}
    q = Quantities(numbers)
    assert (q.again, q.scaled_again) == ("0.25", "0.5")
    assert all(number["seeds"] == [3] for number in q.as_json()["numbers"].values())


def test_checks_say_which_condition_fails():
    assert example().unsupported == {"in_words": ["record['test']['error'] < 0.2"]}
    assert not example().holds("in_words") and example().holds("error")
    assert example(0.4).unsupported["error"] == ["record['test']['error'] < 0.3"]
    q = Quantities({}, {"raises": lambda: [1 / 0 > 1]})
    assert "division by zero" in q.unsupported["raises"][0]
    assert "1 of 1 checks fail" in q._repr_mimebundle_()[0]["text/html"]


def test_words():
    assert [words(n) for n in (0, 1, 10, 11, 12_000)] == ["no", "one", "ten", "11", "12,000"]


def notebook(error: float = 0.25) -> nbformat.NotebookNode:
    """As it is after a run."""
    data, metadata = example(error)._repr_mimebundle_()
    shown = nbformat.v4.new_output("execute_result", data=data, metadata=metadata, execution_count=1)
    text = "# Title\n\nThe error is {eval}`q.error`, odd {eval}`q.odd`, none {eval}`q.none`.\n\n"
    text += "It is low.\n\n% check: in_words"
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("q", outputs=[shown], execution_count=1)]
    return nbformat.v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


def test_an_executed_notebook_is_filled():
    filled = notebook(0.4)
    for _ in range(2):  # the second time changes nothing
        filling.fill(filled)
        first, _ = filled.cells
        assert first.source.count(filling.UNSUPPORTED) == 2
    assert "`record['test']['error'] < 0.3`" in first.source
    results = {one["expression"]: one["result"]["data"]["text/plain"] for one in first.metadata["user_expressions"]}
    assert results == {"q.error": "'40%'", "q.odd": "'1 * 2'", "q.none": "'n/a'"}


def test_a_downloaded_notebook_has_plain_numbers():
    downloaded = notebook()
    filling.plain(downloaded, filling.quantities(downloaded))
    assert downloaded.cells[0].source == "# Title\n\nThe error is 25%, odd 1 \\* 2, none n/a.\n\nIt is low."


def test_the_book_reads_numbers_and_marks_what_fails(tmp_path):
    source = tmp_path / "book"
    source.mkdir()
    nbformat.write(notebook(), source / "example.ipynb")
    (source / "index.md").write_text(
        "# Book\n\n```{toctree}\nexample\nmethods\n```\n\n"
        "There {eval}`example.error`, not {eval}`example.none`; {eval}`1+1`."
    )
    (source / "methods.md").write_text("# A page without a notebook\n\nIts module says {eval}`methods.warmup`.")
    settings = {"nb_mime_priority_overrides": [("html", "text/markdown", 0)]}
    made = build_book(source, "sentences", "quantities", **settings)
    page, front = (BeautifulSoup((made / f"{name}.html").read_text(), "html.parser") for name in ("example", "index"))
    number = page.find("span", "quantity")
    assert number.text == "25%" and "seed 3" in number["title"] and "1x4-seed3.json" in number["title"]
    assert front.find("span", "quantity").text == "25%"
    assert [node.text for node in front.find_all("span", "no-value")] == ["n/a", "1+1"]
    assert [node.text for node in page.find_all(class_="unborne-text")][1] == "It is low."
    assert "numbers;" not in page.text
    assert BeautifulSoup((made / "methods.html").read_text(), "html.parser").find("span", "quantity").text == "100"
