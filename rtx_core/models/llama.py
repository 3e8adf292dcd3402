"""The control of the TinyStories study, a small Llama as llama2.c builds it, and what the looped decoders share with it.

    h⁰ = E[ids],   h = layer_n ∘ … ∘ layer_1 (h⁰),   logits = RMSNorm(h) Eᵀ

Pre-norm layers, rotary positions, SwiGLU, no bias anywhere, one matrix for the embedding and the output (Karpathy 2023,
`model.py`).  A model is three functions, so that any number of passes can be run and read:

    states(batch, passes)   yields the state after each pass,
    read(state, batch)      turns a state into what the output matrix reads,
    forward = logits of read(last state).

llama2.c rotates neighbouring pairs of a head's coordinates, `rotate` here pairs i with i + D/2.  The two differ by a fixed
order of the rows of the query and key matrices, which start as independent draws, so the models are the same.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.configs import LlamaConfig
from rtx_core.models.kv_cache import KVCache
from rtx_core.models.layers import RMSNorm, rotary_table, rotate
from rtx_core.models.packed import Packed
from rtx_core.models.varlen import VarlenAttention, kernel_for

Matrices = tuple[Tensor, Tensor, Tensor, Tensor]  # a layer's qkv, out, gate_up, down


GROUPS = 4  # of sequences of like length: on stories, padding is about 6 % of the cells with four and 47 % with one


class PaddedAttention:
    """Where the tokens of a batch lie during attention: a few padded grids, each of sequences of like length.

    What pads a row stands after its tokens, where no token looks, so that causality is the only mask and the fast kernels
    apply; a column of a grid is a position, so one small rotary table serves all of them.
    """

    def __init__(self, batch: Packed, config: "LlamaConfig"):
        device, starts = batch.ids.device, batch.starts.cpu()
        positions = torch.arange(batch.longest, device=device)
        self.rope = rotary_table(
            positions, config.hidden_size // config.num_heads, config.rope_base
        )  # (L, 1, D/2)
        if len(batch) * batch.longest == len(batch.ids):  # all of one length: the batch is its own grid
            self.cells, self.shapes, self.place = [None], [(len(batch), batch.longest)], None
            return
        lengths = torch.diff(batch.offsets.cpu().long())
        order, used = torch.argsort(lengths, descending=True, stable=True), 0
        self.cells, self.shapes = [], []  # (B·L,) the token in each cell; (B, L) of each grid
        place = torch.empty(len(batch.ids), dtype=torch.int64)
        for rows in order.chunk(GROUPS if lengths.min() < batch.longest else 1):
            B, L = len(rows), int(lengths[rows[0]])
            column = torch.arange(L)
            cells = (
                starts[rows, None] + column.clamp(max=lengths[rows, None] - 1)
            ).flatten()  # padding repeats the last token
            real = (column < lengths[rows, None]).flatten()
            place[cells[real]] = used + real.nonzero()[:, 0]
            self.cells.append(cells.to(device))
            self.shapes.append((B, L))
            used += B * L
        self.place = place.to(device)  # (T,) the cell of each token, in the grids one after another

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        """out_i = Σ_j softmax_j(q_i · k_j / √D) v_j over j ≤ i of i's own sequence, q and k rotated; qkv (T, 3d) -> (T, d)."""
        mixed = []
        for cells, (B, L) in zip(self.cells, self.shapes):
            there = qkv if cells is None else qkv.index_select(0, cells)
            qk, v = there.view(B, L, 3, num_heads, -1).split((2, 1), 2)
            qk = rotate(qk, tuple(table[:L, None] for table in self.rope))
            q, k, v = (x.transpose(1, 2) for x in (*qk.unbind(2), v.squeeze(2)))  # each (B, H, L, D)
            mixed.append(
                F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B * L, -1)
            )
        return mixed[0] if self.place is None else torch.cat(mixed).index_select(0, self.place)


