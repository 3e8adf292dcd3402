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


@pytest.mark.parametrize("overrides", STACKS, ids=str)
@pytest.mark.parametrize("lengths", [[5, 1, 8], [1, 1, 1], [1], [6]], ids=str)
def test_computing_only_the_rows_that_are_read_changes_nothing(overrides, lengths):
    model, batch, results = small(**overrides), batch_of(lengths), []
    for rows_only in (True, False):
        logits = model(batch, rows_only=rows_only)
        gradients = torch.autograd.grad(logits.square().sum(), [p for p in model.parameters()])
        results.append([logits, *gradients])
    torch.testing.assert_close(*results, rtol=0, atol=1e-11)
