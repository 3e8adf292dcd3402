"""The recurrence, and its back-propagation written out: the numbers and gradients of the plain equations."""

import pytest
import torch
import torch.nn.functional as F
from reference import generator, loud

from rtx_core.fast import accelerate, recurrence
from rtx_core.fast.recurrence import Recurrence
from rtx_core.models.kausik import recurrence as plain_recurrence

TINY = {"vocab_size": 11, "hidden_size": 12, "num_heads": 3, "intermediate_size": 20, "dropout": 0.0}


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def plain(std: float = 0.4, **overrides):
    return loud("kausik", std, **TINY | overrides)


def fast(std: float = 0.4, **overrides):
    model = plain(std, **overrides)
    accelerate(model)
    assert "trunk" in vars(model)
    return model


def text(length: int) -> torch.Tensor:
    return torch.randint(0, 11, (3, length), generator=generator(length))


def loss_and_gradients(model, ids) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss = model(ids, ids.roll(1))
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad.clone() for name, p in model.named_parameters()}


def test_plain_is_the_paper_s_picture_for_a_window_of_two():
    """h_1 = T(x_1), (y_i, h_{i+1}) = T(h_i, x_{i+1}), y_N = T(h_N), written out for three tokens."""
    layer = plain().layers[0]
    x = torch.randn(3, 2, 12)

    def T(*window):
        return layer(torch.stack(window, dim=1)).unbind(1)

    (h1,) = T(x[0])
    y1, h2 = T(h1, x[1])
    y2, h3 = T(h2, x[2])
    (y3,) = T(h3)
    states, outputs = plain_recurrence(layer, x)
    assert torch.equal(states, torch.stack([h1, h2, h3])) and torch.equal(outputs, torch.stack([y1, y2, y3]))


CASES = [{}, {"positions": True}, {"num_layers": 2}, {"window": 3}, {"window": 5, "num_layers": 2}]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("overrides", CASES, ids=str)
def test_the_fast_recurrence_is_the_plain_one_in_value_and_gradient(overrides, length):
    ids = text(length)
    assert (fast(**overrides)(ids) - plain(**overrides)(ids)).abs().max() < 1e-9
    found, expected = (loss_and_gradients(way(**overrides), ids) for way in (fast, plain))
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-8)


def test_the_kernels_of_single_precision_give_the_same_numbers():
    """Training runs in float32, where the loop's products go another way."""
    model, ids = fast(), text(6)
    expected = loss_and_gradients(model, ids)
    single = loss_and_gradients(model.float(), ids)
    assert single["loss"].dtype == torch.float32
    for name, value in expected.items():
        assert (single[name] - value).norm() < 1e-3 * value.norm(), name


@pytest.mark.parametrize("overrides", CASES, ids=str)
def test_16_bit_products_in_value_and_gradient(overrides):
    """No tensor twice as far from float64's as the farthest of the plain way under autocast."""
    exact = loss_and_gradients(fast(0.2, **overrides), text(9))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = [loss_and_gradients(way(0.2, **overrides).float(), text(9)) for way in (fast, plain)]
    off, usual = ([(of[name] - exact[name]).norm() / exact[name].norm() for name in exact] for of in rounded)
    assert min(off) > 0 and max(off) < min(0.1, 2 * max(usual))


@pytest.mark.parametrize("window", [2, 4])
def test_masks_are_where_the_equations_have_dropout(window, monkeypatch):
    """Step after step with the masks multiplied in by hand.  A GPU's graph is made once a size."""
    (N, B, d, H, f), random = (5, 2, 6, 2, 5), generator(4)
    shapes = ((N, B, d), (N, B, d), (N, window, B, H))
    masks = [torch.empty(s).bernoulli_(0.6, generator=random) / 0.6 for s in shapes]
    m_out, m_down, m_attention = masks
    x, q, own = (torch.randn(N, B, k * d, generator=random).requires_grad_() for k in (1, 1, 2))
    shapes = ((2 * d, d), (d, d), (f, d), (d, f))
    K, O, U, D = (torch.randn(*s, generator=random).mul_(0.4).requires_grad_() for s in shapes)
    states = []
    for i in range(N):
        rows = [*(F.layer_norm(h, (d,)) @ K.t() for h in states[max(0, i - window + 1) :]), own[i]]
        k, v = torch.stack(rows).view(-1, B, 2, H, d // H).unbind(2)
        p = torch.softmax(torch.einsum("bhd,wbhd->wbh", q[i].view(B, H, -1), k) / (d // H) ** 0.5, 0)
        a = torch.einsum("wbh,wbhd->bhd", p * m_attention[i, : len(rows)], v).reshape(B, d)
        u = x[i] + m_out[i] * (a @ O.t())
        states.append(u + m_down[i] * (F.gelu(F.layer_norm(u, (d,)) @ U.t()) @ D.t()))
    expected, operands = torch.stack(states), (x, q, own, K, O, U, D)
    found = Recurrence.apply(H, window, 1e-5, *operands, *masks)
    assert torch.allclose(found, expected, atol=1e-11)
    weight = torch.randn(N, B, d, generator=random)
    ours, theirs = (torch.autograd.grad((states * weight).sum(), operands) for states in (found, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-7)
    made, layer, about = [], torch.nn.Identity(), (H, window, 1e-5)
    monkeypatch.setattr(torch.cuda, "make_graphed_callables", lambda run, like: made.append(like) or run)
    with torch.inference_mode():
        again = [recurrence.graphed(layer, about, operands, drawn) for drawn in (masks, masks, [None] * 3)]
    assert torch.equal(again[1], found) and len(made) == len(layer.graphs) == 2
    assert [like.requires_grad for like in made[0]] == [True] * 7 + [False] * 3


@pytest.mark.parametrize("way", [plain, fast])
def test_dropout_drops_with_its_probability_and_only_in_training(way):
    model, ids = way(dropout=0.5), text(6)
    assert not torch.allclose(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))
    mask = recurrence.dropout_mask((200, 200), 0.25, torch.zeros(1))
    assert set(mask.unique().tolist()) == {0.0, 1 / 0.75} and mask.mean().item() == pytest.approx(1, abs=0.02)
