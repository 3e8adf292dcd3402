"""Attention: rotary positions, every kernel against softmax written out, on a CPU and on CUDA; packed sentences."""

import inspect
import math
from functools import partial

import pytest
import torch
from reference import TINY, batch_of, disturbed, generator, small, with_gradients
from torch.nn.attention.varlen import varlen_attn

from rtx_core.errors import RtxError
from rtx_core.models import attention, build_model
from rtx_core.models.attention import BACKENDS, best, packed_attention, usable
from rtx_core.models.llama import PaddedAttention
from rtx_core.models.packed import Packed

CPU = torch.device("cpu")
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def softmax_attention(q, k, v, lengths, starts_only):
    """Attention one sequence at a time, in float64."""
    out, queries = [], q.split(1 if starts_only else lengths)
    for a, b, c in zip(queries, k.split(lengths), v.split(lengths)):
        weights = (torch.einsum("qhd,khd->hqk", a.double(), b.double()) / math.sqrt(q.shape[-1])).exp()
        out.append(torch.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdim=True), c.double()))
    return torch.cat(out)


def agree(lengths, starts_only, heads, size, tolerance, backend, device="cpu", dtype=torch.float64):
    """Result and gradients of a kernel are those of softmax within a relative error of each whole tensor."""
    batch, T = batch_of(lengths).to(device), sum(lengths)
    rows = [len(lengths) if starts_only else T, T, T]
    drawn = [torch.randn(n, heads, size, generator=generator(i)) for i, n in enumerate([*rows, rows[0]])]
    *qkv, back = (x.to(device, dtype).requires_grad_() for x in drawn)
    ours = packed_attention(*qkv, batch, backend=backend)
    theirs = softmax_attention(*qkv, lengths, starts_only)
    found, wanted = ([out, *torch.autograd.grad(out, qkv, back.to(out.dtype))] for out in (ours, theirs))
    for name, a, b in zip(("result", "dq", "dk", "dv"), found, wanted, strict=True):
        assert a.shape == b.shape, name
        scale = b.double().norm() + 1e-3  # a lone token has no gradient in q, k
        assert (a.double() - b.double()).norm() < tolerance * scale, name


@pytest.mark.parametrize("backend", ["sdpa", None])
@pytest.mark.parametrize("starts_only", [False, True])
@pytest.mark.parametrize("lengths", [[5, 1, 9, 2], [1, 1, 1], [7]], ids=str)
def test_sdpa_is_softmax_within_each_sequence(lengths, starts_only, backend):
    agree(lengths, starts_only, 3, 8, 1e-12, backend)


@CUDA
@pytest.mark.cuda
@pytest.mark.parametrize("starts_only", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_kernel_gives_the_same_numbers_in_bf16(backend, starts_only):
    """1 % of the tensor's norm: bf16 rounding gives 0.2 to 0.4 % (sdpa on a CPU), attention across the borders 80 %."""
    device = torch.device("cuda")
    if not usable(backend, device, torch.bfloat16, 0.0, 64):
        pytest.skip(f"the kernel {backend!r} is not usable here (package, torch version or device)")
    agree([70, 1, 128, 2, 33], starts_only, 4, 64, 1e-2, backend, device, torch.bfloat16)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False
):
    """What flash-attn documents of its kernel, and what both kernels refuse; softmax in the place of the kernel."""
    assert {x.dtype for x in (q, k, v)} == {torch.bfloat16} and {x.stride(-1) for x in (q, k, v)} == {1}
    assert k.shape == v.shape and q.shape[1:] == k.shape[1:] and q.shape[2] % 8 == 0 and q.shape[2] <= 256
    for x, offsets, longest in ((q, cu_seqlens_q, max_seqlen_q), (k, cu_seqlens_k, max_seqlen_k)):
        assert offsets.dtype == torch.int32 and offsets.is_contiguous() and offsets.device == x.device
        assert offsets[0] == 0 and offsets[-1] == len(x) and type(longest) is int
        assert offsets.diff().min() > 0 and offsets.diff().max() <= longest and 0 <= dropout_p < 1
    starts_only = len(q) != len(k) or max_seqlen_k == 1
    return softmax_attention(q, k, v, cu_seqlens_k.diff().tolist(), starts_only).to(q.dtype)


def pretended(backend, calls, *arguments, **more):
    """torch's kernel has the names of its signature; without a GPU it says of tensors without content what it gives."""
    calls.append((backend, more.get("dropout_p")))
    if backend == "flash":
        return flash_attn_varlen_func(*arguments, **more)
    bound = inspect.signature(varlen_attn).bind(*arguments, **more)
    without = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in bound.args]
    found = flash_attn_varlen_func(*bound.args)
    there = varlen_attn(*without, **bound.kwargs)
    assert bound.kwargs == {"window_size": (-1, -1)} and (there.shape, there.dtype) == (found.shape, found.dtype)
    return found


