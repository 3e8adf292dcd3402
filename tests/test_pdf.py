"""What becomes of pages on their way to paper: a small book is written as LaTeX and, where XeLaTeX is, typeset."""

import json
import re
import shutil
import subprocess
import sys

import matplotlib.pyplot as plt
import pytest
import yaml

from rtx_core.pages import display
from rtx_core.paths import REPOSITORY

TOC = """\
format: jb-book
root: index
parts:
  - caption: Paper
    chapters: [{file: results}, {file: references}]
  - caption: R & D
    chapters: [{file: more}]
"""
LONG = "A sentence in a cell that is much too long for a line, so that it is broken into several of them, and a hash: "
WIDE = "| " + " | ".join(f"column {n}" for n in range(9)) + " |\n" + "|--:" * 9 + "|\n" + ("| " + " | ".join(["0.1234 (0.1200 to 0.1300)"] * 9) + " |\n") * 2
PAGES = {
    "index": "# A paper\n\nOf numbers {cite:t}`knuth`, see [](more.md).\n\n## The question\n\nWhy?\n",
    "results": f"""# Results

:::{{table}} Two columns.
:name: tab-small

| Name | Value |
|:--|--:|
| one | 1 |
| twenty | 20.0 |
:::

```{{table}} Long cells.
:name: tab-long

| Name | Said | Value |
|:--|:--|--:|
| one | {LONG * 3} `382311aeea31aba4` | 1 |
```

{WIDE}

````{{admonition}} Provenance
:class: note

| Record | Finished |
|---|---|
| sst2/baseline-seed0.json | 2026 |
````

{{numref}}`tab-small` and {{numref}}`tab-long`; {{numref}}`fig-a`.

:::{{figure}} /a.*
:name: fig-a

A figure.
:::
""",
    "references": "# References\n\n```{bibliography}\n```\n",
    "more": "# More\n\n| Row | Value |\n|:--|--:|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(90)),
}
BIB = "@book{knuth, author = {Donald Knuth}, title = {The TeXbook}, publisher = {Addison}, year = {1984}}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """LaTeX of that book, by the extension and with the settings of this one."""
    root = tmp_path_factory.mktemp("pdf")
    (root / "book").mkdir()
    for name, text in PAGES.items():
        (root / "book" / f"{name}.md").write_text(text)
    (root / "book/_toc.yml").write_text(TOC)
    (root / "book/references.bib").write_text(BIB)
    figure = plt.Figure()
    figure.subplots().plot([1, 4, 9])
    for kind, content in display.draw(figure).items():
        (root / f"book/a.{kind}").write_bytes(content)
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    settings = {
        "extensions": ["myst_parser", "sphinx_external_toc", "sphinxcontrib.bibtex", "pdf"], "external_toc_path": "_toc.yml", "numfig": True,
        "bibtex_bibfiles": ["references.bib"], "bibtex_reference_style": "author_year", "myst_enable_extensions": ["colon_fence"],
        "latex_engine": config["latex"]["latex_engine"], "latex_elements": config["sphinx"]["config"]["latex_elements"],
        "latex_documents": [("index", "paper.tex", "A paper", "Nobody", "manual")],
    }  # fmt: skip
    conf = f"import json, sys\nsys.path.insert(0, {str(REPOSITORY / 'book/_ext')!r})\nglobals().update(json.loads({json.dumps(settings)!r}))\n"
    (root / "book/conf.py").write_text(conf)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "latex", "-d", "trees", "book", "latex"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root / "latex"


@pytest.fixture(scope="module")
def tex(folder) -> str:
    return (folder / "paper.tex").read_text()


def columns(tex: str, first: str, of: int = 0) -> tuple[str, str, str]:
    """(size of letters, environment, columns) of the table whose first heading that is, or of a later one."""
    before = tex[: [match.start() for match in re.finditer(rf"\\sphinxAtStartPar\n{first}\n", tex)][of]]
    size = re.findall(r"\\begingroup\\(\w+)", before)[-1]
    kind, spec = re.findall(r"\\begin\{(longtable|tabulary)\}(?:\{\\linewidth\})?(?:\[\w\])?\{(.*)\}\n", before)[-1]
    return size, kind, spec


def test_parts_preface_and_chapters_come_in_order(tex):
    wanted = [r"\chapter*{Preface}", r"\subsubsection*{The question}", r"\part{Paper}", r"\chapter{Results}", r"\begin{sphinxthebibliography}",
              r"\part{R \& D}", r"\chapter{More}"]  # fmt: skip
    assert [found for found in re.findall("|".join(map(re.escape, wanted)), tex)] == wanted
    assert r"\chapter{References}" not in tex and tex.count(r"\begin{sphinxthebibliography}") == 1


def test_short_tables_keep_their_width_and_numbers_stand_right(tex):
    assert columns(tex, "Name") == ("small", "tabulary", "lr")


def test_long_cells_share_the_line(tex):
    _, kind, spec = columns(tex, "Name", of=1)
    assert kind == "tabulary" and re.fullmatch(r"l>\{\\raggedright\\arraybackslash\}p\{0\.\d+\\linewidth\}r", spec)
    spec = columns(tex, "column 0")[2]
    parts = [float(part) for part in re.findall(r"p\{(\d\.\d+)\\linewidth\}", spec)]
    assert len(parts) == 9 and sum(parts) < 1 and spec.count("raggedleft") == 9


def test_a_table_of_many_rows_goes_on_on_the_next_page(tex):
    assert columns(tex, "Row")[1:] == ("longtable", "lr")


def test_a_box_with_a_table_has_no_frame(tex):
    assert "sphinxadmonition" not in tex and r"\subsubsection*{Provenance}" in tex


def test_a_figure_is_drawn_from_its_pdf(folder, tex):
    assert r"\sphinxincludegraphics{{a}.pdf}" in tex and (folder / "a.pdf").is_file() and not (folder / "a.svg").exists()


@pytest.mark.skipif(not (shutil.which("xelatex") and shutil.which("latexmk")), reason="XeLaTeX or latexmk is not installed")
def test_it_is_typeset_without_an_overfull_line_or_a_lost_reference(folder):
    command = ["latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "-quiet", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / "paper.log").read_text(errors="replace")
    assert not re.findall(r"Overfull.*|.*undefined.*|Missing character.*", log)
