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
    """All quoted values, by section: configuration, counts, labels, benchmarks, tinystories, shakespeare,
    ..."""
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def benchmarks(task: str) -> list[dict]:
    """The published rows of a task (`sst2`, `sst2-10pct`, `sst2-long`, `yelp`, ...), whatever they were found
    on; [] of an unknown one."""
    return published()["benchmarks"].get(task, [])


def stand_ins(name: str) -> list[tuple[str, str]]:
    """(what stands in, what for) of the data sets of a record's `data` name, where the original rows could
    not be had."""
    return [tuple(part.split(" in place of ")) for part in name.split(" + ") if " in place of " in part]


def apart(entry: dict, record) -> str:
    """What keeps published values and those of a record from being subtracted, as one clause; empty where
    nothing does."""
    if record.synthetic:
        return "the published values are of real texts, ours of generated ones"
    data = record["config"]["data"]
    pairs = [(original, ours) for ours, original in stand_ins(record["data"]["name"])]  # theirs, ours
    if data["split"] not in entry["split"]:
        pairs.append((TEXTS[entry["split"][0]], TEXTS[data["split"]]))
    if data["length"] != "all" and data["length_fraction"] != entry["length_fraction"]:
        fractions = (entry["length_fraction"], data["length_fraction"])
        pairs.append(tuple(f"the {data['length']}est {100 * share:g} % of the texts" for share in fractions))
    if data["max_length"] != entry["max_length"]:
        pairs.append(
            tuple(f"texts cut at {length} tokens" for length in (entry["max_length"], data["max_length"]))
        )
    if not pairs:
        return ""
    theirs, ours = (" and ".join(named) for named in zip(*pairs))
    return f"the published values are of {theirs}, ours of {ours}"
