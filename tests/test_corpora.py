"""Text on its way to token ids: cleaning, sources and their failures, splits, the vocabulary, the cache, the facts."""

import hashlib
import os
import re
import string
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtx_core.corpora import sources, splits, tokens
from rtx_core.corpora.dataset import dataset, profile
from rtx_core.corpora.preprocess import clean, clean_all
from rtx_core.corpora.sources import CORPORA, content_sha256, load, resolve
from rtx_core.corpora.splits import PARTS, split
from rtx_core.corpora.tokens import Tokens, tokenize, vocabulary
from rtx_core.errors import RtxError

REAL_MIRROR = os.environ.get("RTX_DATA")  # as the tests start: the `home` fixture hides it from each of them
GLUE = {"train": 67_349, "validation": 872}
WORDPIECES = [*tokens.SPECIAL, *string.ascii_lowercase, *(f"##{c}" for c in string.ascii_lowercase), ".", "good", "bad", "film"]


def one_sentence(error: pytest.ExceptionInfo, *fragments: str) -> None:
    message = str(error.value)
    assert "\n" not in message and message.endswith("."), message
    for fragment in fragments:
        assert fragment in message


# --- Cleaning -----------------------------------------------------------------------------------------------------

PIECES = ["<", ">", "</", "<b>", "<br />", "<!--", "-->", "--", "http", "HTTPS", "://", ":", "/", "www.", "WWW", ".", "!", "?",
          "…", " ", "\n", "\t", "\u00a0", "\u2028", "\x1c", "\x00", "İ", "ß", "Σ", "ς", "A", "a", "b", "\u0301", "\u0307", "1", "_",
          "'", '"', "&", "😀", "٣", "\ud800", "ﬁ", "Ⅷ"]  # fmt: skip
