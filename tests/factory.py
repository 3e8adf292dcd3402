"""Records made up for tests, what reads the pages made of them, and the machinery shrunk so that a whole run takes a second."""

import re
from collections.abc import Iterable
from dataclasses import asdict, replace

import numpy as np

import rtx_core.evaluation.latency as latency_module
from rtx_core import models
from rtx_core.corpora import sources
from rtx_core.pages import runs as pages_runs
from rtx_core.pages.runs import Runs
from rtx_core.parameters import CLASSIFIERS, Settings, settings
from rtx_core.results import store
from rtx_core.results.code import fingerprint
from rtx_core.results.record import run_key
from rtx_core.training.protocol import Seeds, as_config

N = 200  # test sentences of a made-up record
TOTAL = {"baseline": 25_912_706, "recurrent": 10_972_162, "recurrent-wide": 19_000_000}
SST2 = settings("sst2", {})
SPLITS = ["seeded", "official"]


def tiny(patch, **changes) -> None:
    """Small models (with `changes` of their configuration), corpus and measurement, until `patch` (a MonkeyPatch) is undone."""
    for name in CLASSIFIERS:
        kind, config = models.MODELS[name]
        small = replace(config, vocab_size=4096, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=32, **changes)
        patch.setitem(models.MODELS, name, (kind, small))
    patch.setitem(sources.CORPORA, "sst2", replace(sources.CORPORA["sst2"], embedded_rows={"train": 300, "validation": 60}))
    for name in ("yelp", "imdb", "amazon"):
        patch.setitem(sources.CORPORA, name, replace(sources.CORPORA[name], embedded_rows={"train": 80}))
    small = {name: {"config": asdict(models.MODELS[name][1])} for name in CLASSIFIERS}
    patch.setattr(pages_runs, "architectures", lambda: small)
    patch.setattr(latency_module, "TIMED", 3)
    patch.setattr(latency_module, "WARM_UP", 1)


def predictions(wrong: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """(logits, labels) of N sentences, labels 0 and 1 in turn; the sentences in `wrong` are answered wrongly."""
    labels = np.arange(N) % 2
    guesses = labels.copy()
    guesses[list(wrong)] ^= 1
    return np.eye(2, dtype=np.float32)[guesses] * 3, labels


def content(asked: Settings, model: str = "baseline", seed: int = 0, wrong: Iterable[int] = range(40), **changes) -> dict:
    """A valid record of `asked`, counted by hand from its wrong answers; `changes` replace top-level entries."""
    wrong = set(wrong)
    false_positive = sum(i % 2 == 0 for i in wrong)
    false_negative = len(wrong) - false_positive
    right_positive = N // 2 - false_negative
    config = {"model": pages_runs._model_config(asked, model), "training": as_config(asked.protocol, Seeds.of(seed))}
    source = "hub" if asked.source == "real" else asked.source
    data = {"name": "stanfordnlp/sst2" if source != "embedded" else "embedded movie phrases", "source": source, "split": asked.split,
            "max_length": asked.max_length, "sha256": "d" * 64, "n_train": 1600, "n_validation": N, "n_test": N}
    machine = {"device": "Test CPU", "device_type": "cpu", "threads": 2, "python": "3.11.0", "system": "Linux",
               "packages": {"torch": "2.0", "numpy": "2.0"}, "cuda": None}
    slow = 1 + len(model) / 10
    measured = [{"batch": b, "median_ms": slow * b, "p10_ms": slow * b * 0.9, "p90_ms": slow * b * 1.2, "per_sentence_ms": slow, "batches": 7,
                 "threads": 2} for b in (1, asked.protocol.batch_size)]
    row = {"train_accuracy": 0.75, "validation_accuracy": 0.8, "learning_rate": asked.protocol.learning_rate}
    made = {
        "schema": 1, "experiment": asked.variant, "model": model, "seed": seed,
        "protocol": "reduced" if asked.reduced else "report", "config": config, "data": data,
        "parameters": {"total": TOTAL[model], "non_embedding": TOTAL[model] // 2}, "size_mb": TOTAL[model] * 4 / 2**20,
        "history": [row | {"step": 100, "epoch": 1.0, "train_loss": 0.6, "validation_loss": 0.4321},
                    row | {"step": 200, "epoch": 2.0, "train_loss": 0.3, "validation_loss": 0.5432}],
        "selected": {"step": 100, "validation_loss": 0.4321},
        "test": {"n": N, "loss": 0.5, "accuracy": 1 - len(wrong) / N, "precision": right_positive / (right_positive + false_positive),
                 "recall": right_positive / (N // 2), "f1": 2 * right_positive / (2 * right_positive + len(wrong)), "average": "binary",
                 "confusion": [[N // 2 - false_positive, false_positive], [false_negative, right_positive]]},
        "latency": {"measured": measured, "environment": machine}, "environment": machine,
        "code": {"commit": "c0ffee0123456789", "clean": True, "fingerprints": [fingerprint()]},
        "seconds": 90.0, "peak_memory_mib": 1234.5, "finished": "2024-01-02T03:04:05+00:00",
    } | changes  # fmt: skip
    return {"key": run_key(made["config"], made["data"]["sha256"], made["seed"])} | made


def saved(asked: Settings, model: str = "baseline", seed: int = 0, wrong: Iterable[int] = range(40), **changes):
    """The same, written where the store keeps it (RTX_HOME)."""
    return store.save(content(asked, model, seed, wrong, **changes), *predictions(wrong))


def runs_of(experiment: str = "sst2", wrong: dict[str, Iterable[int]] | None = None, changes: dict | None = None, **given) -> Runs:
    """What a page gets: saved records of every model and seed in `given`, as if found."""
    asked = settings(experiment, given)
    wrong = {"baseline": range(40), "recurrent": range(30, 60)} | (wrong or {})
    records = [saved(asked, model, seed, wrong[model], **(changes or {})) for model in asked.models for seed in asked.seeds]
    return Runs(asked, records, None)


def changed(runs: Runs, model: str, **entries) -> Runs:
    """The same runs with some entries of a model's records replaced."""
    made = [saved(runs.settings, r["model"], r["seed"], range(40), **entries) if r["model"] == model else r for r in runs]
    return Runs(runs.settings, made, runs.data_sha256)


def markdown(shown) -> str:
    return shown.forms["text/markdown"]


def plain(text: str) -> str:
    """MyST with its escapes undone."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
