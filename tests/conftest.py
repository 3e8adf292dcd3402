"""What every test shares: a home of its own for whatever runs write, no hub, and a tiny dataset."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # no test reaches the network; the libraries read this when they are imported

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

from rtx_core.corpora.dataset import Dataset
from rtx_core.corpora.tokens import Tokens

# The same examples in every run of continuous integration; fresh ones where somebody watches.
hypothesis_settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis_settings.load_profile("ci")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nothing a test writes reaches the repository, and no test finds real data by itself."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    monkeypatch.delenv("RTX_DATA", raising=False)
    return tmp_path


def random_tokens(n: int, seed: int, vocabulary: int = 97) -> Tokens:
    """n texts of 3 to 12 tokens; the label says whether token 7 or token 8 came first, so there is something to learn."""
    random = np.random.RandomState(seed)
    texts = [np.concatenate([[2], random.randint(4, vocabulary, size=random.randint(1, 11)), [3]]) for _ in range(n)]
    labels = random.randint(0, 2, size=n)
    for text, label in zip(texts, labels):
        text[1] = 7 + label
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in texts])])
    return Tokens(np.concatenate(texts).astype(np.int32), offsets.astype(np.int64), labels.astype(np.int64))


@pytest.fixture
def tiny_data() -> Dataset:
    parts = {"train": random_tokens(150, 0), "validation": random_tokens(40, 1), "test": random_tokens(40, 2)}
    return Dataset(**parts, classes=("no", "yes"), facts={})
