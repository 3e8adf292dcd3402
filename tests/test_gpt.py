"""The GPT of the Shakespeare study: transformers' GPT-2 with the same weights, counts, causality, one token at a time."""

import math

import pytest
import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from rtx_core.errors import RtxError
from rtx_core.models import build_model, count_parameters, load_model, save_model

SMALL = {"vocab_size": 31, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80, "block_size": 16, "dropout": 0.0}


def loud(name: str, **overrides):
    """A small model with weights so large that every part of it shows in its logits."""
    model = build_model(name, seed=1, **SMALL | overrides).eval()
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3 + (parameter.dim() == 1)
    return model


def text(batch: int, length: int, vocabulary: int = SMALL["vocab_size"]) -> torch.Tensor:
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(length))


def gpt2_holding(model) -> GPT2LMHeadModel:
    c = model.config
    other = GPT2LMHeadModel(GPT2Config(
        vocab_size=c.vocab_size, n_positions=c.block_size, n_embd=c.hidden_size, n_layer=c.num_layers, n_head=c.num_heads,
        n_inner=c.intermediate_size, activation_function="gelu", layer_norm_epsilon=c.norm_eps, attn_implementation="eager",
        bos_token_id=0, eos_token_id=0,
    )).eval()  # fmt: skip
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
        pairs = ((theirs.attn.c_attn, ours.qkv), (theirs.attn.c_proj, ours.out), (theirs.mlp.c_fc, ours.up), (theirs.mlp.c_proj, ours.down))
        for convolution, linear in pairs:
            convolution.weight.data.copy_(linear.weight.t())
    return other


@pytest.mark.parametrize("layers", [1, 3])
def test_gpt_is_gpt2_in_value_and_gradient(layers):
    model = loud("gpt", num_layers=layers)
    other, ids = gpt2_holding(model), text(2, 16)
    assert (model(ids) - other(ids).logits).abs().max() < 2e-4  # of logits around 50
    model(ids[:, :-1], ids[:, 1:]).backward()
    F.cross_entropy(other(ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    for ours, theirs in ((model.word, other.transformer.wte), (model.position, other.transformer.wpe), (model.norm, other.transformer.ln_f)):
        assert torch.allclose(ours.weight.grad, theirs.weight.grad, atol=1e-5, rtol=1e-3)
    assert torch.allclose(model.layers[0].qkv.weight.grad.t(), other.transformer.h[0].attn.c_attn.weight.grad, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "overrides", "total"),
    [
        ("gpt", {"num_layers": 1}, 1_893_888),
        ("gpt", {"num_layers": 1, "positions": False}, 1_795_584),
        ("gpt", {"num_layers": 2}, 3_664_128),
        ("gpt", {}, 10_745_088),
        ("gpt", {"positions": False}, 10_646_784),
        ("kausik", {}, 1_795_584),
        ("kausik", {"positions": True}, 1_893_888),
    ],
)
def test_parameters_are_the_published_ones(name, overrides, total):
    counted = count_parameters(build_model(name, seed=0, **overrides))
    assert counted == {"total": total, "non_embedding": total - 65 * 384}


def test_initialisation_is_nanogpt_s():
    model = build_model("gpt", seed=0, num_layers=2)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            std = 0.02 / (2 if name.endswith(("out.weight", "down.weight")) else 1)  # √(2 · 2 layers)
            assert parameter.std().item() == pytest.approx(std, rel=0.03), name
    ids = text(4, 32, 65)
    assert model.eval()(ids, ids.roll(1)).item() == pytest.approx(math.log(65), abs=0.2)


@torch.inference_mode()
@pytest.mark.parametrize(("name", "overrides"), [("gpt", {"num_layers": 2}), ("kausik", {}), ("kausik", {"window": 4, "num_layers": 2})])
def test_a_later_character_changes_no_earlier_output(name, overrides):
    model, ids = loud(name, **overrides), text(2, 12)
    before = model(ids)
    for place in (0, 5, 11):
        changed = ids.clone()
        changed[:, place] = (changed[:, place] + 1) % SMALL["vocab_size"]
        after = model(changed)
        assert torch.equal(after[:, :place], before[:, :place])
        assert (after[:, place] - before[:, place]).abs().amax(-1).min() > 1e-3


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "overrides"),
    [("gpt", {"num_layers": 2}), ("gpt", {"num_layers": 1, "positions": False}), ("kausik", {"positions": True}),
     ("kausik", {"window": 2, "num_layers": 2}), ("kausik", {"window": 3}), ("kausik", {"window": 5, "num_layers": 2})],
)  # fmt: skip
def test_one_token_at_a_time_gives_the_logits_of_the_whole(name, overrides):
    length = 80 if overrides.get("positions", name == "gpt") is False else 16  # 80: the cache grows
    model, ids = loud(name, **overrides).double(), text(3, length)  # a recurrence of loud weights magnifies rounding errors
    state = model.start(3)
    steps = torch.stack([model.advance(ids[:, i], state) for i in range(length)], dim=1)
    assert (steps - model(ids)).abs().max() < 1e-6


def test_a_text_longer_than_the_positions_is_refused():
    model = loud("gpt", num_layers=1)
    with pytest.raises(RtxError, match=r"^The text has 17 tokens; this model has positions for 16: build it with a larger block_size\.$"):
        model(text(1, 17))
    state = model.start(1)
    for token in range(16):
        model.advance(torch.tensor([token]), state)
    with pytest.raises(RtxError, match="17 tokens"):
        model.advance(torch.tensor([0]), state)
    assert loud("kausik")(text(1, 40)).shape == (1, 40, 31)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("gpt", {"num_layers": 0}, "num_layers is 0; it must be a positive whole number."),
        ("gpt", {"num_heads": 5}, "hidden_size 48 is no multiple of num_heads 5; choose one that is."),
        ("gpt", {"dropout": 1.0}, "dropout is 1.0; it is a probability in [0, 1)."),
        ("kausik", {"window": 1}, "window is 1; it holds a token and at least one state, so it must be 2 or more."),
        ("kausik", {"checkpoint": -1}, "checkpoint is -1; expected a number of positions, or 0 to keep everything."),
    ],
)
def test_bad_configuration_is_one_sentence(name, wrong, said):
    with pytest.raises(RtxError) as error:
        build_model(name, **SMALL | wrong)
    assert str(error.value) == said


@torch.inference_mode()
@pytest.mark.parametrize("name", ["gpt", "kausik"])
def test_a_saved_model_comes_back_equal(name, tmp_path):
    model, ids = loud(name), text(2, 9)
    save_model(model, name, tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.config == model.config and torch.equal(loaded(ids), model(ids))
