"""The recurrence: the same numbers and gradients as its plain equations, for every length, with dropout, checkpointed or not."""

import pytest
import torch
import torch.nn.functional as F

from rtx_core.models import build_model
from rtx_core.models import kausik as kausik_module
from rtx_core.models.kausik import Recurrence, Shape, plain

TINY = {"vocab_size": 11, "hidden_size": 12, "num_heads": 3, "intermediate_size": 20, "dropout": 0.0}


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def loud(**overrides):
    model = build_model("kausik", seed=1, **TINY | overrides)
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        parameter.data = 0.4 * torch.randn(parameter.shape, generator=generator) + (parameter.dim() == 1)
    return model


def text(length: int) -> torch.Tensor:
    return torch.randint(0, 11, (3, length), generator=torch.Generator().manual_seed(length))


def by_the_equations(model, ids):
    x = model.embed(ids).transpose(0, 1)
    for layer in model.layers:
        _, x = plain(layer, x, model.config.window)
    return model.head(x.transpose(0, 1))


def gradients(model, loss) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


CASES = [{}, {"positions": True}, {"num_layers": 2}, {"window": 3}, {"window": 5, "num_layers": 2}]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("overrides", CASES, ids=str)
def test_the_recurrence_is_its_equations_in_value_and_gradient(overrides, length):
    model, ids = loud(**overrides), text(length)
    ours, theirs = model(ids), by_the_equations(model, ids)
    assert (ours - theirs).abs().max() < 1e-9
    targets = ids.roll(1).flatten()
    found = gradients(model, F.cross_entropy(model(ids).flatten(0, 1), targets))
    expected = gradients(model, F.cross_entropy(by_the_equations(model, ids).flatten(0, 1), targets))
    for name in expected:
        assert torch.allclose(found[name], expected[name], atol=1e-10, rtol=1e-8), name


def test_plain_is_the_paper_s_picture_for_a_window_of_two():
    """h_1 = T(x_1), (y_i, h_{i+1}) = T(h_i, x_{i+1}), y_N = T(h_N), written out for three tokens."""
    layer = loud().layers[0]
    x = torch.randn(3, 2, 12)

    def T(*window):
        return layer(torch.stack(window, dim=1)).unbind(1)

    (h1,) = T(x[0])
    y1, h2 = T(h1, x[1])
    y2, h3 = T(h2, x[2])
    (y3,) = T(h3)
    states, outputs = plain(layer, x)
    assert torch.equal(states, torch.stack([h1, h2, h3])) and torch.equal(outputs, torch.stack([y1, y2, y3]))


def test_an_output_does_not_depend_on_the_token_after_it():
    layer = loud().layers[0]
    h, a, b = torch.randn(3, 2, 12)
    with_a, with_b = (layer(torch.stack([h, x], dim=1))[:, 0] for x in (a, b))
    assert torch.allclose(with_a, with_b, atol=1e-12) and torch.allclose(with_a, layer(h[:, None])[:, 0], atol=1e-12)


def test_the_kernels_of_single_precision_give_the_same_numbers():
    """Training runs in float32, where the loop's products go another way."""
    model, ids = loud(), text(6)
    loss = model(ids, ids.roll(1))
    expected = gradients(model, loss)
    for gradient in expected.values():
        gradient.data = gradient.data.clone()
    model.float()
    single = model(ids, ids.roll(1))
    assert single.dtype == torch.float32 and single.item() == pytest.approx(loss.item(), rel=1e-4)
    for name, gradient in gradients(model, single).items():
        assert (gradient - expected[name]).norm() < 1e-3 * expected[name].norm(), name


@pytest.mark.parametrize("window", [2, 4])
@pytest.mark.parametrize("segment", [1, 2, 3, 7])
def test_gradients_with_masks_are_right_by_finite_differences(window, segment):
    N, B, d, H, f = 7, 2, 6, 2, 5
    generator = torch.Generator().manual_seed(3)

    def random(*size):
        return torch.randn(*size, generator=generator).mul_(0.5).requires_grad_()

    masks = [torch.empty(size).bernoulli_(0.7, generator=generator) / 0.7 for size in ((N, B, d), (N, B, d), (N, window, B, H))]
    operands = [random(N, B, d), random(N, B, d), random(N, B, 2 * d), random(2 * d, d), random(d, d), random(f, d), random(d, f)]
    assert torch.autograd.gradcheck(lambda *given: Recurrence.apply(Shape(H, window, 1e-5, segment), *given, *masks), operands)


