"""TinyStories (Eldan & Li 2023) as tokens: stories laid end to end, a batch a piece of that stream.

A token attends within its own story, at most `block_size` tokens back to the last cut: a longer story is cut there.
`across_stories`, llama2.c's way, cuts the stream every `block_size` tokens and attends across stories.  There is no
third part: as in the published comparison, the validation stories select the weights and are what is reported.
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from rtx_core.data.config import LanguageData
from rtx_core.data.sources import real_table, resolve, revision, sha256_of, verify
from rtx_core.data.synthetic import tales
from rtx_core.data.tasks import EVALUATION_SEED, Language
from rtx_core.data.tokens import cached
from rtx_core.errors import RtxError
from rtx_core.models.packed import Packed

HUB = "roneneldan/TinyStories"
MIRROR_SHA256 = {  # of the texts; the hub checks its own files
    "train": "d8ffcf2f94aa51ec800b07260f2c2cdd6450a8f0cd273e1b36f137fc2975a38f",
    "validation": "ec5411dfc4237cc9e1d03489a543b63e81f8c65d0641825042d71074d9802567",
}
VOCABULARY = 4096
TOKENIZER_STORIES = 100_000  # the first training stories; llama2.c takes the first 10 of 50 files
STORY = 0  # the token before each story; predicting it is predicting that a story ends
EMBEDDED = {"train": 2000, "validation": 200}  # generated tales


def load(source: str) -> dict[str, list[str]]:
    """The stories of both parts, stripped, from a source (see `sources.resolve`)."""
    source = resolve(source)
    if source == "embedded":
        texts = tales(sum(EMBEDDED.values()))
        return {"train": texts[: EMBEDDED["train"]], "validation": texts[EMBEDDED["train"] :]}
    parts = {}
    for part, expected in MIRROR_SHA256.items():
        table = real_table(source, HUB, "tinystories", part, "text")
        parts[part] = [text for story in table["text"] if (text := story.strip())]
        if source == "mirror":
            verify(f"tinystories/{part}.parquet", stories_sha256(parts[part]), expected)
    return parts


def stories_sha256(stories: list[str]) -> str:
    return sha256_of(f"{story}\n\0" for story in stories)


def train_tokenizer(stories: list[str]) -> Tokenizer:
    """Byte-level BPE of at most 4,096 pieces with single digits, as llama2.c's; it loses nothing of a text."""
    tokenizer = Tokenizer(models.BPE())
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet, signs = pre_tokenizers.ByteLevel.alphabet(), ["<story>"]
    options = {"special_tokens": signs, "initial_alphabet": alphabet, "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, **options)
    tokenizer.train_from_iterator(stories[:TOKENIZER_STORIES], trainer)
    return tokenizer


def split_stories(ids: np.ndarray) -> list[np.ndarray]:
    """The stories of a part, each with its STORY."""
    return np.split(ids, np.flatnonzero(ids == STORY)[1:])


@lru_cache(maxsize=1)  # made once an epoch
def shuffled(task: "Stories", part: str, seed: tuple[int, int]) -> np.ndarray:
    """The tokens of a part, its stories in the order that two numbers seed."""
    stories = split_stories(task.parts[part])
    return np.concatenate([stories[i] for i in np.random.RandomState(seed).permutation(len(stories))])


def tokenised(stories: dict[str, list[str]]) -> tuple[dict[str, np.ndarray], Tokenizer]:
    """The tokens of both parts end to end, uint16, and the tokenizer trained on the first; both may be cached."""

    def make() -> dict[str, np.ndarray]:
        tokenizer = train_tokenizer(stories["train"])
        tokenizer.encode_special_tokens = True
        arrays: dict[str, np.ndarray] = {"tokenizer": np.frombuffer(tokenizer.to_str().encode(), dtype=np.uint8)}
        for part, texts in stories.items():
            batches = (tokenizer.encode_batch(texts[i : i + 10_000]) for i in range(0, len(texts), 10_000))
            rows = [np.array([STORY, *story.ids], np.uint16) for batch in batches for story in batch]
            arrays[part] = np.concatenate(rows)
        return arrays

    arrays = cached("stories", " ".join(map(stories_sha256, stories.values())), (__file__,), make)
    tokenizer = Tokenizer.from_str(arrays.pop("tokenizer").tobytes().decode())
    tokenizer.encode_special_tokens = True  # "<story>" in a text is letters; the saved form forgets it
    return arrays, tokenizer


class Stories(Language):
    """Tokenised stories; a batch is a list of them, so that few have one shape."""

    def __init__(self, config: LanguageData, batch_size: int, micro_batches: int = 1):
        super().__init__(batch_size, micro_batches, config.block_size, config.eval_batches)
        stories = load(config.source)
        self.parts, self.tokenizer = tokenised(stories)
        self.across_stories = config.across_stories
        self.vocab_size = self.tokenizer.get_vocab_size()
        train, validation = self.parts["train"], self.parts["validation"]
        least = min(len(train), len(validation))
        if least <= 2 * self.examples(0):  # a loss of one batch has no error
            step = f"batch_size · block_size, {self.examples(0):,} tokens"
            raise RtxError(f"A step reads {step}, and a part of {least:,} has no two: choose a smaller batch_size.")
        source = resolve(config.source)
        self.facts = {"name": "synthetic tales" if source == "embedded" else HUB, "source": source} | revision(
            HUB, source
        )
        self.facts |= {"sha256": sha256_of([train, validation]), "unit": "tokens"}
        self.facts |= {"vocabulary": self.vocab_size, "test_is_validation": True}
        self.facts |= {"n_train": len(train), "n_validation": len(validation), "n_test": len(validation) - 1}
        self.facts |= {f"{part}_stories": len(texts) for part, texts in stories.items()}
        size = sum(len(story.encode()) for story in stories["validation"])
        self.facts |= {"validation_bytes": size, "across_stories": self.across_stories}

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(list(ids))

    def batch(self, ids: np.ndarray) -> tuple[Packed, Tensor]:
        """n + 1 tokens of the stream -> (n packed tokens, the n tokens that follow them)."""
        n = len(ids) - 1
        starts = [0] if self.across_stories else np.union1d(np.flatnonzero(ids[:n] == STORY), 0)
        # a story longer than a block is read in pieces of it
        cuts = [cut for start, end in pairwise([*starts, n]) for cut in range(start, end, self.block_size)]
        return Packed.from_flat(ids[:n], np.diff([*cuts, n])), torch.from_numpy(ids[1:].astype(np.int64))

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Packed, Tensor]:
        """A part of a step's batch_size · block_size tokens; each epoch has its own order of stories."""
        size = self.examples(i)
        epoch, k = divmod(i, (len(self.parts["train"]) - 1) // size)
        share = size // self.micro_batches
        begin = k * size + piece * share
        return self.batch(shuffled(self, "train", (seed, epoch))[begin : begin + share + 1])

    def evaluation_batches(self, part: str) -> list[tuple[Packed, Tensor]]:
        """Random stories, as many of both parts."""
        size = self.examples(0)
        n = min(self.eval_batches, *((len(ids) - 1) // size for ids in self.parts.values()))
        ids = shuffled(self, part, (EVALUATION_SEED, 0))
        return [self.batch(ids[i : i + size + 1]) for i in range(0, n * size, size)]

    def test_batches(self) -> list[tuple[Packed, Tensor]]:
        """All validation stories in their order: each token but the first is predicted once."""
        ids, size = self.parts["validation"], self.examples(0)
        return [self.batch(ids[i : i + size + 1]) for i in range(0, len(ids) - 1, size)]
