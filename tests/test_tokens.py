"""Token ids: wordpieces, cutting, the two vocabularies, and the arrays that hold the tokens."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mirror import one_sentence, tiny_frame

from rtx_core.corpora import sources, tokens
from rtx_core.corpora.tokens import Tokens, tokenize, vocabulary
from rtx_core.errors import RtxError


@pytest.fixture
def bert(mirror):
    """A real-text tokenizer over the tiny mirror's vocabulary of single letters and three words."""
    return vocabulary("mirror", [])


def spelled(encoded: Tokens, tokenizer, row: int) -> list[str]:
    return [tokenizer.id_to_token(i) for i in encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]]]


def test_texts_become_wordpieces_between_cls_and_sep(bert):
    frame = pd.DataFrame({"text": ["A GOOD<br />film!!! ...", "Bads é"], "label": [1, 0]})
    encoded = tokenize(frame, bert, 16)
    assert spelled(encoded, bert, 0) == ["[CLS]", "a", "good", "film", "[UNK]", ".", "[SEP]"]
    assert spelled(encoded, bert, 1) == ["[CLS]", "bad", "##s", "e", "[SEP]"]  # accents go, as in BERT's uncased vocabulary
    assert encoded.labels.tolist() == [1, 0] and encoded.offsets.tolist() == [0, 7, 12]
    assert (encoded.ids.dtype, encoded.offsets.dtype, encoded.labels.dtype) == (np.int32, np.int64, np.int64)


@pytest.mark.parametrize("max_length", [3, 4, 7, 50])
def test_long_texts_are_cut_and_keep_cls_and_sep(bert, max_length):
    frame = tiny_frame(60, 5).rename(columns={"sentence": "text"})
    encoded, whole = tokenize(frame, bert, max_length), tokenize(frame, bert, 512)
    assert encoded.lengths.tolist() == np.minimum(whole.lengths, max_length).tolist()
    for row in range(60):
        long, short = spelled(whole, bert, row), spelled(encoded, bert, row)
        assert short[0] == "[CLS]" and short[-1] == "[SEP]" and short[:-1] == long[: len(short) - 1]


def test_text_that_spells_a_special_token_does_not_become_one(bert):
    encoded = tokenize(pd.DataFrame({"text": ["good [SEP] [CLS] [PAD] film"], "label": [0]}), bert, 40)
    assert not {"[SEP]", "[CLS]", "[PAD]"} & set(spelled(encoded, bert, 0)[1:-1])


def test_a_bad_text_stops_tokenising_and_names_its_row(bert):
    with pytest.raises(RtxError, match="Row 1 holds"):
        tokenize(pd.DataFrame({"text": ["a", None], "label": [0, 1]}), bert, 8)


# --- The vocabulary ---------------------------------------------------------------------------------------------------

def test_a_vocabulary_other_than_bert_s_is_refused(mirror):
    with open(mirror / "bert-base-uncased" / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("movie\n")
    with pytest.raises(RtxError) as error:
        vocabulary("mirror", [])
    one_sentence(error, "vocab.txt from the mirror has SHA-256", "fetch it again")


def test_a_vocabulary_that_the_hub_does_not_give_is_one_sentence(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def fail(*_):
        raise ConnectionError

    monkeypatch.setattr(hub, "hf_hub_download", fail)
    with pytest.raises(RtxError) as error:
        vocabulary("hub", ["good film"])
    one_sentence(error, "the vocabulary of google-bert/bert-base-uncased")


def test_the_real_vocabulary_is_bert_s(real_mirror):
    bert = vocabulary("mirror", [])
    encoded = tokenize(pd.DataFrame({"text": ["It 's a CHARMING and often affecting journey ."], "label": [1]}), bert, 128)
    assert bert.get_vocab_size() == 30_522
    assert encoded.ids.tolist() == [101, 2009, 1005, 1055, 1037, 11951, 1998, 2411, 12473, 4990, 1012, 102]


def test_the_trained_vocabulary_knows_its_own_corpus():
    texts = sources.embedded.reviews("movie", 600, seed=0, style="phrase")
    tokenizer = vocabulary("embedded", texts["text"].tolist())
    assert [tokenizer.token_to_id(t) for t in tokens.SPECIAL] == [0, 1, 2, 3, 4]  # pad_id of the models is 0
    encoded = tokenize(texts, tokenizer, 64)
    assert (encoded.ids == 1).sum() == 0 and (encoded.ids[encoded.offsets[:-1]] == 2).all() and (encoded.ids[encoded.offsets[1:] - 1] == 3).all()
    assert len(tokenizer.get_vocab()) <= 4096 and tokenizer.token_to_id("film") is not None
    assert encoded.lengths.sum() < 1.5 * sum(len(t.split()) + 2 for t in texts["text"])  # words, not letters


TRAIN_AND_ENCODE = """
from rtx_core.corpora import embedded, tokens
frame = embedded.reviews("movie", 300, 0, "phrase")
tokenizer = tokens.vocabulary("embedded", frame["text"].tolist())
print(tokenizer.get_vocab_size(), tokens.tokenize(frame, tokenizer, 32).sha256())
"""


def test_the_trained_vocabulary_is_the_same_in_every_process():
    """The library's trainer breaks ties by a hash that is new in each process; one process cannot show it."""
    said = {
        subprocess.run(
            [sys.executable, "-c", TRAIN_AND_ENCODE], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1


# --- The arrays -------------------------------------------------------------------------------------------------------

def numbered() -> Tokens:
    return Tokens(np.arange(10, dtype=np.int32), np.array([0, 3, 4, 8, 10]), np.array([0, 1, 2, 3]))


def test_take_and_keep_follow_the_rows_asked_for():
    asked = np.array([2, 0, 2])
    ids, lengths, labels = numbered().take(asked)
    assert (ids.tolist(), lengths.tolist(), labels.tolist()) == ([4, 5, 6, 7, 0, 1, 2, 4, 5, 6, 7], [4, 3, 4], [2, 0, 2])
    kept = numbered().keep(asked)
    assert len(kept) == 3 and kept.offsets.tolist() == [0, 4, 7, 11] and kept.lengths.tolist() == [4, 3, 4]
    assert all(np.array_equal(a, b) for a, b in zip(kept.take(np.array([1])), numbered().take(np.array([0]))))
    assert numbered().keep(np.arange(4)).sha256() == numbered().sha256()


def test_the_hash_of_tokens_sees_every_array():
    a = numbered()
    changed = [replace(a, ids=a.ids[::-1]), replace(a, offsets=np.array([0, 2, 4, 8, 10])), replace(a, labels=a.labels[::-1])]
    assert len({t.sha256() for t in [a, *changed]}) == 4
    assert replace(a, ids=np.repeat(a.ids, 2)[::2]).sha256() == a.sha256()  # a view with strides holds the same tokens
