"""Small records for the tests of `report`, without files: they answer as those of `rtx_core.records` do."""

from pathlib import Path

import numpy as np

from rtx_core.metrics import classification_metrics

N = 200
LABELS = np.arange(N) % 2


class Record(dict):
    """A record of a two-class model that is wrong on the texts of these numbers."""

    synthetic = False

    @property
    def path(self) -> Path:
        return Path("results", self["name"], f"{self['model']}-seed{self['seed']}.json")

    @property
    def predictions(self) -> dict[str, np.ndarray]:
        return {"logits": self["logits"], "labels": self["labels"]}

    def stale_reason(self) -> str:
        return self.get("stale", "")


def record(
    model: str = "baseline", seed: int = 0, wrong=(), *, name: str = "sst2", budget: str = "full", **changes
) -> Record:
    guesses = LABELS.copy()
    guesses[list(wrong)] = 1 - guesses[list(wrong)]
    scores = 2.0 * guesses - 1
    logits = np.stack([-scores, scores], 1) + 0.01 * np.linspace(-1, 1, N)[:, None] * [[-1, 1]]
    environment = {"device": "A | machine", "device_type": "cpu", "threads": 2}
    times = {"p10_ms": 8.0, "p90_ms": 12.0, "median_ms": 10.0, "per_sentence_ms": 10.0 / 16, "batch": 16}
    row = {"train_loss": 0.1, "train_accuracy": 0.5, "validation_loss": 0.2, "validation_accuracy": 0.6}
    data = {"name": "some texts", "source": "hub", "split": "seeded", "sha256": "a" * 64, "n_train": 500, "n_test": N}
    content = {"name": name, "model": model, "seed": seed, "budget": budget, "data": data}
    content |= {
        "config": {"data": {"split": "seeded", "length": "all", "length_fraction": 0.3, "max_length": 128}},
        "parameters": {"total": 1000 if model == "baseline" else 400},
        "size_mb": 4.0,
        "history": [row | {"step": step, "epoch": step / 10} for step in (10, 20)],
        "selected": {"step": 20, "validation_loss": 0.1},
        "test": classification_metrics(logits, LABELS),
        "latency": {"measured": [times, times], "environment": environment},
        "environment": environment,
        "code": {"commit": "0123456789abcdef", "clean": True},
        "seconds": 90.0,
        "finished": "2026-11-21T02:55:56+00:00",
        "logits": logits,
        "labels": LABELS,
    }
    return Record(content | changes)
