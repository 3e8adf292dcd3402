"""What is measured beside the runs: `results/<kind>/<of>/<name>.json`, test predictions beside it as `.npz`.

kind       of               name                            made by
transfer   sst2-to-yelp     baseline-seed0                  `rtx_core.evaluation.transfer`: trained on one corpus, tested on another
precision  sst2             baseline-seed0-int8             `rtx_core.evaluation.precision`: a trained model in another number format
rounding   sst2             errors (without predictions)    `rtx_core.evaluation.rounding`: how a rounding error grows with depth
attention  sst2             baseline-seed0                  `rtx_core.evaluation.attention`: where [CLS] looks in a sentence
yardstick  sst2             bag-of-words-seed0              `rtx_core.evaluation.bag_of_words`: what word counts alone can do

A measurement reads as a record does, so the same statistics take both.
"""

import hashlib
import json
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from rtx_core.errors import RtxError
from rtx_core.paths import write_json
from rtx_core.results import store
from rtx_core.results.code import CLASSIFICATION, code, fingerprint
from rtx_core.results.record import Record, read_json

VERSION = 1  # of a measurement's entries
NEEDS = ("schema", "kind", "of", "name", "model", "seed", "protocol", "data", "environment", "code", "finished")

# kind -> the files that its numbers depend on
MADE_BY = {
    "transfer": (*CLASSIFICATION, "evaluation/transfer.py"),
    "precision": (*CLASSIFICATION, "evaluation/precision.py"),
    "rounding": (*CLASSIFICATION, "evaluation/rounding.py"),
    "attention": (*CLASSIFICATION, "evaluation/attention.py"),
    "judge": ("evaluation/judge.py",),
    "initial": (
        "models/control.py", "models/frailt.py", "models/three_part.py", "models/relaxed.py", "models/layers.py", "models/packed.py",
        "models/cross_entropy.py", "corpora/stories.py", "evaluation/initial.py",
    ),
    "yardstick": ("evaluation/bag_of_words.py", "evaluation/metrics.py"),
}


class Measurement(Record):
    @property
    def files(self) -> tuple[str, ...]:
        return MADE_BY[self["kind"]]


def made_by(kind: str) -> dict:
    """The `code` entry; ask for it before measuring, as files may change meanwhile."""
    return code() | {"fingerprints": [fingerprint(MADE_BY[kind])]}


def texts_sha256(samples: list[dict]) -> str:
    """Of the texts that were graded: other texts have no scores yet."""
    return hashlib.sha256(json.dumps([[sample["prompt"], sample["text"]] for sample in samples]).encode()).hexdigest()


def path_of(source: str, kind: str, of: str, name: str) -> Path:
    return store.folder(source) / kind / of / f"{name}.json"


def read(path: Path) -> Measurement:
    content = read_json(path, needs=NEEDS)
    if (content["kind"], content["of"], content["name"]) != (*path.parts[-3:-1], path.stem):
        raise RtxError(
            f"{'/'.join(path.parts[-3:])} holds the measurement {content['kind']}/{content['of']}/{content['name']}; move it to where it belongs."
        )
    return Measurement(content, path)


def find(source: str, kind: str, of: str, name: str) -> Measurement | None:
    path = path_of(source, kind, of, name)
    return read(path) if path.exists() else None


def every(source: str, kind: str, of: str = "*") -> list[Measurement]:
    """All measurements of a kind, in the order of their names."""
    return [read(path) for path in sorted((store.folder(source) / kind).glob(f"{of}/[!.]*.json"))]


def save(content: dict, logits: np.ndarray | None = None, labels: np.ndarray | None = None) -> Measurement:
    """Write predictions, where there are any, then the measurement, dated now."""
    content = {"schema": VERSION, **content, "finished": datetime.now(timezone.utc).isoformat(timespec="seconds")}
    path = path_of(content["data"]["source"], content["kind"], content["of"], content["name"])
    if logits is not None:
        store.save_predictions(path.with_suffix(".npz"), logits, labels)
    write_json(path, content)
    return read(path)
