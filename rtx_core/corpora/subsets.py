"""Subsets of a split corpus: a stratified part of the training texts, or the shortest or longest texts of every part."""

import numpy as np
import pandas as pd

from rtx_core.errors import RtxError, unknown

LENGTHS = ("all", "short", "long")
SUBSET_SEED = 0  # of the permutation; RandomState's stream is frozen across NumPy versions


def check(fraction: float, length: str, length_fraction: float) -> None:
    """The values that a subset can have; anything else is one sentence."""
    if length not in LENGTHS:
        raise unknown("length", length, LENGTHS)
    for name, value in (("fraction", fraction), ("length_fraction", length_fraction)):
        if not 0 < value <= 1:
            raise RtxError(f"{name} is {value!r}; it is a share of the texts, above 0 and at most 1.")


def subset(parts: dict[str, pd.DataFrame], fraction: float, length: str, length_fraction: float) -> dict[str, pd.DataFrame]:
    """`parts` cut down; lengths come first, so that `fraction` is of the short or long training texts."""
    check(fraction, length, length_fraction)
    if length != "all":
        parts = {name: by_length(frame, length, length_fraction) for name, frame in parts.items()}
    if fraction < 1:
        parts = parts | {"train": stratified(parts["train"], fraction)}
    for name, frame in parts.items():
        if frame.empty:
            raise RtxError(f"The subset leaves no text in the part {name}: fraction {fraction:g}, length {length}; choose larger shares.")
    return parts


def stratified(frame: pd.DataFrame, fraction: float) -> pd.DataFrame:
    """This share of the rows with the labels in proportion, in their order; a larger share holds every smaller one.

    The rows, permuted, are ranked by how far through their own label they stand, and the first ones are kept.
    """
    permuted = frame.iloc[np.random.RandomState(SUBSET_SEED).permutation(len(frame))]
    of_label = permuted.groupby("label")["label"]
    rank = (of_label.cumcount() + 0.5) / of_label.transform("size")
    kept = rank.sort_values(kind="stable").index[: round(fraction * len(frame))]
    return frame.loc[np.sort(kept)].reset_index(drop=True)


def by_length(frame: pd.DataFrame, length: str, fraction: float) -> pd.DataFrame:
    """The shortest or longest texts by words between white space, in their order; among equals the first rows."""
    words = frame["text"].str.split().str.len()
    ranked = words.sort_values(kind="stable", ascending=length == "short").index
    return frame.loc[np.sort(ranked[: int(fraction * len(frame))])].reset_index(drop=True)
