"""A decoder's attention with 16-bit products on a CPU, forward and backward written out: `llama.PaddedAttention`'s.

torch's own kernel takes twice as long backward in 16 bits as in 32.  Here tokens reach their grids, and come back, by
one gather each, and queries attend in blocks of rows, so that most of what causality masks is not computed.  Products
read and give 16 bits, with sums of 32; rotation and softmax compute in 32.
"""

from collections.abc import Iterator
from types import MethodType

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rtx_core.fast.fused_block import rotated
from rtx_core.models.kv_cache import KVCache
from rtx_core.models.layers import rotary_rows
from rtx_core.models.llama import PaddedAttention
from rtx_core.models.looped import Batch, Looped
from rtx_core.models.packed import Packed

ROWS = 128  # queries of a block


class CausalGrid(PaddedAttention):
    """The grids, and where each head of a token lies in them: S = Σ B·H·L rows, in the order (grid, b, h, l)."""

    def __init__(self, batch, config):
        super().__init__(batch, config)
        T, H, D = len(batch.ids), config.num_heads, config.hidden_size // config.num_heads
        cells = self.cells if self.place is not None else [torch.arange(T)]
        grids = zip(self.shapes, cells)
        rows = [(cell.view(B, 1, L) * H + torch.arange(H)[:, None]).flatten() for (B, L), cell in grids]
        self.spread, self.heads = torch.cat(rows), H  # (S,) row of (T·H, D)
        self.collect = torch.zeros(T * H, dtype=torch.int64)  # (T·H,) row of (S, D): the first, what pads comes later
        self.collect.scatter_reduce_(0, self.spread, torch.arange(len(self.spread)), "amin", include_self=False)
        self.turn = rotary_rows(batch, D, config.rope_base)

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        return CausalAttention.apply(qkv, self)

    def blocks(self, *arrays: Tensor) -> Iterator[tuple[int, int, list[Tensor]]]:
        """First and last + 1 of the queries of each block, and the arrays (S, D) as its grid (B·H, L, D)."""
        begin = 0
        for B, L in self.shapes:
            end = begin + B * self.heads * L
            here, begin = [x[begin:end].view(-1, L, x.shape[1]) for x in arrays], end
            yield from ((start, min(start + ROWS, L), here) for start in range(0, L, ROWS))


class CausalAttention(torch.autograd.Function):
    """qkv (T, 3d) -> (T, d)."""

    @staticmethod
    def forward(ctx, qkv: Tensor, grid: CausalGrid) -> Tensor:
        T, H, D = len(qkv), grid.heads, qkv.shape[1] // (3 * grid.heads)
        turned = rotated(qkv.view(T, 3 * H, D)[:, : 2 * H], *grid.turn)
        turned[:, :H] *= D**-0.5
        x = qkv.view(T, 3, H, D).transpose(0, 1).contiguous()
        x[:2] = turned.view(T, 2, H, D).transpose(0, 1)
        x = x.view(3, -1, D).index_select(1, grid.spread)
        out, kept = torch.empty_like(x[0]), []
        for start, end, (q, k, v, mixed) in grid.blocks(*x, out):
            scores = torch.bmm(q[:, start:end], k[:, :end].mT)
            scores[:, :, start:] += torch.full((end - start,) * 2, float("-inf"), dtype=x.dtype).triu_(1)
            kept.append(scores.softmax(-1))
            mixed[:, start:end] = torch.bmm(kept[-1], v[:, :end])
        ctx.save_for_backward(x, *kept)
        ctx.grid = grid
        return out.index_select(0, grid.collect).view(T, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out: Tensor):
        x, *kept = ctx.saved_tensors
        grid, T, D = ctx.grid, len(d_out), x.shape[-1]
        d_x, d_mixed = torch.zeros_like(x), torch.zeros_like(x[0])  # 0 where a row is padded
        d_mixed.index_copy_(0, grid.collect, d_out.reshape(-1, D))
        for p, (start, end, (q, k, v, d_q, d_k, d_v, grad)) in zip(kept, grid.blocks(*x, *d_x, d_mixed)):
            d_v[:, :end] += torch.bmm(p.mT, grad[:, start:end])
            d_p = torch.bmm(grad[:, start:end], v[:, :end].mT)
            d_scores = torch.ops.aten._softmax_backward_data(d_p, p, -1, p.dtype)
            d_q[:, start:end] = torch.bmm(d_scores, k[:, :end])
            d_k[:, :end] += torch.bmm(d_scores.mT, q[:, start:end])
        d_x = d_x.index_select(1, grid.collect).view(3, T, -1, D).transpose(0, 1).contiguous()
        turned = rotated(d_x[:, :2].flatten(1, 2), grid.turn[0], -grid.turn[1]).view(T, 2, -1, D)
        turned[:, 0] *= D**-0.5
        d_x[:, :2] = turned
        return d_x.view(T, -1), None


def grid(model: Looped, batch: Batch) -> PaddedAttention | KVCache:
    half = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
    return CausalGrid(batch, model.config) if half and isinstance(batch, Packed) else Looped.grid(model, batch)


def install(model: Looped) -> None:
    """In the place of `Looped.grid`."""
    model.grid = MethodType(grid, model)
