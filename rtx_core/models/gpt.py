"""nanoGPT's GPT (Karpathy 2022, after GPT-2, Radford et al. 2019): pre-norm blocks, exact GELU, no biases, tied head.

    h⁰_i = drop(word[x_i] + position[i]),   hˡ = Blockˡ(hˡ⁻¹),   logits_i = word · LN(hᴸ_i)

The next token is predicted at every position; `model(inputs, targets)` is the mean loss over all of them.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.errors import RtxError


@dataclass(frozen=True)
class GPTConfig:
    vocab_size: int = 65  # the characters of tiny Shakespeare
    block_size: int = 256  # rows of the position table: the longest text, where there are positions
    hidden_size: int = 384
    num_layers: int = 6
    num_heads: int = 6  # of size 64
    intermediate_size: int = 1536  # 4 · hidden
    positions: bool = True  # learned, added to the token's embedding
    dropout: float = 0.2
    norm_eps: float = 1e-5
    initializer_std: float = 0.02  # of every matrix; of those that write to the residual stream, over √(2 · layers)

    def __post_init__(self):
        for name in ("vocab_size", "block_size", "hidden_size", "num_layers", "num_heads", "intermediate_size"):
            if not (isinstance(getattr(self, name), int) and getattr(self, name) > 0):
                raise RtxError(f"{name} is {getattr(self, name)!r}; it must be a positive whole number.")
        if self.hidden_size % self.num_heads:
            raise RtxError(f"hidden_size {self.hidden_size} is no multiple of num_heads {self.num_heads}; choose one that is.")
        if not 0 <= self.dropout < 1:
            raise RtxError(f"dropout is {self.dropout!r}; it is a probability in [0, 1).")


class Block(nn.Module):
    """T:  u = x + drop(Attention(LN x)),  T(x) = u + drop(W₂ gelu(W₁ LN u));  norms have gains and no biases."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        d, f, eps = config.hidden_size, config.intermediate_size, config.norm_eps
        self.num_heads, self.p = config.num_heads, config.dropout
        self.norm1, self.norm2 = nn.LayerNorm(d, eps, bias=False), nn.LayerNorm(d, eps, bias=False)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = nn.Linear(d, f, bias=False), nn.Linear(f, d, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of x (B, N, d), each (B, H, N, D)."""
        B, N, d = x.shape
        return self.qkv(self.norm1(x)).view(B, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """What follows attention: x (…, d) is the block's input, `mixed` (…, d) the values that attention took."""
        x = x + self.dropout(self.out(mixed))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))

    def forward(self, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
        q, k, v = self.heads(x)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
        return self.finish(x, mixed.transpose(1, 2).flatten(2))


class GPT(nn.Module):
    """Token ids (B, N) -> logits (B, N, V), or with targets (B, N) their mean loss in nats."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        c = self.config = config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size)
        self.position = nn.Embedding(c.block_size, c.hidden_size) if c.positions else None
        self.layers = nn.ModuleList(Block(c) for _ in range(c.num_layers))
        self.norm = nn.LayerNorm(c.hidden_size, c.norm_eps, bias=False)
        self.dropout = nn.Dropout(c.dropout)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                onto_the_stream = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=c.initializer_std / (math.sqrt(2 * c.num_layers) if onto_the_stream else 1))

    @property
    def longest(self) -> int | None:
        """Tokens that the model can read; None: any number."""
        return self.config.block_size if self.config.positions else None

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """(B, N) -> (B, N, d); `start` is the position of the first of these tokens."""
        x, end = self.word(ids), start + ids.shape[1]
        if self.longest and end > self.longest:
            raise RtxError(f"The text has {end:,} tokens; this model has positions for {self.longest:,}: build it with a larger block_size.")
        return self.dropout(x if self.position is None else x + self.position.weight[start:end])

    def trunk(self, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
        for layer in self.layers:
            x = layer(x)
        return x

    def head(self, h: Tensor) -> Tensor:  # (…, d) -> (…, V)
        return F.linear(self.norm(h), self.word.weight)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        logits = self.head(self.trunk(self.embed(ids)))
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # in float32 under autocast too

    # -- one token at a time ------------------------------------------------------------------------------------------

    def start(self, batch: int) -> "Cache":
        """The state before the first token."""
        return Cache()

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: "Cache") -> Tensor:
        """Logits (B, V) after one more token each, ids (B,); keys and values of the tokens before come from the state."""
        x = self.embed(ids[:, None], state.length)
        state.grow(self, len(ids))
        for layer, (keys, values) in zip(self.layers, state.layers):
            q, k, v = layer.heads(x)
            keys[:, :, state.length], values[:, :, state.length] = k[:, :, 0], v[:, :, 0]
            n = state.length + 1
            mixed = F.scaled_dot_product_attention(q, keys[:, :, :n], values[:, :, :n])
            x = layer.finish(x, mixed.transpose(1, 2).flatten(2))
        state.length += 1
        return self.head(x[:, 0])


class Cache:
    """Keys and values of every layer, (B, H, room, D) each; room doubles when it is used up."""

    def __init__(self):
        self.length, self.layers = 0, []

    def grow(self, model: GPT, batch: int) -> None:
        room = self.layers[0][0].shape[2] if self.layers else 0
        if self.length < room:
            return
        c, weight = model.config, model.word.weight
        shape = (batch, c.num_heads, max(64, 2 * room), c.hidden_size // c.num_heads)
        grown = [(weight.new_empty(shape), weight.new_empty(shape)) for _ in model.layers]
        for old, new in zip(self.layers, grown):
            for a, b in zip(old, new):
                b[:, :, :room] = a
        self.layers = grown
