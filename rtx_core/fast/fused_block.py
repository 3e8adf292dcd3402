"""The block's training step on a CPU, forward and backward written out: `layers.EncoderBlock`'s numbers, sooner.

A small model spends its time in tiny kernels and in the bookkeeping of autograd; here a block is one node of the graph:

* matrix products by oneDNN, with biases, masks and sums fused in: 15 % above MKL (215 tokens, an AMD CPU);
* queries, keys and values reach the padded grid, and come back, by one gather each: index tables are made once a batch;
* RMSNorm keeps x/‖x‖, SwiGLU its halves in one array: no concatenation, and no gradient filled with zeros first;
* [CLS] stands at position 0, where rotation is the identity, so the last layer's single query is not rotated;
* under autocast every product reads and gives 16 bits, with sums of 32; norms, softmax and the stream keep 32.

`layers.EncoderBlock` states the formulas; a test holds the two together in value and in gradient.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from rtx_core.fast import onednn
from rtx_core.models.layers import EncoderBlock, Rope, compound_dropout
from rtx_core.models.packed import Packed


class Grid(NamedTuple):
    """Where the tokens of a batch lie in the padded attention grid, as row numbers of (·, D) views; `parts` arrays are
    laid side by side: queries, keys and values, or where only [CLS] asks keys and values alone."""

    # (parts·B·H·L,) grid (part, b, h, l) -> row of (T·parts·H, D); padding points at token 0 and is masked
    scatter_rows: Tensor
    gather_rows: Tensor  # (T·parts·H,) row of (T·parts·H, D) -> grid row
    heads: Tensor  # (T·H,) row of one part (T·H, D) -> its grid row
    bias: Tensor | None  # (B·H, 1, L) 0 at tokens, −∞ at padding; None backward
    shape: tuple[int, int, int]  # B, H, L


def grid(batch: Packed, heads: int, parts: int, dtype: torch.dtype) -> Grid:
    B, H, L, T = len(batch), heads, batch.max_seqlen, len(batch.ids)
    cell, row = batch.cell, torch.arange(parts * H)
    token = torch.zeros(B * L, dtype=torch.int64).index_copy_(0, cell, torch.arange(T))
    scatter_rows = token.view(1, B, 1, L) * (parts * H) + row.view(parts, 1, H, 1)
    first_head = (cell + cell.div(L, rounding_mode="floor") * ((H - 1) * L))[:, None]  # of head 0: b·H·L + l
    gather_rows = first_head + (row // H * (B * H * L) + row % H * L)
    bias = torch.zeros(B, 1, L, dtype=dtype).masked_fill_(~batch.mask[:, 0], float("-inf"))
    bias = bias.expand(B, H, L).reshape(B * H, 1, L)
    return Grid(scatter_rows.flatten(), gather_rows.flatten(), gather_rows[:, :H].flatten(), bias, (B, H, L))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, times: Tensor | None = None) -> Tensor:
    """(x Wᵀ + b) ⊙ times."""
    if x.dtype not in onednn.FORMATS:
        out = F.linear(x, weight, bias)
        return out if times is None else out.mul_(times)
    if times is None:
        return onednn.linear(x, weight, bias)
    return onednn.linear_times(x, times, weight, bias)


def rotate(qk: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x_i, x_{i+D/2}) of qk (T, 2H, D) by its angle, into a new array; −sin turns it back."""
    qk = qk.to(torch.promote_types(qk.dtype, cos.dtype))
    a, b = qk.unflatten(-1, (2, -1)).unbind(-2)
    out = torch.empty(qk.shape, dtype=qk.dtype)
    front, back = out.unflatten(-1, (2, -1)).unbind(-2)
    torch.mul(a, cos, out=front).addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=back).addcmul_(a, sin)
    return out


