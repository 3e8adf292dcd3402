"""Texts become token ids once: WordPiece, laid end to end in one array per split, cached by content."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from rtx_core.data.preprocess import clean_all
from rtx_core.data.sources import REVISIONS, hub_errors, mirror_file, sha256_of, verify
from rtx_core.foreign import InvalidFile, dump_arrays, read_arrays
from rtx_core.paths import build, write_atomically

VOCABULARY = "google-bert/bert-base-uncased"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TRAINED_VOCABULARY = 4096
BATCH_TEXTS = 1000  # texts: an encoding is far larger than the ids that are taken from it


@dataclass(frozen=True)
class Tokens:
    """N tokenised texts: text i is ids[offsets[i]:offsets[i+1]], [CLS] first and [SEP] last."""

    ids: np.ndarray  # (all tokens,) int32
    offsets: np.ndarray  # (N + 1,) int64
    labels: np.ndarray  # (N,) int64

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ids of these rows end to end, their lengths, their labels)."""
        ids = np.concatenate([self.ids[self.offsets[r] : self.offsets[r + 1]] for r in rows])
        return ids, self.offsets[rows + 1] - self.offsets[rows], self.labels[rows]

    def keep(self, rows: np.ndarray) -> "Tokens":
        """Only these rows, in this order."""
        ids, lengths, labels = self.take(rows)
        return Tokens(ids, np.cumsum([0, *lengths]), labels)

    def sha256(self) -> str:
        return sha256_of([self.ids, self.offsets, self.labels])


def bert_vocabulary(source: str) -> BertWordPieceTokenizer:
    """BERT's released uncased WordPiece, from the mirror or the hub."""
    if source == "mirror":
        path = mirror_file("bert-base-uncased/vocab.txt")
    else:
        with hub_errors(f"the vocabulary of {VOCABULARY}"):
            from huggingface_hub import hf_hub_download

            path = Path(hf_hub_download(VOCABULARY, "vocab.txt", revision=REVISIONS[VOCABULARY]))
    verify(f"vocab.txt from the {source}", sha256_of([path.read_bytes()]), VOCABULARY_SHA256)
    return BertWordPieceTokenizer(WordPiece.read_file(str(path)))


def trained_vocabulary(texts: Iterable[str]) -> BertWordPieceTokenizer:
    """WordPieces for these texts: every character, of very many those of frequent words, alone and inside a word,
    and the most frequent words.  The trainer of `tokenizers` breaks ties by hash order, so differently each time."""
    normalize, cut = BertNormalizer(lowercase=True), BertPreTokenizer()
    normal = (normalize.normalize_str(text) for text in clean_all(texts))
    counts = Counter(word for text in normal for word, _ in cut.pre_tokenize_str(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    characters = sorted(list(dict.fromkeys(c for word, _ in ranked for c in word))[: TRAINED_VOCABULARY // 4])
    words = [word for word, n in ranked if n > 1 and len(word) > 1]
    pieces = [*SPECIAL, *characters, *(f"##{c}" for c in characters), *words][:TRAINED_VOCABULARY]
    return BertWordPieceTokenizer({piece: i for i, piece in enumerate(pieces)})


def tokenize(frame: pd.DataFrame, tokenizer: Tokenizer | BertWordPieceTokenizer, max_length: int) -> Tokens:
    """Clean, encode and cut every text at `max_length` tokens, [CLS] and [SEP] included."""
    tokenizer.enable_truncation(max_length)
    texts = clean_all(frame["text"])
    slices = (texts[i : i + BATCH_TEXTS] for i in range(0, len(texts), BATCH_TEXTS))
    encoded = [e.ids for batch in slices for e in tokenizer.encode_batch(batch)]
    ids = np.fromiter(chain.from_iterable(encoded), dtype=np.int32)
    return Tokens(ids, np.cumsum([0, *map(len, encoded)]), frame["label"].to_numpy(dtype=np.int64))


def tokenize_parts(
    key: str, parts: dict[str, pd.DataFrame], tokenizer: Callable[[], BertWordPieceTokenizer], max_length: int
) -> dict[str, Tokens]:
    """Every part tokenised by `tokenizer()`, or from the cache; `key` is what decides the ids."""

    def make() -> dict[str, np.ndarray]:
        encoder = tokenizer()
        tokens = {part: vars(tokenize(frame, encoder, max_length)) for part, frame in parts.items()}
        return {f"{part}.{name}": array for part, arrays in tokens.items() for name, array in arrays.items()}

    arrays = cached("tokens", f"{key} {max_length}", (__file__, clean_all.__code__.co_filename), make)
    names = list(Tokens.__annotations__)
    return {part: Tokens(*(arrays[f"{part}.{name}"] for name in names)) for part in parts}


def cached(kind: str, key: str, files: Iterable[str], make: Callable[[], dict]) -> dict[str, np.ndarray]:
    """`make()`, or what it gave for this key by the same source `files`; done without where no cache can be written."""
    digest = sha256_of([key, *(Path(file).read_bytes() for file in files)])
    path = build() / "cache" / f"{kind}-{digest[:24]}.npz"
    try:
        return read_arrays(path, key=digest)
    except InvalidFile:  # not there yet, or damaged
        arrays = make()
    with suppress(OSError):  # a full or read-only disk
        write_atomically(path, dump_arrays(arrays, digest))
    return arrays
