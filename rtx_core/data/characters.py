"""Tiny Shakespeare as characters: 1,115,394 of them, 65 symbols, the first 90 % for training, as in nanoGPT.  There is
no third part: as in the published comparisons, the last 10 % select the weights and are what is reported."""

from pathlib import PurePath

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rtx_core.data.config import LanguageData, TextData
from rtx_core.data.files import running_text
from rtx_core.data.sources import hub_table, mirror_file, resolve, sha256_of, verify
from rtx_core.data.synthetic import play
from rtx_core.data.tasks import EVALUATION_SEED, Language
from rtx_core.errors import RtxError

HUB = "karpathy/tiny_shakespeare"
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"  # of the whole text
EMBEDDED_CHARACTERS = 200_000
PARTS = ("train", "validation", "test")  # of the hub's table
TEST_WINDOWS = 15  # a batch of the test; 435 windows of 256 are 29 batches


def load(source: str) -> str:
    """The text from a source (see `sources.resolve`)."""
    source = resolve(source)
    if source == "embedded":
        return play(EMBEDDED_CHARACTERS)
    if source == "hub":  # the hub's own tables of it: the parts, end to end, are the text
        tables = [hub_table(HUB, part) for part in PARTS]
        content = "".join(pd.concat(tables)["text"]).encode()
    else:
        content = mirror_file("tinyshakespeare/input.txt").read_bytes()
    verify(f"Tiny Shakespeare from the {source}", sha256_of([content]), SHA256)
    return content.decode("utf-8")


class Characters(Language):
    """A text as symbols 0 … V − 1, by code point; a subclass with its own `hub` and `load` is another text."""

    hub, load = HUB, staticmethod(load)
    ends = (0.9,)  # shares of the text at which its parts end, but the last; of two the second is the test, too

    def __init__(self, config: LanguageData | TextData, batch_size: int, micro_batches: int = 1):
        super().__init__(batch_size, micro_batches, config.block_size, config.eval_batches)
        text = self.load(config.source)
        self.symbols = sorted({*text, "\n"})  # with which samples begin
        self.vocab_size = len(self.symbols)
        ids = self.encode(text)
        self.parts: dict[str, Tensor] = dict(zip(PARTS, ids.tensor_split([int(len(ids) * end) for end in self.ends])))
        shortest = min(self.parts, key=lambda part: len(self.parts[part]))
        if (length := len(self.parts[shortest])) <= self.block_size:
            raise RtxError(f"block_size is {self.block_size:,}: the {shortest} part has but {length:,} characters.")
        self.tested = [*self.parts][-1]
        name, source = "synthetic play", resolve(config.source)
        self.facts = {"name": name if source == "embedded" else self.hub, "source": source}
        self.facts |= {"sha256": sha256_of([text]), "unit": "characters"}
        self.facts |= {"vocabulary": self.vocab_size, "test_is_validation": self.tested == "validation"}
        self.facts |= {f"n_{part}": len(self.parts.get(part, self.parts[self.tested])) for part in PARTS}

    def encode(self, text: str) -> Tensor:
        number = {symbol: i for i, symbol in enumerate(self.symbols)}
        if unknown := sorted(set(text) - set(number)):
            raise RtxError(f"The text has {unknown[0]!r}, and the model no symbol for it: leave it out.")
        return torch.tensor([number[c] for c in text])

    def decode(self, ids: Tensor) -> str:
        return "".join(self.symbols[i] for i in ids.tolist())

    def _windows(self, part: str, seed: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Random windows: (inputs, targets), (batch_size, block_size) each; targets are one character on."""
        ids, block = self.parts[part], self.block_size
        starts = np.random.RandomState(seed).randint(0, len(ids) - block, size=self.batch_size)
        window = ids[torch.from_numpy(starts)[:, None] + torch.arange(block + 1)]
        return window[:, :-1], window[:, 1:]

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Tensor, Tensor]:
        inputs, targets = self._windows("train", (seed, i))
        return inputs.chunk(self.micro_batches)[piece], targets.chunk(self.micro_batches)[piece]

    def evaluation_batches(self, part: str) -> list[tuple[Tensor, Tensor]]:
        return [self._windows(part, (EVALUATION_SEED, i)) for i in range(self.eval_batches)]

    def test_batches(self) -> list[tuple[Tensor, Tensor]]:
        """Windows end to end, the last one shorter: each character but the first is predicted once."""
        ids, block = self.parts[self.tested], self.block_size
        end = (len(ids) - 1) // block * block
        inputs, targets = ids[:end].view(-1, block), ids[1 : end + 1].view(-1, block)
        windows = list(zip(inputs.split(TEST_WINDOWS), targets.split(TEST_WINDOWS)))
        rest = ids[end:]
        if len(rest) > 1:
            windows.append((rest[None, :-1], rest[None, 1:]))
        return windows


class TextFile(Characters):
    """A text of one's own: 80 % for training, then 10 % that select the weights, then 10 % that are the test."""

    ends = (0.8, 0.9)

    def __init__(self, config: TextData, batch_size: int, micro_batches: int = 1):
        self.hub = PurePath(config.train).name
        self.load = lambda source: running_text(config)
        super().__init__(config, batch_size, micro_batches)
