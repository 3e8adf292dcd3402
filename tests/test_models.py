"""The two encoders: their counts, packing, rotary positions, recurrence, dropout, initialisation, files and kernels."""

import json
import math
from copy import deepcopy
from dataclasses import asdict, replace

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from rtx_core.errors import RtxError
from rtx_core.models import MODELS, build_model, count_parameters, layers, load_model, model_config, save_model
from rtx_core.models.attention import BACKENDS, packed_attention, usable
from rtx_core.models.encoder import EncoderConfig
from rtx_core.models.layers import Attention, Block, RMSNorm, rotary_table, rotate
from rtx_core.models.packed import Packed

SMALL = {"vocab_size": 97, "hidden_size": 48, "num_heads": 3, "intermediate_size": 80, "num_layers": 2}
TINY = SMALL | {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
CUDA = torch.cuda.is_available()
STACKS = [
    {"num_passes": 1},
    {"num_passes": 2},
    {"num_passes": 3, "residual": "paper"},
    {"num_passes": 1, "residual": "paper", "residual_scale": 0.3},
]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(seed: int = 1, **overrides):
    """A model in float64 whose biases, norms and logits are far from their initial 0, 1 and ~0."""
    model = build_model("baseline", seed=seed, **SMALL | overrides).double().eval()
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator(i), dtype=torch.float64))
    return model


def sentences_of(lengths, seed: int = 0) -> list[list[int]]:
    return [torch.randint(1, 97, (n,), generator=generator(1000 * seed + i)).tolist() for i, n in enumerate(lengths)]


def random_lengths(seed: int) -> list[int]:
    return [1, *torch.randint(1, 30, (6,), generator=generator(seed)).tolist(), 1]


# --- An encoder written a second time: padded, masked, explicit -----------------------------------------------------

def rms(x, weight, eps):
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight


