"""Cleaning, word pieces, vocabularies, the arrays that hold tokens, and a cache that is best effort."""

import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from rtx_core.data import ClassificationData, profile, task, tokens
from rtx_core.data.preprocess import clean, clean_all
from rtx_core.data.splits import contained, parts
from rtx_core.data.tokens import bert_vocabulary, cached, tokenize, trained_vocabulary

CONFIG = ClassificationData(corpus="sst2", source="mirror", max_length=16)
MESSY = st.lists(st.sampled_from([*"aB <>/!.,:_-\n\t", "http://", "www.", "<br />", "!!!", "é"]), max_size=20)


@settings(deadline=None, max_examples=200)
@given(MESSY.map("".join))
def test_cleaning_is_idempotent_and_leaves_nothing_to_clean(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned == cleaned.strip().lower()
    assert not re.search(r"\s\s|<[a-z][^<>]*>|https?://\S|!!|\.\s?\.", cleaned)


def test_cleaning_does_what_the_report_says():
    assert clean("A <b>GOOD</b> film!!! See http://a.b/c ...  <br />") == "a good film! see ."
    for bad in (None, 3, float("nan"), " \n"):
        with refused("Row 2"):
            clean_all(["fine", bad])


TAGS = re.compile(r"<(?:/?[a-z][^<>]*|!--.*?--)>")


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(["<!--", "-->", "<", "!", "-", ">", "a", " ", "/b", "<a"]), max_size=16).map("".join))
def test_tags_and_comments_go_wherever_they_lie(text):
    expected, after = None, clean_by_hand(text)
    while after != expected:
        expected, after = after, clean_by_hand(after)
    assert clean(text) == expected


def clean_by_hand(text: str) -> str:
    text = TAGS.sub(" ", " ".join(text.split()))
    return " ".join(re.sub(r"([!-])(\s?\1)+", r"\1", " ".join(text.split())).split())


def test_what_is_never_closed_takes_no_longer_than_other_text():
    begin = time.perf_counter()
    clean("<!-- a --> " + "<!--b " * 32_000)
    assert time.perf_counter() - begin < 2  # minutes, where each is searched to the end


def test_texts_become_wordpieces_between_cls_and_sep(mirror):
    tokenizer = bert_vocabulary("mirror")
    frame = pd.DataFrame({"text": ["A GOOD<br />film!!! ...", "Bads é"], "label": [1, 0]})
    encoded = tokenize(frame, tokenizer, 16)
    spelled = [tokenizer.id_to_token(i) for i in encoded.ids]
    assert spelled[:7] == ["[CLS]", "a", "good", "film", "[UNK]", ".", "[SEP]"]
    assert spelled[7:] == ["[CLS]", "bad", "##s", "e", "[SEP]"]
    assert encoded.labels.tolist() == [1, 0] and encoded.offsets.tolist() == [0, 7, 12]
    cut = [tokenizer.id_to_token(i) for i in tokenize(frame, tokenizer, 4).ids]
    assert cut == ["[CLS]", "a", "good", "[SEP]", "[CLS]", "bad", "##s", "[SEP]"]
    assert (encoded.ids.dtype, encoded.offsets.dtype, encoded.labels.dtype) == (np.int32, np.int64, np.int64)


def test_a_trained_vocabulary_is_the_same_in_every_process_and_knows_its_texts():
    texts = ["A good film .", "a bad film é", "films 42 films"]
    code = f"from rtx_core.data.tokens import *; print(sorted(trained_vocabulary({texts!r}).get_vocab().items()))"
    tokenizer, command = trained_vocabulary(texts), [sys.executable, "-c", code]
    for seed in ("0", "1"):
        said = subprocess.check_output(command, text=True, env=os.environ | {"PYTHONHASHSEED": seed})
        assert said.strip() == str(sorted(tokenizer.get_vocab().items()))
    unknown = tokenizer.token_to_id("[UNK]")
    assert all(unknown not in tokenizer.encode(text).ids for text in texts)
    assert unknown in tokenizer.encode("xyz").ids
    rare = " ".join(map(chr, range(0x4E00, 0x4E00 + 4500)))
    assert trained_vocabulary([rare, *texts, *texts]).encode("good films").tokens[1:-1] == ["good", "films"]


