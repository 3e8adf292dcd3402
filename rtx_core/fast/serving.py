"""A trained encoder prepared to answer on a CPU: `serving(model)(batch)` gives the logits of `model(batch)` sooner.

A sentence costs little more than reading every weight once, so what counts is how the weights lie and how few kernels
there are: oneDNN packs each matrix once into the layout its kernel reads, and does SiLU, products and residual sums
with the matrix product that makes them.  On another device, or without oneDNN, it is the model itself.
"""

from collections.abc import Callable
from copy import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.fast import onednn
from rtx_core.fast.fused_block import norm, rotate
from rtx_core.models.attention import packed_attention
from rtx_core.models.encoder import Encoder
from rtx_core.models.layers import EncoderBlock
from rtx_core.models.packed import Packed

TOKENS = 16  # the batch for which oneDNN chooses its layout; any other works too


class _ServingBlock:
    """layers.EncoderBlock without dropout, the norms' gains in the matrices; `last` computes the [CLS] rows alone."""

    def __init__(self, block: EncoderBlock, last: bool, kind: torch.dtype):
        a, f, d = block.attention, block.ffn, block.attention.out.in_features
        self.eps, self.heads, self.last, self.kind = block.attention_norm.eps, a.num_heads, last, kind
        qkv, gate_up = a.qkv.weight * block.attention_norm.weight, f.gate_up.weight * block.ffn_norm.weight

        def laid(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
            return onednn.packed(weight.to(kind), TOKENS), bias.to(kind)

        self.q = laid(qkv[:d], a.qkv.bias[:d]) if last else None
        self.qkv = laid(qkv[d:], a.qkv.bias[d:]) if last else laid(qkv, a.qkv.bias)
        self.out, self.down = laid(a.out.weight, a.out.bias), laid(f.down.weight, f.down.bias)
        self.gate, self.up = map(laid, gate_up.chunk(2), f.gate_up.bias.chunk(2))

    def __call__(self, x: Tensor, batch: Packed, rope: tuple[Tensor, Tensor]) -> Tensor:
        T, d = x.shape
        y = norm(x, self.eps)[0].to(self.kind)
        heads = onednn.linear(y, *self.qkv).to(x.dtype).view(T, -1, self.heads, d // self.heads)  # (T, 2 or 3, H, D)
        if self.last:  # [CLS] stands at position 0, which is rotated by nothing
            x = x[batch.starts]
            q = onednn.linear(y[batch.starts], *self.q).to(x.dtype).view(len(x), self.heads, -1)
            k = rotate(heads[:, 0], *rope)
        else:
            q, k = rotate(heads[:, :2].flatten(1, 2), *rope).chunk(2, 1)
        if len(batch) == 1:  # no grid: the sentence is its own
            alone = (t.transpose(0, 1)[None] for t in (q, k, heads[:, -1]))
            mixed = F.scaled_dot_product_attention(*alone)[0].transpose(0, 1)
        else:
            mixed = packed_attention(q, k, heads[:, -1], batch)
        x = self.added(x, mixed.reshape(-1, d), self.out)
        y = norm(x, self.eps)[0].to(self.kind)
        inner = onednn.linear_with(y, onednn.linear(y, *self.gate, "swish"), *self.up, "mul")
        return self.added(x, inner, self.down)

    def added(self, x: Tensor, y: Tensor, matrix: tuple[Tensor, Tensor]) -> Tensor:
        """x + y Wᵀ + b, a stream of 32 bits."""
        if self.kind == x.dtype:
            return onednn.linear_with(y, x, *matrix, "add")
        return onednn.linear(y.to(self.kind), *matrix).to(x.dtype).add_(x)


def serving(model: nn.Module) -> Callable[[Packed], Tensor]:
    """The model as a function from a batch to logits (B, C); the weights are those of this moment.

    Any other model than `Encoder` itself serves as it is.
    """
    weight = next(model.parameters())
    kind = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
    packable = weight.device.type == "cpu" and weight.dtype == torch.float32 and kind in onednn.FORMATS
    if type(model) is not Encoder or not packable:
        return torch.inference_mode()(model)
    with torch.inference_mode():
        whole = {layer: _ServingBlock(layer, False, kind) for layer in model.layers}
        last = _ServingBlock(model.layers[-1], True, kind)

    def block(layer: EncoderBlock, h: Tensor, batch: Packed, rope, rows: Tensor | None, dropout) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            return (whole[layer] if rows is None else last)(h, batch, rope)

    served = copy(model)  # which shares the weights
    served.training, served.block = False, block
    return torch.inference_mode()(served)
