"""Text to tokens for one experiment: load, split, clean, tokenise; and the profile of the data that pages show."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone

import numpy as np

from rtx_core.corpora import sources, splits, tokens
from rtx_core.corpora.containment import contained
from rtx_core.corpora.subsets import subset
from rtx_core.corpora.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.results.code import code


@dataclass(frozen=True)
class Dataset:
    train: Tokens
    validation: Tokens
    test: Tokens
    classes: tuple[str, ...]
    facts: dict  # what the record says of the data: source, name, split, hashes, sizes


def dataset(
    corpus: str, source: str, split: str, max_length: int, train_rows: int = 0,
    fraction: float = 1.0, length: str = "all", length_fraction: float = 0.3,
) -> Dataset:  # fmt: skip
    """The tokenised dataset of an experiment.

    `source` as in `sources.resolve`, `split` as in `splits`, the last three as in `subsets`; `max_length` counts [CLS] and
    [SEP]; `train_rows` > 0 keeps a fixed random sample of that many training rows, for trials.
    """
    if max_length < 3:
        raise RtxError(f"max_length is {max_length}; it counts [CLS] and [SEP], so it must be at least 3.")
    source = sources.resolve(source)
    parts = subset(splits.parts(corpus, source, split), fraction, length, length_fraction)
    content = " ".join(sources.content_sha256(frame) for frame in parts.values())

    def make() -> dict[str, Tokens]:
        tokenizer = tokens.vocabulary(source, list(parts["train"]["text"]))
        return {name: tokens.tokenize(frame, tokenizer, max_length) for name, frame in parts.items()}

    ready = tokens.cached(f"{content} {source == 'embedded'} {max_length}", make)
    if not 0 <= train_rows <= len(ready["train"]):
        raise RtxError(f"train_rows is {train_rows:,}; the training part has {len(ready['train']):,} rows, and 0 means all of them.")
    if train_rows:
        sample = np.random.RandomState(splits.SPLIT_SEED).permutation(len(ready["train"]))[:train_rows]
        ready = ready | {"train": ready["train"].keep(sample)}
    spec = sources.CORPORA[corpus]
    taken = {"fraction": fraction} if fraction < 1 else {}
    taken |= {"length": length, "length_fraction": length_fraction} if length != "all" else {}
    facts = {
        "name": spec.name(source),
        "source": source,
        "split": split,
        "max_length": max_length,
        **taken,
        "sha256": hashlib.sha256("".join(t.sha256() for t in ready.values()).encode()).hexdigest(),
        **{f"n_{name}": len(t) for name, t in ready.items()},
    }
    return Dataset(**ready, classes=spec.classes, facts=facts)


def profile(
    corpus: str, source: str, split: str, max_length: int, fraction: float = 1.0, length: str = "all", length_fraction: float = 0.3
) -> dict:
    """Label counts and length histograms of every part, so that pages need no data: counts by exact length.

    `within_training` counts the texts that are, word for word, a training text or a part of one.
    """
    ready = dataset(corpus, source, split, max_length, 0, fraction, length, length_fraction)
    result = {
        "classes": list(ready.classes), "data": ready.facts, "parts": {},
        "code": code(), "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip
    parts = subset(splits.parts(corpus, sources.resolve(source), split), fraction, length, length_fraction)
    for name, frame in parts.items():
        encoded: Tokens = getattr(ready, name)
        result["parts"][name] = {
            "n": len(frame),
            "labels": np.bincount(encoded.labels, minlength=len(ready.classes)).tolist(),
            "words": _histogram(len(text.split()) for text in frame["text"]),
            "tokens": _histogram(encoded.lengths.tolist()),
            "truncated": int((encoded.lengths == max_length).sum()),
            "distinct_texts": int(frame["text"].nunique()),
            "within_training": None if name == "train" else sum(contained(frame["text"], parts["train"]["text"])),
        }
    return result


def _histogram(lengths) -> dict[str, int]:
    return {str(length): count for length, count in sorted(Counter(lengths).items())}