def rope(x, base):  # (B, L, H, D), positions 0 … L-1, pairs (i, i + D/2)
    length, size = x.shape[1], x.shape[-1]
    frequency = torch.tensor([base ** (-2 * i / size) for i in range(size // 2)], dtype=torch.float64).repeat(2)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    half = torch.cat((-x[..., size // 2 :], x[..., : size // 2]), -1)
    return x * angle.cos()[:, None] + half * angle.sin()[:, None]


def padded_layer(x, real, layer, config):
    B, L, d = x.shape
    H, D = config.num_heads, d // config.num_heads
    normed = rms(x, layer.attention_norm.weight, config.norm_eps)
    q, k, v = (
        (normed @ weight.T + bias).view(B, L, H, D)
        for weight, bias in zip(layer.attention.qkv.weight.split(d), layer.attention.qkv.bias.split(d))
    )
    scores = torch.einsum("bihd,bjhd->bhij", rope(q, config.rope_base), rope(k, config.rope_base)) / math.sqrt(D)
    scores = scores.masked_fill(~real[:, None, None, :], -math.inf).exp()
    mixed = torch.einsum("bhij,bjhd->bihd", scores / scores.sum(-1, keepdim=True), v).reshape(B, L, d)
    x = x + mixed @ layer.attention.out.weight.T + layer.attention.out.bias
    gate, up = (
        rms(x, layer.ffn_norm.weight, config.norm_eps) @ weight.T + bias
        for weight, bias in zip(layer.ffn.gate_up.weight.chunk(2), layer.ffn.gate_up.bias.chunk(2))
    )
    return x + (gate / (1 + (-gate).exp()) * up) @ layer.ffn.down.weight.T + layer.ffn.down.bias


def padded_logits(model, sentences):
    c, longest = model.config, max(map(len, sentences))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in sentences])
    real = torch.tensor([[i < len(s) for i in range(longest)] for s in sentences])
    x = rms(model.word.weight[ids] + model.token_type.weight[0], model.norm.weight, c.norm_eps)
    for r in range(c.num_passes):
        before = x
        for layer in model.layers:
            x = padded_layer(x, real, layer, c)
        if r > 0 or c.residual == "paper":
            x = x + c.residual_scale * before
    return x[:, 0] @ model.head.weight.T + model.head.bias


# --- Counts -------------------------------------------------------------------------------------------------------

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


def test_every_model_applies_six_layers_with_heads_of_64():
    for name in MODELS:
        c = model_config(name)
        assert c.num_layers * c.num_passes == 6 and c.hidden_size // c.num_heads == 64 and c.intermediate_size == 4 * c.hidden_size


# --- Packing ------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("overrides", STACKS)
@pytest.mark.parametrize("seed", [0, 1, 2])
@torch.inference_mode()
def test_packed_equals_one_by_one_equals_padded(overrides, seed):
    model, sentences = small(**overrides), sentences_of(random_lengths(seed), seed)
    packed = model(Packed.from_sequences(sentences))
    alone = torch.cat([model(Packed.from_sequences([s])) for s in sentences])
    assert packed.shape == (8, 2) and packed.std() > 0.01  # logits that all agree would prove nothing
    torch.testing.assert_close(packed, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(packed, padded_logits(model, sentences), rtol=0, atol=1e-6)  # the rope table is float32


@torch.inference_mode()
def test_float32_stays_close_to_float64():
    model, batch = small(num_passes=2), Packed.from_sequences(sentences_of(random_lengths(3)))
    torch.testing.assert_close(deepcopy(model).float()(batch).double(), model(batch), rtol=0, atol=2e-5)


@torch.inference_mode()
def test_order_of_the_sentences_does_not_matter():
    model, sentences = small(num_passes=2), sentences_of([4, 1, 9, 2, 7])
    order = [3, 0, 4, 2, 1]
    shuffled = model(Packed.from_sequences([sentences[i] for i in order]))
    torch.testing.assert_close(shuffled, model(Packed.from_sequences(sentences))[order], rtol=0, atol=1e-12)


@torch.inference_mode()
def test_order_of_the_tokens_matters():
    model = small()
    logits = model(Packed.from_sequences([[5, 6, 7, 8], [5, 7, 6, 8]]))
    assert (logits[0] - logits[1]).abs().max() > 1e-4


@pytest.mark.parametrize("overrides", STACKS)
@pytest.mark.parametrize("lengths", [[5, 1, 8], [1, 1, 1], [1], [6]])
def test_computing_only_the_rows_that_are_read_changes_nothing(overrides, lengths):
    model, batch = small(**overrides), Packed.from_sequences(sentences_of(lengths))
    logits, gradients = [], []
    for rows_only in (True, False):
        model.zero_grad()
        logits.append(model(batch, rows_only=rows_only))
        logits[-1].square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
    torch.testing.assert_close(*logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("replacement", [[9, 9, 9], [11], list(range(1, 26))])
@torch.inference_mode()
def test_a_sentence_does_not_see_its_neighbours(replacement):
    model, sentences = small(num_passes=2), sentences_of([6, 3, 10])
    first = model(Packed.from_sequences(sentences))
    second = model(Packed.from_sequences([sentences[0], replacement, sentences[2]]))
    torch.testing.assert_close(first[[0, 2]], second[[0, 2]], rtol=0, atol=1e-12)
    assert (first[1] - second[1]).abs().max() > 1e-3


def test_no_gradient_crosses_sentence_borders():
    model = small(num_passes=2)
    batch = Packed.from_sequences(sentences_of([4, 3, 5]))
    seen = {}
    model.norm.register_forward_hook(lambda _, args, out: seen.setdefault("h", out.retain_grad() or out))
    model(batch)[1].square().sum().backward()
    by_token = seen["h"].grad.abs().amax(1)
    assert (by_token[:4] == 0).all() and (by_token[7:] == 0).all() and (by_token[4:7] > 0).all()


# --- Rotary positions ---------------------------------------------------------------------------------------------

def test_rotary_angles_are_exact_at_position_511():
    cos, sin = rotary_table(torch.tensor([511]), 64, 10_000.0)
    assert cos.shape == sin.shape == (1, 1, 32) and cos.dtype == torch.float32
    angles = [511 * 10_000 ** (-2 * i / 64) for i in range(32)]
    assert max(abs(c - math.cos(a)) for c, a in zip(cos.flatten().tolist(), angles)) < 1e-7
    assert max(abs(s - math.sin(a)) for s, a in zip(sin.flatten().tolist(), angles)) < 1e-7
    coarse = (511 * 10_000 ** (-torch.arange(0, 64, 2).float() / 64)).cos()  # float32 angles would not pass
    assert max(abs(c - math.cos(a)) for c, a in zip(coarse.tolist(), angles)) > 1e-6


def test_rotation_keeps_norms_and_leaves_position_0_alone():
    x = torch.randn(512, 3, 16, dtype=torch.float64, generator=generator(0))
    rotated = rotate(x, rotary_table(torch.arange(512), 16, 10_000.0))
    torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1), rtol=1e-6, atol=0)
    assert torch.equal(rotated[0], x[0]) and (rotated[1] - x[1]).abs().max() > 0.1


def test_rotation_turns_each_pair_half_a_head_apart():
    x = torch.randn(40, 2, 12, dtype=torch.float64, generator=generator(1))
    turned = torch.complex(x[..., :6], x[..., 6:]) * torch.polar(
        torch.ones(40, 1, 6, dtype=torch.float64),
        torch.arange(40, dtype=torch.float64)[:, None, None] * 100.0 ** (-torch.arange(6, dtype=torch.float64) / 6),
    )
    torch.testing.assert_close(rotate(x, rotary_table(torch.arange(40), 12, 100.0)), torch.cat((turned.real, turned.imag), -1), rtol=0, atol=1e-6)


def test_scores_depend_on_offsets_only():
    q, k = torch.randn(2, 1, 1, 32, dtype=torch.float64, generator=generator(2))

    def score(m: int, n: int) -> float:
        rotated = (rotate(x, rotary_table(torch.tensor([position]), 32, 10_000.0)) for x, position in ((q, m), (k, n)))
        return float((next(rotated) * next(rotated)).sum())

    for m, n, shift in ((0, 0, 9), (3, 7, 100), (20, 1, 487)):
        assert score(m, n) == pytest.approx(score(m + shift, n + shift), abs=1e-5)
    assert abs(score(3, 7) - score(7, 3)) > 1e-2 and abs(score(3, 7) - score(3, 8)) > 1e-2


@torch.inference_mode()
def test_attention_is_unchanged_when_all_positions_shift():
    attention = Attention(48, 3, 0.0).double().eval()
    batch = Packed.from_sequences(sentences_of([7, 2, 11]))
    x = torch.randn(20, 48, dtype=torch.float64, generator=generator(4))
    here, shifted, reversed_ = (attention(x, batch, rotary_table(p, 16, 10_000.0)) for p in (batch.positions, batch.positions + 300, -batch.positions))
    torch.testing.assert_close(here, shifted, rtol=0, atol=1e-6)
    assert (here - reversed_).abs().max() > 1e-4


# --- Recurrence ---------------------------------------------------------------------------------------------------

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


# --- Dropout ------------------------------------------------------------------------------------------------------

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
        for module in model.modules():
            if isinstance(module, (torch.nn.Dropout, Attention)):
                setattr(module, "p" if isinstance(module, torch.nn.Dropout) else "dropout", 0.0)
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
        out = block(torch.zeros(500, 48), batch, rotary_table(batch.positions, 16, 10_000.0))
        twice = F.dropout(F.dropout(torch.ones(500, 48), p), p)
    kept = (1 - p) ** 2
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / kept])
    assert (out == 0).double().mean() == pytest.approx(1 - kept, abs=0.01)
    assert (twice == 0).double().mean() == pytest.approx(1 - kept, abs=0.01)
    assert block.attention_dropout.p == pytest.approx(1 - (1 - p) ** 2)


