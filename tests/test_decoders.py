"""The story models against one another, what must hold of any of them, and that each switch does what it says."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from conftest import refused
from reference import small_decoder, stories_of
from torch import nn

from rtx_core.fast import accelerate, causal, cross_entropy
from rtx_core.models import build_model, count_parameters, llama
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.packed import Packed

NAMES = ("control", "frailt", "three-part", "relaxed")
LOOPED = NAMES[1:]
EACH = pytest.mark.parametrize("name", NAMES)


@EACH
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_packed_stories_are_separate_stories(name, groups, monkeypatch):
    monkeypatch.setattr(llama, "GROUPS", groups)
    model, lengths = small_decoder(name), (3, 11, 1, 7, 20, 2)
    batch = stories_of(*lengths)
    alone = [model(Packed.from_sequences([ids.numpy()])) for ids in batch.ids.split(lengths)]
    torch.testing.assert_close(model(batch), torch.cat(alone), rtol=1e-6, atol=1e-6)


@EACH
def test_passes_at_test_time_change_nothing_at_the_trained_number(name):
    model, batch = small_decoder(name), stories_of(5, 3)
    trained = model.config.num_passes
    by_passes = [model(batch, num_passes=r) for r in range(1, 2 * trained + 1)]
    assert torch.equal(model(batch), by_passes[trained - 1]) and not torch.allclose(by_passes[-1], model(batch))
    for state, logits in zip(model.states(batch, 2 * trained), by_passes, strict=True):  # it may go on or not
        torch.testing.assert_close(F.linear(model.output_hidden(state, batch), model.word.weight), logits)


@EACH
@pytest.mark.parametrize("fast", [False, True])
def test_loss_is_the_mean_cross_entropy_of_the_logits_and_so_are_its_gradients(name, fast, monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK", 5)
    model, batch, targets = small_decoder(name).float(), stories_of(9, 4), torch.arange(13) % 61
    expected = F.cross_entropy(model(batch), targets)
    gradients = torch.autograd.grad(expected, list(model.parameters()))
    if fast:
        accelerate(model)
    assert ("loss" in vars(model)) == fast
    loss = model(batch, targets)
    torch.testing.assert_close(loss, expected)
    found = torch.autograd.grad(3 * loss, list(model.parameters()))  # and scale with what arrives
    torch.testing.assert_close(found, tuple(3 * g for g in gradients), rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(model(batch, targets), expected)


@EACH
@pytest.mark.parametrize("lengths", [(6, 3), (11, 11), (3, 11, 1, 7, 20, 2)], ids=str)
def test_16_bit_products_in_value_and_gradient(name, lengths, monkeypatch):
    """Each tensor about as far from float64's as under plain autocast; the stream keeps 32 bits."""
    monkeypatch.setattr(causal, "ROWS", 4)
    exact, batch = small_decoder(name), stories_of(*lengths)

    def tensors(model):
        loss = model(batch, batch.ids.roll(-1))
        return [loss.detach(), *torch.autograd.grad(loss, list(model.parameters()))]

    expected, plain, fast = tensors(exact), deepcopy(exact).float(), deepcopy(exact).float()
    accelerate(fast)
    with torch.autocast("cpu", torch.bfloat16):
        assert isinstance(fast.grid(batch), causal.CausalGrid)
        assert {state.dtype for state in fast.states(batch)} == {torch.float32}
        found, usual = tensors(fast), tensors(plain)
    for of, ours, theirs in zip(expected, found, usual, strict=True):
        off, other = ((rounded - of).norm() / of.norm() for rounded in (ours, theirs))
        assert 0 < off < min(0.1, 2 * other + 0.01)


def test_loops_cost_what_they_do():
    with torch.device("meta"):
        cost = {name: build_model(name).macs_per_token() for name in NAMES}
    assert cost["control"] == 4096 * 256 + 4 * (4 * 256**2 + 3 * 256 * 688)
    assert [round(cost[name] / cost["control"], 2) for name in LOOPED] == [3.25, 3.47, 3.55]


@pytest.mark.parametrize("name", ["frailt", "relaxed"])
def test_beyond_the_trained_passes_what_the_last_has_serves_again(name):
    model, longer = (small_decoder(name, num_passes=passes) for passes in (2, 5))
    longer.word, longer.layers, longer.norm = model.word, model.layers, model.norm
    if name == "frailt":
        longer.encoding.data = model.encoding.data[[0, 1, 1, 1, 1]]
    else:
        longer.lora = torch.nn.ModuleList(model.lora[min(r, 1)] for r in range(5))
    torch.testing.assert_close(model(stories_of(5, 8), num_passes=5), longer(stories_of(5, 8)))


EVERYTHING = {"num_layers": 4, "num_core_layers": 1, "injection": "linear", "encoding": "layer", "lora_rank": 2}
EVERYTHING |= {"state_std": 0.1, "state_norm": True, "gate": True}
SWITCHES = [{"num_layers": 4, "num_core_layers": 2}, {"num_layers": 3, "num_core_layers": 2, "injection": "add"}]


