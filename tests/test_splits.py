"""Splits: every row lands in one part, the permutation never changes, and the published assignment is followed."""

import numpy as np
import pandas as pd
import pytest
from mirror import one_sentence

from rtx_core.corpora import splits
from rtx_core.corpora.sources import content_sha256, load
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
    }
