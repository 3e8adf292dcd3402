"""The numbers that the original study published, quoted in `published.json` with where each stands.

An entry of `benchmarks` says what it was found on: `split`, those of ours whose test texts are of the same kind,
`max_length`, and for a subset by length `length_fraction`.
"""

import json
from functools import cache
from pathlib import Path


@cache
def published() -> dict:
    """All quoted values, by section: configuration, counts, labels, benchmarks, tinystories, ..."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def benchmarks(task: str) -> list[dict]:
    """The published rows of a task (`sst2`, `sst2-10pct`, `yelp`, ...); [] of an unknown one."""
    return published()["benchmarks"].get(task, [])


def apart(entry: dict, record) -> bool:
    """Whether something keeps published values and those of a record from being subtracted: other texts or lengths."""
    data = record["config"]["data"]
    shorter = data["length"] != "all" and data["length_fraction"] != entry["length_fraction"]
    other = record.synthetic or " in place of " in record["data"]["name"] or data["split"] not in entry["split"]
    return other or shorter or data["max_length"] != entry["max_length"]


def in_table(rows: list[dict], table: str) -> dict:
    """The row of a task that stands in a table of the study, such as "Table 13"."""
    return next(row for row in rows if row["source"].endswith(f", {table}"))