@pytest.mark.parametrize("switches", [*SWITCHES, EVERYTHING], ids=["prelude and coda", "injection", "everything"])
def test_switches_can_be_combined(switches):
    model, batch = small_decoder("looped", num_passes=3, **switches), stories_of(5, 8)
    assert sum(model.components().values()) == count_parameters(model)["total"]
    model(batch, batch.ids.roll(-1)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    rows = batch.ids[:5].repeat(2, 1)
    torch.testing.assert_close(model(rows)[1], model(batch)[:5])
    targets = torch.tensor([[-100, 3, -100, 1, 2], [7, 4, -100, -100, -100]])
    torch.testing.assert_close(model(rows, targets), F.cross_entropy(model(rows).flatten(0, 1), targets.flatten()))


def test_random_passes_are_run_in_training_alone():
    model, batch = small_decoder("looped", num_layers=1, num_passes=4, random_passes=True), stories_of(6)
    by_passes = [model(batch, num_passes=r) for r in range(1, 5)]
    for step in range(20):
        model.train().begin_step(7, step)
        assert torch.equal(model(batch), by_passes[model.drawn_passes - 1])
        assert torch.equal(model.eval()(batch), by_passes[-1])


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
    torch.testing.assert_close(plain.loss(plain.output_hidden(state, batch), batch.ids.roll(-1)), loss)
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


@pytest.mark.parametrize("passes", [1, 2])
def test_gradients_flow_through_the_last_passes_alone(passes):
    """Against the loop written out: states without gradients, then the last passes from a constant."""
    model = small_decoder("looped", num_passes=4, injection="add", backprop_passes=passes)
    batch, targets = stories_of(5, 8), torch.arange(13) % 61
    plain = small_decoder("looped", num_passes=4, injection="add")
    with torch.no_grad():
        *_, s = plain.states(batch, 4 - passes)
    e, grid = plain.word(batch.ids), plain.grid(batch)
    for _ in range(passes):
        s = s + e
        for layer in plain.layers:
            s = layer(s, grid)
    expected = F.cross_entropy(F.linear(plain.norm(s), plain.head), targets)
    expected.backward()
    loss = model(batch, targets)
    loss.backward()
    torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    plain.zero_grad()
    plain(batch, targets).backward()
    assert not torch.allclose(plain.layers[0].qkv.grad, model.layers[0].qkv.grad)


def test_as_many_backprop_passes_as_passes_are_all():
    batch, models = stories_of(6), [small_decoder("looped", num_passes=3, backprop_passes=n) for n in (0, 3, 9)]
    for model in models:
        model(batch, batch.ids.roll(-1)).backward()
    gradients = [[p.grad for p in model.parameters()] for model in models]
    torch.testing.assert_close(gradients[1:], gradients[:1] * 2, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"encoding": "pass"}, ["encoding", "earlier"]),
        ({"lora_rank": 2}, ["low-rank", "earlier"]),
        ({"num_layers": 3, "num_core_layers": 1}, ["before the loop", "injection"]),
    ],
    ids=str,
)
def test_weights_that_gradients_would_not_reach_are_refused(settings, words):
    with refused("backprop_passes is 1 of 3", *words):
        LoopedConfig(num_passes=3, backprop_passes=1, **settings)


