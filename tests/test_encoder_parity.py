"""Both encoders against an independent implementation that holds the same weights: transformers' EuroBERT."""

import pytest
import torch
import torch.nn.functional as F
from transformers import EuroBertConfig, EuroBertModel

from rtx_core.models import build_model
from rtx_core.models.packed import Packed

SMALL = {"vocab_size": 97, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80}
SENTENCES = [[5, 9, 2, 7], [3], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [8, 8]]


def eurobert_holding(model) -> EuroBertModel:
    """EuroBERT with one layer for each layer application of ours."""
    c = model.config
    other = EuroBertModel(EuroBertConfig(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers * c.num_passes,
        num_attention_heads=c.num_heads, num_key_value_heads=c.num_heads, intermediate_size=c.intermediate_size,
        attention_bias=True, mlp_bias=True, rms_norm_eps=c.norm_eps, rope_theta=c.rope_base, attn_implementation="eager",
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )).eval()
    d, f = c.hidden_size, c.intermediate_size
    for i, theirs in enumerate(other.layers):
        ours = model.layers[i % c.num_layers]
        for name, rows in (("q_proj", slice(0, d)), ("k_proj", slice(d, 2 * d)), ("v_proj", slice(2 * d, 3 * d))):
            copy(getattr(theirs.self_attn, name), ours.attention.qkv.weight[rows], ours.attention.qkv.bias[rows])
        copy(theirs.self_attn.o_proj, ours.attention.out.weight, ours.attention.out.bias)
        copy(theirs.mlp.gate_proj, ours.ffn.gate_up.weight[:f], ours.ffn.gate_up.bias[:f])
        copy(theirs.mlp.up_proj, ours.ffn.gate_up.weight[f:], ours.ffn.gate_up.bias[f:])
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
    seen = {}
    stack = c.num_layers

    def add_scaled_input(pass_number):
        def hook(_, args, out):
            if pass_number > 0 or c.residual == "paper":
                out = out + c.residual_scale * seen[pass_number]
            seen["last"] = out
            return out
        return hook

    def remember(pass_number):
        return lambda _, args: seen.__setitem__(pass_number, args[0])

    for r in range(c.num_passes):
        other.layers[r * stack].register_forward_pre_hook(remember(r))
        other.layers[(r + 1) * stack - 1].register_forward_hook(add_scaled_input(r))
    other(inputs_embeds=x, attention_mask=mask)
    return F.linear(seen["last"][:, 0], model.head.weight, model.head.bias)


@pytest.mark.parametrize("overrides", [
    {"num_layers": 6},
    {"num_layers": 3, "num_passes": 2},
    {"num_layers": 2, "num_passes": 3, "residual": "paper"},
    {"num_layers": 2, "num_passes": 2, "residual": "paper", "residual_scale": 1.0},
])
@torch.inference_mode()
def test_logits_equal_eurobert(overrides):
    model = build_model("baseline", seed=1, **SMALL, **overrides).eval()
    for parameter in model.parameters():  # biases and norms start at 0 and 1, which would hide a mistake
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    theirs = eurobert_logits(model, eurobert_holding(model), SENTENCES)
    torch.testing.assert_close(model(Packed.from_sequences(SENTENCES)), theirs, rtol=1e-4, atol=2e-6)
