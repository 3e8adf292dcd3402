"""Counts of the data sets, from `results/data/` and the records of language models."""

import numpy as np

from rtx_core import paths, records
from rtx_core.report.values import Space
from study import paper


def described(part: dict) -> dict:
    """Size, shares of label 0 and 1, lengths in words, share cut at the limit, and of `copies`: texts that stand in a
    training text."""
    n = part["n"]
    lengths = np.repeat([int(length) for length in part["words"]], list(part["words"].values()))
    words = {"mean": float(lengths.mean()), "median": float(np.median(lengths)), "most": int(lengths.max())}
    found = {"n": n, "negative": part["labels"][0] / n, "positive": part["labels"][1] / n, "words": words}
    found["cut"] = part["truncated"] / n
    if part["within_training"] is not None:
        found |= {"inside": part["within_training"] / n, "copies": part["within_training"]}
    return found


def texts() -> Space:
    """`texts.sst2_seeded_128.test.inside`."""
    found = {}
    for path in sorted((paths.home() / "results" / "data").glob("*.json")):
        parts = records.read_json(path)["parts"]
        found[path.stem] = {name: described(part) for name, part in parts.items()}
    return Space(found)


def language() -> Space:
    """The facts of the running texts: `language.shakespeare.n_train` characters."""
    facts = {name: paper.records(experiment=name) for name in ("shakespeare", "tinystories")}
    return Space({name: found[0]["data"] for name, found in facts.items()})


VALUES = {"texts": texts, "language": language}
