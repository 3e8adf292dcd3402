"""What made a record: which changes count as other code, and what is noted of other code and other data."""

import pytest
from factory import SST2, saved

from rtx_core.results import code as code_module
from rtx_core.results.code import bare, code, current, fingerprint

SOURCE = '''"""A module."""

import os  # the system


def f(a):
    """Doubles."""
    # a comment
    b = "# no comment"  # but this is

    return a + a, b  # done


class C:
    """Of its own."""

    def method(self):
        \'\'\'Two
        lines.  # not a comment either
        \'\'\'
        return """text
# in a string"""
'''
SAME = [
    ("A module.", "Another text, in\nthree\n\nlines."),
    ('"""A module."""\n', ""),
    ("  # the system", ""),
    ("    # a comment\n", "    # another\n    # and another\n\n"),
    ('    """Doubles."""\n', ""),
    ("\n\n\nclass", "\nclass"),
    ("  # done", "   "),
    ("lines.  # not a comment either", "Lines."),
]
OTHER = [
    ("a + a", "a * 2"),
    ("# no comment", "# other"),
    ("# in a string", "# in the string"),
    ('"""text', '"""Text'),
    ("import os", "import sys"),
    ("class C", "class D"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_comments_docstrings_and_blank_lines_do_not_change_the_bare_source(old, new):
    assert SOURCE.replace(old, new) != SOURCE
    assert bare(SOURCE.replace(old, new)) == bare(SOURCE)


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_code_changes_the_bare_source(old, new):
    assert bare(SOURCE.replace(old, new)) != bare(SOURCE)


def test_bare_source_keeps_strings_with_hashes_and_nothing_else_of_them():
    assert bare(SOURCE).splitlines() == [
        "import os", "def f(a):", '    b = "# no comment"', "    return a + a, b", "class C:", "    def method(self):",
        '        return """text', '# in a string"""',
    ]  # fmt: skip


def test_one_line_bodies_count_as_code():
    assert bare('def f(a): "doc"\n') != bare('def g(b, c): "doc"\n')


def test_fingerprint_depends_on_every_file_and_their_names():
    files = ("models/packed.py", "models/attention.py")
    assert len({fingerprint(files), fingerprint(files[:1]), fingerprint(files[1:]), fingerprint(files[::-1])}) == 4
    assert fingerprint() == fingerprint() and len(fingerprint()) == 64


def test_code_names_the_commit_or_says_that_there_is_none(monkeypatch):
    found = code()
    assert found["commit"] is None or len(found["commit"]) == 40
    monkeypatch.setenv("PATH", "")
    assert code() == {"commit": None, "clean": False}


def test_note_is_empty_for_todays_code_and_data():
    made = saved(SST2)
    assert made.note() == "" and made.note("d" * 64) == ""


def test_note_tells_of_other_code_and_other_data():
    entry = {"commit": "abcdef0123456789", "clean": True, "fingerprints": ["0" * 64]}
    other = saved(SST2, code=entry)
    assert other.note() == other.note("d" * 64) == "made by another version of the code (commit abcdef012)"
    assert saved(SST2).note("e" * 64) == "made on other data (dddddddddddd…) than today's (eeeeeeeeeeee…)"
    assert "another version of the code" in other.note("e" * 64) and "other data" in other.note("e" * 64)
    mixed = saved(SST2, code=entry | {"commit": None, "fingerprints": ["0" * 64, fingerprint()]})
    assert mixed.note() == "made by another version of the code (commit unknown)"


def test_a_record_is_current_by_todays_code_or_by_one_that_gives_its_numbers(monkeypatch):
    today = fingerprint()
    monkeypatch.setattr(code_module, "SAME_NUMBERS", {today: {"1" * 64}, "2" * 64: {"3" * 64}})
    assert current([today]) and current(["1" * 64]) and current(["1" * 64, today])
    assert not current(["3" * 64]) and not current([today, "0" * 64])  # the former equals another code than today's
