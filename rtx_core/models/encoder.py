"""The study's two encoders in one class: a stack of layers, run once (Baseline) or several times (Recurrent).

    h⁰ = drop(RMSNorm(word + type)),   F = layer_n ∘ … ∘ layer_1
    code  (default):  h¹ = F(h⁰),            hʳ⁺¹ = F(hʳ) + α hʳ   for r ≥ 1
    paper:                                   hʳ⁺¹ = F(hʳ) + α hʳ   for r ≥ 0
    logits = W_c drop(h[CLS]) + b_c

The public code adds α hʳ from the second pass on and made the published numbers; the report's formula adds it in
every pass.  With one pass "code" is a plain transformer.  No final norm, no position embedding, biases everywhere.
"""

import math
from dataclasses import dataclass, fields

from torch import Tensor, nn

from rtx_core.errors import RtxError, unknown
from rtx_core.models import fused
from rtx_core.models.layers import Block, RMSNorm, rotary_rows
from rtx_core.models.masks import Dropout, Masks, TorchDropout, drop
from rtx_core.models.packed import Packed

RESIDUALS = ("code", "paper")


@dataclass(frozen=True)
class EncoderConfig:
    vocab_size: int = 30_522  # bert-base-uncased WordPiece
    type_vocab_size: int = 2  # BERT's sentence A / B; all tokens here are A, the row of B is kept for the count
    hidden_size: int = 384
    num_layers: int = 6  # layers that own weights
    num_passes: int = 1  # times the stack is applied; effective depth = num_layers · num_passes
    num_heads: int = 6  # of size 64
    intermediate_size: int = 1536  # 4 · hidden, without the 2/3 rule usual for gated FFNs
    num_labels: int = 2
    residual_scale: float = 0.5  # α
    residual: str = "code"  # "code": α from the second pass on; "paper": in every pass
    dropout: float = 0.1
    rope_base: float = 10_000.0
    norm_eps: float = 1e-12
    initializer_std: float = 0.02  # N(0, 0.02) for matrices, as BERT
    pad_id: int = 0  # its embedding row starts at 0; packing never reads it

    def __post_init__(self):
        if self.residual not in RESIDUALS:
            raise unknown("residual", self.residual, RESIDUALS)
        for field in fields(self):
            value, numbers = getattr(self, field.name), {int: (int,), float: (int, float)}.get(field.type, ())
            zero_is_fine = field.name in ("pad_id", "residual_scale", "dropout")
            fits = type(value) in numbers and math.isfinite(value) and (value > 0 or (value == 0 and zero_is_fine))
            if numbers and not fits:
                kind, bound = "whole number" if field.type is int else "number", "at least 0" if zero_is_fine else "above 0"
                raise RtxError(f"{field.name} is {value!r}; it must be a {kind} {bound}.")
        if self.hidden_size % (2 * self.num_heads):
            raise RtxError(
                f"hidden_size {self.hidden_size} over {self.num_heads} heads leaves no even head size for rotary pairs; "
                f"choose hidden_size as a multiple of {2 * self.num_heads}."
            )
        if self.dropout >= 1:
            raise RtxError(f"dropout is {self.dropout!r}; it is a probability in [0, 1).")


class Encoder(nn.Module):
    """Packed token ids -> class logits (B, C)."""

    def __init__(self, config: EncoderConfig):
        super().__init__()
        c = self.config = config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size, padding_idx=c.pad_id)
        self.token_type = nn.Embedding(c.type_vocab_size, c.hidden_size)
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)
        self.layers = nn.ModuleList(
            Block(c.hidden_size, c.num_heads, c.intermediate_size, c.dropout, c.norm_eps) for _ in range(c.num_layers)
        )
        self.head = nn.Linear(c.hidden_size, c.num_labels)
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.initializer_std)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def embed(self, ids: Tensor, masks: Dropout = None) -> Tensor:  # (T,) -> (T, d)
        return drop(self.norm(self.word(ids) + self.token_type.weight[0]), self.config.dropout, masks)

    def forward(self, batch: Packed, rows_only: bool = True, masks: Dropout = None) -> Tensor:
        """(B, C) logits.  `rows_only=False` computes the rows that nothing reads too; the logits are the same.

        In training mode `masks` are the dropout of this step; without them torch's generator draws it.
        """
        c = self.config
        masks = (masks or TorchDropout()) if self.training else None
        rope = rotary_rows(batch, c.hidden_size // c.num_heads, c.rope_base)
        h = self.embed(batch.ids, masks)
        fuse = isinstance(masks, Masks) and fused.usable(h)
        if fuse:
            whole, keys_only = (fused.grid(batch, c.num_heads, parts, h.dtype) for parts in (3, 2))
        for r in range(c.num_passes):
            before = h
            for i, layer in enumerate(self.layers):
                last = r == c.num_passes - 1 and i == c.num_layers - 1
                rows = batch.starts if last and rows_only else None
                if fuse:
                    h = fused.block(layer, h, rope, whole if rows is None else keys_only, rows, masks)
                else:
                    h = layer(h, batch, rope, rows, masks)
            if r > 0 or c.residual == "paper":
                h = h + c.residual_scale * (before if len(h) == len(before) else before[batch.starts])
        cls = h if len(h) == len(batch) else h[batch.starts]
        return self.head(drop(cls, c.dropout, masks))
