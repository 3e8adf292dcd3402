"""What the tests of data share: a tiny mirror in the hub's schema."""

import hashlib
import string
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from rtx_core.data import splits, tokens
from rtx_core.data.corpora import CORPORA
from rtx_core.data.sources import content_sha256

CPU = torch.device("cpu")
NO_AUTOCAST = torch.autocast("cpu", enabled=False)
LETTERS = string.ascii_lowercase
WORDPIECES = [*tokens.SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), ".", "good", "bad", "film"]


def gradient(task, model, step: int) -> tuple[list, torch.Tensor]:
    """(gradients, sums) of a step."""
    model.zero_grad()
    sums = 0.0
    for inputs, targets in task.step(0, step):
        objective, seen = task.loss(model, inputs, targets, task.examples(step))
        objective.backward()
        sums = sums + seen
    return [p.grad.clone() for p in model.parameters()], sums


def tiny_frame(n: int, seed: int) -> pd.DataFrame:
    random = np.random.RandomState(seed)
    words = ["good", "Bad", "film", "ab"]
    texts = [" ".join(random.choice(words, size=random.randint(1, 7))) + " ." for _ in range(n)]
    return pd.DataFrame({"sentence": texts, "label": random.randint(0, 2, size=n)})


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A whole mirror of 30 + 10 rows in RTX_DATA, with the hashes that the code then expects."""
    folder = tmp_path / "mirror"
    (folder / "sst2").mkdir(parents=True)
    (folder / "bert-base-uncased").mkdir()
    frames = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    for name, frame in frames.items():
        frame.to_parquet(folder / "sst2" / f"{name}.parquet")
    assignment = ["test"] + ["train"] * 28 + ["validation"] * 6 + ["test"] * 5
    table = pd.DataFrame({"pool_idx": range(40), "split_a": assignment})
    table.to_parquet(folder / "sst2" / "pooled_splits.parquet")
    sha256 = hashlib.sha256("\n".join(assignment).encode()).hexdigest()
    monkeypatch.setattr(splits, "PUBLISHED_SHA256", sha256)
    vocabulary = folder / "bert-base-uncased" / "vocab.txt"
    vocabulary.write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    monkeypatch.setattr(tokens, "VOCABULARY_SHA256", hashlib.sha256(vocabulary.read_bytes()).hexdigest())
    contents = {k: content_sha256(frame.rename(columns={"sentence": "text"})) for k, frame in frames.items()}
    monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], contents=contents))
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder
