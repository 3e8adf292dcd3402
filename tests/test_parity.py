"""Models against transformers' EuroBERT, Llama and GPT-2, which hold the same weights."""

import pytest
import torch
import torch.nn.functional as F
from conftest import refused
from reference import SMALL, disturbed, generator, small_decoder, stories_of
from reference import loud as reference_loud
from torch.nn.utils.rnn import pad_sequence
from transformers import EuroBertConfig, EuroBertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from rtx_core.models import build_model
from rtx_core.models.packed import Packed

SENTENCES = [[5, 9, 2, 7], [3], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [8, 8]]


def give(theirs, ours, matrices, what: str = "weight") -> None:
    """A layer of ours, with these matrices, into one of Llama or EuroBERT: all pair coordinate i with i + D/2."""
    qkv, out, gate_up, down = matrices
    its, mlp = theirs.self_attn, theirs.mlp
    linears = (its.q_proj, its.k_proj, its.v_proj, its.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    for linear, values in zip(linears, (*qkv.chunk(3), out, *gate_up.chunk(2), down), strict=True):
        getattr(linear, what).data.copy_(values)
    theirs.input_layernorm.weight.data.copy_(ours.attention_norm.weight)
    theirs.post_attention_layernorm.weight.data.copy_(ours.ffn_norm.weight)


def eurobert_holding(model) -> EuroBertModel:
    """EuroBERT with our layers; ours has no norm at the end."""
    c = model.config
    sizes = {name: getattr(c, name) for name in ("hidden_size", "intermediate_size", "vocab_size")}
    sizes |= {"num_hidden_layers": c.num_layers, "num_attention_heads": c.num_heads, "num_key_value_heads": c.num_heads}
    others = {"rms_norm_eps": c.norm_eps, "rope_theta": c.rope_base, "mlp_bias": True, "attention_bias": True}
    others |= {"attn_implementation": "eager", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    other = EuroBertModel(EuroBertConfig(**sizes, **others)).eval()
    other.norm = torch.nn.Identity()
    for theirs, ours in zip(other.layers, model.layers):
        linears = ours.attention.qkv, ours.attention.out, ours.ffn.gate_up, ours.ffn.down
        give(theirs, ours, [linear.weight for linear in linears])
        give(theirs, ours, [linear.bias for linear in linears], "bias")
    return other


def eurobert_logits(model, other, sentences) -> torch.Tensor:
    """The public code's forward pass: padded batch, mask, our embedding recipe and residual, EuroBERT's layers."""
    c = model.config
    ids = pad_sequence(list(map(torch.tensor, sentences)), batch_first=True)
    mask = pad_sequence([torch.ones(len(s)) for s in sentences], batch_first=True)
    x = model.word.weight[ids] + model.token_type.weight[0]
    x = x / (x.square().mean(-1, keepdim=True) + c.norm_eps).sqrt() * model.norm.weight
    for r in range(c.num_passes):
        out = other(inputs_embeds=x, attention_mask=mask).last_hidden_state
        x = out + c.residual_scale * x if r > 0 or c.residual == "paper" else out
    return F.linear(x[:, 0], model.head.weight, model.head.bias)


SHAPES = [{"num_layers": 6}, {"num_layers": 3, "num_passes": 2}, {"num_passes": 3, "residual": "paper"}]
SHAPES += [{"num_passes": 2, "residual": "paper", "residual_scale": 1.0}]


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


def llama(layers: int) -> LlamaForCausalLM:
    sizes = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 4}
    others = {"rms_norm_eps": 1e-5, "rope_theta": 10_000.0, "max_position_embeddings": 64}
    ways = {"tie_word_embeddings": True, "attn_implementation": "eager"}
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, **sizes, **others, **ways)).double().eval()


def oracle(model, layers: list) -> LlamaForCausalLM:
    """Llama with (layer, matrices) one after another."""
    made = llama(len(layers))
    for theirs, (ours, matrices) in zip(made.model.layers, layers):
        give(theirs, ours, matrices)
    made.model.embed_tokens.weight.data.copy_(model.word.weight)
    made.model.norm.weight.data.copy_(model.norm.weight)
    made.tie_weights()
    return made


@torch.no_grad()
def assert_like(model, batch: Packed, made) -> None:
    ours, starts = model(batch), batch.cu_seqlens.tolist()
    for begin, end in zip(starts, starts[1:]):
        theirs = made(batch.ids[None, begin:end]).logits[0]
        torch.testing.assert_close(ours[begin:end], theirs, rtol=1e-5, atol=1e-5)
        assert theirs.std() > 0.1


def test_control_is_llama():
    model = small_decoder("control")
    assert_like(model, stories_of(7, 1, 12), oracle(model, [(layer, layer.matrices) for layer in model.layers]))


