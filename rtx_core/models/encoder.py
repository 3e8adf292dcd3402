"""The study's two encoders in one class: a stack of layers, run once (Baseline) or several times (Recurrent).

    h⁰ = drop(RMSNorm(word + type)),   F = layer_n ∘ … ∘ layer_1
    code  (default):  h¹ = F(h⁰),            hʳ⁺¹ = F(hʳ) + α hʳ   for r ≥ 1
    paper:                                   hʳ⁺¹ = F(hʳ) + α hʳ   for r ≥ 0
    logits = W_c drop(h[CLS]) + b_c

The public code adds α hʳ from the second pass on and made the published numbers; the report's formula adds it in
every pass.  With one pass "code" is a plain transformer.  No final norm, no position embedding, biases everywhere.
"""

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models.configs import EncoderConfig
from rtx_core.models.layers import Blocks, Dropout, EncoderBlock, RMSNorm, drop, rotary_rows
from rtx_core.models.packed import Packed


class Encoder(nn.Module):
    """Packed token ids -> class logits (B, C), or with targets (B,) their mean cross-entropy in nats."""

    layers: "Blocks[EncoderBlock]"
    step_dropout: Dropout = None  # where a training step's masks come from; None: torch's generator

    def __init__(self, config: EncoderConfig):
        super().__init__()
        c = self.config = config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size, padding_idx=c.pad_id)
        self.token_type = nn.Embedding(c.type_vocab_size, c.hidden_size)
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)
        sizes = (c.hidden_size, c.num_heads, c.intermediate_size, c.dropout, c.norm_eps)
        self.layers = Blocks(EncoderBlock(*sizes) for _ in range(c.num_layers))
        self.head = nn.Linear(c.hidden_size, c.num_labels)
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.initializer_std)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def states(self, batch: Packed, num_passes: int | None = None, rows_only: bool = False) -> Iterator[Tensor]:
        """The state (T, d) after each pass, one after another; `num_passes` is free at test time.

        With `rows_only` the last state is (B, d), its [CLS] rows alone, which the classifier reads.
        """
        c, dropout = self.config, self._dropout()
        num_passes = num_passes or c.num_passes
        rope = rotary_rows(batch, c.hidden_size // c.num_heads, c.rope_base)
        h = drop(self.norm(self.word(batch.ids) + self.token_type.weight[0]), c.dropout, dropout)
        for r in range(num_passes):
            before = h
            for i, layer in enumerate(self.layers):
                last = r == num_passes - 1 and i == c.num_layers - 1
                h = self.block(layer, h, batch, rope, batch.starts if last and rows_only else None, dropout)
            if r > 0 or c.residual == "paper":
                h = h + c.residual_scale * (before if len(h) == len(before) else before[batch.starts])
            yield h

    def _dropout(self) -> Dropout:
        return (self.step_dropout or F.dropout) if self.training else None

    def forward(self, batch: Packed, targets: Tensor | None = None, rows_only: bool = True) -> Tensor:
        """`rows_only=False` computes the rows of the last layer that nothing reads too; the logits are the same."""
        h = None
        for h in self.states(batch, rows_only=rows_only):
            pass
        assert h is not None  # there is a pass at least
        cls = h if len(h) == len(batch) else h[batch.starts]
        logits = self.head(drop(cls, self.config.dropout, self._dropout()))
        return logits if targets is None else F.cross_entropy(logits, targets)

    def block(self, layer: EncoderBlock, h: Tensor, batch: Packed, rope, rows: Tensor | None, dropout) -> Tensor:
        """One layer, once: (T, d) -> (T, d), or (B, d) where `rows` (B,) asks for those rows alone."""
        return layer(h, batch, rope, rows, dropout)
