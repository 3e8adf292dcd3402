"""The pages of measurements beside the runs: they show what is recorded and say what is not."""

import re

import pytest
from factory import plain
from test_notebooks import execute, kernel  # noqa: F401  (the kernel of this environment, for every test here)


@pytest.mark.parametrize("name", ["transfer", "precision", "yardstick"])
def test_page_without_records_says_so_and_measures_nothing(name, home):
    said = plain(execute(name, home, {"source": "hub"}))
    assert "ot measured yet" in said and not (home / "results").exists()
    assert not re.search(r"0\.\d{4}", said)
