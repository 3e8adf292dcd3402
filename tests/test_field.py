"""The field's table of the page Related work: its rows, and its marks."""

import re

from rtx_core.paths import REPOSITORY
from study import field
from study.pages import related_work

ROWS = field.rows()
BIB = (REPOSITORY / "book" / "references.bib").read_text(encoding="utf-8")
NEEDED = {"name", "key", "source", "read", "claim"}
KNOWN = NEEDED | {*field.ORDER, *field.NOTED, "controls", "partly", "equal", "where"}


def test_every_system_stands_there_once_and_every_key_in_the_bibliography():
    assert {row["key"] for row in ROWS if row["key"]} <= set(re.findall(r"^@\w+\{([^,]+),", BIB, re.MULTILINE))
    assert len({row["name"] for row in ROWS}) == len(ROWS)
    assert [row["name"] for row in ROWS if not row["key"]] == ["This book"]


def test_each_row_says_where_its_cells_come_from():
    for row in ROWS:
        where = row.get("where")
        assert NEEDED <= row.keys() <= KNOWN and set(row.get("controls", ())) <= field.CONTROLS.keys(), row["name"]
        assert row["source"] and where and row["read"] in ("whole", "main text", "parts"), row["name"]
        if isinstance(where, dict):
            cells = row.keys() - {"name", "key", "source", "read", "where", "partly"}
            assert where.keys() == cells - ({"code"} - where.keys()), row["name"]


def test_marks_are_those_of_the_file():
    shown = field.frame().set_index("System")
    assert list(shown.loc["DEQ", list("WNDTR")]) == ["●", "●", "–", "–", "–"]
    assert list(shown.loc["Universal Transformer", list("WND")]) == ["○", "○", "–"]
    assert related_work.quantities().narrow == str(sum(shown.drop("This book")["N"] == "●"))


def test_a_table_cites_its_systems_and_links_their_code():
    text = field.table("What each was compared with.").markdown
    assert "{cite:year}`dehghani2019universal`" in text and "What each was compared with." in text
    assert text.count("[code](https://github.com/") == sum("code" in row for row in ROWS)
    assert sum(line.startswith("| ") for line in text.splitlines()) == 2 + len(ROWS)
