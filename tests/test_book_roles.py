"""{val} and {holds}: numbers in prose, and marks where a sentence is not borne out; notebooks that are run once."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import v4
from small_book import build_book

from rtx_core import study
from rtx_core.errors import RtxError
from rtx_core.report import values
from rtx_core.report.evidence import Badge
from rtx_core.report.statistics import Difference
from rtx_core.report.values import Gap, Space, Value

GAP = Gap(Difference(0.001, -0.003, 0.006, 0.5, 100, (0.001,), "a test"), Badge(1, 0))
SST2 = {"difference": GAP, "n": 6823, "accuracy": Value(0.9, 0.893, 0.907, Badge(1, 0)), "loss": -0.25}
SST2 |= {"path": Path("results")}
GIVEN = {"sst2": lambda: Space(SST2), "word": "text_with *marks*", "lacking": lambda: {}["khop"]}


@pytest.fixture(autouse=True)
def given(monkeypatch):
    monkeypatch.setattr(values, "names", cache(lambda: values.Names(GIVEN)))


WRITTEN = {
    "sst2.difference:+.1f": "+0.1",
    "sst2.difference": "+0.1 (−0.3 to +0.6)",
    "sst2.difference.p:.2f": "0.50",
    "sst2.difference.badge": "● full",
    "sst2.accuracy:.1%": "90.0\u202f%",
    "sst2.accuracy": "90.0\u202f% (89.3 to 90.7)",
    "sst2.n": "6,823",
    "sst2.loss": "−0.25",
    "1 - sst2.accuracy:.0%": "10\u202f%",
    "len(word) - 13:words": "four",
    "word": "text_with *marks*",
}


def test_values_are_written_as_prose_wants_them():
    assert {quoted: values.shown(quoted) for quoted in WRITTEN} == WRITTEN


WRONG = {
    "sst3.n": "did you mean 'sst2'",
    "sst2.m": "'m'",
    "lacking.n": "'lacking' .* 'khop'",
    "sst2.n:%z": "cannot be written",
    "sst2.n:words": "cannot be written",
    "sst2.n +": "SyntaxError",
    "__import__('os')": "'__import__'",
    "open('x')": "'open'",
    "len.__self__.open('x')": "'__self__'",
    "_attribute(word, '__class__')": "'_attribute'",
    "(n for n in (1, 2)).gi_frame": "'gi_frame' of a generator",
    "'{0.__class__}'.format(word)": "'format' of a str",
    "f'{word.__class__}'": "'__class__'",
    "sst2.path.touch()": "'touch' of a PosixPath",
    "{word}": "'Set'",
}


@pytest.mark.parametrize("quoted", WRONG)
def test_what_cannot_be_written_is_an_error(quoted):
    with pytest.raises(RtxError, match=WRONG[quoted]):
        values.shown(quoted)


def test_two_files_cannot_define_one_name(tmp_path, monkeypatch):
    package = tmp_path / "other_paper" / "values"
    package.mkdir(parents=True)
    for name, found in {"../__init__": {}, "__init__": {}, "one": {"a": 1}, "two": {"b": 2}}.items():
        (package / f"{name}.py").write_text(f"VALUES = {found}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RTX_STUDY", "other_paper")
    study.study.cache_clear()
    assert values.defined.__wrapped__() == {"a": 1, "b": 2}
    (package / "three.py").write_text("VALUES = {'b': 3}")
    with pytest.raises(RtxError, match="other_paper.values.two defines b as another module does"):
        values.defined.__wrapped__()
    study.study.cache_clear()


def build(folder, page: str, builder: str = "html"):
    cell = v4.new_markdown_cell("# Notebook\n\nOf {val}`sst2.n` texts, {val}`word`.\n\n```{holds}\nsst2.n > 1\n```")
    nbformat.write(v4.new_notebook(cells=[cell]), folder / "two.ipynb")
    (folder / "index.md").write_text(page + "\n\n```{toctree}\ntwo\n```\n")
    return build_book(folder, "values_roles", builder=builder, latex_engine="xelatex")


PAGE = """# Page

## A share of {val}`sst2.accuracy:.0%`

Ahead by {val}`sst2.difference:+.1f` points ({val}`sst2.difference.interval`).

```{holds}
abs(sst2.difference) < 1
sum(abs(n) for n in (sst2.n, sst2.loss)) ==
    6823.25
```

- An item.
  ```{holds}
  sst2.n == 6823
  ```
- Another.

:::{table} Of {val}`sst2.n` texts.
:name: tab-a

