"""The decoder of the TinyStories study and of the tasks whose rule is known: every way of looping is a switch.

    e = prelude(E[ids])                       layers before the loop, run once
    s⁰ = e, or N(0, σ²)                       `state_std`
    sʳ⁺¹ = core(inject(sʳ, e) + v_r)          `injection` of e, `encoding` v_r and `lora_rank`: of the pass
                                              `gate`: sʳ⁺¹ = sʳ + σ(G sʳ) ⊙ (what the core makes of it − sʳ)
                                              `loop_norm`: an RMSNorm of sʳ⁺¹
                                              `backprop_passes`: sʳ is a constant for gradients before the last n
                                              `cache`: keys and values of earlier tokens from each pass, or its last
    logits = RMSNorm(coda(RMSNorm_s(sᴿ))) Eᵀ  layers after the loop; `state_norm`

Control      one pass: llama2.c (Karpathy 2023)
FraiLT       `encoding`: Tabak 2024, eq. 2, with one vector a pass, as the study's count has it, none for each layer
Three Part   `num_core_layers`, `injection`, `state_std`, `state_norm`: Geiping et al. 2025, §3.1–3.2, who normalise
             after each branch too; the study's count has plain layers, A of d × 2d without bias, a norm after the loop
Relaxed      `lora_rank`: Bae et al. 2024, eq. 4

Any number of passes can be run: `states(batch, num_passes)` yields the state after each, and `output_hidden` makes of
it what the output matrix reads.  With `random_passes` each training step runs 1 … num_passes of them.  With `halting`
β a gate gives the probability p_r that a token stops after pass r, and training minimizes Σ_r p_r loss_r − β H(p)
(Zhu et al. 2025, Ouro, stage I; after Graves 2016 and Banino et al. 2021).  `cache="last"` is the feedback memory of
Fan et al. 2020: a token's keys and values are those of its last pass, so tokens are read one after another.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.errors import RtxError, unknown
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import Blocks, RMSNorm
from rtx_core.models.llama import KVCache, LlamaBlock, Matrices, PaddedAttention
from rtx_core.models.packed import Packed

Grid = PaddedAttention | KVCache  # what attends
Batch = Packed | KVCache
STOPS = ("agree", "confident", "gate")  # rules that end the passes of a token early
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
        if c.halting:
            self.halt = nn.Linear(d, 1)
            nn.init.zeros_(self.halt.weight)  # half of what has not stopped stops after each pass
            nn.init.zeros_(self.halt.bias)
        if c.lora_rank:
            core = self.parts[1]
            self.lora = Blocks(Blocks(LowRank(layer, c) for layer in core) for _ in range(c.num_passes))
        self.drawn_passes = c.num_passes  # of a training step, where they are random
        self.drawn_backprop = 0  # its last passes through which gradients flow, where they are random; 0: all

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
        if self.config.backprop_passes == "random":
            self.drawn_backprop = int(np.random.RandomState([seed, step, 1]).randint(self.drawn_passes)) + 1

    def grid(self, batch: Batch) -> Grid:
        return batch if isinstance(batch, KVCache) else PaddedAttention(batch, self.config)

    def states(self, batch: Batch, num_passes: int | None = None) -> Iterator[Tensor]:
        """The state (T, d) after each pass, one after another; `num_passes` is free at test time."""
        if self.config.cache == "last" and isinstance(batch, Packed):
            yield from self.states_in_turn(batch, num_passes)
            return
        for layer in self.layers:
            layer.draw_noise(self.config.weight_noise if self.training else 0)
        grid, e = self.grid(batch), self.word(batch.ids)
        for layer in self.parts[0]:
            e = layer(e, grid)
        s = e if self.config.state_std is None else self.initial_state(batch, e)
        num_passes = num_passes or (self.drawn_passes if self.training else self.config.num_passes)
        backprop = self.config.backprop_passes
        backprop = (self.drawn_backprop if self.training else 0) if backprop == "random" else backprop
        detached = num_passes - (backprop or num_passes)  # passes without gradients
        for r in range(num_passes):
            s = self.one_pass(s, e, r, grid)
            s = s.detach() if r < detached else s
            yield s

    def states_in_turn(self, batch: Packed, num_passes: int | None) -> Iterator[Tensor]:
        """`states` of texts of one length, each token after all passes of those before it."""
        if len(batch) * batch.max_seqlen != len(batch.ids):
            raise RtxError("cache='last' got texts of different lengths; expected texts of one length.")
        num_passes = num_passes or (self.drawn_passes if self.training else self.config.num_passes)
        memory = self.start(len(batch), num_passes=num_passes)
        columns = batch.ids.view(len(batch), -1).unbind(1)
        tokens = [list(self.states(memory.take(ids), num_passes)) for ids in columns]
        yield from (torch.stack(states, 1).flatten(0, 1) for states in zip(*tokens))

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
        states = deque(self.states(batch, num_passes), None if self.halts(targets) else 1)
        h = self.output_hidden(states[-1], batch)
        if targets is None:
            return F.linear(h, self.head).view(*ids.shape, -1)
        if rows:
            targets = targets.flatten()
            scored = targets >= 0
            if targets.is_cuda and not self.halts(targets):  # to choose rows would be to wait for the device
                return F.cross_entropy(F.linear(h, self.head), targets.where(scored, -100), ignore_index=-100)
            h, targets = h[scored], targets[scored]
            states = deque(state[scored] for state in states)
        return self.halting_loss(states, targets) if self.halts(targets) else self.loss(h, targets)

    def halts(self, targets: Tensor | None) -> bool:
        """Whether the loss is that of a training step whose gate learns."""
        return self.config.halting > 0 and self.training and targets is not None

    def halting_loss(self, states: Sequence[Tensor], targets: Tensor) -> Tensor:
        """Σ_r p_r loss_r − β H(p), on average over targets, of the states (T, d) after each pass."""
        hidden = [self.norm(state) for state in states]
        logits = (F.linear(h, self.head).float() for h in hidden)
        losses = torch.stack([F.cross_entropy(each, targets, reduction="none") for each in logits])
        p = self.stopping(torch.stack(hidden))
        entropy = -(p * p.clamp_min(1e-9).log()).sum(0)
        return ((p * losses).sum(0) - self.config.halting * entropy).mean()

    def stopping(self, hidden: Tensor) -> Tensor:
        """The probability (R, T) that a token stops after each pass, of what the output reads, (R, T, d):
        p_r = λ_r Π_{j<r} (1 − λ_j), λ = σ(w h + b), and the last pass takes what is left."""
        rates = self.halt(hidden)[..., 0].float().sigmoid()
        going_on = torch.cat((torch.ones_like(rates[:1]), (1 - rates[:-1]).cumprod(0)))
        return torch.cat(((rates * going_on)[:-1], going_on[-1:]))

    def loss(self, h: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of h (T, d) for targets (T,), in float32 under autocast too."""
        return F.cross_entropy(F.linear(h, self.head), targets)

    def start(self, batch: int, cache: str | None = None, num_passes: int | None = None) -> KVCache:
        """The state before the first token of so many texts, for `advance`.

        `cache="all"` keeps the keys and values of every pass.  "last" keeps those of the last pass alone: every pass
        attends to them, for as much memory as without a loop.  None: as in training.
        """
        cache = cache or self.config.cache
        if cache not in ("all", "last"):
            raise unknown("cache", cache, ("all", "last"))
        layers, (begin, end) = range(self.config.num_layers), self.config.core
        passes = num_passes or self.config.num_passes
        applied = [*layers[:begin], *[*layers[begin:end]] * passes, *layers[end:]]
        slots = applied if cache == "last" else range(len(applied))
        return KVCache(self.config.hidden_size // self.config.num_heads, self.config.rope_base, slots)

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: KVCache, stop: str = "", threshold: float = 0.99) -> Tensor:
        """Logits (B, V) after one more token each, ids (B,).

        `stop` ends the passes once a rule holds for all texts: "agree", two passes name the same token; "confident",
        the likeliest token has probability `threshold`; "gate", the gate has stopped with probability `threshold`.
        """
        if not stop:
            return self(state.take(ids))
        if stop not in STOPS or (stop == "gate") > bool(self.config.halting):
            known = STOPS if self.config.halting else STOPS[:2]
            raise unknown("stop", stop, known)
        if self.config.core != (0, self.config.num_layers):
            raise RtxError(
                f"stop={stop!r} got a model with layers outside of its loop; expected one that loops all of them."
            )
        batch, logits, going_on, passes = state.take(ids), None, 1.0, 0
        for passes, s in enumerate(self.states(batch), 1):
            before, hidden = logits, self.output_hidden(s, batch)
            logits = F.linear(hidden, self.head)
            if stop == "confident":
                done = logits.float().softmax(-1).amax(-1) >= threshold
            elif stop == "gate":
                going_on = going_on * (1 - self.halt(hidden)[..., 0].float().sigmoid())
                done = 1 - going_on >= threshold
            else:
                done = torch.tensor(False) if before is None else logits.argmax(-1) == before.argmax(-1)
            if done.all():
                break
        state.passes = passes
        state.fill(self.config.num_layers)
        assert logits is not None  # there is a pass at least
        return logits

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
        if self.config.halting:
            counts["halting gate"] = sum(p.numel() for p in self.halt.parameters())
        added = {"encoding": "iteration encoding", "adapter": "adapter", "gate": "gate"}
        return counts | {title: getattr(self, name).numel() for name, title in added.items() if hasattr(self, name)}

    def macs_per_token(self, num_passes: int | None = None) -> int:
        """Multiply-adds of the matrix products for one token's forward pass, without attention's scores."""
        prelude, core, coda = (sum(m.numel() for layer in part for m in layer.matrices) for part in self.parts)
        if self.config.injection == "linear":
            core += self.adapter.numel()
        if self.config.gate:
            core += self.gate.numel()
        if self.config.halting:
            core += self.halt.weight.numel()
        if self.config.lora_rank:  # as the study does it and as at one token: tokens are sent through A and B
            core += sum(p.numel() for p in self.lora[0].parameters())
        return self.head.numel() + prelude + (num_passes or self.config.num_passes) * core + coda