hostile = st.one_of(st.text(st.characters()), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
TAG = re.compile(r"</?[a-z][^<>]*>")
REPEATED = re.compile(f"([{re.escape(string.punctuation.translate({ord(c): None for c in '<>/_'}))}…])\\s?\\1")


@settings(derandomize=True, database=None, deadline=None, max_examples=1500)
@given(hostile)
@example("http:::://a")  # becomes a URL once its colons collapse
@example("<<b>b>")  # becomes a tag once the inner tag is gone
@example("<B\n>İİ! !! ...\u00a0\u00a0wWw.a")
def test_cleaned_text_has_nothing_left_to_clean(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert cleaned == cleaned.lower()
    assert not TAG.search(cleaned)
    assert not re.search(r"https?://\S|www\.\S", cleaned)
    assert not REPEATED.search(cleaned)
    assert cleaned == " ".join(cleaned.split())  # no doubled space, none at the ends, no white space but " "


@settings(derandomize=True, database=None, deadline=None)
@given(st.lists(st.text(string.ascii_lowercase + string.digits, min_size=1).filter(lambda word: "www" not in word), min_size=1))
def test_clean_words_stay_as_they_are(words):
    text = " ".join(words)
    assert clean(text) == text


@pytest.mark.parametrize("text, expected", [
    ("  A\tGreat \n FILM ", "a great film"),  # 1: case and white space
    ("No<br /><br />charm", "no charm"),  # 2: tags …
    ('see <a href="http://x.org">THIS</a> <!-- or > that --> now', "see this now"),
    ("more at https://www.example.org/Reviews/1?q=2 , or WWW.x.org", "more at , or"),  # … and URLs
    ("Wow!!! so . . . bad ... ?! ,,", "wow! so . bad . ?! ,"),  # 3: repeated punctuation
    ("it 's n't 10 < 12 and/or 3 > 2 // ok", "it 's n't 10 < 12 and/or 3 > 2 // ok"),  # no tag, no URL
    ("a-b c--d e - - f", "a-b c-d e - f"),
    ("", ""),
])  # fmt: skip
def test_the_three_steps_by_example(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize("bad", ["", "  \n", None, float("nan"), 7, b"film", ["film"]])
def test_a_missing_text_is_an_error_that_names_its_row(bad):
    with pytest.raises(RtxError, match="Row 2 holds") as error:
        clean_all(["a", "b", bad, ""])
    one_sentence(error, "a non-empty text was expected")
    assert clean_all(["A  b", "C!!"]) == ["a b", "c!"]


# --- Splits -------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def glue() -> dict[str, pd.DataFrame]:
    """Tables of the real sizes whose texts are their row numbers in the pool: train 0 … 67348, validation after it."""
    numbers = np.arange(sum(GLUE.values()))
    pool = pd.DataFrame({"text": numbers.astype(str), "label": numbers % 2})
    return {"train": pool.iloc[: GLUE["train"]], "validation": pool.iloc[GLUE["train"] :].reset_index(drop=True)}


def rows(parts) -> dict[str, list[int]]:
    return {part: frame["text"].astype(int).tolist() for part, frame in parts.items()}


@pytest.mark.parametrize("how, sizes", [("seeded", (54_576, 6_822, 6_823)), ("official", (63_981, 3_368, 872))])
def test_every_row_lands_in_one_part(glue, how, sizes):
    parts = split(glue, how, "hub")
    assert tuple(parts) == PARTS and tuple(map(len, parts.values())) == sizes
    found = [row for part in rows(parts).values() for row in part]
    assert sorted(found) == list(range(68_221))
    for part in parts.values():
        assert list(part.columns) == ["text", "label"] and part.index.equals(pd.RangeIndex(len(part)))
        assert (part["label"] == part["text"].astype(int) % 2).all()  # a label stays with its text


@pytest.mark.parametrize("how, firsts", [
    ("seeded", {"train": [31704, 50034, 51680], "validation": [42702, 21171, 64247], "test": [64995, 48673, 30488]}),
    ("official", {"train": [43787, 16159, 59015], "validation": [37447, 55965, 24025], "test": [67349, 67350, 67351]}),
])
def test_the_permutation_never_changes(glue, how, firsts):
    first, second = rows(split(glue, how, "hub")), rows(split(glue, how, "mirror"))
    assert first == second
    assert {part: numbers[:3] for part, numbers in first.items()} == firsts


def test_the_official_test_set_is_the_hub_s_validation_in_its_order(glue):
    assert rows(split(glue, "official", "hub"))["test"] == list(range(67_349, 68_221))


def test_splitting_leaves_its_input_alone(glue):
    before = {name: frame.copy() for name, frame in glue.items()}
    split(glue, "seeded", "hub")
    for name, frame in glue.items():
        pd.testing.assert_frame_equal(frame, before[name])


def test_an_unknown_split_gets_the_nearest_name(glue):
    with pytest.raises(RtxError, match="Unknown split 'seed': did you mean 'seeded'\\?"):
        split(glue, "seed", "hub")


@pytest.mark.parametrize("source", ["hub", "embedded"])
def test_published_needs_the_mirror(glue, source):
    with pytest.raises(RtxError) as error:
        split(glue, "published", source)
    one_sentence(error, "The split 'published'", repr(source), "RTX_DATA", "split='seeded'")


# --- A tiny mirror --------------------------------------------------------------------------------------------------

def tiny_frame(n: int, seed: int) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    texts = [" ".join(random.choice(["good", "Bad", "film", "ab"], size=random.randint(1, 7))) + " ." for _ in range(n)]
    return pd.DataFrame({"sentence": texts, "label": random.randint(0, 2, size=n)})


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A whole mirror of 30 + 10 rows in RTX_DATA, with the hashes that the code would then expect."""
    folder = tmp_path / "mirror"
    (folder / "sst2").mkdir(parents=True)
    (folder / "bert-base-uncased").mkdir()
    frames = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    for name, frame in frames.items():
        frame.to_parquet(folder / "sst2" / f"{name}.parquet")
    assignment = ["test"] + ["train"] * 28 + ["validation"] * 6 + ["test"] * 5
    pd.DataFrame({"pool_idx": range(40), "split_a": assignment}).to_parquet(folder / "sst2" / "pooled_splits.parquet")
    monkeypatch.setattr(splits, "PUBLISHED_SHA256", hashlib.sha256("\n".join(assignment).encode()).hexdigest())
    vocab = folder / "bert-base-uncased" / "vocab.txt"
    vocab.write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    contents = {name: content_sha256(frame.rename(columns={"sentence": "text"})) for name, frame in frames.items()}
    monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], contents=contents))
    monkeypatch.setattr(tokens, "VOCABULARY_SHA256", hashlib.sha256(vocab.read_bytes()).hexdigest())
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder


def test_the_mirror_gives_the_hub_s_rows_as_text_and_label(mirror):
    loaded = load("sst2", "mirror")
    assert list(loaded) == ["train", "validation"]
    for seed, frame in enumerate(loaded.values()):
        assert list(frame.columns) == ["text", "label"]
        expected = tiny_frame(30 - 20 * seed, seed)
        assert frame["text"].tolist() == expected["sentence"].tolist() and frame["label"].tolist() == expected["label"].tolist()


def test_published_follows_the_assignment_file(mirror):
    pool = {"train": pd.DataFrame({"text": map(str, range(30)), "label": 0}), "validation": pd.DataFrame({"text": map(str, range(30, 40)), "label": 1})}
    assert rows(split(pool, "published", "mirror")) == {
        "train": list(range(1, 29)), "validation": list(range(29, 35)), "test": [0, 35, 36, 37, 38, 39]
    }  # fmt: skip
    with pytest.raises(RtxError) as error:
        split(pool | {"validation": pool["validation"][:9]}, "published", "mirror")
    one_sentence(error, "has 40 rows", "expected 39 rows with a column split_a")


@pytest.mark.parametrize("damage", [
    lambda f: f.rename(columns={"split_a": "a"}), lambda f: f.assign(split_a=["train"] * 40), lambda f: f.assign(split_a=["trian", *f["split_a"][1:]]),
])  # fmt: skip
def test_a_damaged_assignment_is_one_sentence(mirror, damage):
    path = mirror / "sst2" / "pooled_splits.parquet"
    damage(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(RtxError) as error:
        split(load("sst2", "mirror"), "published", "mirror")
    one_sentence(error, "The mirror's sst2/pooled_splits.parquet has", "fetch it again")
    path.write_bytes(b"PAR1")
    with pytest.raises(RtxError) as error:
        split(load("sst2", "mirror"), "published", "mirror")
    one_sentence(error, "sst2/pooled_splits.parquet is no readable parquet file")


def test_published_without_its_file_is_one_sentence(mirror):
    (mirror / "sst2" / "pooled_splits.parquet").unlink()
    with pytest.raises(RtxError) as error:
        split(load("sst2", "mirror"), "published", "mirror")
    one_sentence(error, "no file sst2/pooled_splits.parquet")


def test_a_mirror_that_is_not_set_is_one_sentence():
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "needs the variable RTX_DATA, which is not set")


def test_a_missing_mirror_file_is_named(mirror):
    (mirror / "sst2" / "validation.parquet").unlink()
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "no file sst2/validation.parquet")


def changed_text(frame):
    frame.loc[3, "sentence"] += "x"
    return frame


def changed_label(frame):
    frame.loc[3, "label"] = 1 - frame.loc[3, "label"]
    return frame


@pytest.mark.parametrize("damage", [changed_text, changed_label, lambda f: f[:-1], lambda f: f[::-1], lambda f: f[:0]])
def test_changed_content_is_refused(mirror, damage):
    damage(tiny_frame(30, 0)).to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "The mirror's sst2/train.parquet has content hash", "fetch it again")


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: b"sentence,label\n", lambda c: c[:-20]])
def test_an_unreadable_mirror_file_is_one_sentence(mirror, damage):
    path = mirror / "sst2" / "train.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, "train.parquet", "no readable parquet file")


@pytest.mark.parametrize("rename, lacking", [({"sentence": "text"}, "['sentence']"), ({"label": "y"}, "['label']"), ({"sentence": "s", "label": "y"}, "['label', 'sentence']")])
def test_other_columns_than_the_hub_s_are_refused(mirror, rename, lacking):
    tiny_frame(30, 0).rename(columns=rename).to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, f"lacks {lacking}", "mirror stanfordnlp/sst2 train")


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_out_of_range_is_named_with_its_row(mirror, label):
    frame = tiny_frame(30, 0)
    frame.loc[17, "label"] = label
    frame.to_parquet(mirror / "sst2" / "train.parquet")
    with pytest.raises(RtxError) as error:
        load("sst2", "mirror")
    one_sentence(error, f"has label {label} in row 17; labels are 0 to 1")


def test_a_home_directory_in_the_mirror_s_name_is_expanded(mirror, monkeypatch):
    monkeypatch.setenv("HOME", str(mirror.parent))
    monkeypatch.setenv("RTX_DATA", "~/mirror")
    assert len(load("sst2", "mirror")["train"]) == 30


# --- Sources ------------------------------------------------------------------------------------------------------

def test_real_means_the_mirror_if_there_is_one_else_the_hub(monkeypatch):
    assert resolve("real") == "hub"
    monkeypatch.setenv("RTX_DATA", "")
    assert resolve("real") == "hub"
    monkeypatch.setenv("RTX_DATA", "/somewhere")
    assert resolve("real") == "mirror"
    assert [resolve(s) for s in ("hub", "mirror", "embedded")] == ["hub", "mirror", "embedded"]


def test_unknown_sources_and_corpora_get_the_nearest_name():
    with pytest.raises(RtxError, match="Unknown source 'miror': did you mean 'mirror'\\?"):
        resolve("miror")
    with pytest.raises(RtxError, match="Unknown corpus 'sst-2': did you mean 'sst2'\\?"):
        load("sst-2", "embedded")


@pytest.mark.parametrize("failure", [ConnectionError("no route"), TimeoutError(), FileNotFoundError("not cached"), ValueError("bad answer")])
def test_a_hub_out_of_reach_is_one_sentence_and_no_other_data(monkeypatch, failure):
    datasets = pytest.importorskip("datasets")
    asked = []

    def fail(name, split):
        asked.append((name, split))
        raise failure

    monkeypatch.setattr(datasets, "load_dataset", fail)
    monkeypatch.setattr(sources, "_embedded", lambda corpus: pytest.fail("embedded text stood in for real text"))
    monkeypatch.setattr(sources, "_from_mirror", lambda *_: pytest.fail("the mirror stood in for the hub"))
    with pytest.raises(RtxError) as error:
        dataset("sst2", "hub", "seeded", 16)
    one_sentence(error, "stanfordnlp/sst2 (train)", type(failure).__name__, "RTX_DATA", "source='embedded'")
    assert asked == [("stanfordnlp/sst2", "train")] and error.value.__cause__ is failure


class FromTheHub:
    """What `datasets.load_dataset` returns, as far as it is used: SST-2 on the hub has a column `idx` too."""

    def __init__(self, frame):
        self.frame = frame.assign(idx=range(len(frame)))

    def to_pandas(self):
        return self.frame


def test_hub_and_mirror_give_the_same_tables(mirror, monkeypatch):
    datasets = pytest.importorskip("datasets")
    parts = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    monkeypatch.setattr(datasets, "load_dataset", lambda name, split: FromTheHub(parts[split]))
    from_hub, from_mirror = load("sst2", "hub"), load("sst2", "mirror")
    assert {k: v.values.tolist() for k, v in from_hub.items()} == {k: v.values.tolist() for k, v in from_mirror.items()}


def test_a_vocabulary_that_the_hub_does_not_give_is_one_sentence(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def fail(*_):
        raise ConnectionError

    monkeypatch.setattr(hub, "hf_hub_download", fail)
    with pytest.raises(RtxError) as error:
        vocabulary("hub", ["good film"])
    one_sentence(error, "the vocabulary of google-bert/bert-base-uncased")


def test_content_hash_is_of_the_content_and_not_of_the_file(tmp_path):
    frame = pd.DataFrame({"text": ["good , film", 'a "b"', "naïve\tπ"], "label": [1, 0, 1]})
    frame.to_parquet(tmp_path / "a.parquet", compression="gzip")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    read = [
        frame, frame.astype({"label": "int8"}), frame.set_index(pd.Index([7, 3, 9])), frame[["label", "text"]], frame.assign(idx=0),
        pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "a.csv"), pd.read_json(tmp_path / "a.jsonl", lines=True),
    ]  # fmt: skip
    assert {content_sha256(f) for f in read} == {"6a80f1bdc84ee62b1adf26bb0d6b554aff5c247a85d8b7d0095dbf5f151c4b11"}
    other = [frame[::-1], frame[:2], frame.assign(label=[1, 0, 0]), frame.assign(text=["good , film", 'a "b"', "naïve π"])]
    assert len({content_sha256(f) for f in [frame, *other]}) == 5


def test_embedded_text_is_cut_from_one_table_without_overlap():
    loaded = load("sst2", "embedded")
    assert {name: len(frame) for name, frame in loaded.items()} == {"train": 5000, "validation": 500}
    whole = sources.embedded.reviews("movie", 5500, seed=0, style="phrase")
    assert pd.concat(loaded.values())["text"].tolist() == whole["text"].tolist()


# --- Tokens -------------------------------------------------------------------------------------------------------

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


def test_a_vocabulary_other_than_bert_s_is_refused(mirror):
    with open(mirror / "bert-base-uncased" / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("movie\n")
    with pytest.raises(RtxError) as error:
        vocabulary("mirror", [])
    one_sentence(error, "vocab.txt from the mirror has SHA-256", "fetch it again")


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


# --- The dataset of an experiment -------------------------------------------------------------------------------------

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
    assert len(set(hashes)) == 6


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


@pytest.mark.parametrize("damage", [lambda c: c[100:], lambda c: b"no archive"])
def test_a_damaged_cache_is_made_anew(mirror, home, damage):
    first = dataset("sst2", "mirror", "seeded", 8)
    (path,) = (home / "_build" / "cache").glob("tokens-*.npz")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert dataset("sst2", "mirror", "seeded", 8).facts == first.facts
    assert path.stat().st_size == len(whole)


def test_the_cache_lies_where_runs_write(mirror, home):
    dataset("sst2", "mirror", "seeded", 8)
    assert len(list((home / "_build" / "cache").glob("tokens-*.npz"))) == 1


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


# --- The real mirror, where there is one --------------------------------------------------------------------------------

@pytest.fixture
def real_mirror(monkeypatch):
    if not REAL_MIRROR:
        pytest.skip("RTX_DATA names no mirror of the real data")
    monkeypatch.setenv("RTX_DATA", REAL_MIRROR)


def test_published_reproduces_table_1_of_the_report(real_mirror):
    parts = split(load("sst2", "mirror"), "published", "mirror")
    assert {name: len(frame) for name, frame in parts.items()} == {"train": 54_576, "validation": 6_822, "test": 6_823}
    assert [f"{100 * (frame['label'] == 0).mean():.2f}" for frame in parts.values()] == ["44.11", "44.91", "45.04"]


def test_the_real_splits_hold_the_recorded_rows(real_mirror):
    corpus = load("sst2", "mirror")
    found = {how: [content_sha256(f)[:12] for f in split(corpus, how, "mirror").values()] for how in splits.SPLITS}
    assert found == {
        "seeded": ["54a746cdd159", "9d242e6d6a5e", "7c0a5a39cb01"],
        "published": ["4c7b43bc340e", "8a17eeb58dc9", "a730e005b356"],
        "official": ["f56966abdaa3", "8dde0cdef43a", "357a99d8042d"],
    }


def test_the_real_vocabulary_is_bert_s(real_mirror):
    bert = vocabulary("mirror", [])
    encoded = tokenize(pd.DataFrame({"text": ["It 's a CHARMING and often affecting journey ."], "label": [1]}), bert, 128)
    assert bert.get_vocab_size() == 30_522
    assert encoded.ids.tolist() == [101, 2009, 1005, 1055, 1037, 11951, 1998, 2411, 12473, 4990, 1012, 102]


def test_a_source_is_resolved_or_refused_wherever_it_is_named(mirror):
    assert load("sst2", "real").keys() == load("sst2", "mirror").keys()
    assert dataset("sst2", "real", "seeded", 16).facts == dataset("sst2", "mirror", "seeded", 16).facts
    for use in (lambda: load("sst2", "mirrror"), lambda: dataset("sst2", "mirrror", "seeded", 16)):
        with pytest.raises(RtxError, match="Unknown source 'mirrror': did you mean 'mirror'"):
            use()


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:40], lambda c: b"x" * len(c)])
def test_a_damaged_cache_is_made_anew(home, damage):
    first = dataset("sst2", "embedded", "seeded", 16)
    (cache,) = (home / "_build" / "cache").iterdir()
    whole = cache.read_bytes()
    cache.write_bytes(damage(whole))
    assert dataset("sst2", "embedded", "seeded", 16).facts == first.facts and cache.read_bytes() == whole
