"""TinyStories (Eldan & Li 2023) as tokens: whole stories laid end to end, a batch a piece of that stream without padding.

A token attends within its own story, at most `block_size` tokens back to the last cut: a longer story is cut there.  The
other way, llama2.c's, cuts the stream every `block_size` tokens wherever that falls, and attends across stories.
There is no third part: as in the published comparison, the validation stories select the weights and are what is reported.
"""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zipfile import BadZipFile

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from rtx_core.corpora.sources import from_hub, mirror_table, resolve
from rtx_core.corpora.tales import tales
from rtx_core.errors import RtxError
from rtx_core.models.packed import Packed
from rtx_core.paths import build, write_atomically
from rtx_core.results.code import fingerprint
from rtx_core.training.recipes import Recipe

HUB = "roneneldan/TinyStories"
MIRROR_SHA256 = {  # of the texts; the hub checks its own files
    "train": "d8ffcf2f94aa51ec800b07260f2c2cdd6450a8f0cd273e1b36f137fc2975a38f",
    "validation": "ec5411dfc4237cc9e1d03489a543b63e81f8c65d0641825042d71074d9802567",
}
VOCABULARY = 4096
TOKENIZER_STORIES = 100_000  # the first training stories; llama2.c takes the first 10 of 50 files
STORY = 0  # the token before each story; predicting it is predicting that a story ends, so no other sign of the end is needed
EMBEDDED = {"train": 2000, "validation": 200}  # tales
EVALUATION_SEED = 5  # of the stories that every evaluation of every run reads
MADE_BY = ("corpora/stories.py", "corpora/tales.py")  # cached tokens hold as long as these files stay the same


def texts(source: str) -> dict[str, list[str]]:
    """The stories of both parts, stripped, from a source (see `sources.resolve`)."""
    source = resolve(source)
    if source == "embedded":
        all_of_them = tales(sum(EMBEDDED.values()))
        return {"train": all_of_them[: EMBEDDED["train"]], "validation": all_of_them[EMBEDDED["train"] :]}
    parts = {part: _stripped(_from_hub(part) if source == "hub" else _from_mirror(part)) for part in MIRROR_SHA256}
    for part, stories in parts.items():
        if source == "mirror" and (got := sha256_of(stories)) != MIRROR_SHA256[part]:
            raise RtxError(
                f"The mirror's tinystories/{part}.parquet has content hash {got[:12]}…, expected {MIRROR_SHA256[part][:12]}…: "
                f"the data is damaged or another version; fetch it again."
            )
    return parts


def _from_hub(part: str) -> list[str]:
    import datasets

    datasets.disable_progress_bars()
    return from_hub(lambda: datasets.load_dataset(HUB, split=part)["text"], f"{HUB} ({part})")


def _from_mirror(part: str) -> list[str]:
    table = mirror_table(f"tinystories/{part}.parquet")
    if "text" not in table:
        raise RtxError(f"The mirror's tinystories/{part}.parquet has columns {list(table.columns)} and lacks text; it must keep the hub's schema.")
    return table["text"].tolist()


def _stripped(stories: list[str]) -> list[str]:
    return [text for story in stories if (text := story.strip())]


def sha256_of(stories: list[str]) -> str:
    digest = hashlib.sha256()
    for story in stories:
        digest.update(f"{story}\n\0".encode())
    return digest.hexdigest()


