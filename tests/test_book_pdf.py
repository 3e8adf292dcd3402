"""Pages on their way to paper: a small book is written as LaTeX and, where XeLaTeX is, typeset."""

import re
import shutil
import subprocess

import matplotlib.pyplot as plt
import pytest
import yaml
from small_book import build_book

from rtx_core.paths import REPOSITORY
from rtx_core.report import display

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # sphinx_external_toc looks at every object of torch
TOC = """\
format: jb-book
root: index
parts:
  - caption: Paper
    chapters: [{file: results}, {file: related}]
  - caption: R & D
    chapters: [{file: more}]
"""
LONG = "A sentence in a cell that is much too long for a line and is broken, with a hash: "
ROW = "| " + " | ".join(["0.1234 (0.1200 to 0.1300)"] * 9) + " |\n"
WIDE = "| " + " | ".join(f"column {n}" for n in range(9)) + " |\n" + "|--:" * 9 + "|\n" + ROW * 2
RESULTS = f"""# Results

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
| one | {LONG * 4} `382311aeea31aba4` | 1 |
```

{WIDE}

````{{admonition}} Provenance ●
:class: note dropdown

| Record |
|---|
| a-record.json |
````

````{{admonition}} A box
:class: note

| Record | Finished |
|---|---|
| sst2/baseline-seed0.json | 2026 |
````

{{numref}}`tab-small` and {{numref}}`tab-long`; {{numref}}`fig-a`.

:::{{figure}} /a.svg
:name: fig-a

A figure.
:::
"""
BIB = "@book{knuth, author={Donald Knuth}, title={The TeXbook}, publisher={Addison}, year={1984}}\n"
MORE = ["# More\n", "| Row | Value |\n|:--|--:|", *(f"| {n} | {n * n} |" for n in range(90))]
MORE += ["\n\n| Text | Another | Square |\n|:--|:--|--:|", *(f"| {LONG} | {LONG} | {n * n} |" for n in range(40)), ""]
PAGES = {
    "_toc.yml": TOC,
    "references.bib": BIB,
    "index.md": "# A paper\n\nOf numbers {cite:t}`knuth`, see [](more.md).\n\n## The question\n\nWhy?\n",
    "results.md": RESULTS,
    "related.md": "# Related\n\nSee [](results.md).\n\n## References\n\n```{bibliography}\n```\n",
    "more.md": "\n".join(MORE),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """LaTeX of that book, by the extension and with the settings of this one."""
    root = tmp_path_factory.mktemp("pdf")
    for name, text in PAGES.items():
        (root / name).write_text(text)
    figure = plt.Figure()
    figure.subplots().plot([1, 4, 9])
    (root / "a.svg").write_bytes(display.draw(figure))
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    latex = {"engine": config["latex"]["latex_engine"], "elements": config["sphinx"]["config"]["latex_elements"]}
    latex["documents"] = [("index", "paper.tex", "A paper", "Nobody", "manual")]
    settings = {"bibtex_bibfiles": ["references.bib"], "bibtex_reference_style": "author_year"}
    settings |= {"external_toc_path": "_toc.yml"} | {f"latex_{name}": value for name, value in latex.items()}
    return build_book(root, "sphinx_external_toc", "sphinxcontrib.bibtex", "pdf", builder="latex", **settings)


@pytest.fixture(scope="module")
def tex(folder) -> str:
    return (folder / "paper.tex").read_text()


def columns(tex: str, first: str, of: int = 0) -> tuple[str, str, str]:
    """(size of letters, environment, columns) of the table whose first heading that is, or of a later one."""
    before = tex[: [match.start() for match in re.finditer(rf"\\sphinxAtStartPar\n{first}\n", tex)][of]]
    size = re.findall(r"\\begingroup\\(\w+)", before)[-1]
    begin = r"\\begin\{(longtable|tabulary)\}(?:\{\\linewidth\})?(?:\[\w\])?\{(.*)\}\n"
    return size, *re.findall(begin, before)[-1]


def test_parts_preface_and_chapters_come_in_order(tex):
    first = [r"\chapter*{Preface}", r"\subsubsection*{The question}", r"\part{Paper}", r"\chapter{Results}"]
    wanted = [*first, r"\chapter{Related}", r"\begin{sphinxthebibliography}", r"\part{R \& D}", r"\chapter{More}"]
    assert re.findall("|".join(map(re.escape, wanted)), tex) == wanted
    assert r"\section{References}" not in tex


def test_numbers_stand_right_and_many_columns_are_small(tex):
    assert [columns(tex, "Name", of) for of in (0, 1)] == [("footnotesize", "tabulary", spec) for spec in ("LR", "LLR")]
    assert columns(tex, "column 0") == ("scriptsize", "tabulary", "R" * 9)


def test_long_tables_go_on_and_boxes_lose_their_frame(tex):
    for first, n in (("Row", 2), ("Text", 3)):
        kind, spec = columns(tex, first)[1:]
        assert kind == "longtable" and len(re.findall(r"\\X\{\d+\}\{\d+\}", spec)) == n
    assert "sphinxadmonition" not in tex and r"\subsubsection*{A box}" in tex
    assert "Provenance" not in tex and "a-record" not in tex


def test_figures_become_pdf(folder, tex):
    assert r"\sphinxincludegraphics[width=0.560\linewidth]{{a}.pdf}" in tex
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.skipif(not all(map(shutil.which, ("xelatex", "latexmk"))), reason="no XeLaTeX or latexmk")
def test_it_is_typeset_without_an_overfull_line_or_a_lost_reference(folder):
    command = ["latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "-quiet", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (folder / "paper.log").read_text(errors="replace")
    assert not re.findall(r"Overfull.*|.*undefined.*|Missing character.*", log)