@pytest.mark.parametrize("training, expected", [(True, {0.25}), (False, {0.0})])
def test_attention_probabilities_drop_in_training_only(monkeypatch, training, expected):
    seen = set()

    def spy(*args, dropout, **kwargs):
        seen.add(dropout)
        return packed_attention(*args, dropout=dropout, **kwargs)

    monkeypatch.setattr(layers, "packed_attention", spy)
    build_model("baseline", seed=0, **TINY, dropout=0.25).train(training)(Packed.from_sequences([[1, 2]]))
    assert seen == expected


def test_the_other_dropouts_have_the_configured_probability():
    model = build_model("baseline", **TINY, dropout=0.25)
    found = {name: module.p for name, module in model.named_modules() if isinstance(module, torch.nn.Dropout)}
    layer = {"attention_dropout": 1 - 0.75**2, "ffn.dropout": 0.25, "ffn_dropout": 0.25}
    assert found == {"dropout": 0.25} | {f"layers.{i}.{name}": p for i in (0, 1) for name, p in layer.items()}


# --- Initialisation -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("std", [0.02, 0.05])
def test_initialisation_is_bert_s(std):
    model = build_model("recurrent", seed=3, **SMALL | {"hidden_size": 96}, initializer_std=std)
    matrices = 0
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        elif parameter.numel() > 2000:
            matrices += 1
            values = parameter[1:] if name == "word.weight" else parameter
            assert values.std().item() == pytest.approx(std, rel=0.05), name
            assert abs(values.mean().item()) < 0.05 * std, name
            assert values.abs().max() > 3 * std, name  # a normal has tails, a uniform does not
    assert matrices == 1 + 2 * 4  # the vocabulary and four matrices a layer
    assert (model.word.weight[0] == 0).all() and (model.word.weight[1:] != 0).any(1).all()


