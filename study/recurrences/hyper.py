"""A looped layer with static hyper-connections in place of residuals (Zhu et al. 2024, 2409.19606, §2).

    H ∈ R^(n × d): n streams, each the embedding at the start
    around each part f of the layer (attention, MLP):  H ← A_r' H + b ⊗ f(RMSNorm(a_m' H))
    logits = head(RMSNorm(sum of the streams))

At the start A_r is the identity, b is one, and a_m reads one stream, another for each part.  One layer and one set of
connections serve every pass; the paper's models do not loop.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from study.recurrences.huginn import rotate


class Connection(nn.Module):
    """What a part reads of n streams, and how its output and the streams are mixed."""

    def __init__(self, streams: int, reads: int):
        super().__init__()
        self.read = nn.Parameter(F.one_hot(torch.tensor(reads % streams), streams).float())
        self.mix, self.write = nn.Parameter(torch.eye(streams)), nn.Parameter(torch.ones(streams))

    def forward(self, streams: Tensor, part: nn.Module) -> Tensor:
        """(B, N, n, d) -> the same."""
        output = part(self.read @ streams)
        return self.mix.T @ streams + self.write[:, None] * output[..., None, :]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.heads = nn.RMSNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        return self.out(attended.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate_up, self.down = nn.Linear(width, 6 * width, bias=False), nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(self.norm(x)).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Hyper(nn.Module):
    """Token ids (B, N) -> logits (B, N, V)."""

    def __init__(self, vocab_size: int, width: int = 64, heads: int = 4, streams: int = 2, passes: int = 4):
        super().__init__()
        self.word, self.head = nn.Embedding(vocab_size, width), nn.Linear(width, vocab_size, bias=False)
        self.parts = nn.ModuleList((Attention(width, heads), MLP(width)))
        self.connections = nn.ModuleList(Connection(streams, reads) for reads in range(2))
        self.norm, self.streams, self.passes = nn.RMSNorm(width), streams, passes

    def forward(self, ids: Tensor, num_passes: int | None = None) -> Tensor:
        h = self.word(ids)[..., None, :].expand(-1, -1, self.streams, -1)
        for _ in range(num_passes or self.passes):
            for connection, part in zip(self.connections, self.parts):
                h = connection(h, part)
        return self.head(self.norm(h.sum(-2)))
