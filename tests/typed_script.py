"""A script as a user writes it, which `make types` checks: a model and a task of one's own, and a run of them."""

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

import rtx_core as rtx


class TinyConfig(rtx.Settings):
    vocab_size: int = 10
    hidden_size: int = 16


@rtx.register("tiny", TinyConfig())
class Tiny(nn.Module):
    def __init__(self, config: TinyConfig):
        super().__init__()
        self.config = config
        self.word = nn.Embedding(config.vocab_size, config.hidden_size)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        logits = F.linear(self.word(ids), self.word.weight)
        return logits if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Copy(rtx.data.SequenceTask):
    letters: int = 8
    vocab_size = 10

    def draw(self, random: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
        letters = random.randint(10, size=(n, self.letters))
        return letters, letters


def train(letters: int) -> float:
    run = rtx.run(Copy(letters=letters), "tiny", seed=1, steps=2, eval_every=2)
    size: int = Tiny(TinyConfig(hidden_size=8)).config.hidden_size
    return run.record["test"]["loss"] / size
