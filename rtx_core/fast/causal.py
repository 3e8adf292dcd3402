"""A decoder's attention with 16-bit products on a CPU, forward and backward written out.

torch's own kernel takes twice as long backward in 16 bits as in 32.  Here queries attend in blocks of rows, so that
most of what causality masks is not computed.  Products and softmax read and give 16 bits, with sums of 32.
"""

from types import MethodType

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rtx_core.models.llama import KVCache, PaddedAttention
from rtx_core.models.looped import Batch, Looped
from rtx_core.models.packed import Packed

ROWS = 128  # queries of a block


class CausalAttention(torch.autograd.Function):
    """q, k, v (N, L, D) each -> (N, L, D)."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, out, weights = q * q.shape[2] ** -0.5, torch.empty_like(q), []
        for rows in torch.arange(q.shape[1]).split(ROWS):
            start, end = int(rows[0]), int(rows[-1]) + 1
            scores = torch.bmm(q[:, start:end], k[:, :end].mT)
            scores[:, :, start:] += torch.full((end - start,) * 2, float("-inf"), dtype=q.dtype).triu_(1)
            weights.append(scores.softmax(-1))
            out[:, start:end] = torch.bmm(weights[-1], v[:, :end])
        ctx.save_for_backward(q, k, v, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, *weights = ctx.saved_tensors
        d_q, d_k, d_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for p in weights:
            rows, end = slice(p.shape[2] - p.shape[1], p.shape[2]), p.shape[2]
            d_v[:, :end] += torch.bmm(p.mT, d_out[:, rows])
            d_p = torch.bmm(d_out[:, rows], v[:, :end].mT)
            d_scores = torch.ops.aten._softmax_backward_data(d_p, p, -1, p.dtype)
            d_q[:, rows] = torch.bmm(d_scores, k[:, :end])
            d_k[:, :end] += torch.bmm(d_scores.mT, q[:, rows])
        return d_q.mul_(q.shape[2] ** -0.5), d_k, d_v


class CausalGrid(PaddedAttention):
    """The grids of `PaddedAttention`, attended in 16 bits."""

    @staticmethod
    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        flat = (x.to(torch.bfloat16).flatten(0, 1) for x in (q, k, v))
        return CausalAttention.apply(*flat).view(q.shape)


def grid(model: Looped, batch: Batch) -> PaddedAttention | KVCache:
    """`Looped.grid`, with this attention where products are of 16 bits."""
    half = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return CausalGrid(batch, model.config) if half and isinstance(batch, Packed) else Looped.grid(model, batch)


def install(model: Looped) -> None:
    model.grid = MethodType(grid, model)
