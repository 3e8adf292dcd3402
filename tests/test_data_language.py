"""Running text: characters and stories as exact batches, in any number of pieces."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from conftest import CPU, NO_AUTOCAST, gradient, refused
from torch import nn

from rtx_core.data import LanguageData, characters, stories, task
from rtx_core.data.stories import STORY
from rtx_core.data.synthetic import tales
from rtx_core.data.tasks import mean_and_error
from rtx_core.models.packed import Packed

PLAY = LanguageData(corpus="shakespeare", source="embedded", block_size=32, eval_batches=3)
TALES = LanguageData(corpus="tinystories", source="embedded", block_size=32, eval_batches=3)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(stories, "EMBEDDED", {"train": 30, "validation": 12})
    monkeypatch.setattr(characters, "EMBEDDED_CHARACTERS", 5000)


class Bigram(nn.Module):
    """Predicts the next token from the last one."""

    def __init__(self, vocabulary: int):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(vocabulary, vocabulary)

    def forward(self, inputs, targets):
        ids = inputs.ids if isinstance(inputs, Packed) else inputs
        return F.cross_entropy(self.table(ids).flatten(0, -2), targets.flatten())


def flat(batches) -> tuple[list[int], list[int]]:
    """(inputs, targets) of batches, end to end."""
    inputs = [x.ids if isinstance(x, Packed) else x.flatten() for x, _ in batches]
    return torch.cat(inputs).tolist(), torch.cat([y.flatten() for _, y in batches]).tolist()


@pytest.mark.parametrize("config", [PLAY, TALES, TALES.replace(across_stories=True)])
def test_a_step_is_the_same_in_any_number_of_pieces(config):
    whole, pieces = task(config, 4), task(config, 4, micro_batches=4)
    assert whole.unit == "tokens" and whole.steps_per_epoch is None
    assert whole.model_settings == {"vocab_size": whole.vocab_size, "block_size": 32}
    for i in (0, 1, 9, 40):
        assert flat(pieces.step(5, i)) == flat(whole.step(5, i))
        assert len(flat(whole.step(5, i))[1]) == whole.examples(i) == 128
    assert flat(whole.step(5, 0)) != flat(whole.step(6, 0)) != flat(whole.step(6, 1))
    model = Bigram(whole.vocab_size)
    (expected, total), found = gradient(whole, model, 2), gradient(pieces, model, 2)
    torch.testing.assert_close(found, (expected, total))
    assert whole.summary(total.tolist(), 128) == {"train_loss": total.item() / 128}


@pytest.mark.parametrize("config", [PLAY, TALES])
def test_evaluation_is_of_fixed_batches_of_both_parts(config):
    data = task(config, 4)
    model = Bigram(data.vocab_size).train()
    row = data.evaluate(model, CPU, NO_AUTOCAST)
    assert set(row) == {f"{p}_{k}" for p in ("validation", "training_sample") for k in ("loss", "error")}
    assert row == task(config, 4).evaluate(model, CPU, NO_AUTOCAST) and model.training
    assert [len(batches) for batches in data.evaluation.values()] == [3, 3]
    test, predictions = data.test(model, CPU, NO_AUTOCAST)
    assert predictions is None and test["n"] == sum(test["batch_sizes"]) == len(flat(data.test_batches())[1])
    weighted = np.average(test["batch_losses"], weights=test["batch_sizes"])
    assert test["loss"] == pytest.approx(weighted) and test["error"] > 0


def test_the_error_of_a_mean_is_that_of_its_batches():
    losses, sizes = torch.tensor([1.0, 2.0, 4.0, 5.0]).double(), torch.full((4,), 7.0).double()
    assert mean_and_error(losses, sizes) == pytest.approx((3, losses.std().item() / 2))
    assert mean_and_error(losses[:1], sizes[:1]) == pytest.approx((1, math.nan), nan_ok=True)


def test_targets_are_the_next_characters_and_the_test_reads_each_once():
    data = task(PLAY, 4)
    text = characters.load("embedded")
    for inputs, targets in [*data.step(0, 0), *data.evaluation["validation"]]:
        assert inputs.shape == targets.shape == (4, 32) and torch.equal(inputs[:, 1:], targets[:, :-1])
        assert data.decode(inputs[0]) in text
    inputs, targets = flat(data.test_batches())
    validation = data.parts["validation"].tolist()
    assert inputs == validation[:-1] and targets == validation[1:]
    assert data.decode(torch.cat([*data.parts.values()])) == text
    assert len(data.parts["train"]) == 4500 == data.facts["n_train"] and data.facts["n_test"] == 500


def test_texts_read_back_and_stories_begin_with_a_sign_that_no_text_can_write():
    for _ in range(2):  # the second time from the cache
        data = task(TALES, 4)
        for text in (tales(1)[0], "Zoë said: “42 + 7”\n\n\t😀 ", "\x00\x7f", " a  b ", "a <story> b"):
            assert STORY not in data.encode(text) and data.decode(data.encode(text)) == text
        assert len(data.encode("2024")) == 4
    for name, texts in stories.load("embedded").items():
        assert [data.decode(ids[1:]) for ids in stories.split_stories(data.parts[name]) if ids[0] == STORY] == texts
        assert data.facts[f"{name}_stories"] == len(texts)
    assert data.facts["validation_bytes"] == sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize(("across", "cuts"), [(False, [0, 2, 34, 66, 73, 75, 76]), (True, [0, 32, 64, 76])])
def test_a_batch_is_cut_at_stories_and_blocks(across, cuts):
    ids = np.array([5, 6, STORY, *range(10, 80), STORY, 7, STORY, 8], dtype=np.uint16)
    packed, targets = task(TALES.replace(across_stories=across), 4).batch(ids)
    assert packed.ids.tolist() == ids[:-1].tolist() and targets.tolist() == ids[1:].tolist()
    assert packed.cu_seqlens.tolist() == cuts


def test_an_epoch_reads_the_shuffled_stories_in_turn():
    data = task(TALES, 4)
    train = stories.split_stories(data.parts["train"])
    steps = (len(data.parts["train"]) - 1) // 128
    for epoch in (0, 1):
        order = np.random.RandomState((3, epoch)).permutation(len(train))
        stream = np.concatenate([train[i] for i in order]).tolist()
        inputs, targets = flat([b for i in range(steps) for b in data.step(3, epoch * steps + i)])
        assert inputs == stream[: steps * 128] and targets == stream[1 : steps * 128 + 1]
    assert flat(data.test_batches())[1] == data.parts["validation"][1:].tolist()


def test_a_step_larger_than_a_part_and_a_changed_mirror_are_one_sentence(home, monkeypatch):
    with refused("batch_size", "128,000"):
        task(TALES, 4000)
    monkeypatch.setenv("RTX_DATA", str(home))
    play, story = home / "tinyshakespeare" / "input.txt", home / "tinystories" / "train.parquet"
    for file in (play, story):
        file.parent.mkdir()
    play.write_text("First Citizen:")
    with refused("SHA-256", "86c4e6aa9db7"):
        task(LanguageData(corpus="shakespeare"), 4)
    for column, facts in (("story", ["TinyStories", "['text']"]), ("text", ["train.parquet", "SHA-256"])):
        pd.DataFrame({column: ["Once."]}).to_parquet(story)
        with refused(*facts):
            task(LanguageData(corpus="tinystories"), 4)


def test_the_real_play_is_the_usual_one(real_mirror):
    data = task(LanguageData(corpus="shakespeare"), 64)
    assert (data.vocab_size, data.facts["n_train"], data.facts["n_test"]) == (65, 1_003_854, 111_540)
    assert [len(inputs) for inputs, _ in data.test_batches()] == [15] * 29 + [1]