def made(seed: int):
    return lambda: {"a": np.arange(seed), "b": np.zeros(2)}


def test_a_cache_gives_back_what_was_made_for_a_key_and_code(home, tmp_path):
    code = tmp_path / "code.py"
    for version, key, new, back in (("1", "key", 3, 3), ("1", "key", 4, 3), ("1", "other", 4, 4), ("2", "key", 5, 5)):
        code.write_text(version)
        assert len(cached("x", key, [code], made(new))["a"]) == back


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "no zip": lambda path: path.write_bytes(b"PK\x03\x04 no zip"),
    "a byte": lambda path: path.write_bytes(path.read_bytes().replace(b"\2\0\0\0", b"\3\0\0\0")),
    "another method": lambda path: path.write_bytes(path.read_bytes().replace(b"\0\0\0\0", b"\0\0\x63\0")),
    "another name": lambda path: path.write_bytes(path.read_bytes().replace(b"b.npy", b"c.npy")),
    "one array": lambda path: np.savez(path, a=np.arange(3)),
    "of another key": lambda path: cached("x", "other", [], made(6)) and other(path).replace(path),
    "a pipe": lambda path: path.unlink() or os.mkfifo(path),
}


def other(path):
    return next(file for file in path.parent.iterdir() if file != path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(home, damage):
    cached("x", "key", [], made(3))
    [path] = (home / "_build" / "cache").iterdir()
    DAMAGES[damage](path)
    assert len(cached("x", "key", [], made(4))["a"]) == 4
    assert len(cached("x", "key", [], made(5))["a"]) == 4


@pytest.mark.parametrize("number", [28, 30, 13])  # no space left, read-only file system, permission denied
def test_a_disk_that_cannot_be_written_stops_nothing(mirror, monkeypatch, number):
    def refuse(path, content):
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(tokens, "write_atomically", refuse)
    assert task(CONFIG, 4).facts["n_train"] == 32


def test_facts_say_what_the_data_is(mirror):
    said = {"name": "stanfordnlp/sst2", "source": "mirror", "split": "seeded", "max_length": 16}
    whole = {"n_train": 32, "n_validation": 4, "n_test": 4}
    half = whole | {"fraction": 0.5, "n_train": 16}
    short = {"length": "short", "length_fraction": 0.3, "n_train": 9, "n_validation": 1, "n_test": 1}
    hashes = set()
    for changes, expected in (({}, whole), ({"fraction": 0.5}, half), ({"length": "short"}, short)):
        facts = task(CONFIG.replace(**changes), 4).facts
        hashes.add(facts.pop("sha256"))
        assert facts == said | expected
    assert len(hashes) == 3


def test_train_rows_are_a_fixed_sample_and_cannot_exceed_the_part(mirror):
    few, more = task(CONFIG.replace(train_rows=5), 4), task(CONFIG.replace(train_rows=8), 4)
    assert few.facts["n_train"] == 5 and few.facts["n_test"] == 4
    assert more.train.keep(np.arange(5)).sha256() == few.train.sha256()
    with refused("train_rows", 33, 32):
        task(CONFIG.replace(train_rows=33), 4)


def test_a_profile_counts_every_part(mirror):
    found = profile(CONFIG.replace(max_length=5, train_rows=3))
    assert found["classes"] == ["negative", "positive"] and found["data"]["n_train"] == 32
    for (name, part), n in zip(found["parts"].items(), (32, 4, 4), strict=True):
        assert part["n"] == sum(part["labels"]) == sum(part["words"].values()) == sum(part["tokens"].values()) == n
        assert part["truncated"] == part["tokens"].get("5", 0)
        assert (part["within_training"] is None) == (name == "train")
    frames = {part: frame["text"] for part, frame in parts(CONFIG).items()}
    inside = [contained(frames[part], frames["train"]).count(True) for part in ("validation", "test")]
    assert [found["parts"][part]["within_training"] for part in ("validation", "test")] == inside != [4, 4]