@pytest.mark.parametrize("encoding", ["pass", "layer"])
def test_frailt_is_llama_with_the_layers_repeated_and_vectors_added(encoding):
    model = small_decoder("frailt", encoding=encoding, num_layers=2, num_passes=3)
    made = oracle(model, [(layer, layer.matrices) for _ in range(3) for layer in model.layers])
    for i, layer in enumerate(made.model.layers):
        if i % 2 == 0 or encoding == "layer":
            layer.register_forward_pre_hook(lambda _, given, added=model.encoding[i // 2]: given[0] + added)
    assert_like(model, stories_of(6, 9), made)


def test_relaxed_is_llama_with_the_corrections_merged():
    model = small_decoder("relaxed", num_layers=2, num_passes=3, lora_rank=4, lora_scale=1.5)

    def merged(weight, a, b):
        return torch.cat([w + 1.5 * (b[i] @ a[i]) for i, w in enumerate(weight.chunk(len(a)))])

    pairs = [(layer, each) for lora in model.lora for layer, each in zip(model.layers, lora)]
    layers = [(layer, list(map(merged, layer.matrices, each.down, each.up))) for layer, each in pairs]
    assert_like(model, stories_of(6, 9), oracle(model, layers))


@torch.no_grad()
def test_three_part_is_prelude_core_and_coda_of_llama():
    model, batch = small_decoder("three-part", num_passes=3), stories_of(10)
    made, (prelude, core, coda) = llama(1), model.parts
    rope = made.model.rotary_emb(torch.zeros(1, dtype=torch.float64), torch.arange(10)[None])
    mask = torch.full((10, 10), -torch.inf, dtype=torch.float64).triu(1)[None, None]

    def apply(x, layers):
        for layer in layers:
            give(made.model.layers[0], layer, layer.matrices)
            x = made.model.layers[0](x, attention_mask=mask, position_embeddings=rope)
        return x

    e = apply(F.embedding(batch.ids, model.word.weight)[None], prelude)
    s = model.initial_state(batch, e[0])[None]
    for _ in range(3):
        s = apply(torch.cat((s, e), -1) @ model.adapter.t(), core)
    h = apply(F.rms_norm(s, (32,), model.state_norm.weight, 1e-5), coda)
    expected = F.rms_norm(h, (32,), model.norm.weight, 1e-5)[0] @ model.word.weight.t()
    torch.testing.assert_close(model(batch), expected, rtol=1e-5, atol=1e-5)


CHARACTERS = {"vocab_size": 31, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80}
CHARACTERS |= {"block_size": 16, "dropout": 0.0}


def loud(name: str, **overrides):
    return reference_loud(name, 0.3, **CHARACTERS | overrides).eval()


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
    for theirs, ours in of_gpt2(other, model):
        theirs.data.copy_(ours)
    return other


def of_gpt2(other: GPT2LMHeadModel, model, part=lambda weight: weight) -> list[tuple]:
    """(theirs, ours) of each weight, or of a part of it; theirs of layers are transposed."""
    body = other.transformer
    pairs = [(body.wte, model.word), (body.wpe, model.position), (body.ln_f, model.norm)]
    transposed = []
    for a, b in zip(body.h, model.layers):
        pairs += [(a.ln_1, b.norm1), (a.ln_2, b.norm2)]
        transposed += [(a.attn.c_attn, b.qkv), (a.attn.c_proj, b.out), (a.mlp.c_fc, b.up), (a.mlp.c_proj, b.down)]
    found = [(part(a.weight), part(b.weight)) for a, b in pairs]
    return found + [(part(a.weight), part(b.weight).t()) for a, b in transposed]


@pytest.mark.parametrize("layers", [1, 3])
def test_gpt_is_gpt2_in_value_and_gradient(layers):
    model = loud("gpt", num_layers=layers)
    other, ids = gpt2_holding(model), text(2, 16)
    assert (model(ids) - other(ids).logits).abs().max() < 2e-4  # of logits around 50
    model(ids[:, :-1], ids[:, 1:]).backward()
    F.cross_entropy(other(ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    for theirs, ours in of_gpt2(other, model, lambda weight: weight.grad):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)


STEPWISE = [
    ("gpt", {"num_layers": 2}, 16),
    ("gpt", {"num_layers": 1, "positions": False}, 80),  # the cache grows
    ("kausik", {}, 16),
    ("kausik", {"positions": True}, 16),
    ("kausik", {"window": 5, "num_layers": 2}, 16),
    *((name, {}, 5) for name in ("control", "frailt", "three-part", "relaxed")),
]


@torch.inference_mode()
@pytest.mark.parametrize(("name", "overrides", "length"), STEPWISE)
def test_one_token_at_a_time_gives_the_logits_of_the_whole(name, overrides, length):
    model = loud(name, **overrides).double() if name in ("gpt", "kausik") else small_decoder(name)
    ids, state = text(3, length), model.start(3)
    steps = torch.stack([model.advance(ids[:, i], state) for i in range(length)], dim=1)
    assert (steps - model(ids)).abs().max() < 1e-6


def test_a_text_longer_than_the_positions_is_refused():
    model = loud("gpt", num_layers=1)
    with refused("17 tokens", "16 positions"):
        model(text(1, 17))
    assert loud("kausik")(text(1, 40)).shape == (1, 40, 31)
