"""TinyStories (Eldan & Li 2023) as tokens: stories laid end to end, a batch a piece of that stream.

A token attends within its own story, at most `block_size` tokens back to the last cut: a longer story is
cut there.  `across_stories`, llama2.c's way, cuts the stream every `block_size` tokens wherever that falls,
and attends across stories.  There is no third part: as in the published comparison, the validation stories
select the weights and are what is reported.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from rtx_core.data.config import LanguageData
from rtx_core.data.sources import hub_table, mirror_table, resolve, sha256_of, verify
from rtx_core.data.synthetic import tales
from rtx_core.data.tasks import Language
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
EVALUATION_SEED = 5  # of the stories that every evaluation of every run reads


def load(source: str) -> dict[str, list[str]]:
    """The stories of both parts, stripped, from a source (see `sources.resolve`)."""
    source = resolve(source)
    if source == "embedded":
        made = tales(sum(EMBEDDED.values()))
        return {"train": made[: EMBEDDED["train"]], "validation": made[EMBEDDED["train"] :]}
    parts = {}
    for part, expected in MIRROR_SHA256.items():
        file = f"tinystories/{part}.parquet"
        table = hub_table(HUB, part) if source == "hub" else mirror_table(file)
        if "text" not in table:
            raise RtxError(f"{file} has no column text but {list(table.columns)}: keep the hub's schema.")
        parts[part] = [text for story in table["text"] if (text := story.strip())]
        if source == "mirror":
            verify(file, stories_sha256(parts[part]), expected)
    return parts


def stories_sha256(stories: list[str]) -> str:
    return sha256_of(f"{story}\n\0" for story in stories)


def train_tokenizer(stories: list[str]) -> Tokenizer:
    """Byte-level BPE of at most 4,096 pieces with single digits, as llama2.c's; it loses nothing of a text.

    The 256 bytes are pieces of their own, so nothing is unknown; every process gets the same vocabulary.
    """
    tokenizer = Tokenizer(models.BPE())
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet, signs = pre_tokenizers.ByteLevel.alphabet(), ["<story>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=signs, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(stories[:TOKENIZER_STORIES], trainer)
    return tokenizer


@dataclass(frozen=True, eq=False)  # the same by identity alone, so that it can be a key
class Part:
    """Stories end to end: story i is ids[starts[i]:starts[i + 1]], its first token STORY."""

    ids: np.ndarray  # (all tokens,) uint16
    starts: np.ndarray  # (stories + 1,) int64
    bytes: int | np.ndarray  # of the texts in UTF-8, for bits per byte

    @classmethod
    def of(cls, stories: list[str], tokenizer: Tokenizer) -> "Part":
        rows = []
        for i in range(0, len(stories), 10_000):
            encoded = tokenizer.encode_batch(stories[i : i + 10_000])
            rows += [np.array([STORY, *story.ids], np.uint16) for story in encoded]
        size = sum(len(story.encode()) for story in stories)
        return cls(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), size)


@lru_cache(maxsize=4)  # drawn once an epoch
def _shuffled(part: Part, seed: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(the stories in the order that two numbers seed, where each ends in the stream of them)"""
    rows = np.random.RandomState(seed).permutation(len(part.starts) - 1)
    return rows, np.cumsum(np.diff(part.starts)[rows])


def window(part: Part, seed: tuple[int, int], begin: int, end: int) -> np.ndarray:
    """Tokens begin … end − 1 of the shuffled stories."""
    rows, ends = _shuffled(part, seed)
    first, last = np.searchsorted(ends, [begin, end - 1], side="right")
    ids = np.concatenate([part.ids[part.starts[r] : part.starts[r + 1]] for r in rows[first : last + 1]])
    skipped = begin - (ends[first - 1] if first else 0)
    return ids[skipped : skipped + end - begin]


