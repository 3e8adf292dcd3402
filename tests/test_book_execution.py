"""Notebooks of a book: run side by side once, again where a record changed; what a cell that fails lacks is said."""

from nbformat import v4, write
from small_book import build_book

FAILS = 'a = 1 / 0\nreport.figure(label="fig-a")'
COUNTS = (
    "from pathlib import Path\nfrom rtx_core import records\nprint(len(list(records.folder().rglob('*'))), 'files')"
)


def test_a_notebook_is_run_once_and_again_where_a_record_changed(tmp_path, home, kernel):
    source, text = home / "small" / "book", "# Page\n\nSee {numref}`fig-a`.\n\n```{toctree}\none\ntwo\n```\n"
    source.mkdir(parents=True)
    for name, cells in {"one": [COUNTS], "two": [FAILS, "a", "2"]}.items():
        cells = [v4.new_markdown_cell("# A notebook"), *map(v4.new_code_cell, cells)]
        write(
            v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "-"}}),
            source / f"{name}.ipynb",
        )
    (source / "index.md").write_text(text)
    settings = {"nb_execution_mode": "cache", "nb_execution_allow_errors": True}

    def built() -> tuple[str, str]:
        made = build_book(source, "paper", "values_roles", **settings)
        return tuple((made / f"{name}.html").read_text(encoding="utf-8") for name in ("one", "two"))

    first, second = built()
    assert "0 files" in first
    assert second.count("ZeroDivisionError: division by zero") == 2 and "NameError" not in second  # what it lacks
    assert "Traceback" not in second and "unborne" in second
    assert "two.ipynb, cell" in (source / "_build" / "sentences.txt").read_text()
    kept = sorted((source / "_build" / "outputs").rglob("base.ipynb"))
    assert len(kept) == 2
    times = [path.stat().st_mtime_ns for path in kept]
    built()
    assert [path.stat().st_mtime_ns for path in kept] == times
    (home / "results").mkdir()
    (home / "results" / "one.json").write_text("{}")
    assert "1 files" in built()[0] and not any(path.exists() for path in kept)
