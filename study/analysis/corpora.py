"""What was counted of the parts of a data set: labels, lengths, and texts that stand inside a training text."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def inside(part: dict) -> float:
    """The share of texts that stand, word for word, in a training text."""
    return (part["within_training"] or 0) / part["n"]


def positive(part: dict) -> float:
    """The share of texts of class 1."""
    return part["labels"][1] / part["n"]


def each_length(part: dict, unit: str = "words") -> np.ndarray:
    """Of each text its length, ascending."""
    return np.repeat([int(length) for length in part[unit]], list(part[unit].values()))


def furthest_label(parts: Mapping[str, dict], stated: Mapping[str, Any]) -> float:
    """The largest distance of a part's share of a label from the percentages that are stated of it, in points."""
    shares = ((100 * np.array(parts[part]["labels"]) / parts[part]["n"], percent) for part, percent in stated.items())
    return max(float(abs(share - percent).max()) for share, percent in shares)


def guiraud(distinct: int, base_distinct: int, part: dict, base: dict) -> float:
    """Guiraud's index of one part over another's: distinct tokens by the root of all, as longer texts have more."""
    tokens, base_tokens = (each_length(texts, "tokens").sum() for texts in (part, base))
    return float(distinct / base_distinct / np.sqrt(tokens / base_tokens))
