"""Tiny Shakespeare as characters: 1,115,394 of them, 65 symbols, the first 90 % for training, as in nanoGPT.

There is no third part: as in the published comparisons, the last 10 % select the weights and are what is reported.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from rtx_core.corpora.play import play
from rtx_core.corpora.sources import from_hub, mirror_file, resolve
from rtx_core.errors import RtxError
from rtx_core.training.recipes import Recipe

HUB = "karpathy/tiny_shakespeare"
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"  # of the whole text, wherever it comes from
TRAINING_SHARE = 0.9
EMBEDDED_CHARACTERS = 200_000
TEST_WINDOWS = 15  # a batch of the test; 435 windows of 256 are 29 batches
EVALUATION_SEED = 5  # of the windows that every evaluation of every run reads


def text(source: str) -> str:
    """The text from a source (see `sources.resolve`)."""
    source = resolve(source)
    if source == "embedded":
        return play(EMBEDDED_CHARACTERS)
    content = _from_hub() if source == "hub" else mirror_file("tinyshakespeare/input.txt").read_bytes()
    if (got := hashlib.sha256(content).hexdigest()) != SHA256:
        raise RtxError(f"The text from the {source} has SHA-256 {got[:12]}…, expected {SHA256[:12]}… (tiny Shakespeare); fetch it again.")
    return content.decode("utf-8")


def _from_hub() -> bytes:
    import datasets

    datasets.disable_progress_bars()

    def fetch() -> bytes:  # the hub's own tables of it: the parts, end to end, are the text
        parts = [datasets.load_dataset(HUB, revision="refs/convert/parquet", split=split)["text"] for split in ("train", "validation", "test")]
        return "".join(piece for part in parts for piece in part).encode()

    return from_hub(fetch, HUB)


@dataclass(frozen=True)
class Characters:
    """The text as symbols 0 … V − 1 in the order of their code points; a `rtx_core.training.language.LanguageData`."""

    text: str
    source: str
    recipe: Recipe
    one_shape = True

    @cached_property
    def symbols(self) -> list[str]:
        return sorted(set(self.text))

    @property
    def vocab_size(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> Tensor:
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        if strange := sorted(set(text) - set(place)):
            raise RtxError(f"The text has {strange[0]!r}, which is none of the {len(place)} symbols of the training text; leave it out.")
        return torch.tensor([place[c] for c in text])

    def decode(self, ids: Tensor) -> str:
        return "".join(self.symbols[i] for i in ids.tolist())

    @cached_property
    def parts(self) -> dict[str, Tensor]:
        ids = self.encode(self.text)
        cut = int(len(ids) * TRAINING_SHARE)
        parts = {"train": ids[:cut], "validation": ids[cut:]}
        for name, part in parts.items():
            if len(part) <= self.recipe.block_size:
                raise RtxError(f"block_size is {self.recipe.block_size:,}; the {name} part has {len(part):,} characters, and a sequence needs one more than block_size.")
        return parts

    @cached_property
    def facts(self) -> dict:
        train, validation = (len(part) for part in self.parts.values())
        return {
            "name": HUB if self.source != "embedded" else "embedded play",
            "source": self.source,
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "unit": "characters",
            "vocabulary": self.vocab_size,
            "n_train": train, "n_validation": validation, "n_test": validation,
            "test_is_validation": True,
        }  # fmt: skip

    def _windows(self, part: str, random: np.random.RandomState, n: int) -> tuple[Tensor, Tensor]:
        """n random windows: (inputs, targets), (n, block_size) each, a target being the next character."""
        ids, block = self.parts[part], self.recipe.block_size
        starts = torch.from_numpy(random.randint(0, len(ids) - block, size=n))
        window = ids[starts[:, None] + torch.arange(block + 1)]
        return window[:, :-1], window[:, 1:]

    def step(self, seed: int, step: int) -> Iterator[tuple[Tensor, Tensor]]:
        inputs, targets = self._windows("train", np.random.RandomState([seed, step]), self.recipe.batch_size)
        return zip(inputs.chunk(self.recipe.micro_batches), targets.chunk(self.recipe.micro_batches))

    def evaluation(self) -> dict[str, list[tuple[Tensor, Tensor]]]:
        """Random windows of both parts; those of the training part show how much of a gap is over-fitting, without dropout."""
        return {
            name: [self._windows(part, np.random.RandomState([EVALUATION_SEED, i]), self.recipe.batch_size) for i in range(self.recipe.eval_batches)]
            for name, part in (("validation", "validation"), ("training_sample", "train"))
        }

    def test(self) -> list[tuple[Tensor, Tensor]]:
        """The whole validation part in windows end to end, the last one shorter: each character but the first predicted once."""
        ids, block = self.parts["validation"], self.recipe.block_size
        whole = (len(ids) - 1) // block * block
        windows = list(zip(ids[:whole].view(-1, block).split(TEST_WINDOWS), ids[1 : whole + 1].view(-1, block).split(TEST_WINDOWS)))
        rest = ids[whole:]
        return windows + ([(rest[None, :-1], rest[None, 1:])] if len(rest) > 1 else [])


def data(source: str, recipe: Recipe) -> Characters:
    return Characters(text(source), resolve(source), recipe)
