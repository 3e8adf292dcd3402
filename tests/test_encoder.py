"""The two encoders: their counts, recurrence, gradients, dropout and norm."""

import math
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from reference import TINY, batch_of, small

from rtx_core.fast.dropout import DropoutMasks
from rtx_core.fast.encoder import block as fused_or_plain
from rtx_core.models import build_model, count_parameters
from rtx_core.models.dropout import TorchDropout
from rtx_core.models.layers import EncoderBlock, rotary_table
from rtx_core.models.packed import Packed

COUNTS = [
    ("baseline", 2, 25_912_706, 14_192_258, 2_365_056),
    ("baseline", 3, 25_913_091, 14_192_643, 2_365_056),
    ("recurrent", 2, 10_972_162, 3_158_530, 1_052_416),
    ("recurrent", 3, 10_972_419, 3_158_787, 1_052_416),
    ("recurrent-wide", 2, 18_817_538, 7_097_090, 2_365_056),
]


@pytest.mark.parametrize(("name", "classes", "total", "non_embedding", "of_a_layer"), COUNTS)
def test_parameter_counts_are_the_published_ones(name, classes, total, non_embedding, of_a_layer):
    with torch.device("meta"):
        model = build_model(name, num_labels=classes)
    assert count_parameters(model) == {"total": total, "non_embedding": non_embedding}
    assert {sum(p.numel() for p in layer.parameters()) for layer in model.layers} == {of_a_layer}


@pytest.mark.parametrize(("residual", "differs"), [("code", False), ("paper", True)])
@torch.inference_mode()
def test_residual_scale_in_the_first_pass_counts_in_the_paper_form_only(residual, differs):
    def logits(num_passes, scale):
        return small(num_passes=num_passes, residual=residual, residual_scale=scale)(batch_of([5, 3]))

    assert (not torch.equal(logits(1, 0.5), logits(1, 1.0))) == differs
    assert not torch.equal(logits(2, 0.5), logits(2, 1.0))


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


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_two_dropouts_in_series_are_one_with_the_merged_probability(p):
    block = EncoderBlock(48, 3, 80, p, 1e-12).train()
    for module in (block.attention.out, block.ffn.down):
        torch.nn.init.zeros_(module.weight)
    torch.nn.init.ones_(block.attention.out.bias)  # the attention branch adds 1 everywhere, the other 0
    torch.nn.init.zeros_(block.ffn.down.bias)
    batch = batch_of([400, 100])
    table = rotary_table(batch.positions, 16, 10_000.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        out = block(torch.zeros(500, 48), batch, table, dropout=TorchDropout())
        in_series = F.dropout(F.dropout(torch.ones(500, 48), p), p)
    kept = (1 - p) ** 2
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / kept])
    for dropped in (out, in_series):
        assert (dropped == 0).double().mean() == pytest.approx(1 - kept, abs=0.01)


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