| a |
|---|
| {val}`sst2.loss` |
:::
"""


@pytest.mark.parametrize("builder", ["html", "latex"])
def test_values_stand_in_headings_prose_captions_cells_and_notebooks(tmp_path, builder):
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build" / "sentences.txt").write_text("index.md, line 3")  # of the build before
    made = build(tmp_path, PAGE, builder)
    assert not (tmp_path / "_build" / "sentences.txt").exists()  # as everything holds now
    name = {"html": "index.html", "latex": "projectnamenotset.tex"}[builder]
    text = (made / name).read_text(encoding="utf-8").replace("\\%", "%")
    wanted = ["A share of 90\u202f%", "Ahead by +0.1 points (−0.3 to +0.6).", "Of 6,823 texts.", "−0.25"]
    assert [words for words in wanted if words not in text] == []
    assert "abs(" not in text and "<p></p>" not in text
    for other in ("two.html", "_sources/two.ipynb.txt") if builder == "html" else ():
        text = (made / other).read_text(encoding="utf-8")
        assert "Of 6,823 texts, text_with *marks*." in text.replace("\\\\", "")
        assert ("text\\\\_with" in text) == other.endswith(".txt")  # a notebook's text is parsed once more


BAD = """# Page

One is fine. The second says {val}`sst3.difference` and
goes on.

```{holds}
sst2.n == 6823
sst2.difference > 1
```

# Heading {val}`sst2.m`
"""


def test_every_failing_sentence_is_marked_counted_and_listed(tmp_path):
    page = BeautifulSoup((build(tmp_path, BAD) / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert [tag.name for tag in page.select(".unborne-text")] == ["p", "h1"]
    assert [len(box.select("li")) for box in page.select("div.unborne")] == [2, 1]
    assert not page.find(string=re.compile("holds|6823"))
    listed = (tmp_path / "_build" / "sentences.txt").read_text(encoding="utf-8")
    assert [line for line in listed.splitlines() if line[0] != " "][:-1] == ["index.md, line 3", "index.md, line 11"]
    told = ["difference: Unknown value 'sst3'", "sst2.difference > 1: sst2.difference is +0.1", "Unknown value 'm'"]
    assert [each for each in (*told, "One is fine. The second says no value and goes on.") if each not in listed] == []


TOLD = [
    ("abs(sst2.difference) < sst2.n", ["sst2.difference is +0.1", "sst2.n is 6,823"]),
    ("all(n > sst2.n for n in (sst2.loss, 2))", ["sst2.n is 6,823", "sst2.loss is −0.25"]),
    ("1 > 2", []),
]


@pytest.mark.parametrize(("guard", "told"), TOLD)
def test_a_condition_that_fails_tells_what_its_names_stand_for(guard, told):
    assert all(part in values.parts(guard) for part in told)


FAILS = 'a = 1 / 0\nreport.figure(label="fig-a")'
COUNTS = "from rtx_core import records\nprint(len(list(records.folder().rglob('*'))), 'files')"
USERS = "# rtx.results()\nfrom rtx_core.paths import home\nprint(len(list((home() / 'runs').rglob('*'))), 'runs')"


def test_a_notebook_is_run_once_and_again_where_a_record_changed(tmp_path, home, kernel):
    source, text = home / "small" / "book", "# Page\n\nSee {numref}`fig-a`.\n\n```{toctree}\none\ntwo\nall\n```\n"
    source.mkdir(parents=True)
    for name, cells in {"one": [COUNTS], "two": [FAILS, "a", "2"], "all": [USERS]}.items():
        cells = [v4.new_markdown_cell("# A notebook"), *map(v4.new_code_cell, cells)]
        kernelspec = {"kernelspec": {"name": "python3", "display_name": "-"}}
        nbformat.write(v4.new_notebook(cells=cells, metadata=kernelspec), source / f"{name}.ipynb")
    (source / "index.md").write_text(text)
    settings = {"nb_execution_mode": "cache", "nb_execution_allow_errors": True}

    def built() -> tuple[str, str, str]:
        made = build_book(source, "paper", "values_roles", **settings)
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
    (home / "runs").mkdir()
    (home / "runs" / "one.json").write_text("{}")  # a run of the reader's own, which one page shows
    assert "1 runs" in built()[2] and sum(path.exists() and path.stat().st_mtime_ns in times for path in kept) == 2
    (home / "results").mkdir()
    (home / "results" / "one.json").write_text("{}")
    assert "1 files" in built()[0] and not any(path.exists() for path in kept)
