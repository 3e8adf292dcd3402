"""Splits, subsets and containment: every row in one part, frozen permutations, brute force."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx_core.data import ClassificationData
from rtx_core.data.corpora import CORPORA
from rtx_core.data.preprocess import clean_all
from rtx_core.data.sources import content_sha256, load
from rtx_core.data.splits import PARTS, by_length, contained, parts, sentences, split, stratified


def rows(found) -> dict[str, list[int]]:
    return {part: frame["text"].astype(int).tolist() for part, frame in found.items()}


def numbered(labels) -> pd.DataFrame:
    return pd.DataFrame({"text": [str(n) for n in range(len(labels))], "label": labels})


FROZEN = [("seeded", [54_576, 6_822, 6_823], [31704, 42702, 64995])]
FROZEN += [("official", [63_981, 3_368, 872], [43787, 37447, 67349])]


@pytest.mark.parametrize(("how", "sizes", "firsts"), FROZEN)
def test_every_row_lands_in_one_part_and_the_permutation_never_changes(how, sizes, firsts):
    pool = numbered(np.arange(68_221) % 2)
    tables = {"train": pool[:67_349], "validation": pool[67_349:].reset_index(drop=True)}
    before = {name: frame.copy() for name, frame in tables.items()}
    found = split(tables, how, "hub")
    assert tuple(found) == PARTS and list(map(len, found.values())) == sizes
    assert sorted(row for part in rows(found).values() for row in part) == list(range(68_221))
    assert [numbers[0] for numbers in rows(found).values()] == firsts
    for frame in found.values():
        assert frame.index.equals(pd.RangeIndex(len(frame)))
        assert (frame["label"] == frame["text"].astype(int) % 2).all()
    assert all(tables[name].equals(frame) for name, frame in before.items())


def test_published_follows_the_assignment_file(mirror):
    pool = {"train": numbered([0] * 30), "validation": numbered([1] * 40)[30:]}
    train, validation, test = rows(split(pool, "published", "mirror")).values()
    assert train == list(range(1, 29)) and validation == list(range(29, 35)) and test == [0, *range(35, 40)]
    for changed in ({"split_a": ["train"] * 40}, {"other": ["train"]}):
        pd.DataFrame(changed).to_parquet(mirror / "sst2" / "pooled_splits.parquet")
        with refused("pooled_splits", "SHA-256"):
            split(pool, "published", "mirror")


def phrases(n: int) -> dict[str, pd.DataFrame]:
    """n sentences of eight words, each with three pieces of its own, and two pieces that all have."""
    texts = []
    for i in range(n):
        words = ["the", "film", *(f"w{i}x{k}" for k in range(6))]
        texts += [" ".join(words[a:b]) for a, b in ((0, 8), (2, 8), (4, 6), (7, 8))]
    return {"train": numbered(np.arange(4 * n + 2) % 2).assign(text=[*texts, "the film", "film"])}


def test_grouped_keeps_the_pieces_of_a_sentence_together_as_the_models_see_them():
    pool = phrases(100)["train"]
    pool["text"] = [text.upper() + (" !!!" if i % 2 else " !") for i, text in enumerate(pool["text"])]
    found = split({"train": pool}, "grouped", "hub")
    assert {part: len(f) for part, f in found.items()} == {"train": 321, "validation": 38, "test": 43}
    seen = {part: clean_all(f["text"]) for part, f in found.items()}
    assert not any(contained(seen["test"], seen["train"]) + contained(seen["validation"], seen["train"]))
    assert not any(contained(seen["test"], seen["validation"]))


def test_a_phrase_of_validation_and_test_alone_is_left_out():
    held_out = [0, 2, 5, 11]  # the sentences that fall into validation and test, of twenty of equal length
    texts = [f"s{i} a{i} {'shared' if i in held_out else f'b{i}'}" for i in range(20)]
    found = split({"train": pd.DataFrame({"text": [*texts, "shared"], "label": 0})}, "grouped", "hub")
    assert sorted(int(t.split()[0][1:]) for p in PARTS[1:] for t in found[p]["text"]) == held_out
    assert sum(map(len, found.values())) == 20


def test_a_sample_is_the_beginning_of_the_permutation_and_cannot_exceed_the_pool():
    pool = numbered([0] * 1000)
    whole, some = (rows(split({"train": pool}, "seeded", rows=n)) for n in (0, 100))
    assert [n for p in PARTS for n in some[p]] == [n for p in PARTS for n in whole[p]][:100]
    with refused("1,000", "1,001"):
        split({"train": pool}, "seeded", rows=1001)


@pytest.mark.parametrize("name", ["multi-domain", "multi-domain-imdb"])
def test_a_mixture_holds_equally_many_distinct_texts_of_each_member(name, monkeypatch):
    for member in ("yelp", "imdb", "amazon"):
        monkeypatch.setitem(CORPORA, member, replace(CORPORA[member], embedded_rows={"train": 60}))
    found = parts(ClassificationData(corpus=name, source="embedded"))
    for frame in found.values():
        counts = frame["label"].value_counts()
        assert set(counts.index) == {0, 1, 2} and counts.nunique() == 1
    assert pd.concat(found.values())["text"].is_unique
    for label, member in enumerate(CORPORA[name].members):
        pool = set(pd.concat(load(member, "embedded").values())["text"])
        assert all(set(frame["text"][frame["label"] == label]) <= pool for frame in found.values())


def test_the_stratified_sample_never_changes():
    labels = (np.random.RandomState(7).random_sample(54_576) < 0.556).astype(int)
    assert stratified(numbered(labels), 0.1)["text"].tolist()[:8] == ["17", "18", "28", "50", "66", "72", "76", "89"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.floats(0.01, 1), st.floats(0.01, 1))
def test_smaller_shares_are_inside_larger_ones(labels, a, b):
    share = min(a, b)
    small, large = (stratified(numbered(labels), part) for part in (share, max(a, b)))
    assert set(small["text"]) <= set(large["text"]) and len(small) == round(share * len(labels))
    kept = small["text"].astype(int).tolist()
    assert kept == sorted(set(kept)) and small["label"].tolist() == [labels[row] for row in kept]
    for label in set(labels):
        size = labels.count(label)  # half a row of each label, and its part of what other halves and round() move
        moved = 0.5 + size * (len(set(labels)) + 1) / (2 * len(labels))
        assert abs((small["label"] == label).sum() - share * size) <= moved + 1e-9


def test_the_shortest_and_the_longest_texts_are_those():
    frame = pd.DataFrame({"text": ["a b c", "a", "a  b", "a b c d", "b\ta", "b"], "label": 0})
    assert by_length(frame, "short", 0.5)["text"].tolist() == ["a", "a  b", "b"]
    assert by_length(frame, "long", 0.5)["text"].tolist() == ["a b c", "a  b", "a b c d"]


def is_part(text: str, row: str) -> bool:
    a, b = text.split(), row.split()
    return any(b[i : i + len(a)] == a for i in range(len(b) - len(a) + 1))


TEXT = st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(" ".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=12)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_contained_is_what_the_definition_says(texts, found):
    assert contained(texts, found) == [any(is_part(text, row) for row in found) for text in texts]


@settings(deadline=None)
@given(TEXTS)
def test_sentences_are_the_texts_that_no_longer_one_contains(texts):
    within = sentences(texts)
    whole = [t for t in set(texts) if not any(t != other and is_part(t, other) for other in texts)]
    assert set(within) == set(texts) and sorted(within[t][0] for t in whole) == list(range(len(whole)))
    number = {text: within[text][0] for text in whole}
    for text in texts:
        assert sorted(within[text]) == sorted(number[other] for other in whole if is_part(text, other))


def test_the_real_splits_hold_the_recorded_rows(real_mirror):
    tables = load("sst2", "mirror")
    recorded = {
        "seeded": ["54a746cdd159", "9d242e6d6a5e", "7c0a5a39cb01"],
        "published": ["4c7b43bc340e", "8a17eeb58dc9", "a730e005b356"],
        "official": ["f56966abdaa3", "8dde0cdef43a", "357a99d8042d"],
        "grouped": ["5d43061c9a0b", "33212ceab239", "d2f696efb3ef"],
    }
    found = {how: split(tables, how, "mirror") for how in recorded}
    assert {how: [content_sha256(f)[:12] for f in p.values()] for how, p in found.items()} == recorded
