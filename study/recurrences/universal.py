"""A causal Universal Transformer (Dehghani et al. 2018, 1807.03819, §2.1 and §2.2), without adaptive halting.

    P^t[i, 2j]     = sin(i / 10000^(2j/d)) + sin(t / 10000^(2j/d))
    P^t[i, 2j + 1] = cos(i / 10000^(2j/d)) + cos(t / 10000^(2j/d))
    A^t = LayerNorm(X + MultiHeadSelfAttention(X)),    X = H^(t−1) + P^t
    H^t = LayerNorm(A^t + Transition(A^t)),            Transition: two linear maps with a ReLU between them

One set of weights serves every step t = 1 … T.  The paper's model is an encoder and a decoder; this is its decoder
without the attention to an encoder.  Positions count from 0.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sinusoids(values: Tensor, width: int) -> Tensor:
    """(n,) -> (n, width): sine and cosine of each value at wavelengths from 2π to 20,000π, in turn."""
    angles = values[:, None] / 10_000 ** (torch.arange(0, width, 2, device=values.device) / width)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


class Universal(nn.Module):
    """Token ids (B, N) -> logits (B, N, V)."""

    def __init__(self, vocab_size: int, width: int = 64, heads: int = 4, passes: int = 4):
        super().__init__()
        self.word = nn.Embedding(vocab_size, width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention_norm, self.transition_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)
        self.heads, self.passes = heads, passes

    def forward(self, ids: Tensor, num_passes: int | None = None) -> Tensor:
        h = self.word(ids)
        positions = sinusoids(torch.arange(ids.shape[1], device=ids.device), h.shape[-1])
        steps = sinusoids(torch.arange(1, 1 + (num_passes or self.passes), device=ids.device), h.shape[-1])
        for step in steps:
            h = self.one_pass(h + (positions + step).to(h.dtype))
        return self.head(h)

    def one_pass(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        a = self.attention_norm(x + self.out(attended))
        return self.transition_norm(a + self.down(F.relu(self.up(a))))
