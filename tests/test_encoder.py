"""The two encoders: their counts, recurrence, gradients, dropout and norm."""

import math
from copy import deepcopy

import pytest
import torch
from reference import TINY, batch_of, small

from rtx_core.fast.dropout import DropoutMasks
from rtx_core.fast.encoder import block as fused_or_plain
from rtx_core.models import build_model
from rtx_core.models.layers import rotary_table
from rtx_core.models.packed import Packed


@pytest.mark.parametrize("residual", ["code", "paper"])
def test_gradient_of_a_shared_layer_is_the_sum_over_passes(residual):
    model, batch = small(num_passes=3, residual=residual, residual_scale=0.7), batch_of([5, 1, 12])
    copies = [[deepcopy(layer) for layer in model.layers] for _ in range(3)]
    table = rotary_table(batch.positions, 16, 10_000.0)
    h = model.norm(model.word(batch.ids) + model.token_type.weight[0])
    for r, stack in enumerate(copies):
        before = h
        for layer in stack:
            h = layer(h, batch, table)
        h = h + (0.7 if r > 0 or residual == "paper" else 0.0) * before
    unrolled = model.head(h[batch.starts])
    unrolled.square().sum().backward()
    model.zero_grad()
    logits = model(batch)
    logits.square().sum().backward()
    torch.testing.assert_close(logits, unrolled, rtol=0, atol=1e-12)
    for i, layer in enumerate(model.layers):
        for name, parameter in layer.named_parameters():
            parts = [stack[i].get_parameter(name).grad for stack in copies]
            torch.testing.assert_close(parameter.grad, sum(parts), rtol=1e-9, atol=1e-12)
            assert all(part.abs().sum() > 0 for part in parts)


def test_training_mode_repeats_under_a_seed_and_evaluation_has_no_noise():
    model, batch = small(num_passes=2, dropout=0.3), batch_of([5, 1, 12])

    def logits(seed):
        torch.manual_seed(seed)
        return model(batch).detach()

    with torch.random.fork_rng(devices=[]):
        evaluated = logits(0)
        assert torch.equal(evaluated, logits(1))
        model.train()
        assert torch.equal(logits(0), logits(0)) and not torch.equal(logits(0), logits(1))
        assert not torch.equal(logits(0), evaluated)
        without = small(num_passes=2, dropout=0.0).train()
        torch.testing.assert_close(without(batch), evaluated, rtol=0, atol=1e-12)


@pytest.mark.parametrize("fused", [True, False])
def test_every_dropout_has_the_configured_probability(fused):
    drawn = []

    class Noted(DropoutMasks):
        def draw(self, p, shape):
            drawn.append((round(p, 4), math.prod(shape)))
            return super().draw(p, shape)

    model = build_model("baseline", seed=0, **TINY, dropout=0.25).train()
    model.step_dropout = Noted(0, 0)
    if fused:
        model.block = fused_or_plain.__get__(model)
    model(Packed.from_sequences([[1, 2, 3], [4]]))
    embedding, head = (0.25, 4 * 16), (0.25, 2 * 16)
    # Of each layer: attention, mixed, inner, out; in the last one [CLS] alone asks.
    first = [(0.25, 2 * 2 * 3 * 3), (0.4375, 4 * 16), (0.25, 4 * 32), (0.25, 4 * 16)]
    last = [(0.25, 2 * 2 * 3), (0.4375, 2 * 16), (0.25, 2 * 32), (0.25, 2 * 16)]
    assert drawn == [embedding, *first, *last, head]
