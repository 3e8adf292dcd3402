"""Both encoders against an independent implementation that holds the same weights: transformers' EuroBERT."""

import pytest
import torch
import torch.nn.functional as F
from reference import SMALL, disturbed
from transformers import EuroBertConfig, EuroBertModel

from rtx_core.models import build_model
from rtx_core.models.packed import Packed

SENTENCES = [[5, 9, 2, 7], [3], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [8, 8]]


def eurobert_holding(model) -> EuroBertModel:
    """EuroBERT with our layers; ours has no norm at the end."""
    c = model.config
    sizes = {name: getattr(c, name) for name in ("hidden_size", "intermediate_size", "vocab_size")}
    heads = {"num_attention_heads": c.num_heads, "num_key_value_heads": c.num_heads, "attention_bias": True}
    others = {"rms_norm_eps": c.norm_eps, "rope_theta": c.rope_base, "mlp_bias": True}
    others |= {"attn_implementation": "eager", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = EuroBertConfig(num_hidden_layers=c.num_layers, **sizes, **heads, **others)
    other = EuroBertModel(config).eval()
    other.norm = torch.nn.Identity()
    for theirs, ours in zip(other.layers, model.layers):
        attention, qkv, gate_up = theirs.self_attn, ours.attention.qkv, ours.ffn.gate_up
        for part, linear in enumerate((attention.q_proj, attention.k_proj, attention.v_proj)):
            copy(linear, qkv.weight.chunk(3)[part], qkv.bias.chunk(3)[part])
        for part, linear in enumerate((theirs.mlp.gate_proj, theirs.mlp.up_proj)):
            copy(linear, gate_up.weight.chunk(2)[part], gate_up.bias.chunk(2)[part])
        copy(attention.o_proj, ours.attention.out.weight, ours.attention.out.bias)
        copy(theirs.mlp.down_proj, ours.ffn.down.weight, ours.ffn.down.bias)
        theirs.input_layernorm.weight.data.copy_(ours.attention_norm.weight)
        theirs.post_attention_layernorm.weight.data.copy_(ours.ffn_norm.weight)
    return other


def copy(linear, weight, bias):
    linear.weight.data.copy_(weight)
    linear.bias.data.copy_(bias)


def eurobert_logits(model, other, sentences) -> torch.Tensor:
    """The public code's forward pass: padded batch, mask, our embedding recipe and residual, EuroBERT's layers."""
    c = model.config
    longest = max(map(len, sentences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sentences])
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sentences])
    x = model.word.weight[ids] + model.token_type.weight[0]
    x = x / (x.square().mean(-1, keepdim=True) + c.norm_eps).sqrt() * model.norm.weight
    for r in range(c.num_passes):
        out = other(inputs_embeds=x, attention_mask=mask).last_hidden_state
        x = out + c.residual_scale * x if r > 0 or c.residual == "paper" else out
    return F.linear(x[:, 0], model.head.weight, model.head.bias)


SHAPES = [
    {"num_layers": 6},
    {"num_layers": 3, "num_passes": 2},
    {"num_layers": 2, "num_passes": 3, "residual": "paper"},
    {"num_layers": 2, "num_passes": 2, "residual": "paper", "residual_scale": 1.0},
]


@pytest.mark.parametrize("overrides", SHAPES, ids=str)
def test_logits_and_gradients_equal_eurobert(overrides):
    model = disturbed(build_model("baseline", seed=1, **SMALL | overrides).eval())
    other = eurobert_holding(model)
    ours, theirs = model(Packed.from_sequences(SENTENCES)), eurobert_logits(model, other, SENTENCES)
    assert theirs.std() > 0.01
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-6)
    down = [layer.ffn.down.weight for layer in model.layers]  # whose gradient is the sum over passes
    gradients = torch.autograd.grad(ours.square().sum(), down)
    expected = torch.autograd.grad(theirs.square().sum(), [layer.mlp.down_proj.weight for layer in other.layers])
    assert all(gradient.std() > 1e-4 for gradient in gradients)
    torch.testing.assert_close(gradients, expected, rtol=1e-3, atol=1e-6)
