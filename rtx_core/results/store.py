"""Where records lie: `results/<experiment>/<model>-seed<k>.json`, test predictions beside them as `.npz`.

Runs on the embedded corpus go to `_build/results/` instead, so synthetic and real numbers cannot meet.
"""

import io
from pathlib import Path

import numpy as np

from rtx_core.errors import RtxError
from rtx_core.paths import build, home, write_atomically, write_json
from rtx_core.results import record
from rtx_core.results.record import Record


def folder(source: str) -> Path:
    return build() / "results" if source == "embedded" else home() / "results"


def path_of(source: str, experiment: str, model: str, seed: int) -> Path:
    return folder(source) / experiment / f"{model}-seed{seed}.json"


def find(source: str, experiment: str, model: str, seed: int) -> Record | None:
    """The record of this name, if there is one; a file that was put under another run's name is an error."""
    path = path_of(source, experiment, model, seed)
    if not path.exists():
        return None
    found = record.read(path)
    if (found["experiment"], found["model"], found["seed"]) != (experiment, model, seed):
        raise RtxError(
            f"{path.parent.name}/{path.name} holds the record of {found['experiment']}, {found['model']}, seed {found['seed']}; "
            f"move it to where it belongs."
        )
    return found


def save(content: dict, logits: np.ndarray, labels: np.ndarray) -> Record:
    """Write predictions, then the record; a record on disk therefore always has its predictions."""
    path = path_of(content["data"]["source"], content["experiment"], content["model"], content["seed"])
    record.check(content, f"{path.parent.name}/{path.name}")
    save_predictions(path.with_suffix(".npz"), logits, labels)
    write_json(path, content)
    return Record(content, path)


def save_predictions(path: Path, logits: np.ndarray, labels: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, logits=logits.astype(np.float32), labels=labels.astype(np.int8))
    write_atomically(path, buffer.getvalue())
