"""The report's text preprocessing in its order: case and space, HTML and URLs, repeated punctuation."""

import re
from collections.abc import Iterable

from rtx_core.errors import RtxError

_TAG = re.compile(r"</?[a-z][^<>]*>")
_TAG_OR_COMMENT = re.compile(r"<(?:/?[a-z][^<>]*|!--.*?--)>")
_URL = re.compile(r"(?:https?://|www\.)\S+")
_REPEATED = re.compile(r"([^\w\s<>/]|_)(?:\s?\1)+")  # "!!!", "...", ". . .", but not "</" or "//"
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Lower-case, one space between words, no HTML tags or URLs, punctuation marks never repeated; again until nothing
    changes, as one step can bring another's work to light."""
    while True:
        cleaned = _SPACE.sub(" ", text.lower()).strip()
        head, end, tail = cleaned.rpartition("-->")  # no comment ends later: the tail is not searched for one
        cleaned = _URL.sub(" ", _TAG_OR_COMMENT.sub(" ", head + end) + _TAG.sub(" ", tail))
        cleaned = _SPACE.sub(" ", _REPEATED.sub(r"\1", cleaned)).strip()
        if cleaned == text:
            return cleaned
        text = cleaned


def clean_all(texts: Iterable[object]) -> list[str]:
    """`clean` for a column of texts; a missing, non-string or empty one is an error that names its row."""
    strings = []
    for row, text in enumerate(texts, start=1):
        if not isinstance(text, str) or not text.strip():
            raise RtxError(f"Row {row} holds {text!r:.60} where a text was expected: remove that row.")
        strings.append(text)
    return [clean(text) for text in strings]
