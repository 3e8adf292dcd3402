"""The dataset of an experiment: its parts and facts, the cache of tokens, the sample of train_rows, the profile."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from mirror import changed_label, one_sentence, tiny_frame

from rtx_core.corpora import splits, tokens
from rtx_core.corpora.dataset import dataset, profile
from rtx_core.corpora.sources import CORPORA, content_sha256, load
from rtx_core.corpora.splits import PARTS, split
from rtx_core.corpora.tokens import tokenize, vocabulary
from rtx_core.errors import RtxError


def test_a_dataset_holds_its_split_and_says_what_it_is(mirror):
    data = dataset("sst2", "mirror", "published", 6)
    parts = split(load("sst2", "mirror"), "published", "mirror")
    for name, frame in parts.items():
        expected = tokenize(frame, vocabulary("mirror", []), 6)
        assert getattr(data, name).sha256() == expected.sha256()
    digests = "".join(getattr(data, part).sha256() for part in PARTS)
    assert data.classes == ("negative", "positive")
    assert data.facts == {
        "name": "stanfordnlp/sst2", "source": "mirror", "split": "published", "max_length": 6,
        "sha256": hashlib.sha256(digests.encode()).hexdigest(), "n_train": 28, "n_validation": 6, "n_test": 6,
    }  # fmt: skip


def test_facts_tell_splits_and_lengths_apart(mirror):
    hashes = [dataset("sst2", "mirror", how, n).facts["sha256"] for how in splits.SPLITS for n in (4, 6)]
    assert len(set(hashes)) == 2 * len(splits.SPLITS) == 8


def test_embedded_data_never_passes_for_real(small_embedded):
    facts = dataset("sst2", "embedded", "seeded", 32).facts
    assert facts["name"] == "embedded movie phrases" and facts["source"] == "embedded"
    assert (facts["n_train"], facts["n_validation"], facts["n_test"]) == (160, 20, 20)


@pytest.fixture
def small_embedded(monkeypatch):
    monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], embedded_rows={"train": 150, "validation": 50}))


def test_the_embedded_vocabulary_is_trained_on_the_training_part_only(small_embedded, monkeypatch):
    seen, trained = [], tokens._trained
    monkeypatch.setattr(tokens, "_trained", lambda texts: seen.append(texts) or trained(texts))
    dataset("sst2", "embedded", "seeded", 32)
    parts = split(load("sst2", "embedded"), "seeded", "embedded")
    assert seen == [parts["train"]["text"].tolist()]


# --- The cache --------------------------------------------------------------------------------------------------------

def test_tokens_are_made_once(mirror, monkeypatch):
    first = dataset("sst2", "mirror", "seeded", 8)
    monkeypatch.setattr(tokens, "tokenize", lambda *_: pytest.fail("tokenised again"))
    again = dataset("sst2", "mirror", "seeded", 8)
    assert again.facts == first.facts
    for part in PARTS:
        for field in ("ids", "offsets", "labels"):
            a, b = getattr(getattr(first, part), field), getattr(getattr(again, part), field)
            assert np.array_equal(a, b) and a.dtype == b.dtype


@pytest.mark.parametrize("change", ["length", "split", "content", "code"])
def test_the_cache_serves_nothing_made_from_other_input(mirror, monkeypatch, change):
    dataset("sst2", "mirror", "seeded", 8)
    made = []
    monkeypatch.setattr(tokens, "tokenize", lambda *args: made.append(1) or tokenize(*args))
    how, length = "seeded", 8
    if change == "length":
        length = 9
    if change == "split":
        how = "official"
    if change == "content":
        frame = changed_label(tiny_frame(30, 0))
        frame.to_parquet(mirror / "sst2" / "train.parquet")
        contents = CORPORA["sst2"].contents | {"train": content_sha256(frame.rename(columns={"sentence": "text"}))}
        monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], contents=contents))
    if change == "code":
        monkeypatch.setattr(tokens, "fingerprint", lambda files: "another")
    dataset("sst2", "mirror", how, length)
    assert len(made) == 3


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:40], lambda c: c[100:], lambda c: b"x" * len(c)])
def test_a_damaged_cache_is_made_anew(home, damage):
    first = dataset("sst2", "embedded", "seeded", 16)
    (cache,) = (home / "_build" / "cache").iterdir()
    whole = cache.read_bytes()
    cache.write_bytes(damage(whole))
    assert dataset("sst2", "embedded", "seeded", 16).facts == first.facts and cache.read_bytes() == whole


def test_the_cache_lies_where_runs_write(mirror, home):
    dataset("sst2", "mirror", "seeded", 8)
    assert len(list((home / "_build" / "cache").glob("tokens-*.npz"))) == 1


# --- Bounds and the profile -------------------------------------------------------------------------------------------

def test_train_rows_keeps_a_fixed_sample_of_the_training_part_only(mirror):
    whole, few, more = (dataset("sst2", "mirror", "seeded", 8, train_rows=n) for n in (0, 5, 9))
    assert (len(whole.train), len(few.train), len(more.train)) == (32, 5, 9)
    assert few.train.sha256() == more.train.keep(np.arange(5)).sha256()  # a larger sample contains the smaller one
    assert few.train.sha256() == whole.train.keep(np.random.RandomState(0).permutation(32)[:5]).sha256()
    assert few.test.sha256() == whole.test.sha256() and few.validation.sha256() == whole.validation.sha256()
    assert few.facts["n_train"] == 5 and few.facts["sha256"] != whole.facts["sha256"]
    assert sorted(dataset("sst2", "mirror", "seeded", 8, train_rows=32).train.labels) == sorted(whole.train.labels)


@pytest.mark.parametrize("train_rows", [-1, 33])
def test_train_rows_out_of_bounds_are_refused(mirror, train_rows):
    with pytest.raises(RtxError) as error:
        dataset("sst2", "mirror", "seeded", 8, train_rows=train_rows)
    one_sentence(error, f"train_rows is {train_rows}; the training part has 32 rows")


@pytest.mark.parametrize("max_length", [2, 0, -5])
def test_a_max_length_without_room_for_text_is_refused(max_length):
    with pytest.raises(RtxError, match=f"max_length is {max_length}; .* at least 3"):
        dataset("sst2", "embedded", "seeded", max_length)


def test_a_profile_counts_every_row_once(mirror):
    shown, data = profile("sst2", "mirror", "seeded", 6), dataset("sst2", "mirror", "seeded", 6)
    parts = split(load("sst2", "mirror"), "seeded", "mirror")
    assert shown["data"] == data.facts and shown["classes"] == ["negative", "positive"] and tuple(shown["parts"]) == PARTS
    for name, part in shown["parts"].items():
        assert part["n"] == len(parts[name]) == sum(part["labels"]) == sum(part["words"].values()) == sum(part["tokens"].values())
        assert part["labels"][1] == parts[name]["label"].sum()
        assert part["words"] == {str(k): v for k, v in sorted(Counter(len(t.split()) for t in parts[name]["text"]).items())}
        assert list(part["tokens"]) == sorted(part["tokens"], key=int) and max(map(int, part["tokens"])) <= 6
        assert part["distinct_texts"] == len(set(parts[name]["text"]))
