"""The numbers that the original study published, with where each stands: quoted in `published.json`, never
computed with.

An entry of `benchmarks` says what it was found on: `split`, those of ours whose test texts are of the same
kind, `max_length`, and for a subset by length `length_fraction`.
"""

import json
from functools import cache
from pathlib import Path

TEXTS = {
    "seeded": "a pooled split",
    "published": "a pooled split",
    "official": "GLUE's development set (872 sentences)",
    "grouped": "a split that keeps the phrases of a sentence together",
}


@cache
def published() -> dict:
    """All quoted values, by section: configuration, counts, labels, benchmarks, tinystories, ..."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def benchmarks(task: str) -> list[dict]:
    """The published rows of a task (`sst2`, `sst2-10pct`, `yelp`, ...); [] of an unknown one."""
    return published()["benchmarks"].get(task, [])


def apart(entry: dict, record) -> str:
    """What keeps published values and those of a record from being subtracted, as one clause; empty where
    nothing does."""
    if record.synthetic:
        return "the published values are of real texts, ours of generated ones"
    data = record["config"]["data"]
    sources = [part.partition(" in place of ") for part in record["data"]["name"].split(" + ")]
    pairs = [(original, ours) for ours, _, original in sources if original]  # theirs, ours
    if data["split"] not in entry["split"]:
        pairs.append((TEXTS[entry["split"][0]], TEXTS[data["split"]]))
    both = (entry, data)
    if data["length"] != "all" and data["length_fraction"] != entry["length_fraction"]:
        pairs.append([f"the {data['length']}est {100 * x['length_fraction']:g} % of the texts" for x in both])
    if data["max_length"] != entry["max_length"]:
        pairs.append([f"texts cut at {x['max_length']} tokens" for x in both])
    if not pairs:
        return ""
    theirs, ours = map(" and ".join, zip(*pairs))
    return f"the published values are of {theirs}, ours of {ours}"