def norm(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(x · s, s) with s = (mean x² + ε)^(−1/2), (T, 1)."""
    scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1]).add_(eps).rsqrt_()
    return x * scale, scale


def _norm_backward(grad: Tensor, gain: Tensor, unit: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of (x, gain) for y = gain · û, û = s x:  dx = s (dû − û mean(dû û)),  dg = Σ dy û."""
    grad = grad.to(unit.dtype)
    d_gain = (grad * unit).sum(0)
    d_unit = grad * gain
    mean = torch.linalg.vecdot(d_unit, unit)[:, None].div_(unit.shape[-1])
    return d_unit.addcmul_(unit, mean, value=-1).mul_(scale), d_gain


def _product_backward(grad: Tensor, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Gradients of (W, b) for x Wᵀ + b."""
    return torch.mm(grad.t(), x).to(dtype), grad.sum(0).to(dtype)


def cast(layer: EncoderBlock, dtype: torch.dtype) -> list[Tensor]:
    """The layer's parameters in the order of the formula, those of its products in `dtype`."""
    return [w.detach().to(w.dtype if "norm" in name else dtype) for name, w in layer.named_parameters()]


def block(layer: EncoderBlock, x: Tensor, rope: Rope, index: Grid, cls: Tensor | None, masks, weights) -> Tensor:
    """`layer` with the `weights` of `cast`: x (T, d) -> (T, d), or (B, d) where `cls` (B,) asks for those rows."""
    with torch.autocast("cpu", enabled=False):
        constants = (layer.attention_norm.eps, rope, index, cls, masks, layer.dropout, weights)
        return FusedBlock.apply(*constants, x, *layer.parameters())


class FusedBlock(torch.autograd.Function):
    """One node of the graph: shapes and the order in which masks are drawn are those of layers.EncoderBlock."""

    @staticmethod
    def forward(ctx, eps, rope, index, cls, masks, dropout, weights, x, *_):
        g1, w_qkv, b_qkv, w_out, b_out, g2, w_gu, b_gu, w_down, b_down = weights
        (B, H, L), d, f, dtype = index.shape, x.shape[1], w_down.shape[1], w_qkv.dtype
        D, (cos, sin) = d // H, rope

        def mask(p: float, *shape: int) -> Tensor | None:
            return masks.draw(p, shape, dtype) if p else None

        # attention: x1 = x + m1 ⊙ (out (softmax(q kᵀ/√D + bias) ⊙ m_p) v)
        u1, s1 = norm(x, eps)
        y1 = (u1 * g1).to(dtype)
        if cls is None:
            y_q, skip = None, x
            qkv = linear(y1, w_qkv, b_qkv).view(-1, 3 * H, D)
            qkv[:, : 2 * H] = rotate(qkv[:, : 2 * H], cos, sin)
            q, k, v = qkv.view(-1, D).index_select(0, index.scatter_rows).view(3, B * H, L, D).unbind()
        else:
            y_q, skip = y1.index_select(0, cls), x.index_select(0, cls)
            q = linear(y_q, w_qkv[:d], b_qkv[:d]).view(B * H, 1, D)
            kv = linear(y1, w_qkv[d:], b_qkv[d:]).view(-1, 2 * H, D)
            kv[:, :H] = rotate(kv[:, :H], cos, sin)
            k, v = kv.view(-1, D).index_select(0, index.scatter_rows).view(2, B * H, L, D).unbind()
        p = torch.baddbmm(index.bias, q, k.mT, alpha=D**-0.5).softmax(-1, dtype=x.dtype)  # (B·H, L or 1, L)
        m_p = mask(dropout, *p.shape)
        weighted_p = p.to(dtype) if m_p is None else p.to(dtype) * m_p
        mixed = torch.bmm(weighted_p, v).view(-1, D)
        mixed = (mixed.index_select(0, index.heads) if cls is None else mixed).view(-1, d)
        m1 = mask(compound_dropout(dropout), len(mixed), d)
        x1 = linear(mixed, w_out, b_out, m1).to(x.dtype).add_(skip)
        # feed-forward: out = x1 + m3 ⊙ down(m2 ⊙ silu(gate) ⊙ up)
        u2, s2 = norm(x1, eps)
        y2 = (u2 * g2).to(dtype)
        gate_up = linear(y2, w_gu, b_gu)
        silu = F.silu(gate_up[:, :f])
        m2 = mask(dropout, len(y2), f)
        inner = silu * gate_up[:, f:]
        if m2 is not None:
            inner.mul_(m2)
        m3 = mask(dropout, len(y2), d)
        attention = (u1, s1, y1, y_q, q, k, v, p, weighted_p, m_p, mixed, m1)
        ffn = (u2, s2, y2, gate_up, silu, m2, inner, m3)
        ctx.save_for_backward(g1, w_qkv, w_out, g2, w_gu, w_down, cos, sin, cls, *attention, *ffn, *index[:3])
        ctx.shape = index.shape
        return linear(inner, w_down, b_down, m3).to(x.dtype).add_(x1)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):  # pyright: ignore[reportIncompatibleMethodOverride]
        g1, w_qkv, w_out, g2, w_gu, w_down, cos, sin, cls, *tensors = ctx.saved_tensors
        u1, s1, y1, y_q, q, k, v, p, weighted_p, m_p, mixed, m1, *tensors = tensors
        u2, s2, y2, gate_up, silu, m2, inner, m3, *tables = tensors
        (B, H, L), (T, d), f, dtype = ctx.shape, u1.shape, w_down.shape[1], w_down.dtype
        D, index = d // H, Grid(*tables, bias=None, shape=ctx.shape)
        # feed-forward
        d_down = d_out.to(dtype) if m3 is None else d_out.to(dtype) * m3
        d_w_down, d_b_down = _product_backward(d_down, inner, d_out.dtype)
        d_inner = linear(d_down, w_down.t(), None, m2)
        d_gu = torch.empty_like(gate_up)
        torch.mul(d_inner, silu, out=d_gu[:, f:])
        d_inner.mul_(gate_up[:, f:])
        torch.ops.aten.silu_backward.grad_input(d_inner, gate_up[:, :f], grad_input=d_gu[:, :f])
        d_w_gu, d_b_gu = _product_backward(d_gu, y2, d_out.dtype)
        d_x1, d_g2 = _norm_backward(linear(d_gu, w_gu.t()), g2, u2, s2)
        d_x1.add_(d_out)
        # attention
        d_att = d_x1.to(dtype) if m1 is None else d_x1.to(dtype) * m1
        d_w_out, d_b_out = _product_backward(d_att, mixed, d_out.dtype)
        d_mixed = linear(d_att, w_out.t()).view(-1, D)
        if cls is None:
            d_mixed = d_mixed.new_zeros(B * H * L, D).index_copy_(0, index.heads, d_mixed)
        d_mixed = d_mixed.view(B * H, -1, D)
        parts = d_mixed.new_empty(3 if cls is None else 2, B * H, L, D)
        torch.bmm(weighted_p.mT, d_mixed, out=parts[-1])
        d_p = torch.bmm(d_mixed, v.mT)
        if m_p is not None:
            d_p.mul_(m_p)
        d_scores = torch.ops.aten._softmax_backward_data(d_p.to(p.dtype), p, -1, p.dtype).mul_(D**-0.5).to(dtype)
        torch.bmm(d_scores.mT, q, out=parts[-2])
        if cls is None:
            torch.bmm(d_scores, k, out=parts[0])
        d_grid = parts.view(-1, D).index_select(0, index.gather_rows).view(T, -1, D)
        d_grid[:, :-H] = rotate(d_grid[:, :-H], cos, -sin)  # all but the values
        d_proj = d_grid.view(T, -1)
        if cls is None:
            d_w_qkv, d_b_qkv = _product_backward(d_proj, y1, d_out.dtype)
            d_x, d_g1 = _norm_backward(linear(d_proj, w_qkv.t()), g1, u1, s1)
            d_x.add_(d_x1)
        else:
            d_q = torch.bmm(d_scores, k).view(B, d)
            parts = _product_backward(d_q, y_q, d_out.dtype), _product_backward(d_proj, y1, d_out.dtype)
            d_w_qkv, d_b_qkv = map(torch.cat, zip(*parts))
            d_y1 = linear(d_proj, w_qkv[d:].t()).index_add_(0, cls, linear(d_q, w_qkv[:d].t()))
            d_x, d_g1 = _norm_backward(d_y1, g1, u1, s1)
            d_x.index_add_(0, cls, d_x1)
        d_attention = (d_g1, d_w_qkv, d_b_qkv, d_w_out, d_b_out)
        d_ffn = (d_g2, d_w_gu, d_b_gu, d_w_down, d_b_down)
        return *[None] * 7, d_x, *d_attention, *d_ffn