@torch.inference_mode()
@pytest.mark.parametrize("settings", [{"num_layers": 2}, {"num_layers": 4, "num_core_layers": 2, "injection": "add"}])
def test_a_cache_of_the_last_pass(settings):
    """Against attention written out: earlier tokens give the keys and values of their last pass, to every pass."""
    model, ids = small_decoder("looped", num_passes=3, **settings), stories_of(6).ids
    (begin, end), kept, states = model.config.core, {}, {name: model.start(1, cache=name) for name in ("all", "last")}
    applied = [*range(begin), *[*range(begin, end)] * 3, *range(end, model.config.num_layers)]
    for t, token in enumerate(ids):
        x, rope = model.word(token[None]), rotary_table(torch.tensor([t]), 8, model.config.rope_base)
        e = None
        for i, index in enumerate(applied):
            e = x if i == begin else e
            x = x + e if index == begin and "injection" in settings else x
            layer = model.layers[index]
            q, k, v = F.linear(layer.attention_norm(x), layer.qkv).view(1, 3, 4, 8).unbind(1)
            q, k = rotate(q[:, None], rope)[0], rotate(k[:, None], rope)[0]
            kept[index] = [*kept.get(index, [])[:t], (k[0], v[0])]
            keys, values = (torch.stack(each) for each in zip(*kept[index]))
            weights = torch.einsum("hd,thd->ht", q[0], keys).mul(8**-0.5).softmax(-1)
            x = x + F.linear(torch.einsum("ht,thd->hd", weights, values).reshape(1, -1), layer.out)
            gate, up = F.linear(layer.ffn_norm(x), layer.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        expected = F.linear(model.norm(x), model.head)
        logits = {name: model.advance(token[None], state) for name, state in states.items()}
        torch.testing.assert_close(logits["last"], expected)
        assert torch.allclose(logits["all"], expected) == (t == 0)
    sizes = {name: sum(k.numel() + v.numel() for k, v in state.cache.values()) for name, state in states.items()}
    assert sizes == {"all": 2 * 32 * 6 * len(applied), "last": 2 * 32 * 6 * model.config.num_layers}
    with refused("'none'", "all", "last"):
        model.start(1, cache="none")


def test_with_the_cache_of_the_last_pass_training_reads_what_decoding_reads():
    model = small_decoder("looped", num_layers=2, num_passes=3, cache="last")
    ids = torch.randint(61, (2, 7), generator=torch.Generator().manual_seed(0))
    state, plain = model.start(2), small_decoder("looped", num_layers=2, num_passes=3)
    in_turn = torch.stack([model.advance(column, state) for column in ids.unbind(1)], 1)
    torch.testing.assert_close(model(ids), in_turn)
    assert not torch.allclose(model(ids), plain(ids)) and torch.allclose(model(ids)[:, 0], plain(ids)[:, 0])
    model(ids, ids.roll(-1, 1)).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    with refused("cache='last'", "one length"):
        model(stories_of(3, 5))


def test_the_gate_s_loss_is_that_of_its_stops_written_out():
    model, batch = small_decoder("looped", num_passes=3, halting=0.1), stories_of(5, 8)
    nn.init.normal_(model.halt.weight)
    targets, expected = torch.arange(13) % 61, 0.0
    hidden = [model.norm(state) for state in model.states(batch)]
    left = torch.ones(13, dtype=torch.float64)
    for r, h in enumerate(hidden):
        p = left if r == 2 else left * torch.sigmoid(model.halt(h)[:, 0])
        losses = F.cross_entropy(F.linear(h, model.head), targets, reduction="none")
        expected = expected + (p * losses + 0.1 * p * p.log()).mean()
        left = left - p
    assert model.stopping(torch.stack(hidden)).sum(0).allclose(torch.ones(13))
    torch.testing.assert_close(model.train()(batch, targets), expected, rtol=1e-5, atol=1e-6, check_dtype=False)
    plain = small_decoder("looped", num_passes=3)
    torch.testing.assert_close(model.eval()(batch, targets), plain.eval()(batch, targets))
    assert sum(model.components().values()) == count_parameters(model)["total"]


def test_random_cuts_are_those_of_their_step():
    batch, targets = stories_of(5, 8), torch.arange(13) % 61
    model, drawn = small_decoder("looped", num_passes=3, backprop_passes="random").train(), set()
    for step in range(12):
        model.begin_step(0, step)
        drawn.add(cut := model.drawn_backprop)
        plain = small_decoder("looped", num_passes=3, backprop_passes=cut)
        model.zero_grad()
        for each in (model, plain):
            each(batch, targets).backward()
        gradients = [[p.grad for p in each.parameters()] for each in (model, plain)]
        torch.testing.assert_close(*gradients, rtol=0, atol=0)
    assert drawn == {1, 2, 3}


@pytest.mark.parametrize("cache", ["all", "last"])
@pytest.mark.parametrize("stop", ["agree", "confident", "gate"])
def test_passes_that_a_rule_ends_keep_what_the_last_one_kept(stop, cache):
    """A threshold that is never met runs all passes; one that is met at once runs one, whose keys serve for all."""
    model = small_decoder("looped", num_layers=2, num_passes=3, halting=0.1, cache=cache).eval()
    once = small_decoder("looped", num_layers=2, num_passes=3, halting=0.1, cache=cache).eval()
    once.config = once.config.replace(num_passes=2 if stop == "agree" else 1, halting=0.0)
    ids = torch.zeros(2, 5, dtype=torch.long)  # after two passes any two answers are made to agree below
    if stop == "agree":
        with torch.no_grad():
            model.word.weight[1:] = once.word.weight[1:] = 0
            model.word.weight[0] = once.word.weight[0] = 1
    state, first, expected = model.start(2), None, once.start(2)
    for column in ids.unbind(1):
        first = model.advance(column, state, stop=stop, threshold=0.0)
        torch.testing.assert_close(first, once.advance(column, expected))
        assert state.passes == (2 if stop == "agree" else 1)
    assert {k.shape[2] for k, _ in state.cache.values()} == {5} and len(state.cache) == (6 if cache == "all" else 2)
    if stop != "agree":
        state, whole = model.start(2), model.start(2)
        for column in ids.unbind(1):
            never = model.advance(column, state, stop=stop, threshold=2.0)
            torch.testing.assert_close(never, model.advance(column, whole))
        assert state.passes == 3


def test_rules_that_a_model_does_not_have_are_refused():
    plain, parts = small_decoder("looped", num_passes=2), small_decoder("three-part")
    for model, stop, words in ((plain, "gate", "agree"), (plain, "soon", "confident"), (parts, "agree", "loops all")):
        with refused(repr(stop), words):
            model.advance(torch.zeros(1, dtype=torch.long), model.start(1), stop=stop)
    for settings in ({"num_passes": 1}, {"num_layers": 3, "num_core_layers": 1, "injection": "add"}):
        with refused("halting"):
            LoopedConfig(**{"num_passes": 2, "halting": 0.1} | settings)
    with refused("weight_noise"):
        LoopedConfig(num_passes=2, cache="last", weight_noise=4)
