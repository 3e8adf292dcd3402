"""Packing: packed sentences give what each gives alone, and nothing crosses their borders."""

import pytest
import torch
from reference import batch_of, generator, sentences_of, small

from rtx_core.errors import RtxError
from rtx_core.models.packed import Packed

STACKS = [
    {"num_passes": 1},
    {"num_passes": 2},
    {"num_passes": 3, "residual": "paper"},
    {"num_passes": 1, "residual": "paper", "residual_scale": 0.3},
]


def random_lengths(seed: int) -> list[int]:
    return [1, *torch.randint(1, 30, (6,), generator=generator(seed)).tolist(), 1]


def test_packing_lays_sequences_end_to_end():
    batch = Packed.from_sequences([[5, 6, 7], [8], [9, 4]])
    assert batch.ids.tolist() == [5, 6, 7, 8, 9, 4]
    assert batch.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert batch.offsets.tolist() == [0, 3, 4, 6] and batch.offsets.dtype == torch.int32
    assert (batch.longest, len(batch), batch.starts.tolist()) == (3, 3, [0, 3, 4])
    assert batch.cell.tolist() == [0, 1, 2, 3, 6, 7]
    assert batch.mask[:, 0, 0].tolist() == [[True, True, True], [True, False, False], [True, True, False]]


@pytest.mark.parametrize("sequences", [[], [[]], [[1, 2], [], [3]]])
def test_empty_batches_and_empty_sequences_are_refused(sequences):
    with pytest.raises(RtxError, match="every batch and every sequence needs a token"):
        Packed.from_sequences(sequences)


@pytest.mark.parametrize("overrides", STACKS, ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
@torch.inference_mode()
def test_packed_equals_one_by_one(overrides, seed):
    model, sentences = small(**overrides), sentences_of(random_lengths(seed), seed)
    packed = model(Packed.from_sequences(sentences))
    alone = torch.cat([model(Packed.from_sequences([s])) for s in sentences])
    assert packed.shape == (8, 2) and packed.std() > 0.01  # logits that all agree would prove nothing
    torch.testing.assert_close(packed, alone, rtol=0, atol=1e-12)


@torch.inference_mode()
def test_order_matters_of_tokens_and_not_of_sentences():
    model, sentences, order = small(num_passes=2), sentences_of([4, 1, 9, 2, 7]), [3, 0, 4, 2, 1]
    shuffled = model(Packed.from_sequences([sentences[i] for i in order]))
    torch.testing.assert_close(shuffled, model(Packed.from_sequences(sentences))[order], rtol=0, atol=1e-12)
    logits = model(Packed.from_sequences([[5, 6, 7, 8], [5, 7, 6, 8]]))
    assert (logits[0] - logits[1]).abs().max() > 1e-4


@pytest.mark.parametrize("overrides", STACKS, ids=str)
@pytest.mark.parametrize("lengths", [[5, 1, 8], [1, 1, 1], [1], [6]], ids=str)
def test_computing_only_the_rows_that_are_read_changes_nothing(overrides, lengths):
    model, batch, results = small(**overrides), batch_of(lengths), []
    for rows_only in (True, False):
        logits = model(batch, rows_only=rows_only)
        gradients = torch.autograd.grad(logits.square().sum(), [p for p in model.parameters()])
        results.append([logits, *gradients])
    torch.testing.assert_close(*results, rtol=0, atol=1e-11)


@pytest.mark.parametrize("replacement", [[9, 9, 9], [11], list(range(1, 26))], ids=len)
@torch.inference_mode()
def test_a_sentence_does_not_see_its_neighbours(replacement):
    model, sentences = small(num_passes=2), sentences_of([6, 3, 10])
    first = model(Packed.from_sequences(sentences))
    second = model(Packed.from_sequences([sentences[0], replacement, sentences[2]]))
    torch.testing.assert_close(first[[0, 2]], second[[0, 2]], rtol=0, atol=1e-12)
    assert (first[1] - second[1]).abs().max() > 1e-3


def test_no_gradient_crosses_sentence_borders():
    model, batch, seen = small(num_passes=2), batch_of([4, 3, 5]), {}
    model.norm.register_forward_hook(lambda _, args, out: seen.setdefault("h", out.retain_grad() or out))
    model(batch)[1].square().sum().backward()
    by_token = seen["h"].grad.abs().amax(1)
    assert (by_token[:4] == 0).all() and (by_token[7:] == 0).all() and (by_token[4:7] > 0).all()
