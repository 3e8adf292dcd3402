"""What every test shares: a home of its own for whatever runs write, no hub, no real data by chance, small models."""

import hashlib
import multiprocessing
import os
import string
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

os.environ["HF_HUB_OFFLINE"] = "1"  # no test reaches the network; libraries read this as they are imported
os.environ["OMP_NUM_THREADS"] = "1"  # models this small are slower on several threads, in what tests start, too

import kernels
import numpy as np
import pandas as pd
import pytest
import torch

from rtx_core.data import characters, splits, stories, tokens
from rtx_core.data.corpora import CORPORA, Corpus
from rtx_core.data.sources import content_sha256
from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY

REAL_MIRROR = os.environ.get("RTX_DATA")  # as the tests start: the `home` fixture hides it from each of them
CPU = torch.device("cpu")
NO_AUTOCAST = torch.autocast("cpu", enabled=False)
LETTERS = string.ascii_lowercase
WORDPIECES = [*tokens.SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), ".", "good", "bad", "film"]
SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
SHORT = {  # what is measured of a run once, not 200 times, and little text
    "rtx_core.evaluate.latency.WARM_UP": 1,
    "rtx_core.evaluate.latency.TIMED": 4,
    "rtx_core.evaluate.generation.SAMPLED": 20,
    "rtx_core.evaluate.stories.PROMPTS": 2,
    "rtx_core.evaluate.stories.LONGEST": 8,
    "rtx_core.evaluate.stories.LENGTHS": (4, 8),
    "rtx_core.data.characters.EMBEDDED_CHARACTERS": 3000,
    "rtx_core.data.stories.EMBEDDED": {"train": 500, "validation": 100},
}
for module, generator in ((characters, "play"), (stories, "tales")):  # the same texts for every test that reads some
    setattr(module, generator, cache(getattr(module, generator)))
SERVER = multiprocessing.get_context("forkserver")  # what tests start are copies of one that has imported torch
PACKAGE = ["rtx_core.experiments.run", "rtx_core.train.trainer", "rtx_core.report.figures", "tests.warm"]
LIBRARIES = ["torch._dynamo", "pytest", "IPython", "seaborn", "sklearn.metrics", *kernels.IMPORTED]
SERVER.set_forkserver_preload([*LIBRARIES, *PACKAGE])
kernels.import_first = lambda modules: None  # a book that a test builds takes what is imported here


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nothing a test writes reaches the repository, and no test finds real data by itself."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    monkeypatch.delenv("RTX_DATA", raising=False)
    for left_behind in ("RTX_BOOK", "MPLCONFIGDIR"):  # by a book that a test built
        monkeypatch.delenv(left_behind, raising=False)
    return tmp_path


@pytest.fixture
def kernel(home, monkeypatch):
    """Kernels and commands that a test starts are of this environment and find the package; the folder of IPython."""
    monkeypatch.setattr("jupyter_client.AsyncKernelManager", kernels.WarmManager)  # nbclient's
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests"))))
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}")
    return home / "ipython"


@pytest.fixture
def real_mirror(monkeypatch):
    if not REAL_MIRROR:
        pytest.skip("RTX_DATA names no mirror of the real data")
    monkeypatch.setenv("RTX_DATA", REAL_MIRROR)


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Until `patch` is undone: every model small, an eighth of the generated texts, short measurements."""
    for name, model in list(registry.MODELS.items()):
        if isinstance(model.kind, str):
            patch.setitem(registry.MODELS, name, replace(model, config=model.config.replace(**SMALL)))
    for name, corpus in list(CORPORA.items()):
        if isinstance(corpus, Corpus):
            rows = {split: n // 8 for split, n in corpus.embedded_rows.items()}
            patch.setitem(CORPORA, name, replace(corpus, embedded_rows=rows))
    for name, value in SHORT.items():
        patch.setattr(name, value)


@pytest.fixture
def small_models(monkeypatch):
    shrink(monkeypatch)


def random_tokens(n: int, seed: int, vocabulary: int = 97) -> Tokens:
    """n texts of 3 to 12 tokens; the label, which can be learned, says whether token 7 or token 8 came first."""
    random = np.random.RandomState(seed)
    texts = [np.array([2, *random.randint(4, vocabulary, size=n), 3]) for n in random.randint(1, 11, size=n)]
    labels = random.randint(0, 2, size=n)
    for text, label in zip(texts, labels):
        text[1] = 7 + label
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in texts])])
    return Tokens(np.concatenate(texts).astype(np.int32), offsets.astype(np.int64), labels.astype(np.int64))


def small_task(n: int = 50, batch_size: int = 16, micro_batches: int = 1) -> Classification:
    parts = {"train": random_tokens(n, 0), "validation": random_tokens(40, 1), "test": random_tokens(41, 2)}
    return Classification(parts, ("no", "yes"), {}, batch_size, micro_batches)


@pytest.fixture
def tiny_task() -> Classification:
    return small_task(150, 8)


@contextmanager
def refused(*facts: object):
    """An error of one sentence that names these facts."""
    with pytest.raises(RtxError) as error:
        yield
    message = str(error.value)
    assert "\n" not in message and message.endswith((".", "?")) and ". " not in message, message
    assert len(message) < 600, message
    assert [fact for fact in facts if str(fact) not in message] == [], message


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
    texts = [" ".join(random.choice(["good", "Bad", "film", "ab"], random.randint(1, 7))) + " ." for _ in range(n)]
    return pd.DataFrame({"sentence": texts, "label": random.randint(0, 2, size=n)})


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A whole mirror of 30 + 10 rows in RTX_DATA, with the hashes that the code then expects."""
    folder = tmp_path / "mirror"
    for inner in ("sst2", "bert-base-uncased"):
        (folder / inner).mkdir(parents=True)
    frames = {"train": tiny_frame(30, 0), "validation": tiny_frame(10, 1)}
    for name, frame in frames.items():
        frame.to_parquet(folder / "sst2" / f"{name}.parquet")
    assignment = ["test"] + ["train"] * 28 + ["validation"] * 6 + ["test"] * 5
    pd.DataFrame({"split_a": assignment}).to_parquet(folder / "sst2" / "pooled_splits.parquet")
    monkeypatch.setattr(splits, "PUBLISHED_SHA256", hashlib.sha256("\n".join(assignment).encode()).hexdigest())
    vocabulary = folder / "bert-base-uncased" / "vocab.txt"
    vocabulary.write_text("\n".join(WORDPIECES) + "\n", encoding="utf-8")
    monkeypatch.setattr(tokens, "VOCABULARY_SHA256", hashlib.sha256(vocabulary.read_bytes()).hexdigest())
    contents = {k: content_sha256(frame.rename(columns={"sentence": "text"})) for k, frame in frames.items()}
    monkeypatch.setitem(CORPORA, "sst2", replace(CORPORA["sst2"], contents=contents))
    monkeypatch.setenv("RTX_DATA", str(folder))
    return folder


@pytest.fixture(autouse=True)
def closed_figures():
    """Figures that a test leaves open do not count for the next, whichever that is."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(autouse=True)
def registered_models():
    """What a test registers is known to no other."""
    before = dict(registry.MODELS)
    yield
    registry.MODELS.clear()
    registry.MODELS.update(before)