@pytest.mark.parametrize("backend, p, told", [("flash", 0.1, 0.1), ("flash", 0.1, 0.0), ("varlen", 0.0, None)])
def test_a_pretended_kernel_gets_what_its_documentation_asks_for(backend, p, told, monkeypatch):
    """It is told of dropout in training alone, and drops nothing, so that values and gradients are the model's."""
    model, batch = small(hidden_size=48, num_heads=2, num_passes=2, dropout=0.0).train(told != 0), batch_of([5, 1, 8])
    expected, calls = with_gradients(model, batch), []
    for layer in model.layers:
        layer.attention.dropout = p
    monkeypatch.setattr(attention, "usable", lambda name, *_: name == backend)
    monkeypatch.setattr(attention, "_varlen", lambda name: partial(pretended, name, calls))
    with torch.autocast("cpu", torch.bfloat16):
        found = with_gradients(model.float(), batch)
    assert calls == [(backend, told)] * 4
    assert all((a - b).norm() < 0.03 * b.norm() for a, b in zip(found, expected, strict=True))


def test_the_kernel_is_the_first_that_takes_such_heads(monkeypatch):
    cuda, half, capability = torch.device("cuda"), torch.bfloat16, [8, 0]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: tuple(capability))
    there = {"flash": flash_attn_varlen_func, "varlen": varlen_attn}
    monkeypatch.setattr(attention, "_varlen", there.get)
    assert [best(cuda, half, 0.1, size) for size in (8, 64, 256)] == ["flash"] * 3
    assert {best(cuda, half, 0.1, 12), best(cuda, half, 0.1, 264)} == {"sdpa"}
    assert {best(cuda, torch.float32, 0.1, 64), best(CPU, half, 0.1, 64)} == {"sdpa"}
    del there["flash"]
    assert [best(cuda, half, p, 64) for p in (0.0, 0.1)] == ["varlen", "sdpa"]
    capability[:] = 7, 5
    assert best(cuda, half, 0.0, 64) == "sdpa"


def test_a_batch_that_was_moved_asks_its_device_for_nothing():
    """From `meta` nothing can be read back, as on a GPU nobody should wait for it."""
    config = build_model("looped", seed=0, **TINY).config
    there, here = (PaddedAttention(batch_of([5, 1, 8, 3]).to(device), config) for device in ("meta", "cpu"))
    assert there.shapes == here.shapes
    assert [x.shape for x in (there.place, *there.cells)] == [x.shape for x in (here.place, *here.cells)]
    assert there.attend(torch.empty(17, 48, dtype=torch.bfloat16, device="meta"), 2).shape == (17, 16)


@CUDA
@pytest.mark.cuda
@torch.inference_mode()
def test_the_gpu_gives_the_cpu_s_logits():
    """fp32 to 1e-4; under bf16 autocast to 3 % of the logits' norm, whichever kernel is taken."""
    sizes = {"vocab_size": 97, "hidden_size": 128, "num_heads": 2, "intermediate_size": 256}
    model = disturbed(build_model("recurrent", seed=1, **sizes).eval(), 0.05)
    batch = batch_of([70, 1, 128, 2, 33])
    expected = model(batch)
    model.cuda()
    torch.testing.assert_close(model(batch.to("cuda")).cpu(), expected, rtol=1e-4, atol=1e-4)
    with torch.autocast("cuda", torch.bfloat16):
        rounded = model(batch.to("cuda")).float().cpu()
    assert (rounded - expected).norm() < 0.03 * expected.norm()


@pytest.mark.parametrize("sequences", [[], [[]], [[1, 2], [], [3]]])
def test_empty_batches_and_empty_sequences_are_refused(sequences):
    with pytest.raises(RtxError, match="every batch and every sequence needs a token"):
        Packed.from_sequences(sequences)


@pytest.mark.parametrize("passes, residual", [(1, "code"), (2, "code"), (3, "paper"), (1, "paper")])
@pytest.mark.parametrize("lengths", [[5, 1, 8], [1, 1, 1], [1], [6]], ids=str)
def test_computing_only_the_rows_that_are_read_changes_nothing(passes, residual, lengths):
    model = small(num_passes=passes, residual=residual, residual_scale=0.3)
    few, every = (with_gradients(model, batch_of(lengths), rows_only=only) for only in (True, False))
    torch.testing.assert_close(few, every, rtol=0, atol=1e-11)
