"""What runs read of text, as arrays: made where the texts are, read where they are not.

A classifier's run reads what `dataset` gives it, TinyStories' runs what `tokenised` does, Shakespeare's the text itself, whose
tokens are its characters.
"""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from rtx_core import run
from rtx_core.corpora import characters, stories
from rtx_core.corpora.dataset import Dataset, dataset
from rtx_core.corpora.sources import resolve
from rtx_core.corpora.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.parameters import Settings

PARTS = ("train", "validation", "test")


def of(settings: Settings | LanguageSettings) -> tuple[str, Callable[[], bytes]]:
    """(name in the bundle, content) of what a run with these settings reads."""
    if settings.experiment not in LANGUAGE:
        asked = settings.data | {"source": resolve(settings.source)}
        return _name("dataset", **asked), lambda: _dataset(dataset(**asked))
    source = resolve(settings.source)
    if LANGUAGE[settings.experiment].corpus == "characters":
        return _name("characters", source=source), lambda: _saved(text=_bytes(characters.text(source)))
    return _name("stories", source=source), lambda: _stories(*stories.tokenised(source))


def install(root: Path) -> None:
    """From here on the runs of this process read what was carried and no text."""

    def carried(kind: str, **asked: object) -> dict[str, np.ndarray]:
        path = root / _name(kind, **asked)
        if not path.exists():
            raise RtxError(f"The bundle holds no {kind} for {json.dumps(asked)}; pack that run too.")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)

    run.dataset = lambda **asked: _read_dataset(carried("dataset", **asked))
    stories.tokenised = lambda source: _read_stories(carried("stories", source=resolve(source)))
    characters.text = lambda source: carried("characters", source=resolve(source))["text"].tobytes().decode()


def _name(kind: str, **asked: object) -> str:
    return f"data/{kind}-{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]}.npz"


def _saved(**arrays: np.ndarray) -> bytes:
    """Compressed, in the smallest type that holds the numbers."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: array.astype(np.min_scalar_type(array.max())) for name, array in arrays.items()})
    return buffer.getvalue()


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _dataset(data: Dataset) -> bytes:
    arrays = {"about": _bytes(json.dumps({"classes": data.classes, "facts": data.facts}))}
    for part in PARTS:
        tokens: Tokens = getattr(data, part)
        arrays |= {f"{part}.ids": tokens.ids, f"{part}.lengths": tokens.lengths, f"{part}.labels": tokens.labels}
    return _saved(**arrays)


def _read_dataset(arrays: dict[str, np.ndarray]) -> Dataset:
    about, parts = json.loads(arrays["about"].tobytes()), {}
    for part in PARTS:
        ids, lengths, labels = (arrays[f"{part}.{name}"] for name in ("ids", "lengths", "labels"))
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        parts[part] = Tokens(ids.astype(np.int32), offsets, labels.astype(np.int64))
    if hashlib.sha256("".join(t.sha256() for t in parts.values()).encode()).hexdigest() != about["facts"]["sha256"]:
        raise RtxError(f"The carried tokens of {about['facts']['name']} have not the hash of those that were packed; pack them anew.")
    return Dataset(**parts, classes=tuple(about["classes"]), facts=about["facts"])


def _stories(parts: dict[str, stories.Part], tokenizer: Tokenizer) -> bytes:
    arrays = {"tokenizer": _bytes(tokenizer.to_str())}
    for name, part in parts.items():
        arrays |= {f"{name}.ids": part.ids, f"{name}.starts": part.starts, f"{name}.bytes": np.array(part.bytes)}
    return _saved(**arrays)


def _read_stories(arrays: dict[str, np.ndarray]) -> tuple[dict[str, stories.Part], Tokenizer]:
    parts = {
        name: stories.Part(arrays[f"{name}.ids"].astype(np.uint16), arrays[f"{name}.starts"].astype(np.int64), int(arrays[f"{name}.bytes"]))
        for name in ("train", "validation")
    }
    tokenizer = Tokenizer.from_str(arrays["tokenizer"].tobytes().decode())
    tokenizer.encode_special_tokens = True  # which the saved form forgets (see `stories`)
    return parts, tokenizer
