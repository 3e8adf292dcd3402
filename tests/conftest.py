"""What every test shares: a home of its own for whatever runs write, no hub, a tiny dataset, a tiny mirror and what pages draw."""

import hashlib
import os
import shutil
from dataclasses import replace

os.environ["HF_HUB_OFFLINE"] = "1"  # no test reaches the network; the libraries read this when they are imported

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from factory import SPLITS
from hypothesis import settings as hypothesis_settings

import rtx_core as rtx
from rtx_core.corpora import splits, tokens
from rtx_core.corpora.dataset import Dataset
from rtx_core.corpora.sources import CORPORA, content_sha256
from rtx_core.corpora.tokens import Tokens
from rtx_core.pages import display
from rtx_core.paths import REPOSITORY

pytest.register_assert_rewrite("mirror")  # its failed checks say what they compared, as those in a test do
from mirror import WORDPIECES, tiny_frame

REAL_MIRROR = os.environ.get("RTX_DATA")  # as the tests start: the `home` fixture hides it from each of them

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


@pytest.fixture
def there(tmp_path):
    """A folder of another machine, as it were."""
    return tmp_path / "there"


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


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A whole mirror of 30 + 10 rows in RTX_DATA, with the hashes that the code would then expect."""
    folder = tmp_path / "mirror"
    (folder / "sst2").mkdir(parents=True)
    (folder / "bert-base-uncased").mkdir()
    frames = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    for name, frame in frames.items():
        frame.to_parquet(folder / "sst2" / f"{name}.parquet")
    assignment = ["test"] + ["train"] * 28 + ["validation"] * 6 + ["test"] * 5
    pd.DataFrame({"pool_idx": range(40), "split_a": assignment}).to_parquet(folder / "sst2" / "pooled_splits.parquet")
    monkeypatch.setattr(splits, "PUBLISHED_SHA256", hashlib.sha256("\n".join(assignment).encode()).hexdigest())
    vocab = folder / "bert-base-uncased" / "vocab.txt"
    vocab.write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    contents = {name: content_sha256(frame.rename(columns={"sentence": "text"})) for name, frame in frames.items()}
    monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], contents=contents))
    monkeypatch.setattr(tokens, "VOCABULARY_SHA256", hashlib.sha256(vocab.read_bytes()).hexdigest())
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder


@pytest.fixture
def real_mirror(monkeypatch):
    if not REAL_MIRROR:
        pytest.skip("RTX_DATA names no mirror of the real data")
    monkeypatch.setenv("RTX_DATA", REAL_MIRROR)


@pytest.fixture
def figures(home, monkeypatch):
    """Figures are written under the test's own home."""
    plt.switch_backend("agg")
    monkeypatch.setattr(display, "REPOSITORY", home)
    yield home / "book" / "figures"
    assert plt.get_fignums() == []


@pytest.fixture
def profiles(home):
    """The repository's own profiles."""
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    return rtx.profiles(rtx.settings("sst2", {"source": "hub"}), SPLITS)
