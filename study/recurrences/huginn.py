"""A prelude, a looped core and a coda, as Huginn (Geiping et al. 2025, 2502.05171, §3), small.

    e = prelude(embedding of x)
    s⁰ ~ N(0, σ²)
    sʳ = RMSNorm(core(A [sʳ⁻¹, e])),   r = 1 … R        the adapter A is a linear map of 2d to d
    logits = head(RMSNorm(coda(sᴿ)))

A layer is a sandwich: x̂ = n₂(x + attention(n₁(x))), then n₄(x̂ + MLP(n₃(x̂))); attention has rotary positions, the MLP
a gate.  In training R is drawn anew for each batch, R ~ Poisson(e^τ) + 1 with τ ~ N(log R̄ − ½σ_τ², σ_τ = ½), and
gradients flow through the last `backpropagated` passes alone, and through e in each of them.  Unlike in the paper, the
initial state is fixed in evaluation, so that two evaluations agree, and rotary positions have the base 10,000.

Compared once with the public code (seal-rg/recurrent-pretraining, 59e0b69) with copied weights: after one pass the
logits, up to 3.5, differ by at most 2.9e-6.  That code normalizes the state once after the last pass, and not after
each, as the paper and this file do; with its order four passes agree to 8.2e-6.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SPREAD = 0.5  # of the logarithm of the number of passes


def rotate(x: Tensor) -> Tensor:
    """(B, heads, N, size) with rotary positions: the pair (x_j, x_{j + size/2}) turns by n / 10000^(2j/size)."""
    n, half = x.shape[-2], x.shape[-1] // 2
    frequencies = 10_000 ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(n, device=x.device)[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 6 * width, bias=False), nn.Linear(3 * width, width, bias=False)
        self.norms, self.heads = nn.ModuleList(nn.RMSNorm(width) for _ in range(4)), heads

    def forward(self, x: Tensor) -> Tensor:
        n1, n2, n3, n4 = self.norms
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(n1(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = n2(x + self.out(attended.transpose(1, 2).flatten(2)))
        gate, up = self.gate_up(n3(x)).chunk(2, -1)
        return n4(x + self.down(F.silu(gate) * up))


class Core(nn.Module):
    """One pass: the adapter, the layers, and a norm."""

    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.adapter = nn.Linear(2 * width, width, bias=False)
        self.layers, self.norm = nn.Sequential(*(Layer(width, heads) for _ in range(layers))), nn.RMSNorm(width)

    def forward(self, s: Tensor, e: Tensor) -> Tensor:
        return self.norm(self.layers(self.adapter(torch.cat((s, e), -1))))


class Huginn(nn.Module):
    """Token ids (B, N) -> logits (B, N, V)."""

    def __init__(
        self,
        vocab_size: int,
        width: int = 64,
        heads: int = 4,
        layers: tuple[int, int, int] = (1, 1, 1),
        passes: int = 4,
        noise: float = 0.4,
        random_passes: bool = True,
        backpropagated: int = 8,
    ):
        super().__init__()
        prelude, core, coda = layers
        self.word, self.head = nn.Embedding(vocab_size, width), nn.Linear(width, vocab_size, bias=False)
        self.prelude = nn.Sequential(*(Layer(width, heads) for _ in range(prelude)))
        self.core = Core(width, heads, core)
        self.coda, self.norm = nn.Sequential(*(Layer(width, heads) for _ in range(coda))), nn.RMSNorm(width)
        self.passes, self.noise, self.random_passes = passes, noise, random_passes
        self.backpropagated = backpropagated

    def forward(self, ids: Tensor, num_passes: int | None = None) -> Tensor:
        e = self.prelude(self.word(ids))
        s, passes = self.initial_state(e), num_passes or self.drawn_passes()
        for r in range(passes):
            if passes - r == self.backpropagated:
                s = s.detach()
            s = self.core(s, e)
        return self.head(self.norm(self.coda(s)))

    def initial_state(self, like: Tensor) -> Tensor:
        """Fresh noise in training; else the same for each position, so that a longer sequence begins like a shorter."""
        if self.training:
            return self.noise * torch.randn_like(like)
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(like.shape[1:], generator=generator).to(like)
        return self.noise * drawn.expand_as(like)

    def drawn_passes(self) -> int:
        if not (self.training and self.random_passes):
            return self.passes
        mean = torch.exp(math.log(self.passes) - SPREAD**2 / 2 + SPREAD * torch.randn(()))
        return int(torch.poisson(mean)) + 1
