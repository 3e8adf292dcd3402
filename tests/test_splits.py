"""Splits: every row lands in one part, the permutation never changes, and the published assignment is followed."""

import numpy as np
import pandas as pd
import pytest
from mirror import one_sentence

from rtx_core.corpora import splits
from rtx_core.corpora.containment import contained
from rtx_core.corpora.preprocess import clean_all
from rtx_core.corpora.sources import CORPORA, content_sha256, load
from rtx_core.corpora.splits import PARTS, split
from rtx_core.errors import RtxError

GLUE = {"train": 67_349, "validation": 872}


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


# --- The published assignment -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("source", ["hub", "embedded"])
def test_published_needs_the_mirror(glue, source):
    with pytest.raises(RtxError) as error:
        split(glue, "published", source)
    one_sentence(error, "The split 'published'", repr(source), "RTX_DATA", "split='seeded'")


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


# --- The grouped split ------------------------------------------------------------------------------------------------

def phrases(n: int) -> dict[str, pd.DataFrame]:
    """n sentences of eight words, each with three pieces of its own, and two pieces that every one of them has."""
    texts = []
    for i in range(n):
        words = ["the", "film", *(f"w{i}x{k}" for k in range(6))]
        texts += [" ".join(words[a:b]) for a, b in ((0, 8), (2, 8), (4, 6), (7, 8))]
    pool = pd.DataFrame({"text": [*texts, "the film", "film"]}).assign(label=lambda f: f.index % 2)
    return {"train": pool.iloc[: 3 * n], "validation": pool.iloc[3 * n :].reset_index(drop=True)}


def test_grouped_keeps_the_pieces_of_a_sentence_together():
    parts = split(phrases(100), "grouped", "hub")
    assert {part: len(frame) for part, frame in parts.items()} == {"train": 4 * 80 + 2, "validation": 4 * 10, "test": 4 * 10}
    found = {part: {text.split()[-1].split("x")[0] for text in frame["text"]} - {"film"} for part, frame in parts.items()}
    assert not found["train"] & found["test"] and not found["train"] & found["validation"] and not found["validation"] & found["test"]
    assert {"the film", "film"} <= set(parts["train"]["text"])  # they occur on both sides, so no test is made of them


def test_a_phrase_of_validation_and_test_alone_is_left_out():
    texts = [f"s{i} a{i} {'shared' if i in HELD_OUT else f'b{i}'}" for i in range(20)]
    pool = pd.DataFrame({"text": [*texts, "shared"], "label": 0})
    parts = split({"train": pool}, "grouped", "hub")
    held_out = {int(text.split()[0][1:]): part for part in ("validation", "test") for text in parts[part]["text"]}
    assert sorted(held_out) == HELD_OUT and set(held_out.values()) == {"validation", "test"}
    assert sum(map(len, parts.values())) == 20 and not any("shared" == text for frame in parts.values() for text in frame["text"])


HELD_OUT = [0, 2, 5, 11]  # the sentences that fall into validation and test, of twenty of equal length


def test_no_test_text_is_in_a_training_text_as_the_models_see_them():
    """Cleaning can make two texts one: what counts is what remains."""
    pool = phrases(40)["train"].assign(text=lambda f: [text.upper() + (" !!!" if i % 2 else " !") for i, text in enumerate(f["text"])])
    parts = {part: clean_all(frame["text"]) for part, frame in split({"train": pool}, "grouped", "hub").items()}
    assert not any(contained(parts["test"], parts["train"])) and not any(contained(parts["validation"], parts["train"]))
    assert not any(contained(parts["test"], parts["validation"])) and min(map(len, parts.values())) > 0


# --- The other corpora ------------------------------------------------------------------------------------------------

def test_a_split_of_another_corpus_gets_the_ones_it_has():
    with pytest.raises(RtxError) as error:
        splits.parts("yelp", "embedded", "official")
    one_sentence(error, "Unknown split of yelp 'official'", "the choices are seeded")


def test_too_few_rows_are_refused():
    with pytest.raises(RtxError) as error:
        splits.seeded(pd.DataFrame({"text": ["a"] * 5, "label": 0}), 6)
    one_sentence(error, "has 5 usable rows, expected at least 6")


def test_a_sample_is_the_beginning_of_the_permutation():
    pool = pd.DataFrame({"text": [str(n) for n in range(1000)], "label": 0})
    whole, some = rows(splits.seeded(pool)), rows(splits.seeded(pool, 100))
    order = [number for part in PARTS for number in whole[part]]
    assert [number for part in PARTS for number in some[part]] == order[:100] and [len(some[part]) for part in PARTS] == [80, 10, 10]


@pytest.mark.parametrize("name", ["multi-domain", "multi-domain-imdb"])
def test_a_mixture_holds_equally_many_distinct_texts_of_each_member(name):
    parts = splits.parts(name, "embedded", "seeded")
    of_class = {part: frame["label"].value_counts().to_dict() for part, frame in parts.items()}
    sizes = {part: counts[0] for part, counts in of_class.items()}
    assert all(set(counts) == {0, 1, 2} and len(set(counts.values())) == 1 for counts in of_class.values())
    texts = pd.concat(parts.values())["text"]
    assert texts.is_unique and len(texts) == 3 * sum(sizes.values())
    for label, member in enumerate(CORPORA[name].members):
        pool = set(pd.concat(load(member, "embedded").values())["text"])
        assert all(set(frame["text"][frame["label"] == label]) <= pool for frame in parts.values())


# --- The real mirror, where there is one ------------------------------------------------------------------------------

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
        "grouped": ["5d43061c9a0b", "33212ceab239", "d2f696efb3ef"],
    }


def test_the_real_grouped_split_is_disjoint(real_mirror):
    parts = splits.parts("sst2", "mirror", "grouped")
    assert {part: len(frame) for part, frame in parts.items()} == {"train": 55_657, "validation": 6_238, "test": 6_281}
    seen = {part: clean_all(frame["text"]) for part, frame in parts.items()}
    assert not any(contained(seen["test"], seen["train"])) and not any(contained(seen["validation"], seen["train"]))


@pytest.mark.parametrize("name, sizes, classes", [("yelp", (54_576, 6_822, 6_823), 2), ("multi-domain", (54_576, 6_822, 6_822), 3),
                                                  ("multi-domain-imdb", (54_576, 6_822, 6_822), 3)])  # fmt: skip
def test_the_other_real_corpora_have_the_reports_sizes(real_mirror, name, sizes, classes):
    parts = splits.parts(name, "mirror", "seeded")
    assert tuple(map(len, parts.values())) == sizes and pd.concat(parts.values())["text"].is_unique
    for frame in parts.values():
        shares = frame["label"].value_counts(normalize=True)
        assert len(shares) == classes and (shares == 1 / 3).all() if classes == 3 else (shares - 0.5).abs().max() < 0.02
