"""How an `Encoder` trains fast on a CPU: fused blocks, masks by step, clipping inside AdamW."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from rtx_core.fast import fused_block
from rtx_core.models.encoder import Encoder
from rtx_core.models.layers import EncoderBlock
from rtx_core.models.packed import Packed

LEVELS = 2**16  # a mask bit costs 16 random bits; a probability is met to within half of 1/65,536


class DropoutMasks:
    """Hands out inverted-dropout masks (Srivastava et al. 2014): 0 with probability p, else 1/(1 − p).

    torch draws Bernoulli numbers one by one from a Mersenne twister, 21 of the baseline step's 191 ms; 16-bit pieces of
    SFC64's stream, compared as vectors, take 4.
    """

    def __init__(self, seed: int, step: int):
        self.stream = np.random.SFC64([seed, step])

    def draw(self, p: float, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        """A mask of this shape whose entries have mean 1, but for what `dtype` rounds of the scale."""
        cut, size = min(round(p * LEVELS), LEVELS - 1), math.prod(shape)
        bits = torch.from_numpy(self.stream.random_raw(-(-size // 4)).view(np.int16)[:size])
        mask = torch.ge(bits, cut - LEVELS // 2, out=torch.empty(size, dtype=dtype))
        return mask.mul_(LEVELS / (LEVELS - cut)).view(shape)

    def __call__(self, x: Tensor, p: float) -> Tensor:
        return x * self.draw(p, tuple(x.shape), x.dtype) if p else x


class EncoderPath:
    """The fast training path of one model; `finish` puts the model back as it was."""

    def __init__(self, model: Encoder):
        self.model = model

    def begin(self, seed: int, step: int) -> None:
        """Before a step: its blocks, and on a CPU its masks; a GPU draws its own."""
        self.weights: dict[EncoderBlock, list[Tensor]] = {}  # in the products' format, each layer's cast once
        self.ids: set[Tensor] = set()  # what the step has read
        self.model.block = self.block
        self.model.step_dropout = DropoutMasks(seed, step) if self.model.word.weight.device.type == "cpu" else None

    def block(self, layer: EncoderBlock, h: Tensor, batch: Packed, rope, rows: Tensor | None, dropout) -> Tensor:
        """`Encoder.block`, fused where its masks are handed down on a CPU."""
        if not isinstance(dropout, DropoutMasks) or h.dtype not in (torch.float32, torch.float64):
            return layer(h, batch, rope, rows, dropout)
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else h.dtype
        key = 3 if rows is None else 2, dtype
        grids = batch.__dict__.setdefault("grids", {})  # index tables, made once a batch
        if key not in grids:
            grids[key] = fused_block.grid(batch, layer.attention.num_heads, *key)
        self.ids.add(batch.ids)
        if layer not in self.weights:
            self.weights[layer] = fused_block.cast(layer, dtype)
        return fused_block.block(layer, h, rope, grids[key], rows, dropout, self.weights[layer])

    def update(self, model: Encoder, optimizer: torch.optim.Optimizer, clip_norm: float) -> None:
        """Clip to a whole norm c, by the factor min(1, c / (norm + 10⁻⁶)), step, and leave no gradient.  Fused AdamW
        divides by `grad_scale` as it reads: no pass over the gradient is spent on it, no host waits for the norm."""
        gradients = [p.grad for p in model.parameters() if p is not model.word.weight and p.grad is not None]
        words = model.word.weight.grad
        assert words is not None  # an update follows a backward pass
        if self.ids:  # the rows of all other tokens are 0
            words = words[torch.cat([*self.ids]).unique()]
        norm = nn.utils.get_total_norm([*gradients, words], foreach=True)
        vars(optimizer)["grad_scale"] = ((norm + 1e-6) / clip_norm).clamp_(min=1.0).float()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)  # the next backward pass brings its own arrays: no zero-fill, no sum

    def finish(self) -> None:
        vars(self.model).pop("block", None)
        self.model.step_dropout = None


training_path = EncoderPath
