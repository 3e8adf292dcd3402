"""The recurrences written anew from papers, against independent implementations of their formulas in NumPy."""

import numpy as np
import pytest
import torch

import rtx_core as rtx
from rtx_core.benchmark.check import FAIL
from study.recurrences.huginn import Huginn
from study.recurrences.hyper import Hyper
from study.recurrences.lstm import LSTM
from study.recurrences.trm import TRM
from study.recurrences.universal import Universal

V, N = 11, 7
IDS = torch.from_numpy(np.random.RandomState(0).randint(V, size=(2, N)))


def weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """In float64, every parameter moved off its initial value, so that gains and biases count."""
    random = np.random.RandomState(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.from_numpy(random.standard_normal(tuple(parameter.shape))).float())
    return {name: value.double().numpy() for name, value in model.state_dict().items()}


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One head of one sequence, (N, size) each, position by position."""
    rows = []
    for n in range(len(q)):
        scores = np.exp(k[: n + 1] @ q[n] / np.sqrt(q.shape[1]))
        rows.append(scores @ v[: n + 1] / scores.sum())
    return np.stack(rows)


def layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + bias


def universal(w: dict, ids: np.ndarray, heads: int, passes: int) -> np.ndarray:
    h = w["word.weight"][ids]
    d = h.shape[1]
    for t in range(1, passes + 1):
        x = h.copy()
        for i in range(len(ids)):
            for j in range(d // 2):
                angle = 10_000 ** (2 * j / d)
                x[i, 2 * j] += np.sin(i / angle) + np.sin(t / angle)
                x[i, 2 * j + 1] += np.cos(i / angle) + np.cos(t / angle)
        q, k, v = np.split(x @ w["qkv.weight"].T, 3, axis=1)
        parts = [np.split(each, heads, axis=1) for each in (q, k, v)]
        attended = np.concatenate([attend(*head) for head in zip(*parts)], 1) @ w["out.weight"].T
        a = layer_norm(x + attended, w["attention_norm.weight"], w["attention_norm.bias"])
        hidden = np.maximum(a @ w["up.weight"].T + w["up.bias"], 0) @ w["down.weight"].T + w["down.bias"]
        h = layer_norm(a + hidden, w["transition_norm.weight"], w["transition_norm.bias"])
    return h @ w["head.weight"].T + w["head.bias"]


def rms_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float32).eps) * gain


def turned(x: np.ndarray) -> np.ndarray:
    """Rotary positions as complex numbers."""
    half = x.shape[1] // 2
    z = x[:, :half] + 1j * x[:, half:]
    z = z * np.exp(1j * np.arange(len(x))[:, None] * 10_000.0 ** (-2 * np.arange(half) / (2 * half)))
    return np.concatenate((z.real, z.imag), 1)


def attention(w: dict, at: str, x: np.ndarray, heads: int) -> np.ndarray:
    parts = [np.split(each, heads, axis=1) for each in np.split(x @ w[f"{at}.qkv.weight"].T, 3, 1)]
    attended = np.concatenate([attend(turned(q), turned(k), v) for q, k, v in zip(*parts)], 1)
    return attended @ w[f"{at}.out.weight"].T


def mlp(w: dict, at: str, x: np.ndarray) -> np.ndarray:
    gate, up = np.split(x @ w[f"{at}.gate_up.weight"].T, 2, 1)
    return gate / (1 + np.exp(-gate)) * up @ w[f"{at}.down.weight"].T


def sandwich(w: dict, at: str, x: np.ndarray, heads: int) -> np.ndarray:
    gains = [w[f"{at}.norms.{i}.weight"] for i in range(4)]
    x = rms_norm(x + attention(w, at, rms_norm(x, gains[0]), heads), gains[1])
    return rms_norm(x + mlp(w, at, rms_norm(x, gains[2])), gains[3])


def huginn(w: dict, ids: np.ndarray, heads: int, passes: int, state: np.ndarray) -> np.ndarray:
    e = sandwich(w, "prelude.0", w["word.weight"][ids], heads)
    for _ in range(passes):
        joined = np.concatenate((state, e), 1) @ w["core.adapter.weight"].T
        for i in (0, 1):
            joined = sandwich(w, f"core.layers.{i}", joined, heads)
        state = rms_norm(joined, w["core.norm.weight"])
    return rms_norm(sandwich(w, "coda.0", state, heads), w["norm.weight"]) @ w["head.weight"].T


def trm(w: dict, ids: np.ndarray, heads: int, inner: int, passes: int) -> np.ndarray:
    x = w["word.weight"][ids]
    y, z = (np.tile(w[name], (len(ids), 1)) for name in ("answer", "latent"))

    def net(h: np.ndarray) -> np.ndarray:
        for layer in ("net.0", "net.1"):
            h = rms_norm(h + attention(w, layer, h, heads), w[f"{layer}.norms.0.weight"])
            h = rms_norm(h + mlp(w, layer, h), w[f"{layer}.norms.1.weight"])
        return h

    for _ in range(passes):
        for _ in range(inner):
            z = net(x + y + z)
        y = net(y + z)
    return y @ w["head.weight"].T


def hyper(w: dict, ids: np.ndarray, heads: int, streams: int, passes: int) -> np.ndarray:
    h = [w["word.weight"][ids] for _ in range(streams)]
    parts = (lambda x: attention(w, "parts.0", x, heads), lambda x: mlp(w, "parts.1", x))
    for _ in range(passes):
        for i, part in enumerate(parts):
            read, mix, write = (w[f"connections.{i}.{name}"] for name in ("read", "mix", "write"))
            output = part(rms_norm(sum(read[j] * h[j] for j in range(streams)), w[f"parts.{i}.norm.weight"]))
            h = [sum(mix[j, k] * h[j] for j in range(streams)) + write[k] * output for k in range(streams)]
    return rms_norm(sum(h), w["norm.weight"]) @ w["head.weight"].T


def lstm(w: dict, ids: np.ndarray) -> np.ndarray:
    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    h = c = np.zeros(w["head.weight"].shape[1])
    logits = []
    for x in w["word.weight"][ids]:
        gates = w["cells.weight_ih_l0"] @ x + w["cells.weight_hh_l0"] @ h
        i, f, g, o = np.split(gates + w["cells.bias_ih_l0"] + w["cells.bias_hh_l0"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        logits.append(w["head.weight"] @ h + w["head.bias"])
    return np.stack(logits)


def test_the_universal_transformer_is_its_formula():
    model = Universal(V, width=16, heads=2, passes=3).eval()
    w = weights(model)
    for passes in (1, 3, 5):
        expected = np.stack([universal(w, ids, 2, passes) for ids in IDS.numpy()])
        np.testing.assert_allclose(model(IDS, num_passes=passes).detach().numpy(), expected, atol=1e-5)


def test_huginn_is_its_formula():
    model = Huginn(V, width=16, heads=2, layers=(1, 2, 1), passes=3).eval()
    w = weights(model)
    state = model.initial_state(torch.zeros(1, N, 16))[0].double().numpy()
    for passes in (1, 3):
        expected = np.stack([huginn(w, ids, 2, passes, state) for ids in IDS.numpy()])
        np.testing.assert_allclose(model(IDS, num_passes=passes).detach().numpy(), expected, atol=1e-5)


def test_huginn_draws_its_passes_and_truncates_the_gradient():
    torch.manual_seed(0)
    model = Huginn(V, width=16, heads=2, passes=6).train()
    draws = [model.drawn_passes() for _ in range(4000)]
    assert np.mean(draws) == pytest.approx(7, abs=0.2) and min(draws) >= 1  # Poisson(e^τ) has the mean 6
    assert model.eval().drawn_passes() == 6

    def reaches(backpropagated: int) -> bool:
        """Whether the gradient reaches the initial state through six passes."""
        model.backpropagated = backpropagated
        state = torch.zeros(2, N, 16, requires_grad=True)
        model.initial_state = lambda like: state + 0
        model(IDS, num_passes=6).sum().backward()
        return state.grad is not None and bool(state.grad.any())

    assert reaches(7) and not reaches(6) and not reaches(2)


def test_the_tiny_recursive_model_is_its_formula():
    model = TRM(V, width=16, heads=2, layers=2, inner=3).eval()
    w = weights(model)
    for passes in (1, 3):
        expected = np.stack([trm(w, ids, 2, 3, passes) for ids in IDS.numpy()])
        np.testing.assert_allclose(model(IDS, num_passes=passes).detach().numpy(), expected, atol=1e-5)


def test_its_gradient_flows_through_the_last_cycle_alone():
    model, seen = TRM(V, width=16, heads=2, passes=3), []
    cycle = model.cycle
    model.cycle = lambda *states: seen.append(torch.is_grad_enabled()) or cycle(*states)
    model(IDS)
    assert seen == [False, False, True]


def test_hyper_connections_are_their_formula():
    model = Hyper(V, width=16, heads=2, streams=3).eval()
    w = weights(model)
    for passes in (1, 3):
        expected = np.stack([hyper(w, ids, 2, 3, passes) for ids in IDS.numpy()])
        np.testing.assert_allclose(model(IDS, num_passes=passes).detach().numpy(), expected, atol=1e-5)


def test_with_one_stream_hyper_connections_begin_as_residuals():
    model = Hyper(V, width=16, heads=2, streams=1, passes=2).eval()
    h = model.word(IDS)
    for _ in range(2):
        for part in model.parts:
            h = h + part(h)
    torch.testing.assert_close(model(IDS), model.head(model.norm(h)))


def test_the_lstm_is_its_formula():
    model = LSTM(V, width=16).eval()
    w = weights(model)
    expected = np.stack([lstm(w, ids) for ids in IDS.numpy()])
    np.testing.assert_allclose(model(IDS).detach().numpy(), expected, atol=1e-5)
    assert rtx.check(LSTM).failed == []


def test_the_check_names_the_truncation_of_the_tiny_recursive_model_alone():
    report = rtx.check(TRM, passes=6)  # two cycles of three
    assert report.failed == ["gradient by pass"]
    assert next(line for line in report if line.check == "passes at test time").verdict == "pass"


@pytest.mark.parametrize("model", [Universal, Huginn, Hyper])
def test_the_check_finds_no_fault(model):
    report = rtx.check(model, passes=4, length=32)  # with which Huginn draws no more passes than it learns from
    assert report.failed == [] and {line.check for line in report if line.verdict != FAIL} >= {"causality", "loop"}
