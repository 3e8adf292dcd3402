"""What every test shares: a home of its own for whatever runs write, no hub, no real data by chance, small models."""

import os
from dataclasses import replace

os.environ["HF_HUB_OFFLINE"] = (
    "1"  # no test reaches the network; the libraries read this when they are imported
)

import numpy as np
import pytest
import torch
from hypothesis import settings as hypothesis_settings

from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import Tokens
from rtx_core.models import registry

REAL_MIRROR = os.environ.get("RTX_DATA")  # as the tests start: the `home` fixture hides it from each of them
SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}

# The same examples in every run of continuous integration; fresh ones where somebody watches.
hypothesis_settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis_settings.load_profile("ci")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nothing a test writes reaches the repository, and no test finds real data by itself."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    monkeypatch.delenv("RTX_DATA", raising=False)
    monkeypatch.delenv("RTX_BOOK", raising=False)  # a book that a test built leaves it behind
    return tmp_path


@pytest.fixture
def real_mirror(monkeypatch):
    if not REAL_MIRROR:
        pytest.skip("RTX_DATA names no mirror of the real data")
    monkeypatch.setenv("RTX_DATA", REAL_MIRROR)


@pytest.fixture(autouse=True)
def one_thread():
    """Models this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Every model of the package small, until `patch` is undone."""
    for name, model in list(registry.MODELS.items()):
        if isinstance(model.kind, str):
            patch.setitem(registry.MODELS, name, replace(model, config=model.config.but(**SMALL)))


@pytest.fixture
def small_models(monkeypatch):
    shrink(monkeypatch)


def random_tokens(n: int, seed: int, vocabulary: int = 97) -> Tokens:
    """n texts of 3 to 12 tokens; the label says whether token 7 or token 8 came first, so there is something to learn."""
    random = np.random.RandomState(seed)
    sizes = random.randint(1, 11, size=n)
    texts = [np.concatenate([[2], random.randint(4, vocabulary, size=size), [3]]) for size in sizes]
    labels = random.randint(0, 2, size=n)
    for text, label in zip(texts, labels):
        text[1] = 7 + label
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in texts])])
    return Tokens(np.concatenate(texts).astype(np.int32), offsets.astype(np.int64), labels.astype(np.int64))


@pytest.fixture
def tiny_task() -> Classification:
    """150 training texts in steps of 8."""
    parts = {"train": random_tokens(150, 0), "validation": random_tokens(40, 1), "test": random_tokens(40, 2)}
    return Classification(parts, ("no", "yes"), {"sha256": "d" * 64}, batch_size=8)
