"""Story models on a GPU, with plain code in the place of kernel and graph: the same function and gradients as on a CPU."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from rtx_core.models import build_model, control, flat
from rtx_core.models.packed import Packed
from rtx_core.training import packed_graph

MODELS = ("control", "frailt", "three-part", "relaxed")
SMALL = {"hidden_size": 32, "num_heads": 2, "intermediate_size": 48, "vocab_size": 50}
LENGTHS = (7, 1, 16, 40)  # 64 tokens


def each_alone(q, k, v, offsets, longest):
    """What the kernels compute, a sequence at a time; one of no tokens gives nothing."""
    parts = []
    for a, b in zip(offsets.tolist(), offsets[1:].tolist()):
        assert b - a <= longest
        if b > a:
            heads = (x[a:b].transpose(0, 1) for x in (q, k, v))  # (H, L, D)
            parts.append(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(0, 1))
    return torch.cat(parts)


@pytest.fixture
def gpu(monkeypatch):
    """As if this device had a kernel."""
    monkeypatch.setattr(flat, "causal", lambda name: each_alone)
    for module in (control, packed_graph):
        monkeypatch.setattr(module, "kernel_for", lambda device, dtype: "varlen")


def texts(lengths=LENGTHS, seed: int = 0) -> tuple[Packed, torch.Tensor]:
    chance = torch.Generator().manual_seed(seed)
    rows = [torch.randint(50, (n,), generator=chance).tolist() for n in lengths]
    return Packed.from_sequences(rows), torch.randint(50, (sum(lengths),), generator=chance)


def gradients(model, batch, targets) -> dict[str, torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(3)  # of Three Part's noise
    loss = model(batch, targets)
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
def test_flat_attention_is_that_of_the_grid(name, request):
    model, batch = build_model(name, seed=0, **SMALL).double(), texts()
    expected = gradients(model, *batch)
    request.getfixturevalue("gpu")
    assert isinstance(model.grid(batch[0]), flat.Flat)
    torch.testing.assert_close(gradients(model, *batch), expected, rtol=1e-9, atol=1e-12)


def test_no_cpu_has_a_kernel_and_a_16_bit_gpu_would(monkeypatch):
    for kind in (torch.float32, torch.bfloat16):
        assert flat.kernel_for(torch.device("cpu"), kind) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert flat.kernel_for(torch.device("cpu"), torch.float32) is None
    asked = []
    monkeypatch.setattr(flat, "usable", lambda name, device, dtype, dropout: asked.append((name, dtype)) or (name == "varlen" and dtype == torch.bfloat16))
    gpu = torch.device("cuda")
    assert flat.kernel_for(gpu, torch.float32) is None and flat.kernel_for(gpu, torch.bfloat16) == "varlen"
    assert asked == [("flash", torch.float32), ("varlen", torch.float32), ("flash", torch.bfloat16), ("varlen", torch.bfloat16)]


@pytest.mark.parametrize(("parameter", "given"), [("window_size", (-1, 0)), ("is_causal", True)])
def test_either_form_of_torchs_kernel_is_asked_to_be_causal(parameter, given, monkeypatch):
    from torch.nn.attention import varlen

    told = {}
    if parameter == "window_size":
        monkeypatch.setattr(varlen, "varlen_attn", lambda q, k, v, cq, ck, mq, mk, *, window_size=(-1, -1): told.update(window_size=window_size, ends=(cq, ck, mq, mk)))
    else:
        monkeypatch.setattr(varlen, "varlen_attn", lambda q, k, v, cq, ck, mq, mk, is_causal=False: told.update(is_causal=is_causal, ends=(cq, ck, mq, mk)))
    flat.causal.__wrapped__("varlen")("q", "k", "v", "offsets", 9)
    assert told == {parameter: given, "ends": ("offsets", "offsets", 9, 9)}


# -- graphs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(gpu, monkeypatch):
    """What is recorded, with its inputs; it is run as it is."""
    made = []
    monkeypatch.setattr(packed_graph.torch.cuda, "make_graphed_callables", lambda worker, inputs: made.append((worker, inputs)) or worker)
    monkeypatch.setattr(packed_graph.torch.random, "fork_rng", lambda devices, fork=torch.random.fork_rng: fork(devices=[]))  # of a CPU it knows no devices
    return made


@pytest.mark.parametrize("name", MODELS)
def test_a_step_by_graph_is_the_step(name, recorded):
    model = build_model(name, seed=0, **SMALL).double().train()
    batches = [texts((40, 24), seed=0), texts((33, 31), seed=1), texts(seed=2)]  # of the last there are too many sequences
    expected = [gradients(model, *batch) for batch in batches]
    packed_graph.install(model, longest=40)
    for batch, wanted in zip(batches, expected):
        torch.testing.assert_close(gradients(model, *batch), wanted, rtol=1e-9, atol=1e-12)
    assert len(recorded) == 1


def test_all_batches_of_as_many_tokens_have_one_shape(recorded):
    model = build_model("frailt", seed=0, **SMALL).double().train()
    batches = [texts(lengths, seed=9) for lengths in ((100, 28), (128,), (50, 40, 38), (60, 68), (32,) * 4)]
    expected = [gradients(model, *batch) for batch in batches]
    packed_graph.install(model, longest=128)
    for batch, wanted in zip(batches, expected):
        torch.testing.assert_close(gradients(model, *batch), wanted, rtol=1e-9, atol=1e-12)
    ((worker, inputs),) = recorded
    assert [tuple(x.shape) for x in inputs] == [(128,), (128,), (5,), (128,)] and inputs[2].tolist() == [0, 100, 128, 128, 128]
    assert {name.removeprefix("model.") for name, _ in worker.named_parameters()} == {name for name, _ in model.named_parameters()}
    gradients(model, *texts((64, 32), seed=1))  # another number of tokens, another graph
    assert len(recorded) == 2


def test_only_training_steps_go_by_graph(recorded):
    model, (batch, targets) = build_model("control", seed=0, **SMALL).train(), texts((64, 64))
    plain = model(batch)
    packed_graph.install(model, longest=64)
    assert torch.equal(model(batch), plain)  # logits
    assert torch.equal(functional_call(model, dict(model.named_parameters()), (batch,)), plain)
    with torch.no_grad():
        model(batch, targets)
    model.eval()(batch, targets)
    model.train()(batch, targets, 2)
    model(*texts((65, 63)))  # longer than was said
    assert recorded == []
    model(batch, targets)
    assert len(recorded) == 1


def test_a_graph_that_computes_something_else_is_refused(recorded, monkeypatch):
    model = build_model("control", seed=0, **SMALL).train()
    packed_graph.install(model, longest=64)
    monkeypatch.setattr(packed_graph, "record", lambda worker, inputs: lambda *inputs: worker(*inputs) * 1.5)
    with pytest.raises(RuntimeError, match="The loss of the recorded graph is 5.* without it 3"):
        model(*texts((64, 64)))
