"""The numbers that the original study published, with where each stands: quoted in `published.json`, never computed with.

An entry of `benchmarks` says what it was found on: `split`, those of ours whose test texts are of the same kind, `max_length`,
and for a subset by length `length_fraction`.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from rtx_core.parameters import ARCHITECTURE, Settings

TEXTS = {
    "seeded": "a pooled split", "published": "a pooled split", "official": "GLUE's development set (872 sentences)",
    "grouped": "a split that keeps the phrases of a sentence together",
}  # fmt: skip


@cache
def published() -> dict:
    return json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))


def stand_ins(data: Iterable[str]) -> list[tuple[str, str]]:
    """(what stands in, what for) of the corpora of these data, where a mirror cannot hold the hub's own rows (see `Corpus.name`)."""
    corpora = dict.fromkeys(corpus for name in data for corpus in name.split(" + "))
    return [tuple(corpus.split(" in place of ")) for corpus in corpora if " in place of " in corpus]


def quotations(settings: Settings) -> list[dict]:
    """The published rows for a corpus and subset, whatever they were found on (see `apart`); none beside synthetic ones."""
    if settings.source == "embedded":
        return []
    length = f"-{settings.length}" if settings.length != "all" else ""
    share = f"-{100 * settings.fraction:g}pct" if settings.fraction < 1 else ""
    return published()["benchmarks"].get(f"{settings.corpus}{length}{share}", [])


def apart(entry: dict, settings: Settings, data: Iterable[str] = ()) -> str:
    """What keeps published values and ours from being subtracted, in words; empty where nothing does.

    `data` are the names of the data that ours were tested on.
    """
    pairs = [(hub, ours) for ours, hub in stand_ins(data)]  # theirs, ours
    if settings.split not in entry["split"]:
        pairs.append((TEXTS[entry["split"][0]], TEXTS[settings.split]))
    if settings.length != "all" and settings.length_fraction != entry["length_fraction"]:
        pairs.append(tuple(f"the {settings.length}est {100 * share:g} % of the texts" for share in (entry["length_fraction"], settings.length_fraction)))
    if settings.max_length != entry["max_length"]:
        pairs.append(tuple(f"texts cut at {n} tokens" for n in (entry["max_length"], settings.max_length)))
    if changed := [f"{name.replace('_', ' ')} {value}" for name in ARCHITECTURE if (value := getattr(settings, name)) != getattr(Settings, name)]:
        pairs.append(("models of the published form", f"models with {', '.join(changed)}"))
    theirs, ours = (" and ".join(said) for said in zip(*pairs)) if pairs else ("", "")
    return f"these values are of {theirs}, ours of {ours}" if pairs else ""