def train_tokenizer(stories: list[str]) -> Tokenizer:
    """Byte-level BPE of at most 4,096 pieces with single digits, as llama2.c's: every text can be written and read back.

    The 256 bytes are pieces of their own, so nothing is unknown.  Unlike the library's WordPiece trainer this one gives
    the same vocabulary in every process.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<story>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(stories[:TOKENIZER_STORIES], trainer)
    return _literal(tokenizer)


def _literal(tokenizer: Tokenizer) -> Tokenizer:
    """With "<story>" in a text as seven letters, not as the sign; the saved form forgets this."""
    tokenizer.encode_special_tokens = True
    return tokenizer


@dataclass(frozen=True, eq=False)  # the same by identity alone, so that it can be a key
class Part:
    """Stories end to end: story i is ids[starts[i]:starts[i + 1]], its first token STORY."""

    ids: np.ndarray  # (all tokens,) uint16
    starts: np.ndarray  # (stories + 1,) int64
    bytes: int  # of the texts in UTF-8, for bits per byte

    @classmethod
    def of(cls, stories: list[str], tokenizer: Tokenizer, at_once: int = 10_000) -> "Part":
        rows = (np.array([STORY, *e.ids], dtype=np.uint16)
                for i in range(0, len(stories), at_once) for e in tokenizer.encode_batch(stories[i : i + at_once]))  # fmt: skip
        rows = list(rows)
        return cls(np.concatenate(rows), np.cumsum([0, *map(len, rows)]), sum(len(story.encode()) for story in stories))


@dataclass(frozen=True)
class Stories:
    """Tokenised stories; a `rtx_core.training.language.LanguageData`."""

    parts: dict[str, Part]
    tokenizer: Tokenizer
    source: str
    recipe: Recipe
    one_shape = False  # a batch is a list of stories
    crossing: bool = False  # llama2.c's way: sequences of block_size tokens, whatever stories they hold
    facts: dict = field(init=False)

    def __post_init__(self):
        train, validation, step = self.parts["train"], self.parts["validation"], self.recipe.batch_size * self.recipe.block_size
        if (least := min(len(part.ids) for part in self.parts.values())) <= step:
            raise RtxError(f"A step reads batch_size · block_size, {step:,} tokens, but a part of the stories has {least:,}; choose a smaller batch_size.")
        digest = hashlib.sha256()
        for part in self.parts.values():
            digest.update(part.ids.tobytes())
        object.__setattr__(self, "facts", {
            "name": HUB if self.source != "embedded" else "embedded tales",
            "source": self.source,
            "sha256": digest.hexdigest(),
            "unit": "tokens",
            "vocabulary": self.vocab_size,
            "n_train": len(train.ids), "n_validation": len(validation.ids), "n_test": len(validation.ids) - 1,
            "train_stories": len(train.starts) - 1, "validation_stories": len(validation.starts) - 1,
            "validation_bytes": validation.bytes,
            "test_is_validation": True,
            "across_stories": self.crossing,
        })  # fmt: skip

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(list(ids))

    def batch(self, ids: np.ndarray, first: int = 0) -> tuple[Packed, Tensor]:
        """n + 1 tokens of the stream -> (n packed tokens, the n tokens that follow them)."""
        block, begins = self.recipe.block_size, np.flatnonzero(ids[:-1] == STORY)
        if self.crossing:
            begins = begins[:0]
        begins = np.union1d(begins, 0)
        lengths = np.diff(np.append(begins, len(ids) - 1))
        pieces = -(-lengths // block)  # a story longer than a block is read in pieces of it
        cut = np.full(pieces.sum(), block)
        cut[np.cumsum(pieces) - 1] = lengths - (pieces - 1) * block
        return Packed.from_flat(ids[:-1], cut), torch.from_numpy(ids[1:].astype(np.int64))

    def step(self, seed: int, step: int) -> Iterator[tuple[Packed, Tensor]]:
        """Exactly batch_size · block_size tokens of the stories, in an order of their own for each epoch."""
        size = self.recipe.batch_size * self.recipe.block_size
        epoch, k = divmod(step, (len(self.parts["train"].ids) - 1) // size)
        return self._read("train", (seed, epoch), k * size, size, self.recipe.micro_batches)

    def _read(self, part: str, order: tuple[int, int], start: int, size: int, pieces: int = 1) -> Iterator[tuple[Packed, Tensor]]:
        share = size // pieces
        for begin in range(start, start + size, share):
            yield self.batch(window(self.parts[part], order, begin, begin + share + 1))

    def evaluation(self) -> dict[str, list[tuple[Packed, Tensor]]]:
        """The same random stories for every model and step; those of the training part show the gap between the two."""
        size = self.recipe.batch_size * self.recipe.block_size
        n = min(self.recipe.eval_batches, *((len(part.ids) - 1) // size for part in self.parts.values()))
        names = {"validation": "validation", "training_sample": "train"}
        return {name: [b for i in range(n) for b in self._read(part, (EVALUATION_SEED, 0), i * size, size)] for name, part in names.items()}

    def test(self) -> list[tuple[Packed, Tensor]]:
        """All validation stories in their order: each token but the first is predicted once."""
        ids, size = self.parts["validation"].ids, self.recipe.batch_size * self.recipe.block_size
        return [self.batch(ids[i : i + size + 1]) for i in range(0, len(ids) - 1, size)]


@lru_cache(maxsize=4)  # drawn once an epoch
def _shuffled(part: Part, order: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(the stories in the order that two numbers seed, where each ends in the stream of them)"""
    rows = np.random.RandomState(order).permutation(len(part.starts) - 1)
    return rows, np.cumsum(np.diff(part.starts)[rows])


def window(part: Part, order: tuple[int, int], begin: int, end: int) -> np.ndarray:
    """Tokens begin … end − 1 of the shuffled stories."""
    rows, ends = _shuffled(part, order)
    first, last = np.searchsorted(ends, [begin, end - 1], side="right")
    ids = np.concatenate([part.ids[part.starts[r] : part.starts[r + 1]] for r in rows[first : last + 1]])
    skipped = begin - (ends[first - 1] if first else 0)
    return ids[skipped : skipped + end - begin]


def tokenised(source: str) -> tuple[dict[str, Part], Tokenizer]:
    """Both parts and the tokenizer trained on the first; from the cache when this text was tokenised by this very code before."""
    stories = texts(source)
    key = " ".join(map(sha256_of, stories.values()))
    path = build() / "cache" / f"stories-{hashlib.sha256(f'{key} {fingerprint(MADE_BY)}'.encode()).hexdigest()[:24]}.npz"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            parts = {name: Part(arrays[f"{name}.ids"], arrays[f"{name}.starts"], int(arrays[f"{name}.bytes"])) for name in stories}
            tokenizer = _literal(Tokenizer.from_str(arrays["tokenizer"].tobytes().decode()))
    except (OSError, EOFError, ValueError, KeyError, BadZipFile):  # not there yet, or damaged: make it anew
        tokenizer = train_tokenizer(stories["train"])
        parts = {name: Part.of(part, tokenizer) for name, part in stories.items()}
        arrays = {f"{name}.{f}": getattr(part, f) for name, part in parts.items() for f in ("ids", "starts", "bytes")}
        buffer = io.BytesIO()
        np.savez(buffer, tokenizer=np.frombuffer(tokenizer.to_str().encode(), dtype=np.uint8), **arrays)
        write_atomically(path, buffer.getvalue())
    return parts, tokenizer


def data(source: str, recipe: Recipe, crossing: bool = False) -> Stories:
    if recipe.dropout:
        raise RtxError(f"dropout is {recipe.dropout}; the story models have none, as llama2.c by default: leave it at 0.")
    return Stories(*tokenised(source), resolve(source), recipe, crossing)
