"""The story models against one another, and what must hold of any of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rtx_core.errors import RtxError
from rtx_core.models import MODELS, build_model, count_parameters, load_model, save_model
from rtx_core.models import control as control_module
from rtx_core.models.cross_entropy import cross_entropy
from rtx_core.models.packed import Packed

SMALL = {"vocab_size": 61, "hidden_size": 32, "num_heads": 4, "intermediate_size": 40}
NAMES = ("control", "frailt", "three-part", "relaxed")
LOOPED = NAMES[1:]
EACH = pytest.mark.parametrize("name", NAMES)


def small(name: str, seed: int = 0, **overrides):
    """A small model in evaluation mode; what starts at zero or alike is made random, so that nothing passes by symmetry."""
    model = build_model(name, seed=seed, **SMALL | overrides).eval()
    random = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=random)
    return model.double()


def packed(*lengths: int, seed: int = 0) -> Packed:
    random = np.random.RandomState(seed)
    return Packed.from_sequences([random.randint(0, 61, size=n) for n in lengths])


# -- invariants between the models ------------------------------------------------------------------------------------


def copied(to, source):
    """`to` with every parameter that `source` has too."""
    to.load_state_dict(to.state_dict() | {k: v for k, v in source.state_dict().items() if k in to.state_dict()})
    return to


def test_frailt_once_without_its_vector_is_the_control():
    control, batch = small("control"), packed(5, 8)
    frailt = copied(small("frailt", seed=3), control)
    assert not torch.allclose(frailt(batch, passes=1), control(batch))
    frailt.encoding.data.zero_()
    assert torch.equal(frailt(batch, passes=1), control(batch)) and torch.equal(frailt(batch), control(batch, passes=4))


def test_relaxed_without_corrections_is_frailt_without_vectors():
    frailt, batch = small("frailt"), packed(5, 8)
    frailt.encoding.data.zero_()
    relaxed = copied(small("relaxed", seed=3), frailt)
    assert not torch.allclose(relaxed(batch), frailt(batch))
    for lora in relaxed.lora.modules():
        if hasattr(lora, "up"):
            for b in lora.up:
                b.data.zero_()
    torch.testing.assert_close(relaxed(batch), frailt(batch))


def test_relaxed_starts_as_the_shared_model():
    relaxed, batch = build_model("relaxed", seed=0, **SMALL).eval(), packed(5)
    torch.testing.assert_close(relaxed(batch), build_model("control", seed=0, **SMALL).eval()(batch, passes=4))


def test_relaxed_of_full_rank_is_layers_of_their_own():
    own, batch = small("control", num_layers=4), packed(6, 4)
    relaxed = small("relaxed", seed=5, num_layers=2, num_passes=2, lora_rank=32)
    copied(relaxed, small("control", seed=5, num_layers=2))
    relaxed.word.load_state_dict(own.word.state_dict())
    relaxed.norm.load_state_dict(own.norm.state_dict())
    for i, layer in enumerate(own.layers):
        shared, lora = relaxed.layers[i % 2], relaxed.lora[i // 2][i % 2]
        for target, start, a, b in zip(layer.matrices, shared.matrices, lora.down, lora.up):
            for n, difference in enumerate((target - start).chunk(len(a))):
                u, s, v = torch.linalg.svd(difference, full_matrices=False)
                a.data[n].zero_()[: len(v)] = v
                b.data[n].zero_()[:, : len(s)] = u * s
    for i in range(2):  # norms are shared, so make them alike
        own.layers[i + 2].attention_norm.load_state_dict(own.layers[i].attention_norm.state_dict())
        own.layers[i + 2].ffn_norm.load_state_dict(own.layers[i].ffn_norm.state_dict())
        relaxed.layers[i].attention_norm.load_state_dict(own.layers[i].attention_norm.state_dict())
        relaxed.layers[i].ffn_norm.load_state_dict(own.layers[i].ffn_norm.state_dict())
    torch.testing.assert_close(relaxed(batch), own(batch), rtol=1e-5, atol=1e-5)


def test_core_that_ignores_its_state_gives_the_same_after_any_number_of_passes():
    model, batch = small("three-part"), packed(7)
    assert not torch.allclose(model(batch, passes=1), model(batch, passes=5))
    model.adapter.data.copy_(torch.cat((torch.zeros(32, 32), torch.eye(32)), 1))
    torch.testing.assert_close(model(batch, passes=1), model(batch, passes=5))


# -- every model ------------------------------------------------------------------------------------------------------


@EACH
def test_no_token_sees_what_follows_it(name):
    model, batch = small(name), packed(12)
    changed = replace(batch, ids=torch.cat((batch.ids[:7], (batch.ids[7:] + 1) % 61)))
    before, after = model(batch), model(changed)
    assert torch.equal(before[:7], after[:7]) and not torch.allclose(before[7:], after[7:])


@EACH
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_packed_stories_are_separate_stories(name, groups, monkeypatch):
    monkeypatch.setattr(control_module, "GROUPS", groups)
    model, lengths = small(name), (3, 11, 1, 7, 20, 2)
    batch = packed(*lengths)
    alone = [model(Packed.from_sequences([ids.numpy()])) for ids in batch.ids.split(lengths)]
    torch.testing.assert_close(model(batch), torch.cat(alone), rtol=1e-6, atol=1e-6)


@EACH
def test_passes_at_test_time_change_nothing_at_the_trained_number(name):
    model, batch = small(name), packed(5, 3)
    trained = model.config.num_passes
    assert torch.equal(model(batch), model(batch, passes=trained))
    states = list(model.states(batch, 2 * trained))
    assert len(states) == 2 * trained
    for r in (1, trained, 2 * trained):  # what is read after r passes does not depend on going on
        torch.testing.assert_close(F.linear(model.read(states[r - 1], batch), model.word.weight), model(batch, passes=r))
    assert not torch.allclose(model(batch, passes=2 * trained), model(batch))


@EACH
def test_loss_is_the_mean_cross_entropy_of_the_logits_and_so_are_its_gradients(name, monkeypatch):
    monkeypatch.setattr("rtx_core.models.cross_entropy.CHUNK", 5)
    model, batch = small(name).float(), packed(9, 4)
    targets = torch.arange(13) % 61
    expected = F.cross_entropy(model(batch), targets)
    wanted = torch.autograd.grad(expected, list(model.parameters()))
    loss = model(batch, targets)
    torch.testing.assert_close(loss, expected)
    for got, want in zip(torch.autograd.grad(loss, list(model.parameters())), wanted):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(model(batch, targets), expected)


def test_cross_entropy_scales_with_the_gradient_that_arrives():
    h, w = torch.randn(6, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    y = torch.arange(6)
    once = torch.autograd.grad(cross_entropy(h, w, y), (h, w))
    thrice = torch.autograd.grad(3 * cross_entropy(h, w, y), (h, w))
    for a, b in zip(once, thrice):
        torch.testing.assert_close(3 * a, b)


@pytest.mark.parametrize(
    ("name", "overrides", "total"),
    [("control", {}, 4_212_992), ("frailt", {}, 4_214_016), ("three-part", {}, 4_344_320), ("relaxed", {}, 5_462_272),
     ("control", {"num_layers": 16}, 13_705_472)],
)  # fmt: skip
def test_counts_are_the_published_ones(name, overrides, total):
    with torch.device("meta"):
        model = MODELS[name][0](replace(MODELS[name][1], **overrides))
    assert count_parameters(model) == {"total": total, "non_embedding": total - 4096 * 256} and sum(model.components().values()) == total


def test_loops_cost_what_they_do():
    with torch.device("meta"):
        each = {name: MODELS[name][0](MODELS[name][1]).multiplications() for name in NAMES}
    assert each["control"] == 4096 * 256 + 4 * (4 * 256**2 + 3 * 256 * 688)
    assert [round(each[name] / each["control"], 2) for name in LOOPED] == [3.25, 3.47, 3.55]


def test_models_of_one_seed_share_what_they_have_in_common():
    control = build_model("control", seed=0, **SMALL)
    for name in LOOPED:
        model = build_model(name, seed=0, **SMALL)
        assert all(torch.equal(model.state_dict()[k], v) for k, v in control.state_dict().items())


def test_initialisation_is_llama2c_with_its_slip():
    layer = build_model("control", seed=0).layers[0]
    stds = {name: matrix.std().item() for name, matrix in zip(("qkv", "out", "gate_up", "down"), layer.matrices)}
    gate, up = layer.gate_up.chunk(2)
    for got, expected in ((stds["qkv"], 0.02), (stds["out"], 0.02 / 8**0.5), (gate.std().item(), 0.02), (up.std().item(), 0.02 / 8**0.5), (stds["down"], 0.02)):
        assert got == pytest.approx(expected, rel=0.02)


def test_noise_is_fresh_in_training_and_fixed_afterwards():
    model, batch = small("three-part"), packed(6, 6)
    like = torch.zeros(12, 32, dtype=torch.float64)
    assert torch.equal(model.initial_state(batch, like), model.initial_state(batch, like)) and model.initial_state(batch, like).std() > 0.01
    assert torch.equal(model.initial_state(batch, like)[:6], model.initial_state(batch, like)[6:])
    model.train()
    assert not torch.equal(model.initial_state(batch, like), model.initial_state(batch, like))


@EACH
def test_model_is_saved_and_loaded(name, tmp_path):
    model, batch = build_model(name, seed=1, **SMALL).eval(), packed(4)
    save_model(model, name, tmp_path / "m.safetensors")
    assert torch.equal(load_model(tmp_path / "m.safetensors")(batch), model(batch))


@EACH
def test_16_bit_products_leave_the_stream_its_precision(name):
    model, batch, found = build_model(name, seed=1, **SMALL), packed(6, 3), {}
    targets = batch.ids.roll(-1)
    for enabled in (False, True):
        model.zero_grad()
        model.eval()  # three-part's initial state is one draw then
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            assert {state.dtype for state in model.states(batch)} == {torch.float32}
            loss = model(batch, targets)
        loss.backward()
        found[enabled] = (loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters()]))
    (loss, gradient), (rounded, other) = found.values()
    assert loss != rounded and abs(loss - rounded) < 0.01
    assert (gradient - other).norm() < 0.03 * gradient.norm()


@EACH
def test_one_token_at_a_time_gives_the_same_logits(name):
    model, ids = small(name), torch.randint(0, 61, (2, 5), generator=torch.Generator().manual_seed(0))
    state = model.start(2)
    steps = torch.stack([model.advance(ids[:, t], state) for t in range(5)], 1)
    torch.testing.assert_close(steps, model(Packed.from_sequences(ids.numpy())).view(2, 5, 61), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "overrides", "said"),
    [("control", {"num_layers": 0}, "num_layers is 0; it must be a positive"), ("control", {"hidden_size": 30}, "hidden_size 30 over 4 heads"),
     ("frailt", {"encoding": "layers"}, "Unknown encoding 'layers': did you mean 'layer'"), ("three-part", {"num_core_layers": 3}, "num_core_layers is 3 of 4"),
     ("three-part", {"num_core_layers": 4}, "num_core_layers is 4"), ("three-part", {"state_std": -1.0}, "state_std is -1.0"),
     ("relaxed", {"lora_rank": 33}, "lora_rank is 33"), ("relaxed", {"rank": 3}, "did you mean 'lora_rank'")],
)  # fmt: skip
def test_bad_configuration_is_one_sentence(name, overrides, said):
    with pytest.raises(RtxError) as error:
        build_model(name, **SMALL | overrides)
    assert said in str(error.value)
