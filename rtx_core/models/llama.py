"""A layer as llama2.c builds it (Karpathy 2023, `model.py`), and how tokens attend: all at once, or one at a time.

Pre-norm, rotary positions, SwiGLU, no bias anywhere.  llama2.c rotates neighbouring pairs of a head's coordinates,
`rotate` here pairs i with i + D/2.  The two differ by a fixed order of the rows of the query and key matrices, which
start as independent draws, so the models are the same.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.configs import LoopedConfig
from rtx_core.models.layers import RMSNorm, rotary_table, rotate
from rtx_core.models.packed import Packed

Matrices = tuple[Tensor, Tensor, Tensor, Tensor]  # a layer's qkv, out, gate_up, down
GROUPS = 4  # of sequences of like length: on stories, padding is about 6 % of the cells with four and 47 % with one


class PaddedAttention:
    """Where the tokens of a batch lie during attention: a few padded grids, each of sequences of like length.

    What pads a row stands after its tokens, so that causality is the only mask and the fast kernels apply; a column of
    a grid is a position, so one small rotary table serves all of them.
    """

    def __init__(self, batch: Packed, config: LoopedConfig):
        device = batch.ids.device
        positions = torch.arange(batch.max_seqlen, device=device)
        head_size = config.hidden_size // config.num_heads
        self.rope = rotary_table(positions, head_size, config.rope_base)  # (L, 1, D/2)
        if len(batch) * batch.max_seqlen == len(batch.ids):  # all of one length: the batch is its own grid
            self.cells, self.shapes, self.place = [None], [(len(batch), batch.max_seqlen)], None
            return
        starts, lengths = batch.on_host[:-1].long(), torch.diff(batch.on_host.long())
        order, num_cells = torch.argsort(lengths, descending=True, stable=True), 0
        self.cells, self.shapes = [], []  # (B·L,) the token in each cell; (B, L) of each grid
        place = torch.empty(len(batch.ids), dtype=torch.int64)
        for rows in order.chunk(GROUPS if lengths.min() < batch.max_seqlen else 1):
            B, L = len(rows), int(lengths[rows[0]])
            column = torch.arange(L)
            # what pads a row repeats its last token
            cells = (starts[rows, None] + column.clamp(max=lengths[rows, None] - 1)).flatten()
            real = (column < lengths[rows, None]).flatten()
            place[cells[real]] = num_cells + real.nonzero()[:, 0]
            self.cells.append(cells.to(device, non_blocking=True))
            self.shapes.append((B, L))
            num_cells += B * L
        self.place = place.to(device)  # (T,) the cell of each token, in the grids one after another

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        """qkv (T, 3d) -> (T, d): Σ_j softmax_j(q_i · k_j / √D) v_j, j ≤ i of i's sequence, q and k rotated."""
        mixed = []
        for cells, (B, L) in zip(self.cells, self.shapes):
            tokens = qkv if cells is None else qkv.index_select(0, cells)
            qk, v = tokens.view(B, L, 3, num_heads, -1).split((2, 1), 2)
            cos, sin = self.rope
            qk = rotate(qk, (cos[:L, None], sin[:L, None]))
            q, k, v = (x.transpose(1, 2) for x in (*qk.unbind(2), v.squeeze(2)))  # each (B, H, L, D)
            mixed.append(self.mix(q, k, v).transpose(1, 2).reshape(B * L, -1))
        return mixed[0] if self.place is None else torch.cat(mixed).index_select(0, self.place)

    @staticmethod
    def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What each query takes of the values up to its own, all (B, H, L, D)."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class KVCache:
    """Stands for the batch and for its grid when B texts are read together, a token at a time.

    A looped layer has its own keys and values in every pass: `slots` says where each layer application keeps its own.
    Applications that share a slot attend to what the last of them kept of earlier tokens.
    """

    def __init__(self, head_size: int, rope_base: float, slots: Sequence[int]):
        self.head_size, self.rope_base, self.slots = head_size, rope_base, slots
        self.max_seqlen = 0  # tokens read
        self.passes = 0  # of the last token, where a rule may end them
        self.cache: dict[int, tuple] = {}  # keys and values, (B, H, max_seqlen, D), of each slot

    def take(self, ids: Tensor) -> "KVCache":
        """The next token of each text, (B,)."""
        self.ids, self.positions = ids, torch.full_like(ids, self.max_seqlen)
        self.rope = rotary_table(self.positions[:1], self.head_size, self.rope_base)
        self.max_seqlen, self.applied = self.max_seqlen + 1, 0
        return self

    def fill(self, layers: int) -> None:
        """Give passes of so many layers that were not run the keys and values of the last one that was."""
        for i in range(self.applied, len(self.slots)):
            slot, last = self.slots[i], self.slots[i - layers]
            newest = (each[:, :, -1:] for each in self.cache[last])
            earlier = self.cache.get(slot, ())
            if slot != last:
                self.cache[slot] = tuple(torch.cat(pair, 2) for pair in zip(earlier, newest)) or self.cache[last]

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        """qkv (B, 3d) of the tokens taken -> (B, d): each attends to its own text up to itself."""
        q, k, v = qkv.view(len(qkv), 1, 3, num_heads, self.head_size).unbind(2)  # each (B, 1, H, D)
        q, k, v = (x.transpose(1, 2) for x in (rotate(q, self.rope), rotate(k, self.rope), v))
        slot = self.slots[self.applied]
        if self.max_seqlen > 1:
            earlier = (each[:, :, : self.max_seqlen - 1] for each in self.cache[slot])
            k, v = (torch.cat(pair, 2) for pair in zip(earlier, (k, v)))
        self.cache[slot] = k, v
        self.applied += 1
        return F.scaled_dot_product_attention(q, k, v).reshape(len(qkv), -1)


class LlamaBlock(nn.Module):
    """x += out(attention(norm x));  x += down(silu(gate norm x) ⊙ up norm x)   (Touvron et al. 2023), without biases.

    Q, K and V are one matrix product, gate and up another; low-rank corrections come in as other matrices.
    """

    noisy: Matrices | None = None  # stand in for its own in a training step, where noise is wanted

    def __init__(self, config: LoopedConfig):
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
        """N(0, std), and smaller by 1/√(2 · layers) for `out` and for *up*: llama2.c means the two matrices that
        write to the stream, but its list of names has `w3`, the up matrix, and not `w2`, the down matrix.  Kept."""
        for matrix in self.matrices:
            nn.init.normal_(matrix, std=std)
        with torch.no_grad():
            self.out *= residual
            self.gate_up[len(self.gate_up) // 2 :] *= residual

    @property
    def matrices(self) -> Matrices:
        return self.qkv, self.out, self.gate_up, self.down

    def draw_noise(self, bits: int) -> None:
        """W + s u, u uniform in ±½ and s a row's step on a grid of `bits` (0: none): the same in all passes."""
        self.noisy = None
        if bits:
            steps = [w.detach().abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1) for w in self.matrices]
            self.noisy = tuple(w + step * (torch.rand_like(w) - 0.5) for w, step in zip(self.matrices, steps))

    def forward(self, x: Tensor, grid: PaddedAttention | KVCache, matrices: Matrices | None = None) -> Tensor:
        """x (T, d) -> (T, d)."""
        qkv, out, gate_up, down = matrices or self.noisy or self.matrices
        x = x + F.linear(grid.attend(F.linear(self.attention_norm(x), qkv), self.num_heads), out)
        gate, up = F.linear(self.ffn_norm(x), gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, down)
