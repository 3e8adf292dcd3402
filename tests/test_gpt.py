"""The GPT of the Shakespeare study: transformers' GPT-2 with the same weights, counts, one token at a time."""

import pytest
import torch
import torch.nn.functional as F
from conftest import refused
from reference import generator
from reference import loud as reference_loud
from transformers import GPT2Config, GPT2LMHeadModel

from rtx_core.models import build_model

SMALL = {"vocab_size": 31, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80}
SMALL |= {"block_size": 16, "dropout": 0.0}


def loud(name: str, **overrides):
    return reference_loud(name, 0.3, **SMALL | overrides).eval()


def text(batch: int, length: int) -> torch.Tensor:
    return torch.randint(0, 31, (batch, length), generator=generator(length))


def gpt2_holding(model) -> GPT2LMHeadModel:
    c = model.config
    sizes = {"n_embd": c.hidden_size, "n_inner": c.intermediate_size, "n_layer": c.num_layers}
    text = {"vocab_size": c.vocab_size, "n_positions": c.block_size, "bos_token_id": 0, "eos_token_id": 0}
    ways = {"activation_function": "gelu", "layer_norm_epsilon": c.norm_eps, "attn_implementation": "eager"}
    other = GPT2LMHeadModel(GPT2Config(n_head=c.num_heads, **sizes, **text, **ways)).eval()
    for name, parameter in other.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    body = other.transformer
    body.wte.weight.data.copy_(model.word.weight)
    body.wpe.weight.data.copy_(model.position.weight)
    body.ln_f.weight.data.copy_(model.norm.weight)
    for theirs, ours in zip(body.h, model.layers):
        theirs.ln_1.weight.data.copy_(ours.norm1.weight)
        theirs.ln_2.weight.data.copy_(ours.norm2.weight)
        convolutions = (theirs.attn.c_attn, theirs.attn.c_proj, theirs.mlp.c_fc, theirs.mlp.c_proj)
        for convolution, linear in zip(convolutions, (ours.qkv, ours.out, ours.up, ours.down)):
            convolution.weight.data.copy_(linear.weight.t())
    return other


@pytest.mark.parametrize("layers", [1, 3])
def test_gpt_is_gpt2_in_value_and_gradient(layers):
    model = loud("gpt", num_layers=layers)
    other, ids = gpt2_holding(model), text(2, 16)
    body = other.transformer
    assert (model(ids) - other(ids).logits).abs().max() < 2e-4  # of logits around 50
    model(ids[:, :-1], ids[:, 1:]).backward()
    F.cross_entropy(other(ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    pairs = [(model.word, body.wte), (model.position, body.wpe), (model.norm, body.ln_f)]
    gradients = [(ours.weight.grad, theirs.weight.grad) for ours, theirs in pairs]
    gradients.append((model.layers[0].qkv.weight.grad.t(), body.h[0].attn.c_attn.weight.grad))
    for ours, theirs in gradients:
        assert torch.allclose(ours, theirs, atol=1e-5, rtol=1e-3)


def test_initialization_is_nanogpt_s():
    model = build_model("gpt", seed=0, num_layers=2)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            std = 0.02 / (2 if name.endswith(("out.weight", "down.weight")) else 1)  # √(2 · 2 layers)
            assert parameter.std().item() == pytest.approx(std, rel=0.03), name


STEPWISE = [
    ("gpt", {"num_layers": 2}, 16),
    ("gpt", {"num_layers": 1, "positions": False}, 80),  # the cache grows
    ("kausik", {}, 16),
    ("kausik", {"positions": True}, 16),
    ("kausik", {"window": 5, "num_layers": 2}, 16),
]


@torch.inference_mode()
@pytest.mark.parametrize(("name", "overrides", "length"), STEPWISE)
def test_one_token_at_a_time_gives_the_logits_of_the_whole(name, overrides, length):
    model = loud(name, **overrides).double()  # a loud recurrence magnifies rounding errors
    ids, state = text(3, length), model.start(3)
    steps = torch.stack([model.advance(ids[:, i], state) for i in range(length)], dim=1)
    assert (steps - model(ids)).abs().max() < 1e-6


def test_a_text_longer_than_the_positions_is_refused():
    model = loud("gpt", num_layers=1)
    with refused("The text has 17 tokens; this model has positions for 16: build it with"):
        model(text(1, 17))
    assert loud("kausik")(text(1, 40)).shape == (1, 40, 31)