class LlamaBlock(nn.Module):
    """x += out(attention(norm x));  x += down(silu(gate norm x) ⊙ up norm x)   (Touvron et al. 2023), without biases.

    Q, K and V are one matrix product, gate and up another.  The four matrices may be given from outside, which is how
    the relaxed model corrects them.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        d, f = config.hidden_size, config.intermediate_size
        self.num_heads = config.num_heads
        self.attention_norm = RMSNorm(d, config.norm_eps)
        self.qkv = nn.Parameter(torch.empty(3 * d, d))
        self.out = nn.Parameter(torch.empty(d, d))
        self.ffn_norm = RMSNorm(d, config.norm_eps)
        self.gate_up = nn.Parameter(torch.empty(2 * f, d))
        self.down = nn.Parameter(torch.empty(d, f))
        self._initialize(config.initializer_std, (2 * config.num_layers) ** -0.5)

    def _initialize(self, std: float, residual: float) -> None:
        """N(0, std), and smaller by 1/√(2 · layers) for `out` and for *up*: llama2.c means the two matrices that write to
        the stream, but what its list of names catches is `w3`, the up matrix, and not `w2`, the down matrix.  Kept."""
        for matrix in self.matrices:
            nn.init.normal_(matrix, std=std)
        with torch.no_grad():
            self.out *= residual
            self.gate_up[len(self.gate_up) // 2 :] *= residual

    @property
    def matrices(self) -> Matrices:
        return self.qkv, self.out, self.gate_up, self.down

    def forward(
        self, x: Tensor, grid: PaddedAttention | VarlenAttention | KVCache, matrices: Matrices | None = None
    ) -> Tensor:
        """x (T, d) -> (T, d)."""
        qkv, out, gate_up, down = matrices or self.matrices
        x = x + F.linear(grid.attend(F.linear(self.attention_norm(x), qkv), self.num_heads), out)
        gate, up = F.linear(self.ffn_norm(x), gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, down)


class Llama(nn.Module):
    """Packed token ids -> next-token logits, or the loss of given targets."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        c = self.config = config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size)
        nn.init.normal_(self.word.weight, std=c.initializer_std)
        self.layers = nn.ModuleList(LlamaBlock(c) for _ in range(c.num_layers))
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)

    def grid(self, batch: Packed | KVCache) -> PaddedAttention | VarlenAttention | KVCache:
        """What attends."""
        if isinstance(batch, KVCache):
            return batch
        kernel, c = kernel_for(batch.ids.device, self.word.weight.dtype), self.config
        return (
            VarlenAttention(batch, c.hidden_size // c.num_heads, c.rope_base, kernel)
            if kernel
            else PaddedAttention(batch, c)
        )

    def states(self, batch: Packed | KVCache, passes: int | None = None) -> Iterator[Tensor]:
        """The state (T, d) after each pass, one after another; `passes` is free at test time."""
        grid, h = self.grid(batch), self.word(batch.ids)
        for r in range(passes or self.config.num_passes):
            h = self.one_pass(h, r, grid)
            yield h

    def one_pass(self, h: Tensor, r: int, grid: PaddedAttention | VarlenAttention | KVCache) -> Tensor:
        """All layers, once; `r` counts the passes from 0."""
        for layer in self.layers:
            h = layer(h, grid)
        return h

    def read(self, state: Tensor, batch: Packed | KVCache) -> Tensor:
        """(T, d) -> (T, d): what the output matrix reads."""
        return self.norm(state)

    def forward(
        self, batch: Packed | KVCache, targets: Tensor | None = None, passes: int | None = None
    ) -> Tensor:
        """Logits (T, V), or with `targets` (T,) their mean loss in nats."""
        for state in self.states(batch, passes):
            pass
        h = self.read(state, batch)
        return F.linear(h, self.word.weight) if targets is None else self.loss(h, targets)

    def loss(self, h: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of h (T, d) for targets (T,), in float32 under autocast too."""
        return F.cross_entropy(F.linear(h, self.word.weight), targets)

    longest = None  # tokens that the model can read: any number

    def start(self, batch: int) -> KVCache:
        """The state before the first token of so many texts, for `advance`."""
        return KVCache(self.config.hidden_size // self.config.num_heads, self.config.rope_base)

    @torch.inference_mode()
    def advance(self, ids: Tensor, state: KVCache) -> Tensor:
        """Logits (B, V) after one more token each, ids (B,)."""
        return self(state.take(ids))

    def components(self) -> dict[str, int]:
        """Parameters by component; they add up to the total."""
        return {
            "embedding": self.word.weight.numel(),
            "attention": sum(layer.qkv.numel() + layer.out.numel() for layer in self.layers),
            "feed-forward": sum(layer.gate_up.numel() + layer.down.numel() for layer in self.layers),
            "norms": sum(m.weight.numel() for m in self.modules() if isinstance(m, RMSNorm)),
        }

    def multiplications(self, passes: int | None = None) -> int:
        """Multiply-adds of the matrix products for one token's forward pass, without attention's scores."""
        return self.word.weight.numel() + (passes or self.config.num_passes) * self.per_pass()

    def per_pass(self) -> int:
        return sum(matrix.numel() for layer in self.layers for matrix in layer.matrices)
