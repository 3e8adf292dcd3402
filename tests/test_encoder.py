"""The two encoders: their counts, recurrence, gradients, dropout and norm."""

import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from reference import TINY, generator, sentences_of, small
from safetensors.torch import load_file

from rtx_core.models import build_model, count_parameters, encoder, layers, model_config, save_model
from rtx_core.models.attention import packed_attention
from rtx_core.models.layers import Attention, Block, RMSNorm, SwiGLU, rotary_table
from rtx_core.models.masks import Masks, TorchDropout
from rtx_core.models.packed import Packed
from rtx_core.parameters import CLASSIFIERS


# --- Counts -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, classes, total, non_embedding", [
    ("baseline", 2, 25_912_706, 14_192_258),
    ("baseline", 3, 25_913_091, 14_192_643),
    ("recurrent", 2, 10_972_162, 3_158_530),
    ("recurrent", 3, 10_972_419, 3_158_787),
    ("recurrent-wide", 2, 18_817_538, 7_097_090),
])
def test_parameter_counts_are_the_published_ones(name, classes, total, non_embedding):
    with torch.device("meta"):
        model = build_model(name, num_labels=classes)
    assert count_parameters(model) == {"total": total, "non_embedding": non_embedding}


def test_count_agrees_with_the_stored_tensors(tmp_path):
    model = build_model("recurrent", **TINY)
    save_model(model, "recurrent", tmp_path / "m.safetensors")
    assert sum(t.numel() for t in load_file(tmp_path / "m.safetensors").values()) == count_parameters(model)["total"]


@pytest.mark.parametrize("name, count", [("baseline", 2_365_056), ("recurrent", 1_052_416)])
def test_a_layer_has_the_counted_parameters(name, count):
    with torch.device("meta"):
        model = build_model(name)
    assert {sum(p.numel() for p in layer.parameters()) for layer in model.layers} == {count}


def test_every_classifier_applies_six_layers_with_heads_of_64():
    for name in CLASSIFIERS:
        c = model_config(name)
        assert c.num_layers * c.num_passes == 6 and c.hidden_size // c.num_heads == 64 and c.intermediate_size == 4 * c.hidden_size


# --- Recurrence -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("residual, differs", [("code", False), ("paper", True)])
@torch.inference_mode()
def test_residual_scale_in_the_first_pass_counts_in_the_paper_form_only(residual, differs):
    batch = Packed.from_sequences(sentences_of([5, 3]))
    half, full = (small(num_passes=1, residual=residual, residual_scale=scale)(batch) for scale in (0.5, 1.0))
    assert (not torch.equal(half, full)) == differs
    half, full = (small(num_passes=2, residual=residual, residual_scale=scale)(batch) for scale in (0.5, 1.0))
    assert not torch.equal(half, full)


@pytest.mark.parametrize("residual", ["code", "paper"])
@torch.inference_mode()
def test_without_residual_recurrence_is_the_stack_written_out(residual):
    recurrent = small(num_passes=3, residual=residual, residual_scale=0.0)
    stacked = small(seed=2, num_layers=6)
    weights = recurrent.state_dict()
    for i in range(6):
        stacked.layers[i].load_state_dict(recurrent.layers[i % 2].state_dict())
    stacked.load_state_dict({name: tensor for name, tensor in weights.items() if not name.startswith("layers.")}, strict=False)
    batch = Packed.from_sequences(sentences_of([5, 1, 12]))
    torch.testing.assert_close(recurrent(batch), stacked(batch), rtol=0, atol=1e-12)


@pytest.mark.parametrize("residual", ["code", "paper"])
def test_gradient_of_a_shared_layer_is_the_sum_over_passes(residual):
    model = small(num_passes=3, residual=residual, residual_scale=0.7)
    copies = [[deepcopy(layer) for layer in model.layers] for _ in range(3)]
    batch = Packed.from_sequences(sentences_of([5, 1, 12]))
    table = rotary_table(batch.positions, 16, 10_000.0)
    h = model.embed(batch.ids)
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


def test_backward_agrees_with_finite_differences():
    model = small(**TINY, num_passes=2)
    batch = Packed.from_sequences(sentences_of([3, 1]))
    names = ["layers.0.attention.qkv.bias", "layers.1.ffn.gate_up.bias", "norm.weight", "layers.1.attention_norm.weight"]

    def logits(*values):
        return torch.func.functional_call(model, dict(zip(names, values)), (batch,))

    assert torch.autograd.gradcheck(logits, tuple(model.get_parameter(name) for name in names), atol=1e-6)


