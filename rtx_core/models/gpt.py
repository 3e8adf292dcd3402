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
from rtx_core.models.configs import GPTConfig
from rtx_core.models.layers import Blocks


@dataclass
class DecoderState:
    """What each layer keeps of the text so far, such as its keys and values, (B, H, length, D) each."""

    layers: list
    length: int = 0


class GPTBlock(nn.Module):
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
        p = self.p if self.training else 0.0
        if x.device.type == "cpu" and not p:  # of 16 bits the kernel takes twice as long backward
            q, k, v = (part.to(x.dtype) for part in (q, k, v))
        with torch.autocast("cpu", enabled=False):
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        return self.finish(x, mixed.transpose(1, 2).flatten(2))


class GPT(nn.Module):
    """Token ids (B, N) -> logits (B, N, V), or with targets (B, N) their mean loss in nats."""

    layers: "Blocks[GPTBlock]"

    def __init__(self, config: GPTConfig):
        super().__init__()
        c = self.config = config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size)
        self.position = nn.Embedding(c.block_size, c.hidden_size) if c.positions else None
        self.layers = Blocks(GPTBlock(c) for _ in range(c.num_layers))
        self.norm = nn.LayerNorm(c.hidden_size, c.norm_eps, bias=False)
        self.dropout = nn.Dropout(c.dropout)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                onto_the_stream = name.endswith(("out.weight", "down.weight"))
                share = math.sqrt(2 * c.num_layers) if onto_the_stream else 1
                nn.init.normal_(parameter, std=c.initializer_std / share)

    @property
    def max_length(self) -> int | None:
        """Tokens that the model can read; None: any number."""
        return self.config.block_size if self.config.positions else None

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        """(B, N) -> (B, N, d); `start` is the position of the first of these tokens."""
        x, end = self.word(ids), start + ids.shape[1]
        if self.max_length and end > self.max_length:
            limit = f"{self.max_length:,} positions"
            raise RtxError(f"The text has {end:,} tokens, and the model {limit}: raise block_size.")
        return self.dropout(x if self.position is None else x + self.position.weight[start:end])

    def trunk(self, x: Tensor) -> Tensor:  # (B, N, d) -> (B, N, d)
        for layer in self.layers:
            x = layer(x)
        return x

    def head(self, h: Tensor) -> Tensor:  # (…, d) -> (…, V)
        return F.linear(self.norm(h), self.word.weight)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        logits = self.head(self.trunk(self.embed(ids)))
        if targets is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # in float32 under autocast too

    def start(self, batch: int) -> DecoderState:
        """The state before the first token."""
        return DecoderState([])

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: DecoderState) -> Tensor:
        """Logits (B, V) after one more token each, ids (B,); keys and values of those before come from the state."""
        x, before, state.layers = self.embed(ids[:, None], state.length), state.layers, []
        for i, layer in enumerate(self.layers):
            q, k, v = layer.heads(x)
            if before:
                k, v = torch.cat((before[i][0], k), 2), torch.cat((before[i][1], v), 2)
            state.layers.append((k, v))
            x = layer.finish(x, F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        state.length += 1
        return self.head(x[:, 0])
