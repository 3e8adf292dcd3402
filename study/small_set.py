"""Pointers learned from a training set of a fixed size, which is read again and again."""

from functools import cache

import numpy as np
from torch import Tensor

from rtx_core.data.algorithmic import KHop, tensors
from rtx_core.data.config import HopData


class HopSet(KHop):
    """k-hop induction of `sequences` training sequences, of which each step draws its batch with replacement.

    A seed has a set of its own.  Validation and test are those of `KHop`.
    """

    def __init__(self, config: HopData, batch_size: int, micro_batches: int = 1):
        super().__init__(config, batch_size, micro_batches)
        self.training_set = cache(self.draw_set)
        self.facts |= {"drawn_afresh": False, "n_train": self.config.sequences}

    def draw_set(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return self.draw(np.random.RandomState([seed]), self.config.sequences)

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Tensor, Tensor]:
        inputs, targets = self.training_set(seed)
        rows = np.random.RandomState([seed, i]).randint(len(inputs), size=self.batch_size)
        return tensors(inputs[rows], targets[rows])
