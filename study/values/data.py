"""Counts of the data sets, from `results/data/` and the records of language models."""

import numpy as np

from rtx_core import paths, records
from rtx_core.report.values import Space
from study import paper


def described(part: dict) -> dict:
    """The number of texts; the shares that are positive, that reach the limit of tokens, and that stand `inside` a
    training text (`copies` of them); lengths in words."""
    n, copies = part["n"], part["within_training"] or 0
    lengths = np.repeat([int(length) for length in part["words"]], list(part["words"].values()))
    found = {"n": n, "positive": part["labels"][1] / n, "cut": part["truncated"] / n}
    found["words"] = {"mean": float(lengths.mean()), "median": float(np.median(lengths))}
    return found | {"inside": copies / n, "copies": copies}


def texts() -> Space:
    """`texts.sst2_seeded_128.test.inside`."""
    files = sorted((paths.home() / "results" / "data").glob("*.json"))
    parts = {path.stem: records.read_json(path)["parts"] for path in files}
    return Space({file: {name: described(part) for name, part in each.items()} for file, each in parts.items()})


def language() -> Space:
    """The facts of the running texts: `language.shakespeare.n_train` characters."""
    names = ("shakespeare", "tinystories")
    return Space({name: paper.records(experiment=name)[0]["data"] for name in names})


def left_out() -> int:
    """The phrases of SST-2 that the leak-free split leaves out, as sentences of both validation and test have them."""
    every, kept = (sum(part["n"] for part in parts.values()) for parts in map(counted, ("seeded", "grouped")))
    return every - kept


def counted(split: str) -> dict:
    return records.read_json(paths.home() / "results" / "data" / f"sst2-{split}-128.json")["parts"]


VALUES = {"texts": texts, "language": language, "left_out": left_out}