def tokenised(source: str) -> tuple[dict[str, Part], Tokenizer]:
    """Both parts and the tokenizer trained on the first, from the cache where it has them."""
    stories = load(source)

    def make() -> dict[str, np.ndarray]:
        tokenizer = train_tokenizer(stories["train"])
        tokenizer.encode_special_tokens = True
        parts = {name: vars(Part.of(texts, tokenizer)) for name, texts in stories.items()}
        arrays = {f"{name}.{k}": np.array(value) for name, of in parts.items() for k, value in of.items()}
        return arrays | {"tokenizer": np.frombuffer(tokenizer.to_str().encode(), dtype=np.uint8)}

    arrays = cached("stories", " ".join(map(stories_sha256, stories.values())), (__file__,), make)
    tokenizer = Tokenizer.from_str(arrays["tokenizer"].tobytes().decode())
    tokenizer.encode_special_tokens = True  # "<story>" in a text is letters; the saved form forgets it
    names = ("ids", "starts", "bytes")
    return {name: Part(*(arrays[f"{name}.{k}"] for k in names)) for name in stories}, tokenizer


class Stories(Language):
    """Tokenised stories; a batch is a list of them, so that few have one shape."""

    def __init__(self, config: LanguageData, batch_size: int, micro_batches: int = 1):
        super().__init__(batch_size, micro_batches, config.block_size, config.eval_batches)
        self.parts, self.tokenizer = tokenised(config.source)
        self.across_stories = config.across_stories
        self.vocab_size = self.tokenizer.get_vocab_size()
        train, validation = self.parts["train"], self.parts["validation"]
        least = min(len(train.ids), len(validation.ids))
        if least <= self.examples(0):
            step = f"batch_size · block_size, {self.examples(0):,} tokens"
            raise RtxError(f"A step reads {step}, and a part has {least:,}: choose a smaller batch_size.")
        sha256 = hashlib.sha256(train.ids.tobytes() + validation.ids.tobytes()).hexdigest()
        name, source = "synthetic tales", resolve(config.source)
        self.facts = {"name": name if source == "embedded" else HUB, "source": source, "sha256": sha256}
        self.facts |= {"unit": "tokens", "vocabulary": self.vocab_size, "test_is_validation": True}
        self.facts |= {"n_train": len(train.ids), "train_stories": len(train.starts) - 1}
        self.facts |= {"n_validation": len(validation.ids), "n_test": len(validation.ids) - 1}
        self.facts |= {"validation_stories": len(validation.starts) - 1}
        self.facts |= {"validation_bytes": int(validation.bytes), "across_stories": self.across_stories}

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(list(ids))

    def batch(self, ids: np.ndarray) -> tuple[Packed, Tensor]:
        """n + 1 tokens of the stream -> (n packed tokens, the n tokens that follow them)."""
        begins = np.flatnonzero(ids[:-1] == STORY)
        begins = np.union1d(begins[:0] if self.across_stories else begins, 0)
        lengths = np.diff(np.append(begins, len(ids) - 1))
        pieces = -(-lengths // self.block_size)  # a story longer than a block is read in pieces of it
        cut = np.full(pieces.sum(), self.block_size)
        cut[np.cumsum(pieces) - 1] = lengths - (pieces - 1) * self.block_size
        return Packed.from_flat(ids[:-1], cut), torch.from_numpy(ids[1:].astype(np.int64))

    def micro_batch(self, seed: int, i: int, piece: int) -> tuple[Packed, Tensor]:
        """A part of a step's batch_size · block_size tokens; each epoch has its own order of stories."""
        size, train = self.examples(i), self.parts["train"]
        epoch, k = divmod(i, (len(train.ids) - 1) // size)
        share = size // self.micro_batches
        begin = k * size + piece * share
        return self.batch(window(train, (seed, epoch), begin, begin + share + 1))

    def evaluation_batches(self, part: str) -> list[tuple[Packed, Tensor]]:
        """Random stories, as many of both parts."""
        size = self.examples(0)
        n = min(self.eval_batches, *((len(each.ids) - 1) // size for each in self.parts.values()))
        starts = range(0, n * size, size)
        return [self.batch(window(self.parts[part], (EVALUATION_SEED, 0), i, i + size + 1)) for i in starts]

    def test_batches(self) -> list[tuple[Packed, Tensor]]:
        """All validation stories in their order: each token but the first is predicted once."""
        ids, size = self.parts["validation"].ids, self.examples(0)
        return [self.batch(ids[i : i + size + 1]) for i in range(0, len(ids) - 1, size)]
