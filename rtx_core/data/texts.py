"""From settings to a classification task; and the profile of the data that pages show."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from tokenizers import BertWordPieceTokenizer

from rtx_core.data import files, splits
from rtx_core.data.config import ClassificationData, FilesData
from rtx_core.data.corpora import CORPORA
from rtx_core.data.sources import content_sha256, resolve, sha256_of
from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import bert_vocabulary, tokenize_parts, trained_vocabulary
from rtx_core.errors import RtxError

Config = ClassificationData | FilesData


def loaded(config: Config) -> tuple[splits.Parts, dict]:
    """(train, validation and test as tables of text and label, the facts that are known before tokenising)"""
    if isinstance(config, FilesData):
        return files.parts(config), files.facts(config)
    source = resolve(config.source)
    name = CORPORA[config.corpus].name(source)
    facts = {"name": name, "source": source, "split": config.split, "max_length": config.max_length}
    if config.fraction < 1:
        facts["fraction"] = config.fraction
    if config.length != "all":
        facts |= {"length": config.length, "length_fraction": config.length_fraction}
    return splits.parts(config), facts


def classification(config: Config, batch_size: int, micro_batches: int = 1) -> Classification:
    parts, facts = loaded(config)
    own = isinstance(config, FilesData)
    trained = config.vocabulary == "trained" if own else config.source == "embedded"

    def tokenizer() -> BertWordPieceTokenizer:  # made when asked for: the tokens may come from the cache
        if trained:
            return trained_vocabulary(parts["train"]["text"])
        return bert_vocabulary(files.bert_source() if own else resolve(config.source))

    content = " ".join(content_sha256(frame) for frame in parts.values())
    ready = tokenize_parts(f"{content} {trained}", parts, tokenizer, config.max_length)
    rows, n = 0 if own else config.train_rows, len(ready["train"])
    if rows > n:
        raise RtxError(f"train_rows is {rows:,} of {n:,} training texts: 0 means all.")
    if rows:
        sample = np.random.RandomState(splits.SPLIT_SEED).permutation(n)[:rows]
        ready["train"] = ready["train"].keep(sample)
    facts["sha256"] = sha256_of(tokens.sha256() for tokens in ready.values())
    facts |= {f"n_{part}": len(tokens) for part, tokens in ready.items()}
    classes = config.classes if own else CORPORA[config.corpus].classes
    return Classification(ready, classes, facts, batch_size, micro_batches, tokenizer)


def profile(config: Config) -> dict:
    """Label counts and length histograms of every part, by exact length, so that pages need no data.

    `within_training` counts the texts that are, word for word, a training text or a part of one.
    """
    if isinstance(config, ClassificationData):
        config = config.but(train_rows=0)
    task, (frames, _) = classification(config, batch_size=1), loaded(config)
    described = {}
    for part, frame in frames.items():
        tokens = task.parts[part]
        seen = None if part == "train" else sum(splits.contained(frame["text"], frames["train"]["text"]))
        described[part] = {
            "n": len(frame),
            "labels": np.bincount(tokens.labels, minlength=len(task.classes)).tolist(),
            "words": _histogram(len(text.split()) for text in frame["text"]),
            "tokens": _histogram(tokens.lengths.tolist()),
            "truncated": int((tokens.lengths == config.max_length).sum()),
            "distinct_texts": int(frame["text"].nunique()),
            "within_training": seen,
        }
    return {"classes": list(task.classes), "data": task.facts, "parts": described}


def _histogram(lengths: Iterable[int]) -> dict[str, int]:
    return {str(length): count for length, count in sorted(Counter(lengths).items())}
