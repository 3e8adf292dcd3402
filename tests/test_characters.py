"""Characters: the published split and symbols, batches that are functions of seed and step, a test that reads each prediction once."""

import pytest
import torch

from rtx_core.corpora import characters
from rtx_core.corpora.play import play
from rtx_core.errors import RtxError
from rtx_core.training.recipes import Recipe

SMALL = Recipe(batch_size=6, block_size=16, micro_batches=3, eval_batches=2)


def test_real_text_has_the_published_sizes(real_mirror):
    data = characters.data("mirror", Recipe())
    assert data.vocab_size == 65 and "".join(data.symbols[:13]) == "\n !$&',-.3:;?"
    assert (data.facts["n_train"], data.facts["n_validation"]) == (1_003_854, 111_540) and data.facts["sha256"] == characters.SHA256


def test_play_is_the_same_every_time_and_looks_like_one():
    text = play(5000)
    assert len(text) == 5000 and text == play(5000) != play(5000, seed=1)
    assert text.startswith(text.split(":\n")[0] + ":\n") and text.split(":\n")[0].isupper()
    assert characters.data("embedded", SMALL).facts["name"] == "embedded play"


def test_decoding_undoes_encoding_and_a_strange_character_is_named():
    data = characters.data("embedded", SMALL)
    assert data.decode(data.encode(data.text[:300])) == data.text[:300]
    with pytest.raises(RtxError, match=r"^The text has 'é', which is none of the \d+ symbols of the training text; leave it out\.$"):
        data.encode("café")


def test_step_is_a_function_of_seed_and_step():
    data = characters.data("embedded", SMALL)

    def batch(seed, step):
        inputs, targets = (torch.cat(parts) for parts in zip(*data.step(seed, step)))
        return torch.cat([inputs, targets[:, -1:]], dim=1)

    assert torch.equal(batch(3, 7), batch(3, 7))
    assert not torch.equal(batch(3, 7), batch(3, 8)) and not torch.equal(batch(3, 7), batch(4, 7))
    assert [tuple(inputs.shape) for inputs, _ in data.step(0, 0)] == [(2, 16)] * 3
    training = data.decode(data.parts["train"])
    for window in batch(0, 0):
        assert data.decode(window) in training


def test_evaluation_is_fixed_and_test_reads_every_character_once():
    data = characters.data("embedded", SMALL)
    for part, batches in data.evaluation().items():
        text = data.decode(data.parts["validation" if part == "validation" else "train"])
        for (inputs, targets), (again, _) in zip(batches, data.evaluation()[part], strict=True):
            assert torch.equal(inputs, again) and torch.equal(inputs[:, 1:], targets[:, :-1]) and data.decode(inputs[0]) in text
    ids, batches = data.parts["validation"], data.test()
    assert torch.equal(torch.cat([targets.flatten() for _, targets in batches]), ids[1:])
    assert torch.equal(torch.cat([inputs.flatten() for inputs, _ in batches]), ids[:-1])


def test_wrong_text_and_too_long_a_block_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    with pytest.raises(RtxError, match="The mirror has no file tinyshakespeare/input.txt"):
        characters.data("real", SMALL)
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text("To be")
    with pytest.raises(RtxError, match=r"^The text from the mirror has SHA-256 .*, expected 86c4e6aa9db7… \(tiny Shakespeare\); fetch it again\.$"):
        characters.data("real", SMALL)
    with pytest.raises(RtxError, match=r"^block_size is 20,000; the validation part has 20,000 characters"):
        characters.data("embedded", Recipe(block_size=20_000)).parts