def test_masks_are_where_the_equations_have_dropout():
    """One step after another with the masks multiplied in by hand; autograd's gradient of that is the recurrence's."""
    N, B, d, H, f = 5, 2, 6, 2, 5
    generator = torch.Generator().manual_seed(4)
    m_out, m_down, m_attention = (torch.empty(s).bernoulli_(0.6, generator=generator) / 0.6 for s in ((N, B, d), (N, B, d), (N, 2, B, H)))
    x, q, own = (torch.randn(N, B, k * d, generator=generator).requires_grad_() for k in (1, 1, 2))
    K, O, U, D = (torch.randn(*s, generator=generator).mul_(0.4).requires_grad_() for s in ((2 * d, d), (d, d), (f, d), (d, f)))
    states = []
    for i in range(N):
        rows = [own[i]] if i == 0 else [F.layer_norm(states[-1], (d,)) @ K.t(), own[i]]
        k, v = torch.stack(rows).view(-1, B, 2, H, d // H).unbind(2)
        p = torch.softmax(torch.einsum("bhd,wbhd->wbh", q[i].view(B, H, -1), k) / (d // H) ** 0.5, 0)
        a = torch.einsum("wbh,wbhd->bhd", p * m_attention[i, : len(rows)], v).reshape(B, d)
        u = x[i] + m_out[i] * (a @ O.t())
        states.append(u + m_down[i] * (F.gelu(F.layer_norm(u, (d,)) @ U.t()) @ D.t()))
    expected = torch.stack(states)
    found = Recurrence.apply(Shape(H, 2, 1e-5, N), x, q, own, K, O, U, D, m_out, m_down, m_attention)
    assert torch.allclose(found, expected, atol=1e-11)
    weight = torch.randn(N, B, d, generator=generator)
    operands = (x, q, own, K, O, U, D)
    for ours, theirs in zip(torch.autograd.grad((found * weight).sum(), operands), torch.autograd.grad((expected * weight).sum(), operands)):
        assert torch.allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("window", [2, 3])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("checkpoint", [1, 4, 100])
def test_checkpointed_is_not_checkpointed(window, dropout, checkpoint, monkeypatch):
    """Without dropout the numbers are those of checkpoint=0; masks are drawn piece by piece, so with it those of nothing recomputed."""
    results = []
    for recomputed in (True, False):
        if not recomputed and dropout:
            monkeypatch.setattr(kausik_module, "checkpoint", lambda function, *operands, use_reentrant: function(*operands))
        kept = checkpoint if recomputed or dropout else 0
        model, ids = loud(window=window, dropout=dropout, checkpoint=kept, num_layers=2), text(9)
        torch.manual_seed(5)
        loss = model.train()(ids, ids.roll(1))
        results.append((loss.detach(), gradients(model, loss)))
    (a, first), (b, second) = results
    assert torch.allclose(a, b, atol=1e-12)
    for name in first:
        assert torch.allclose(first[name], second[name], atol=1e-12), name


def test_dropout_drops_with_its_probability_and_only_in_training():
    model, ids = loud(dropout=0.5), text(6)
    first, second = model(ids), model(ids)
    assert not torch.allclose(first, second)
    model.eval()
    assert torch.equal(model(ids), model(ids))
    mask = kausik_module.dropout_mask((200, 200), 0.25, torch.zeros(1))
    assert set(mask.unique().tolist()) == {0.0, 1 / 0.75} and mask.mean().item() == pytest.approx(1, abs=0.02)


def test_gradient_flows_from_the_last_output_to_the_first_token():
    model = loud(hidden_size=12)
    x = model.embed(text(9)).detach().requires_grad_()
    model.trunk(x)[:, -1].sum().backward()
    assert (x.grad.abs().sum(-1) > 0).all()