def test_seed_fixes_the_weights_and_leaves_the_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (build_model("baseline", seed=seed, **TINY).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["word.weight"], other["word.weight"])
    with torch.random.fork_rng(devices=[]):
        assert not torch.equal(build_model("baseline", **TINY).word.weight, build_model("baseline", **TINY).word.weight)


@torch.inference_mode()
def test_a_fresh_model_is_undecided():
    model = build_model("recurrent", seed=0, **SMALL).eval()
    logits = model(Packed.from_sequences(sentences_of([9] * 50)))
    assert F.cross_entropy(logits, torch.arange(50) % 2).item() == pytest.approx(math.log(2), abs=0.02)


# --- Norm ---------------------------------------------------------------------------------------------------------

def test_rms_norm_ignores_scale_but_keeps_the_mean():
    norm = RMSNorm(32, 1e-12).double()
    x = torch.randn(5, 32, dtype=torch.float64, generator=generator(0)) + 3
    torch.testing.assert_close(norm(1000 * x), norm(x), rtol=1e-9, atol=0)
    torch.testing.assert_close(norm(x).square().mean(-1), torch.ones(5, dtype=torch.float64), rtol=1e-9, atol=0)
    assert (norm(x).mean(-1) > 0.5).all()  # LayerNorm would give 0
    assert (norm(torch.zeros(1, 32).double()) == 0).all()


# --- Files --------------------------------------------------------------------------------------------------------

@torch.inference_mode()
def test_a_saved_model_comes_back_equal(tmp_path):
    model = build_model("recurrent", seed=4, **TINY, num_labels=3, residual="paper", residual_scale=0.25)
    save_model(model, "recurrent", tmp_path / "deep" / "m.safetensors")
    loaded = load_model(tmp_path / "deep" / "m.safetensors")
    batch = Packed.from_sequences(sentences_of([4, 9]))
    assert loaded.config == model.config and not loaded.training
    assert torch.equal(loaded(batch), model.eval()(batch))


def test_the_header_carries_name_and_config_as_json(tmp_path):
    model = build_model("recurrent", **TINY)
    save_model(model, "recurrent", tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="pt") as file:
        header = file.metadata()
    assert header["model"] == "recurrent" and json.loads(header["config"]) == asdict(model.config)
    assert EncoderConfig(**json.loads(header["config"])) == model.config


def missing(path):
    pass


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"PK\x03\x04 this is another kind of file" * 20)


def cut_short(path):
    save_model(build_model("baseline", **TINY), "baseline", path)
    path.write_bytes(path.read_bytes()[:-100])


def foreign(path):
    save_file({"weight": torch.zeros(3)}, path)


def of_an_unknown_model(path):
    save_file({"weight": torch.zeros(3)}, path, metadata={"model": "perceptron", "config": "{}"})


def of_a_newer_config(path):
    save_file({"weight": torch.zeros(3)}, path, metadata={"model": "baseline", "config": '{"num_experts": 8}'})


def folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [missing, empty, garbage, cut_short, foreign, of_an_unknown_model, of_a_newer_config, folder])
def test_an_unreadable_model_file_is_one_sentence(make, tmp_path):
    path = tmp_path / "m.safetensors"
    make(path)
    with pytest.raises(RtxError) as error:
        load_model(path)
    assert "\n" not in str(error.value) and str(error.value).endswith(".")


# --- What build_model refuses ---------------------------------------------------------------------------------------

def test_an_unknown_model_gets_the_nearest_name():
    with pytest.raises(RtxError, match="Unknown model 'recurent': did you mean 'recurrent'\\?"):
        build_model("recurent")
    with pytest.raises(RtxError, match="Unknown model 'zzz': the choices are baseline, recurrent, recurrent-wide\\."):
        build_model("zzz")


def test_an_unknown_setting_gets_the_nearest_name():
    with pytest.raises(RtxError, match="'num_layer': did you mean 'num_layers'\\?"):
        build_model("baseline", num_layer=3)


@pytest.mark.parametrize("overrides, said", [
    ({"hidden_size": 0}, "hidden_size is 0; it must be a positive whole number"),
    ({"num_layers": -1}, "num_layers is -1"),
    ({"num_passes": 0}, "num_passes is 0"),
    ({"num_labels": 2.0}, "num_labels is 2.0"),
    ({"vocab_size": "97"}, "vocab_size is '97'"),
    ({"num_heads": 0}, "num_heads is 0"),
    ({"intermediate_size": None}, "intermediate_size is None"),
    ({"hidden_size": 50, "num_heads": 4}, "choose hidden_size as a multiple of 8"),
    ({"hidden_size": 12, "num_heads": 4}, "no even head size"),
    ({"dropout": 1.0}, "dropout is 1.0; it is a probability in"),
    ({"dropout": -0.1}, "dropout is -0.1"),
    ({"dropout": math.nan}, "dropout is nan"),
    ({"residual": "cod"}, "Unknown residual 'cod': did you mean 'code'\\?"),
])
def test_bad_settings_are_refused(overrides, said):
    with pytest.raises(RtxError, match=said):
        build_model("recurrent", **overrides)


# --- Kernels ------------------------------------------------------------------------------------------------------

def softmax_attention(q, k, v, lengths, starts_only):
    """Attention one sequence and one head at a time, in float64."""
    out, start = [], 0
    for i, length in enumerate(lengths):
        rows = slice(start, start + length)
        queries = q[i : i + 1] if starts_only else q[rows]
        heads = []
        for h in range(q.shape[1]):
            weights = (queries[:, h].double() @ k[rows, h].double().T / math.sqrt(q.shape[-1])).exp()
            heads.append(weights / weights.sum(-1, keepdim=True) @ v[rows, h].double())
        out.append(torch.stack(heads, 1))
        start += length
    return torch.cat(out)


def inputs(lengths, heads, size, starts_only, device="cpu", dtype=torch.float64):
    """(q, k, v) that want gradients, and what flows back into the result."""
    total = sum(lengths)
    shapes = [len(lengths) if starts_only else total, total, total]
    qkv = [torch.randn(n, heads, size, generator=generator(i)).to(device, dtype).requires_grad_() for i, n in enumerate(shapes)]
    return qkv, torch.randn(shapes[0], heads, size, generator=generator(9)).to(device, dtype)


def agree(got, want, tolerance):
    """Every tensor within a relative error, measured on the whole tensor."""
    assert len(got) == len(want) == 4
    for name, a, b in zip(("result", "dq", "dk", "dv"), got, want):
        assert a.shape == b.shape, name
        error = (a.double() - b.double()).norm() / (b.double().norm() + 1e-3)  # one token alone has no gradient in q and k
        assert error.item() < tolerance, name


def differentiated(attend, qkv, back):
    out = attend(*qkv)
    return [out.detach(), *torch.autograd.grad(out, qkv, back.to(out.dtype))]


@pytest.mark.parametrize("lengths, starts_only", [([5, 1, 9, 2], False), ([5, 1, 9, 2], True), ([1, 1, 1], False), ([7], True)])
def test_sdpa_is_softmax_within_each_sequence(lengths, starts_only):
    batch = Packed.from_sequences(sentences_of(lengths))
    qkv, back = inputs(lengths, 3, 8, starts_only)
    ours = differentiated(lambda q, k, v: packed_attention(q, k, v, batch, backend="sdpa"), qkv, back)
    agree(ours, differentiated(lambda q, k, v: softmax_attention(q, k, v, lengths, starts_only), qkv, back), 1e-12)


