"""What helps a reader along: marks below figures and tables, and previews."""

import json
import os

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from committed import put
from nbformat import v4
from small_book import build_book

from rtx_core.report import display

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch, whose objects Sphinx looks at
PAGE = """# Page

See {numref}`fig-a`, {numref}`tab-a` and {term}`AUC`.

```{glossary}
AUC
  The area under the ROC curve.
```

:::{table} Written.
:name: tab-written

| a | b |
|:--|--:|
| 1 | **2** % of 3 %, `4 %` |
:::
"""
PROVENANCE = """````{admonition} Provenance ●
:class: note dropdown

| Record | Budget |
|---|---|
| sst2\\/baseline\\-seed0 | full |
| sst2\\/gone\\-seed0 | full |
| FOLDERS | full |
````""".replace("FOLDERS", ", ".join(f"folder/of-run-{n}" for n in range(300)))  # longer than a file's name may be


def outputs(home) -> list[str]:
    record = put(home, "sst2/baseline-seed0")
    measured = put(home, "growth/khop/1x4-seed5")
    (record.parent / "note.txt").symlink_to("/etc/hostname")
    record.with_stem("gone-seed1").symlink_to("/etc/hostname")
    (record.parents[1] / "self").symlink_to(record.parents[1])
    for name in (".baseline-seed0.json.x1", ".left.json", "odd-seed0.json", "baseline.json", "key.pem"):
        record.with_name(name).write_text("{}")
        measured.with_name(name).write_text("{}")
    os.mkfifo(record.with_stem("pipe-seed0"))
    drawn = display.figure(plt.figure(), label="fig-a", caption="A line.", alt="A line.")
    rows = pd.DataFrame({"Name": [f"row {n}" for n in range(20)]})
    return [drawn.markdown, display.table(rows, label="tab-a", caption="Rows.").markdown, PROVENANCE]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of a built book of a page and a notebook of three cells."""
    home = tmp_path_factory.mktemp("home")
    source = home / "book"
    for folder in ("notebooks", "figures"):
        (source / folder).mkdir(parents=True)
    (source / "figures" / "fig-a.svg").write_bytes(display.draw(plt.figure()))
    (source / "index.md").write_text(PAGE + "\n```{toctree}\nnotebooks/one\n```\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(home))
        patch.delenv("RTX_BOOK", raising=False)
        given = [v4.new_output("display_data", {"text/markdown": text}) for text in outputs(home)]
        cells = [v4.new_code_cell("draw()", outputs=[output], execution_count=1) for output in given]
        language = {"language_info": {"name": "python", "pygments_lexer": "python"}}
        notebook = v4.new_notebook(cells=[v4.new_markdown_cell("# Notebook"), *cells], metadata=language)
        nbformat.write(notebook, source / "notebooks" / "one.ipynb")
        settings = {"nb_render_markdown_format": "myst", "html_sourcelink_suffix": ""}  # as Jupyter Book has it
        return build_book(source, "reading", **settings)


def page(book, name: str) -> BeautifulSoup:
    return BeautifulSoup((book / name).read_text(encoding="utf-8"), "html.parser")


def test_outputs_lead_to_records_and_notebook(book):
    soup = page(book, "notebooks/one.html")
    said = [[link.get_text() for link in mark.select("a")] for mark in soup.select(".made")]
    assert said == 2 * [["Records", "Notebook"]]
    for link in soup.select(".made a"):
        target = link["href"]
        assert soup.find(id=target[1:]) if target[0] == "#" else (book / "notebooks" / target).is_file()
    (record,) = soup.select("#provenance a[href*=records]")  # the one that there is
    assert record.get_text() == "sst2/baseline-seed0" and (book / "notebooks" / record["href"]).is_file()
    copied = sorted(str(path.relative_to(book / "records")) for path in (book / "records").rglob("*.*"))
    assert copied == ["growth/khop/1x4-seed5.json", "sst2/baseline-seed0.json"]
    assert not page(book, "index.html").select(".made a")  # of a table that is written, not made
    assert "2\u202f% of 3\u202f%, 4 %" in page(book, "index.html").get_text()
    assert "vegaEmbed" in (book / "_static" / "vega.js").read_text(encoding="utf-8")


def test_previews_stand_on_their_own(book):
    text = (book / "_static" / "previews.js").read_text(encoding="utf-8")
    found = json.loads(text.removeprefix("window.PREVIEWS = ").removesuffix(";\n"))
    figure, table = (found[f"notebooks/one.html#{name}"] for name in ("fig-a", "tab-a"))
    assert "{root}_images/fig-a.svg" in figure and "A line." in figure
    assert "row 5" in table and "row 6" not in table
    assert "The area under the ROC curve." in found["index.html#term-AUC"]
    assert not any(" id=" in html or "href" in html for html in found.values())
