"""The decoder of many switches: each switch does what it says (the studies' models: `test_decoders`)."""

import pytest
import torch
import torch.nn.functional as F
from reference import small_decoder, stories_of

from rtx_core.models import count_parameters

SWITCHES = {
    "prelude and coda": {"num_layers": 4, "num_core_layers": 2},
    "injection": {"num_layers": 3, "num_core_layers": 2, "injection": "add"},
    "everything": {"num_layers": 4, "num_core_layers": 1, "injection": "linear", "encoding": "layer"}
    | {"lora_rank": 2, "state_std": 0.1, "state_norm": True, "tie_embeddings": False, "gate": True},
}


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_can_be_combined(name):
    model, batch = small_decoder("looped", num_passes=3, **SWITCHES[name]), stories_of(5, 8)
    assert sum(model.components().values()) == count_parameters(model)["total"]
    model(batch, batch.ids.roll(-1)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    rows = batch.ids[:5].repeat(2, 1)
    torch.testing.assert_close(model(rows)[1], model(batch)[:5])
    targets = torch.tensor([[-100, 3, -100, 1, 2], [7, 4, -100, -100, -100]])
    expected = F.cross_entropy(model(rows).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(model(rows, targets), expected)


def test_layers_outside_the_core_run_once():
    model, batch = small_decoder("looped", num_layers=5, num_core_layers=2, num_passes=3), stories_of(4)
    assert [len(part) for part in model.parts] == [2, 2, 1]
    runs = {layer: 0 for layer in model.layers}

    def count(layer, *_):
        runs[layer] += 1

    for layer in model.layers:
        layer.register_forward_hook(count)
    model(batch)
    assert list(runs.values()) == [1, 1, 3, 3, 1]


def test_random_passes_are_drawn_from_the_step_alone_and_only_in_training():
    model, batch = small_decoder("looped", num_layers=1, num_passes=4, random_passes=True), stories_of(6)
    by_passes = [model(batch, num_passes=r) for r in range(1, 5)]
    drawn = []
    for step in range(60):
        model.train().begin_step(7, step)
        drawn.append(model.drawn_passes)
        assert torch.equal(model(batch), by_passes[drawn[-1] - 1])
        assert torch.equal(model.eval()(batch), by_passes[-1])
    assert {drawn.count(r) > 5 for r in range(1, 5)} == {True} and len(set(drawn)) == 4
    other = small_decoder("looped", seed=5, num_layers=1, num_passes=4, random_passes=True)
    again = [other.begin_step(7, step) or other.drawn_passes for step in range(60)]
    assert again == drawn


def test_noise_on_weights_is_that_of_a_coarse_grid_and_the_same_in_every_pass_of_a_step():
    model, batch = small_decoder("looped", num_layers=1, num_passes=3, weight_noise=4), stories_of(6)
    plain = small_decoder("looped", num_layers=1, num_passes=3)
    assert torch.equal(model.eval()(batch), plain.eval()(batch))
    loss = model.train()(batch, batch.ids.roll(-1))
    (layer,), (exact,) = model.layers, plain.layers
    for noisy, weight in zip(layer.noisy, exact.matrices, strict=True):
        off = ((noisy - weight) / (weight.abs().amax(1, keepdim=True) / 7)).detach()
        assert off.abs().max() <= 0.5 + 1e-4 and off.std() == pytest.approx(12**-0.5, rel=0.05)
    exact.noisy = layer.noisy
    state = plain.word(batch.ids)
    for r in range(3):
        state = plain.one_pass(state, state, r, plain.grid(batch))
    torch.testing.assert_close(plain.loss(plain.read(state, batch), batch.ids.roll(-1)), loss)
    loss.backward()
    assert layer.qkv.grad.abs().sum() > 0


def test_gate_and_added_text_are_their_formulas():
    model = small_decoder("looped", num_layers=1, num_passes=3, injection="add", gate=True)
    batch = stories_of(5, 8)
    s = e = model.word(batch.ids)
    for _ in range(3):
        share = 1 / (1 + torch.exp(-s @ model.gate.t()))
        s = (1 - share) * s + share * model.layers[0](s + e, model.grid(batch))
    torch.testing.assert_close(model(batch), F.linear(model.norm(s), model.word.weight))
