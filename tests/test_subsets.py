"""Subsets and containment: sizes, proportions, nesting, ties, and which texts are parts of which."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirror import one_sentence

from rtx_core.corpora.containment import contained, sentences
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.splits import PARTS, parts
from rtx_core.corpora.subsets import by_length, stratified, subset
from rtx_core.errors import RtxError


def numbered(labels: np.ndarray) -> pd.DataFrame:
    """Rows whose texts are their numbers."""
    return pd.DataFrame({"text": [str(n) for n in range(len(labels))], "label": labels})


SST2 = numbered((np.random.RandomState(7).random_sample(54_576) < 0.556).astype(int))  # as many training rows, about as many positive


def kept(frame: pd.DataFrame) -> list[int]:
    return frame["text"].astype(int).tolist()


# --- A share of the training texts ------------------------------------------------------------------------------------

@pytest.mark.parametrize("fraction, size", [(0.1, 5_458), (0.5, 27_288), (0.001, 55), (1.0, 54_576)])
def test_a_stratified_subset_has_the_size_and_the_proportions(fraction, size):
    small = stratified(SST2, fraction)
    assert len(small) == size  # 5,458 and 27,288 are the study's own
    for label in (0, 1):
        assert abs((small["label"] == label).sum() - fraction * (SST2["label"] == label).sum()) < 1
    assert (small["label"] == SST2["label"].to_numpy()[kept(small)]).all() and small.index.equals(pd.RangeIndex(size))
    assert kept(small) == sorted(set(kept(small)))  # each row once, in the order of the whole


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=60), st.floats(0.01, 1), st.floats(0.01, 1))
def test_smaller_shares_are_inside_larger_ones_and_no_class_is_off_by_more_than_one(labels, a, b):
    whole = numbered(np.array(labels))
    small, large = (stratified(whole, share) for share in sorted((a, b)))
    assert set(kept(small)) <= set(kept(large)) and len(small) == round(min(a, b) * len(whole))
    for label in set(labels):
        assert abs((small["label"] == label).sum() - min(a, b) * labels.count(label)) <= 1 + 1e-9


def test_the_sample_never_changes():
    assert kept(stratified(SST2, 0.1))[:8] == FIRST_ROWS
    assert kept(stratified(SST2, 0.1)) == kept(stratified(SST2.copy(), 0.1))


FIRST_ROWS = [17, 18, 28, 50, 66, 72, 76, 89]


# --- Short and long texts ---------------------------------------------------------------------------------------------

def test_the_shortest_and_the_longest_texts_are_those():
    frame = pd.DataFrame({"text": ["a b c", "a", "a  b", "a b c d", "b\ta", "b"], "label": [0, 1, 0, 1, 0, 1]})
    assert by_length(frame, "short", 0.5)["text"].tolist() == ["a", "a  b", "b"]  # of the three with two words, the first
    assert by_length(frame, "long", 0.5)["text"].tolist() == ["a b c", "a  b", "a b c d"]
    assert by_length(frame, "long", 0.34)["text"].tolist() == ["a b c", "a b c d"]


def three(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return dict.fromkeys(PARTS, frame)


def test_lengths_are_cut_in_every_part_and_labels_in_training_only():
    frame = pd.DataFrame({"text": ["w " * (1 + n % 7) for n in range(100)], "label": np.arange(100) % 2})
    found = subset(three(frame), 0.5, "short", 0.3)
    assert {name: len(part) for name, part in found.items()} == {"train": 15, "validation": 30, "test": 30}
    assert max(found["test"]["text"].str.split().str.len()) == 2
    assert [len(part) for part in subset(three(frame), 0.1, "all", 0.3).values()] == [10, 100, 100]
    for name, part in subset(three(frame), 1.0, "all", 0.3).items():
        assert part is frame, name


@pytest.mark.parametrize("asked, said", [
    ((0.0, "all", 0.3), "fraction is 0.0"), ((1.5, "all", 0.3), "above 0 and at most 1"), ((1.0, "short", float("nan")), "length_fraction is nan"),
    ((1.0, "middle", 0.3), "Unknown length 'middle'"), ((0.001, "all", 0.3), "leaves no text in the part train"), ((1.0, "long", 0.01), "leaves no text"),
])  # fmt: skip
def test_a_subset_that_cannot_be_is_one_sentence(asked, said):
    with pytest.raises(RtxError) as error:
        subset(three(numbered(np.arange(20) % 2)), *asked)
    one_sentence(error, said)


def test_the_facts_of_a_subset_say_so(mirror):
    whole, tenth, short = (dataset("sst2", "mirror", "seeded", 8, **given).facts for given in ({}, {"fraction": 0.5}, {"length": "short"}))
    assert "fraction" not in whole and "length" not in whole
    assert (tenth["fraction"], tenth["n_train"], tenth["n_test"]) == (0.5, 16, 4)
    assert (short["length"], short["length_fraction"], short["n_train"], short["n_test"]) == ("short", 0.3, 9, 1)
    assert len({whole["sha256"], tenth["sha256"], short["sha256"]}) == 3


# --- Parts of texts ---------------------------------------------------------------------------------------------------

def is_part(text: str, row: str) -> bool:
    """The definition, word by word."""
    a, b = text.split(), row.split()
    return any(b[i : i + len(a)] == a for i in range(len(b) - len(a) + 1))


TEXTS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_contained_is_what_the_definition_says(texts, rows):
    assert contained(texts, rows) == [any(is_part(text, row) for row in rows) for text in texts]


def test_words_are_compared_whole_and_blanks_are_blanks():
    assert contained(["a film", "film", "fil", "the  film", "a the", "film ."], ["a  film .", "the film"]) == [True, True, False, True, False, True]


@settings(deadline=None)
@given(TEXTS)
def test_sentences_are_the_texts_that_no_longer_one_contains(texts):
    within = sentences(texts)
    whole = [text for text in set(texts) if not any(text != other and is_part(text, other) for other in texts)]
    assert set(within) == set(texts) and sorted(within[text][0] for text in whole) == list(range(len(whole)))
    number = {text: within[text][0] for text in whole}
    for text in texts:
        assert sorted(within[text]) == sorted(number[other] for other in whole if is_part(text, other))


# --- The real mirror, where there is one ------------------------------------------------------------------------------

def test_real_subsets_have_the_studys_sizes(real_mirror):
    whole = parts("sst2", "mirror", "seeded")
    assert [len(subset(whole, share, "all", 0.3)["train"]) for share in (0.1, 0.5)] == [5_458, 27_288]
    assert [len(part) for part in subset(whole, 1.0, "short", 0.1).values()] == [5_457, 682, 682]
    short, long = (subset(whole, 1.0, length, 0.3)["test"]["text"].str.split().str.len() for length in ("short", "long"))
    assert (len(short), short.max(), len(long), long.min()) == (2_046, 4, 2_046, 12)
