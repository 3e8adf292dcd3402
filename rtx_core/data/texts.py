"""From settings to a classification task; and the profile of the data that pages show."""

from collections import Counter
from collections.abc import Iterable
from importlib import import_module

import numpy as np
from tokenizers import BertWordPieceTokenizer

from rtx_core.data import splits
from rtx_core.data.config import ClassificationData, FilesData
from rtx_core.data.sources import content_sha256, sha256_of
from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import bert_vocabulary, tokenize_parts, trained_vocabulary
from rtx_core.errors import RtxError


def classification(config: ClassificationData | FilesData, batch_size: int, micro_batches: int = 1) -> Classification:
    reader = import_module(config.reader)
    parts, facts, source = reader.parts(config), reader.facts(config), reader.vocabulary_source(config)

    def tokenizer() -> BertWordPieceTokenizer:  # made when asked for: the tokens may come from the cache
        return bert_vocabulary(source) if source else trained_vocabulary(parts["train"]["text"])

    content = " ".join(content_sha256(frame) for frame in parts.values())
    ready = tokenize_parts(f"{content} {source is None}", parts, tokenizer, config.max_length)
    for part, texts in ready.items():
        rows, n = getattr(config, f"{part}_rows", 0), len(texts)
        if rows > n:
            raise RtxError(f"{part}_rows is {rows:,} of {n:,} {part} texts: 0 means all.")
        if rows:
            ready[part] = texts.keep(np.random.RandomState(splits.SPLIT_SEED).permutation(n)[:rows])
    facts["sha256"] = sha256_of(tokens.sha256() for tokens in ready.values())
    facts |= {f"n_{part}": len(tokens) for part, tokens in ready.items()}
    return Classification(ready, config.classes, facts, batch_size, micro_batches, tokenizer)


def profile(config: ClassificationData | FilesData) -> dict:
    """Of every part label counts, histograms of lengths and, as `within_training`, how many texts are, word for word, a
    training text or a part of one; so pages need no data."""
    config = config.replace(**{f"{part}_rows": 0 for part in splits.PARTS if getattr(config, f"{part}_rows", 0)})
    task, frames = classification(config, batch_size=1), import_module(config.reader).parts(config)
    profiles = {}
    for part, frame in frames.items():
        tokens = task.parts[part]
        repeated = None if part == "train" else sum(splits.contained(frame["text"], frames["train"]["text"]))
        profiles[part] = {
            "n": len(frame),
            "labels": np.bincount(tokens.labels, minlength=len(config.classes)).tolist(),
            "words": _histogram(len(text.split()) for text in frame["text"]),
            "tokens": _histogram(tokens.lengths.tolist()),
            "truncated": int((tokens.lengths == config.max_length).sum()),
            "distinct_texts": int(frame["text"].nunique()),
            "within_training": repeated,
        }
    return {"classes": list(config.classes), "data": task.facts, "parts": profiles}


def _histogram(lengths: Iterable[int]) -> dict[str, int]:
    return {str(length): count for length, count in sorted(Counter(lengths).items())}