# --- Dropout ----------------------------------------------------------------------------------------------------------

def test_training_mode_repeats_under_a_seed_and_evaluation_has_no_noise():
    model, batch = small(num_passes=2, dropout=0.3), Packed.from_sequences(sentences_of([5, 1, 12]))

    def logits(seed):
        torch.manual_seed(seed)
        return model(batch).detach()

    with torch.random.fork_rng(devices=[]):
        assert torch.equal(logits(0), logits(1))
        evaluated = logits(0)
        model.train()
        assert torch.equal(logits(0), logits(0)) and not torch.equal(logits(0), logits(1))
        assert not torch.equal(logits(0), evaluated)
        model.config = replace(model.config, dropout=0.0)
        for module in model.modules():
            if isinstance(module, (Attention, SwiGLU, Block)):
                module.dropout = 0.0
        torch.testing.assert_close(logits(0), evaluated, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_two_dropouts_in_series_are_one_with_the_merged_probability(p):
    block = Block(48, 3, 80, p, 1e-12).train()
    for module in (block.attention.out, block.ffn.down):
        torch.nn.init.zeros_(module.weight)
    torch.nn.init.ones_(block.attention.out.bias)  # the attention branch adds 1 everywhere, the other 0
    torch.nn.init.zeros_(block.ffn.down.bias)
    batch = Packed.from_sequences(sentences_of([400, 100]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        out = block(torch.zeros(500, 48), batch, rotary_table(batch.positions, 16, 10_000.0), masks=TorchDropout())
        twice = F.dropout(F.dropout(torch.ones(500, 48), p), p)
    kept = (1 - p) ** 2
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / kept])
    assert (out == 0).double().mean() == pytest.approx(1 - kept, abs=0.01)
    assert (twice == 0).double().mean() == pytest.approx(1 - kept, abs=0.01)


@pytest.mark.parametrize("training, kind", [(True, TorchDropout), (False, type(None))])
def test_attention_probabilities_drop_in_training_only(monkeypatch, training, kind):
    seen = []

    def spy(q, k, v, batch, dropout, masks):
        seen.append((dropout, type(masks)))
        return packed_attention(q, k, v, batch, dropout, masks)

    monkeypatch.setattr(layers, "packed_attention", spy)
    build_model("baseline", seed=0, **TINY, dropout=0.25).train(training)(Packed.from_sequences([[1, 2]]))
    assert seen == [(0.25, kind)] * 2


@pytest.mark.parametrize("way", ["fused", "plain"])
def test_every_dropout_has_the_configured_probability(monkeypatch, way):
    if way == "plain":
        monkeypatch.setattr(encoder.fused, "usable", lambda x: False)
    drawn = []

    class Noted(Masks):
        def draw(self, p, shape):
            drawn.append((round(p, 4), math.prod(shape)))
            return super().draw(p, shape)

    build_model("baseline", seed=0, **TINY, dropout=0.25).train()(Packed.from_sequences([[1, 2, 3], [4]]), masks=Noted(0, 0))
    embedding, head = (0.25, 4 * 16), (0.25, 2 * 16)
    first = [(0.25, 2 * 2 * 3 * 3), (0.4375, 4 * 16), (0.25, 4 * 32), (0.25, 4 * 16)]  # attention, mixed, inner, out
    last = [(0.25, 2 * 2 * 3), (0.4375, 2 * 16), (0.25, 2 * 32), (0.25, 2 * 16)]  # [CLS] alone asks
    assert drawn == [embedding, *first, *last, head]


# --- Norm -------------------------------------------------------------------------------------------------------------

def test_rms_norm_ignores_scale_but_keeps_the_mean():
    norm = RMSNorm(32, 1e-12).double()
    x = torch.randn(5, 32, dtype=torch.float64, generator=generator(0)) + 3
    torch.testing.assert_close(norm(1000 * x), norm(x), rtol=1e-9, atol=0)
    torch.testing.assert_close(norm(x).square().mean(-1), torch.ones(5, dtype=torch.float64), rtol=1e-9, atol=0)
    assert (norm(x).mean(-1) > 0.5).all()  # LayerNorm would give 0
    assert (norm(torch.zeros(1, 32).double()) == 0).all()
