"""A module that knows nothing of this library, as a registered model that runs can train."""

import json
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from rtx_core.benchmark.subject import instance, logits_in, passes_argument, vocabulary
from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.settings import PositiveInt, Settings


def module(make: Callable, settings: dict, vocab_size: int, length: int) -> nn.Module:
    """What a class or function makes with these settings for a vocabulary and a length."""
    return instance(partial(make, **settings) if settings else make, vocab_size, length)


class OwnConfig(Settings):
    """What the module is made with; the data decide the vocabulary and the length."""

    vocab_size: PositiveInt = Field(default=64, description="tokens")
    block_size: PositiveInt = Field(default=64, description="length of the sequences")
    settings: dict = Field(default={}, description="arguments of its class or function")


class OwnModel(nn.Module):
    """Token ids (B, N) -> logits (B, N, V), or the mean loss of targets, of which a negative one is none."""

    make: ClassVar[Callable]  # a class, or a function of `task`, `vocab_size` and `max_length`

    def __init__(self, config: OwnConfig):
        super().__init__()
        self.config = config
        self.module = module(self.make, config.settings, config.vocab_size, config.block_size)
        if (rows := vocabulary(self.module, config.vocab_size)) < config.vocab_size:
            raise RtxError(f"It reads {rows} tokens, and this task has {config.vocab_size}; let it take vocab_size.")

    def forward(self, ids: Tensor, targets: Tensor | None = None, num_passes: int | None = None) -> Tensor:
        name = passes_argument(self.module)
        logits = logits_in(self.module(ids, **({name: num_passes} if num_passes and name else {})), ids)
        if logits.shape[-1] < self.config.vocab_size:
            raise RtxError(f"The model gives {logits.shape[-1]} logits, and this task has {self.config.vocab_size}.")
        if targets is None:
            return logits
        scored = targets >= 0
        return F.cross_entropy(logits[scored].float(), targets[scored])


def register(name: str, make: Callable, settings: dict) -> None:
    """Register a class or function as a model, with arguments of its own."""
    try:
        if json.loads(json.dumps(settings)) != settings:
            raise TypeError
    except TypeError:
        raise RtxError(f"The settings of {name} are {settings!r:.80}; use numbers, texts and lists.") from None
    # of the module in which the user's code stands, so that its source decides which records are current
    kind = type("Own", (OwnModel,), {"make": staticmethod(make), "__module__": make.__module__})
    registry.register(name, kind, OwnConfig(settings=settings))
