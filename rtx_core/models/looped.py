"""The decoder of the TinyStories study and of the tasks whose rule is known: every way of looping is a switch.

    e = prelude(E[ids])                       layers before the loop, run once
    s⁰ = e, or N(0, σ²)                       `state_std`
    sʳ⁺¹ = core(inject(sʳ, e) + v_r)          `injection` of e, `encoding` v_r and `lora_rank`: of the pass
                                              `gate`: sʳ⁺¹ = sʳ + σ(G sʳ) ⊙ (what the core makes of it − sʳ)
                                              `loop_norm`: an RMSNorm of sʳ⁺¹
                                              `backprop_passes`: sʳ is a constant for gradients before the last n
    logits = RMSNorm(coda(RMSNorm_s(sᴿ))) Eᵀ  layers after the loop; `state_norm`

Control      one pass: llama2.c (Karpathy 2023)
FraiLT       `encoding`: Tabak 2024, eq. 2, with one vector a pass, as the study's count has it, none for each layer
Three Part   `num_core_layers`, `injection`, `state_std`, `state_norm`: Geiping et al. 2025, §3.1–3.2, who normalise
             after each branch too; the study's count has plain layers, A of d × 2d without bias, a norm after the loop
Relaxed      `lora_rank`: Bae et al. 2024, eq. 4

Any number of passes can be run: `states(batch, num_passes)` yields the state after each, and `output_hidden` makes of
it what the output matrix reads.  With `random_passes` each training step runs 1 … num_passes of them.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.errors import unknown
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import Blocks, RMSNorm
from rtx_core.models.llama import KVCache, LlamaBlock, Matrices, PaddedAttention
from rtx_core.models.packed import Packed

Grid = PaddedAttention | KVCache  # what attends
Batch = Packed | KVCache
PARTS = (3, 1, 2, 1)  # how many of the seven matrices lie in a layer's qkv, out, gate_up, down


class LowRank(nn.Module):
    """The corrections of one layer in one pass: A (rank × in) and B (out × rank) for each of its seven matrices.

    y = (W + γ B A) x   (Bae et al. 2024, eq. 4).  BA is added to W once a batch, for about the cost of W alone, since a
    batch holds more tokens than a matrix has rows.
    """

    def __init__(self, layer: LlamaBlock, config: LoopedConfig):
        super().__init__()
        self.scale = config.lora_scale
        shapes = [(n, w.shape[0] // n, w.shape[1]) for n, w in zip(PARTS, layer.matrices)]
        self.down = nn.ParameterList(torch.empty(n, config.lora_rank, inner) for n, _, inner in shapes)  # A
        self.up = nn.ParameterList(torch.zeros(n, outer, config.lora_rank) for n, outer, _ in shapes)  # B
        # B = 0 and A uniform in ±1/√in, as in the public code of Hu et al. 2021: the model starts as if shared
        for a in self.down:
            nn.init.uniform_(a, -(a.shape[2] ** -0.5), a.shape[2] ** -0.5)

    def correct(self, matrices: Matrices) -> Matrices:
        """W + γ B A for every W."""
        rows = zip(PARTS, matrices, self.down, self.up)
        qkv, out, gate_up, down = (
            torch.baddbmm(w.view(n, -1, w.shape[1]), b, a, alpha=self.scale).view_as(w) for n, w, a, b in rows
        )
        return qkv, out, gate_up, down


class Looped(nn.Module):
    """Token ids, packed or as rows (B, N) -> next-token logits, or the loss of given targets."""

    layers: "Blocks[LlamaBlock]"
    lora: "Blocks[Blocks[LowRank]]"  # of each pass and layer of the core
    max_length = None  # tokens that the model can read: any number

    def __init__(self, config: LoopedConfig):
        super().__init__()
        c, d = config, config.hidden_size
        self.config = config
        self.word = nn.Embedding(c.vocab_size, d)
        nn.init.normal_(self.word.weight, std=c.initializer_std)
        self.layers = Blocks(LlamaBlock(c) for _ in range(c.num_layers))
        self.norm = RMSNorm(d, c.norm_eps)
        if c.encoding != "none":
            self.encoding = nn.Parameter(torch.empty(c.num_passes, d))
            nn.init.normal_(self.encoding, std=c.initializer_std)  # as the embedding it is added to
        if c.injection == "linear":
            self.adapter = nn.Parameter(torch.empty(d, 2 * d))
            nn.init.normal_(self.adapter, std=c.initializer_std)
        if c.gate:
            self.gate = nn.Parameter(torch.empty(d, d))
            nn.init.normal_(self.gate, std=c.initializer_std)
        if c.loop_norm:
            self.loop_norm = RMSNorm(d, c.norm_eps)
        if c.state_norm:
            self.state_norm = RMSNorm(d, c.norm_eps)
        if c.lora_rank:
            core = self.parts[1]
            self.lora = Blocks(Blocks(LowRank(layer, c) for layer in core) for _ in range(c.num_passes))
        self.drawn_passes = c.num_passes  # of a training step, where they are random

    @property
    def parts(self) -> "tuple[Blocks[LlamaBlock], Blocks[LlamaBlock], Blocks[LlamaBlock]]":
        """(prelude, core, coda)"""
        begin, end = self.config.core
        return self.layers[:begin], self.layers[begin:end], self.layers[end:]

    @property
    def head(self) -> Tensor:
        """(V, d): the output matrix, which is the embedding's."""
        return self.word.weight

    def begin_step(self, seed: int, step: int) -> None:
        """Draw the passes of a training step: they follow from (seed, step), so that a resumed run agrees."""
        if self.config.random_passes:
            self.drawn_passes = int(np.random.RandomState([seed, step]).randint(self.config.num_passes)) + 1

    def grid(self, batch: Batch) -> Grid:
        return batch if isinstance(batch, KVCache) else PaddedAttention(batch, self.config)

    def states(self, batch: Batch, num_passes: int | None = None) -> Iterator[Tensor]:
        """The state (T, d) after each pass, one after another; `num_passes` is free at test time."""
        for layer in self.layers:
            layer.draw_noise(self.config.weight_noise if self.training else 0)
        grid, e = self.grid(batch), self.word(batch.ids)
        for layer in self.parts[0]:
            e = layer(e, grid)
        s = e if self.config.state_std is None else self.initial_state(batch, e)
        num_passes = num_passes or (self.drawn_passes if self.training else self.config.num_passes)
        detached = num_passes - (self.config.backprop_passes or num_passes)  # passes without gradients
        for r in range(num_passes):
            s = self.one_pass(s, e, r, grid)
            s = s.detach() if r < detached else s
            yield s

    def initial_state(self, batch: Batch, like: Tensor) -> Tensor:
        """Fresh noise in training; else one fixed draw a position, so that a text's loss depends on nothing else."""
        std = self.config.state_std or 0.0
        if self.training:
            return std * torch.randn_like(like)
        shape = (batch.max_seqlen, like.shape[1])
        draw = np.random.RandomState(0).standard_normal(shape)  # a longer draw begins like a shorter one
        return std * torch.from_numpy(draw).to(like)[batch.positions]

    def one_pass(self, s: Tensor, e: Tensor, r: int, grid: Grid) -> Tensor:
        """The core once, (T, d) -> (T, d); `r` counts from 0, and what the last trained pass has serves beyond it."""
        c, r, before = self.config, min(r, self.config.num_passes - 1), s
        if c.injection == "add":
            s = s + e
        elif c.injection == "linear":  # the stream keeps its precision under autocast
            s = F.linear(torch.cat((s, e), dim=-1), self.adapter).to(e.dtype)
        for i, layer in enumerate(self.parts[1]):
            if c.encoding == "layer" or (c.encoding == "pass" and i == 0):
                s = s + self.encoding[r]
            s = layer(s, grid, self.lora[r][i].correct(layer.noisy or layer.matrices) if c.lora_rank else None)
        if c.gate:
            s = before + F.linear(before, self.gate).sigmoid().to(s.dtype) * (s - before)
        return self.loop_norm(s) if c.loop_norm else s

    def output_hidden(self, state: Tensor, batch: Batch) -> Tensor:
        """(T, d) -> (T, d): what the output matrix reads."""
        h, coda = self.state_norm(state) if self.config.state_norm else state, self.parts[2]
        grid = self.grid(batch) if len(coda) else None
        for layer in coda:
            h = layer(h, grid)
        return self.norm(h)

    def forward(self, batch: Batch | Tensor, targets: Tensor | None = None, num_passes: int | None = None) -> Tensor:
        """Logits (…, V), or with `targets` their mean loss in nats; in rows, a negative target is none."""
        rows = isinstance(batch, Tensor)
        ids, batch = (batch, Packed.from_rows(batch)) if rows else (batch.ids, batch)
        state = None
        for state in self.states(batch, num_passes):
            pass
        assert state is not None  # there is a pass at least
        h = self.output_hidden(state, batch)
        if targets is None:
            return F.linear(h, self.head).view(*ids.shape, -1)
        if rows:
            targets = targets.flatten()
            scored = targets >= 0
            if targets.is_cuda:  # to choose rows would be to wait for the device
                return F.cross_entropy(F.linear(h, self.head), targets.where(scored, -100), ignore_index=-100)
            h, targets = h[scored], targets[scored]
        return self.loss(h, targets)

    def loss(self, h: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of h (T, d) for targets (T,), in float32 under autocast too."""
        return F.cross_entropy(F.linear(h, self.head), targets)

    def start(self, batch: int, cache: Literal["all", "last"] = "all") -> KVCache:
        """The state before the first token of so many texts, for `advance`.

        `cache="all"` keeps the keys and values of every pass, as in training.  "last" keeps those of the last pass
        alone: every pass attends to them, for as much memory as without a loop.
        """
        if cache not in ("all", "last"):
            raise unknown("cache", cache, ("all", "last"))
        layers, (begin, end) = range(self.config.num_layers), self.config.core
        applied = [*layers[:begin], *[*layers[begin:end]] * self.config.num_passes, *layers[end:]]
        slots = applied if cache == "last" else range(len(applied))
        return KVCache(self.config.hidden_size // self.config.num_heads, self.config.rope_base, slots)

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: KVCache) -> Tensor:
        """Logits (B, V) after one more token each, ids (B,)."""
        return self(state.take(ids))

    def components(self) -> dict[str, int]:
        """Parameters by component; they add up to the total."""
        counts = {
            "embedding": self.word.weight.numel(),
            "attention": sum(layer.qkv.numel() + layer.out.numel() for layer in self.layers),
            "feed-forward": sum(layer.gate_up.numel() + layer.down.numel() for layer in self.layers),
            "norms": sum(m.weight.numel() for m in self.modules() if isinstance(m, RMSNorm)),
        }
        if self.config.lora_rank:
            counts["low-rank corrections"] = sum(p.numel() for p in self.lora.parameters())
        added = {"encoding": "iteration encoding", "adapter": "adapter", "gate": "gate"}
        return counts | {title: getattr(self, name).numel() for name, title in added.items() if hasattr(self, name)}

    def macs_per_token(self, num_passes: int | None = None) -> int:
        """Multiply-adds of the matrix products for one token's forward pass, without attention's scores."""
        prelude, core, coda = (sum(m.numel() for layer in part for m in layer.matrices) for part in self.parts)
        if self.config.injection == "linear":
            core += self.adapter.numel()
        if self.config.gate:
            core += self.gate.numel()
        if self.config.lora_rank:  # as the study does it and as at one token: tokens are sent through A and B
            core += sum(p.numel() for p in self.lora[0].parameters())
        return self.head.numel() + prelude + (num_passes or self.config.num_passes) * core + coda
