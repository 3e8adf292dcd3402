"""The parts every encoder here is made of: RMSNorm, rotary positions, SwiGLU and the pre-norm block."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.attention import packed_attention
from rtx_core.models.packed import Packed

Rope = tuple[Tensor, Tensor]  # cos and sin of each token's angles, (T, 1, D/2)
# (x, p) -> x with entries set to 0 with probability p, the others divided by 1 − p (Srivastava et al. 2014): torch's
# `F.dropout`, or another source of masks (`rtx_core.fast.encoder`); None: x as it is
Dropout = Callable[[Tensor, float], Tensor] | None


def drop(x: Tensor, p: float, dropout: Dropout) -> Tensor:
    return x if dropout is None else dropout(x, p)


def compound_dropout(p: float) -> float:
    """Two dropouts in series are one: Bernoulli(1−p) masks multiply to a Bernoulli((1−p)²) mask."""
    return 1 - (1 - p) ** 2


Block = TypeVar("Block", bound=nn.Module)

if TYPE_CHECKING:

    class Blocks(nn.ModuleList, Generic[Block]):
        """A `ModuleList` whose modules are of one class."""

        def __init__(self, modules: Iterable[Block] = ()): ...

        def __iter__(self) -> Iterator[Block]: ...

        @overload
        def __getitem__(self, idx: slice) -> "Blocks[Block]": ...

        @overload
        def __getitem__(self, idx: int) -> Block: ...

        def __getitem__(self, idx: int | slice) -> Any: ...
else:
    Blocks = nn.ModuleList


class RMSNorm(nn.Module):
    """y = x / √(mean(x²) + ε) · g   (Zhang & Sennrich 2019, eq. 4), over the last dimension.  g starts at 1."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:  # (..., d) -> (..., d)
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotary_table(positions: Tensor, head_size: int, base: float) -> Rope:
    """cos and sin of m·θ_i, each (T, 1, D/2), with θ_i = base^(−2i/D) (Su et al. 2021, §3.2.2), in float32 of angles in
    float64, so that position 511 is as exact as position 1."""
    i = torch.arange(0, head_size, 2, device=positions.device, dtype=torch.float64)
    angle = positions.to(torch.float64)[:, None, None] * base ** (-i / head_size)
    return angle.cos().float(), angle.sin().float()


def rotary_rows(batch: Packed, head_size: int, base: float) -> Rope:
    """`rotary_table` of the batch's positions, gathered from a table made once: 0.1 instead of 0.6 ms a step."""
    cos, sin = _rotary_cache(1 << (batch.max_seqlen - 1).bit_length(), head_size, base, batch.ids.device)
    return cos[batch.positions], sin[batch.positions]


@cache
def _rotary_cache(length: int, head_size: int, base: float, device: torch.device) -> Rope:
    with torch.inference_mode(False):  # whoever comes first; the table serves training too
        return rotary_table(torch.arange(length, device=device), head_size, base)


def rotate(x: Tensor, rope: Rope) -> Tensor:
    """Rotate each pair (x_i, x_{i+D/2}) of x (T, ..., H, D) by its angle: the "rotate half" layout of the public code.

    A rotation by m·θ: ⟨R_m q, R_n k⟩ = ⟨q, R_{n−m} k⟩, so scores see offsets only (Su et al. 2021, eq. 16).
    """
    cos, sin = rope
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    """Multi-head self-attention with biases and rotary queries and keys; Q, K and V are one matrix product."""

    def __init__(self, hidden_size: int, num_heads: int, dropout: float):
        super().__init__()
        self.num_heads, self.head_size, self.dropout = num_heads, hidden_size // num_heads, dropout
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, batch: Packed, rope: Rope, rows=None, dropout: Dropout = None) -> Tensor:
        """x (T, d) -> (T, d), or (B, d) when only the queries of `rows` (B,) are wanted."""
        d, H, D = x.shape[-1], self.num_heads, self.head_size
        if rows is None:
            q, k, v = self.qkv(x).view(-1, 3, H, D).unbind(1)  # each (T, H, D)
            q, k = rotate(q, rope), rotate(k, rope)
        else:
            k, v = F.linear(x, self.qkv.weight[d:], self.qkv.bias[d:]).view(-1, 2, H, D).unbind(1)
            q = F.linear(x[rows], self.qkv.weight[:d], self.qkv.bias[:d]).view(-1, H, D)
            cos, sin = rope
            q, k = rotate(q, (cos[rows], sin[rows])), rotate(k, rope)
        mixed = packed_attention(q, k, v, batch, self.dropout, dropout)
        return self.out(mixed.reshape(len(mixed), d))


class SwiGLU(nn.Module):
    """down( dropout( silu(gate x) ⊙ up x ) )   (Shazeer 2020, eq. 6, with biases); gate and up are one product."""

    def __init__(self, hidden_size: int, intermediate_size: int, dropout: float):
        super().__init__()
        self.dropout = dropout
        self.gate_up = nn.Linear(hidden_size, 2 * intermediate_size)
        self.down = nn.Linear(intermediate_size, hidden_size)

    def forward(self, x: Tensor, dropout: Dropout = None) -> Tensor:  # (T, d) -> (T, d)
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(drop(F.silu(gate) * up, self.dropout, dropout))


class EncoderBlock(nn.Module):
    """Pre-norm transformer layer (Xiong et al. 2020):  x += drop(attention(norm x));  x += drop(swiglu(norm x)).

    The public code drops the attention branch twice in series: here one dropout of the same distribution.
    """

    def __init__(self, hidden_size: int, num_heads: int, intermediate_size: int, dropout: float, norm_eps: float):
        super().__init__()
        self.dropout = dropout
        self.attention_norm = RMSNorm(hidden_size, norm_eps)
        self.attention = Attention(hidden_size, num_heads, dropout)
        self.ffn_norm = RMSNorm(hidden_size, norm_eps)
        self.ffn = SwiGLU(hidden_size, intermediate_size, dropout)

    def forward(self, x: Tensor, batch: Packed, rope: Rope, rows=None, dropout: Dropout = None) -> Tensor:
        """x (T, d) -> (T, d); with `rows` (B,), such as [CLS], which the classifier reads, only these: (B, d)."""
        mixed = self.attention(self.attention_norm(x), batch, rope, rows, dropout)
        x = (x if rows is None else x[rows]) + drop(mixed, compound_dropout(self.dropout), dropout)
        return x + drop(self.ffn(self.ffn_norm(x), dropout), self.dropout, dropout)
