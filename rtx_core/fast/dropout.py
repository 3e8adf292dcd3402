"""Dropout masks that are a function of (seed, step) alone and cheap to draw on a CPU."""

import math

import numpy as np
import torch
from torch import Tensor

LEVELS = 2**16  # a mask bit costs 16 random bits; a probability is met to within half of 1/65,536


class DropoutMasks:
    """Hands out inverted-dropout masks (Srivastava et al. 2014): 0 with probability p, else 1/(1 − p).

    torch draws Bernoulli numbers one by one from a Mersenne twister, 21 of the baseline step's 191 ms; 16-bit pieces of
    SFC64's stream, compared as vectors, take 4.  `p` is rounded to a multiple of 1/65,536, and so is the scale.
    """

    def __init__(self, seed: int, step: int):
        self.stream = np.random.SFC64([seed, step])

    def draw(self, p: float, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
        """A mask of this shape whose entries have mean 1, but for what `dtype` rounds of the scale."""
        cut, size = min(round(p * LEVELS), LEVELS - 1), math.prod(shape)
        bits = torch.from_numpy(self.stream.random_raw(-(-size // 4)).view(np.int16)[:size])
        kept = torch.ge(bits, cut - LEVELS // 2, out=torch.empty(size, dtype=dtype))
        return kept.mul_(LEVELS / (LEVELS - cut)).view(shape)

    def __call__(self, x: Tensor, p: float) -> Tensor:
        return x * self.draw(p, tuple(x.shape), x.dtype) if p else x