def test_the_first_usable_kernel_on_a_cpu_is_sdpa():
    cpu = torch.device("cpu")
    for dtype in (torch.float32, torch.bfloat16):
        assert [b for b in BACKENDS if usable(b, cpu, dtype, 0.0)] == ["sdpa"]
    batch = Packed.from_sequences([[1, 2, 3], [4]])
    (q, k, v), _ = inputs([3, 1], 2, 8, False)
    assert torch.equal(packed_attention(q, k, v, batch), packed_attention(q, k, v, batch, backend="sdpa"))


def test_dropout_of_the_probabilities_keeps_the_mean():
    batch = Packed.from_sequences(sentences_of([2000, 500]))
    q = k = torch.zeros(2500, 1, 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        out = packed_attention(q, k, torch.ones(2500, 1, 4), batch, dropout=0.5, backend="sdpa")
    assert out.mean().item() == pytest.approx(1, abs=0.01) and out[:, 0, 0].std() > 0.01


def test_an_unknown_kernel_gets_the_nearest_name():
    (q, k, v), _ = inputs([2], 1, 4, False)
    with pytest.raises(RtxError, match="Unknown attention backend 'spda': did you mean 'sdpa'\\?"):
        packed_attention(q, k, v, Packed.from_sequences([[1, 2]]), backend="spda")


@pytest.mark.cuda
@pytest.mark.skipif(not CUDA, reason="needs a CUDA device")
@pytest.mark.parametrize("starts_only", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kernel_gives_the_same_numbers_in_bf16(backend, starts_only):
    """1 % of the tensor's norm: bf16 rounding gives 0.2 to 0.4 % (sdpa on a CPU), attention across the borders 80 %."""
    device = torch.device("cuda")
    if not usable(backend, device, torch.bfloat16, 0.0):
        pytest.skip(f"the kernel {backend!r} is not usable here (package, torch version or device)")
    lengths = [70, 1, 128, 2, 33]
    batch = Packed.from_sequences(sentences_of(lengths)).to(device)
    qkv, back = inputs(lengths, 4, 64, starts_only, device, torch.bfloat16)
    ours = differentiated(lambda q, k, v: packed_attention(q, k, v, batch, backend=backend), qkv, back)
    agree(ours, differentiated(lambda q, k, v: softmax_attention(q, k, v, lengths, starts_only), qkv, back), 1e-2)


@pytest.mark.cuda
@pytest.mark.skipif(not CUDA, reason="needs a CUDA device")
@torch.inference_mode()
def test_the_gpu_gives_the_cpu_s_logits():
    """fp32 to 1e-4; under bf16 autocast to 3 % of the logits' norm, whichever kernel is taken."""
    model = build_model("recurrent", seed=1, vocab_size=97, hidden_size=128, num_heads=2, intermediate_size=256).eval()
    for i, parameter in enumerate(model.parameters()):
        parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator(i)))
    batch = Packed.from_sequences(sentences_of([70, 1, 128, 2, 33]))
    expected = model(batch)
    model.cuda()
    exact = model(batch.to("cuda")).cpu()
    with torch.autocast("cuda", torch.bfloat16):
        rounded = model(batch.to("cuda")).float().cpu()
    torch.testing.assert_close(exact, expected, rtol=1e-4, atol=1e-4)
    assert ((rounded - expected).norm() / expected.norm()).item() < 0.03


@pytest.mark.parametrize("config", ["{", "[1]", '{"hidden_sise": 3}', '{"hidden_size": 24}'])
def test_a_foreign_header_is_one_sentence_and_moves_no_generator(tmp_path, config):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    save_file({"x": torch.ones(2)}, path, metadata={"model": "baseline", "config": config})
    before = torch.get_rng_state()
    with pytest.raises(RtxError, match="save it anew with save_model") as error:
        load_model(path)
    assert "\n" not in str(error.value) and torch.equal(torch.get_rng_state(), before)
