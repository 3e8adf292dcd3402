"""From settings to a classification task; and the profile of the data that pages show."""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
from tokenizers import Tokenizer

from rtx_core.data import files, splits
from rtx_core.data.config import ClassificationData, FilesData
from rtx_core.data.corpora import CORPORA
from rtx_core.data.sources import content_sha256, resolve, sha256_of
from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import Tokens, bert_vocabulary, tokenize_parts, trained_vocabulary
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


def vocabulary(config: Config, training_texts: Callable[[], Iterable[str]]) -> Tokenizer:
    """BERT's for real text; for generated text, and files where BERT's is missing, one trained on them."""
    if isinstance(config, FilesData):
        source = files.bert_source() if config.vocabulary == "bert" else "trained"
    else:
        source = resolve(config.source)
    return (
        trained_vocabulary(training_texts()) if source in ("trained", "embedded") else bert_vocabulary(source)
    )


def classification(config: Config, batch_size: int, micro_batches: int = 1) -> Classification:
    parts, facts = loaded(config)
    ready = _tokens(config, parts)
    train_rows = getattr(config, "train_rows", 0)
    if train_rows > len(ready["train"]):
        raise RtxError(
            f"train_rows is {train_rows:,} of {len(ready['train']):,} training texts: 0 means all."
        )
    if train_rows:
        sample = np.random.RandomState(splits.SPLIT_SEED).permutation(len(ready["train"]))[:train_rows]
        ready["train"] = ready["train"].keep(sample)
    facts["sha256"] = sha256_of(tokens.sha256() for tokens in ready.values())
    facts |= {f"n_{part}": len(tokens) for part, tokens in ready.items()}

    def tokenizer() -> Tokenizer:  # which is made when it is asked for: the tokens may come from the cache
        return vocabulary(config, lambda: parts["train"]["text"])

    classes = config.classes if isinstance(config, FilesData) else CORPORA[config.corpus].classes
    return Classification(ready, classes, facts, batch_size, micro_batches, tokenizer)


def _tokens(config: Config, parts: splits.Parts) -> dict[str, Tokens]:
    trained = (
        getattr(config, "vocabulary", None) == "trained" or getattr(config, "source", None) == "embedded"
    )
    content = " ".join(content_sha256(frame) for frame in parts.values())
    return tokenize_parts(
        f"{content} {trained}",
        parts,
        lambda: vocabulary(config, lambda: parts["train"]["text"]),
        config.max_length,
    )


def profile(config: Config) -> dict:
    """Label counts and length histograms of every part, by exact length, so that pages need no data.

    `within_training` counts the texts that are, word for word, a training text or a part of one.
    """
    if isinstance(config, ClassificationData):
        config = config.but(train_rows=0)
    task = classification(config, batch_size=1)
    frames, _ = loaded(config)
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
