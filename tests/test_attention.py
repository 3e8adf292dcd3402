"""Attention: rotary positions, and every kernel against softmax written out, on a CPU and on CUDA."""

import math

import pytest
import torch
from reference import generator, sentences_of

from rtx_core.errors import RtxError
from rtx_core.models import build_model
from rtx_core.models.attention import BACKENDS, packed_attention, usable
from rtx_core.models.layers import Attention, rotary_table, rotate
from rtx_core.models.masks import Masks, TorchDropout
from rtx_core.models.packed import Packed

CUDA = torch.cuda.is_available()


# --- Rotary positions -------------------------------------------------------------------------------------------------

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


# --- Kernels ----------------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("masks", [TorchDropout(), Masks(0, 0)], ids=["torch", "masks"])
def test_dropout_of_the_probabilities_keeps_the_mean(masks):
    batch = Packed.from_sequences(sentences_of([2000, 500]))
    q = k = torch.zeros(2500, 1, 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        out = packed_attention(q, k, torch.ones(2500, 1, 4), batch, 0.5, masks, backend="sdpa")
    assert out.mean().item() == pytest.approx(1, abs=0.01) and out[:, 0, 0].std() > 0.01


@pytest.mark.parametrize("backend", ["flash", "varlen"])
def test_a_kernel_that_cannot_run_here_says_so(backend):
    (q, k, v), _ = inputs([2], 1, 4, False)
    with pytest.raises(RtxError, match=f"'{backend}' cannot run torch.float64 on cpu with dropout 0.0; use 'sdpa'"):
        packed_attention(q, k, v, Packed.from_sequences([[1, 2]]), backend=backend)


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
