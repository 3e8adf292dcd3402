"""Texts become token ids once: WordPiece, laid end to end in one array per split, cached by content."""

import hashlib
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from rtx_core.corpora.preprocess import clean_all
from rtx_core.corpora.sources import from_hub, mirror_file
from rtx_core.errors import RtxError
from rtx_core.paths import build, write_atomically
from rtx_core.results.code import fingerprint

VOCABULARY = "google-bert/bert-base-uncased"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MADE_BY = ("corpora/preprocess.py", "corpora/tokens.py")  # cached tokens hold as long as these files stay the same
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


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
        return Tokens(ids, np.concatenate([[0], np.cumsum(lengths)]), labels)

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for array in (self.ids, self.offsets, self.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def vocabulary(source: str, texts: list[str]) -> Tokenizer:
    """BERT's released uncased WordPiece for real text; a WordPiece trained on `texts` for the embedded corpus."""
    if source == "embedded":
        return _trained(texts)
    if source == "mirror":
        path = mirror_file("bert-base-uncased/vocab.txt")
    else:
        from huggingface_hub import hf_hub_download

        path = Path(from_hub(lambda: hf_hub_download(VOCABULARY, "vocab.txt"), f"the vocabulary of {VOCABULARY}"))
    if (got := hashlib.sha256(path.read_bytes()).hexdigest()) != VOCABULARY_SHA256:
        raise RtxError(
            f"vocab.txt from the {source} has SHA-256 {got[:12]}…, expected {VOCABULARY_SHA256[:12]}… "
            f"({VOCABULARY}); fetch it again."
        )
    return _finished(Tokenizer(WordPiece(WordPiece.read_file(str(path)), unk_token="[UNK]")))


def _trained(texts: list[str], size: int = 4096) -> Tokenizer:
    """WordPieces for generated text: every character, alone and inside a word, and the most frequent words.

    The library's own trainer breaks ties by hash order, so it gives another vocabulary in every process.
    """
    normalize, cut = BertNormalizer(lowercase=True), BertPreTokenizer()
    counts = Counter(word for text in clean_all(texts) for word, _ in cut.pre_tokenize_str(normalize.normalize_str(text)))
    characters = sorted({c for word in counts for c in word})
    words = [word for word, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n > 1 and len(word) > 1]
    pieces = [*SPECIAL, *characters, *(f"##{c}" for c in characters), *words][:size]
    return _finished(Tokenizer(WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")))


def _finished(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(lowercase=True), BertPreTokenizer()
    cls, sep = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    return tokenizer


def tokenize(frame: pd.DataFrame, tokenizer: Tokenizer, max_length: int) -> Tokens:
    """Clean, encode and cut every text at `max_length` tokens, [CLS] and [SEP] included."""
    tokenizer.enable_truncation(max_length)
    encoded = [e.ids for e in tokenizer.encode_batch(clean_all(frame["text"]))]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(ids) for ids in encoded], out=offsets[1:])
    ids = np.fromiter((i for row in encoded for i in row), dtype=np.int32, count=int(offsets[-1]))
    return Tokens(ids, offsets, frame["label"].to_numpy(dtype=np.int64))


def cached(key: str, make) -> dict[str, Tokens]:
    """`make()`'s splits, from the cache when this key (a content hash) was made by this very code before."""
    name = hashlib.sha256(f"{key} {fingerprint(MADE_BY)}".encode()).hexdigest()[:24]
    path = build() / "cache" / f"tokens-{name}.npz"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            parts = dict.fromkeys(k.split(".")[0] for k in arrays)
            return {p: Tokens(*(arrays[f"{p}.{f}"] for f in ("ids", "offsets", "labels"))) for p in parts}
    except (OSError, EOFError, ValueError, KeyError, BadZipFile):  # not there yet, or damaged: make it anew
        splits = make()
    buffer = io.BytesIO()
    np.savez(buffer, **{f"{p}.{f}": getattr(t, f) for p, t in splits.items() for f in ("ids", "offsets", "labels")})
    write_atomically(path, buffer.getvalue())
    return splits
