"""A decoder's keys and values so far, so that one more token costs one token."""

import torch
import torch.nn.functional as F
from torch import Tensor

from rtx_core.models.layers import rotary_table, rotate


class KVCache:
    """Stands for the batch and for its grid when B texts are read together, a token at a time.

    A looped layer leaves keys and values of its own in every pass, so they are kept by layer application, in the order
    in which the model asks for attention; that order must be the same for every token.
    """

    def __init__(self, head_size: int, rope_base: float):
        self.head_size, self.rope_base = head_size, rope_base
        self.longest = 0  # tokens read
        self.kept: list[tuple] = []  # keys and values, (B, H, longest, D), of each application

    def take(self, ids: Tensor) -> "KVCache":
        """The next token of each text, (B,)."""
        self.ids, self.positions = ids, torch.full_like(ids, self.longest)
        self.rope = rotary_table(self.positions[:1], self.head_size, self.rope_base)
        self.longest, self.applied = self.longest + 1, 0
        return self

    def attend(self, qkv: Tensor, num_heads: int) -> Tensor:
        """qkv (B, 3d) of the tokens taken -> (B, d): each attends to its own text up to itself."""
        q, k, v = qkv.view(len(qkv), 1, 3, num_heads, self.head_size).unbind(2)  # each (B, 1, H, D)
        q, k, v = (x.transpose(1, 2) for x in (rotate(q, self.rope), rotate(k, self.rope), v))
        if self.longest == 1:
            self.kept.append((k, v))
        else:
            pairs = zip(self.kept[self.applied], (k, v))
            k, v = self.kept[self.applied] = tuple(torch.cat(pair, 2) for pair in pairs)
        self.applied += 1
        return F.scaled_dot_product_attention(q, k, v).reshape(len(qkv), -1)
