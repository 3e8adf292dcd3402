"""The record of a run: what a page may show of it.  One JSON file, checked against `record.schema.json`; no torch here."""

import hashlib
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import jsonschema
import numpy as np

from rtx_core.errors import RtxError
from rtx_core.results.code import CLASSIFICATION, current

VERSION = 1  # of the schema


def run_key(config: dict, data_sha256: str, seed: int) -> str:
    """The address of a run by its content: everything that decides its numbers but the code."""
    identity = json.dumps([config, data_sha256, seed], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(Path(__file__).with_name(schema).read_text(encoding="utf-8")))


def check_form(content: object, name: str, schema: str) -> None:
    """An error that names the first thing in which the content differs from the schema, or that its key does not fit it."""
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(content))
    if error is not None:
        raise RtxError(
            f"{name} is no record of schema {VERSION}: at {error.json_path}, {error.message[:160]}; "
            f"restore it from git, or move it away and run the experiment again."
        )
    if content["key"] != run_key(content["config"], content["data"]["sha256"], content["seed"]):
        raise RtxError(f"{name} was altered: its key does not follow from its configuration, data and seed; restore it from git.")


def check(content: object, name: str) -> dict:
    """The content if it is a record, else an error that names the first thing wrong with it."""
    check_form(content, name, "record.schema.json")
    if content["selected"]["step"] not in [row["step"] for row in content["history"]]:
        raise RtxError(f"{name} selects step {content['selected']['step']}, which is not in its history; restore it from git.")
    return content


@dataclass(frozen=True)
class Record:
    """One run, as read from a file.  `record["test"]["accuracy"]` reads the JSON; `path` says where it lies."""

    content: dict
    path: Path

    def __getitem__(self, key: str):
        return self.content[key]

    @property
    def synthetic(self) -> bool:
        return self["data"]["source"] == "embedded"

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """`logits` (n, C) and `labels` (n,) of the test set, in its order, as they lie beside the record."""
        path = self.path.with_suffix(".npz")
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in ("logits", "labels")}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise RtxError(f"{path.name} beside its record cannot be read ({error}); restore it from git.") from error

    @property
    def predictions(self) -> dict[str, np.ndarray]:
        """The arrays, which must be of this very run: they give its accuracy."""
        found = self.arrays
        right = np.equal(found["logits"].argmax(1), found["labels"]) if len(found["logits"]) == len(found["labels"]) else np.zeros(1)
        if abs(right.mean() - self.content.get("test", {}).get("accuracy", right.mean())) > 1e-9:
            name = self.path.with_suffix(".npz").name
            raise RtxError(f"{name} holds the predictions of another run than its record; restore both from git, or make the run again.")
        return found

    @property
    def files(self) -> tuple[str, ...]:
        """The sources in rtx_core that its numbers depend on."""
        return CLASSIFICATION

    def note(self, data_sha256: str | None = None) -> str:
        """What a reader must know before trusting the record as today's: empty when nothing.

        `data_sha256` is the hash of today's data, where it is at hand.
        """
        notes = []
        if not current(self["code"]["fingerprints"], self.files):
            notes.append(f"made by another version of the code (commit {(self['code']['commit'] or 'unknown')[:9]})")
        if data_sha256 not in (None, self["data"]["sha256"]):
            notes.append(f"made on other data ({self['data']['sha256'][:12]}…) than today's ({data_sha256[:12]}…)")
        return " and ".join(notes)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def read_json(path: Path, needs: Sequence[str] = ()) -> dict:
    """A JSON file of `results/`; one that is missing, truncated or lacks what it needs is one clear sentence."""
    name, advice = f"{path.parent.name}/{path.name}", "restore it from git, or move it away and run the experiment again"
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (OSError, ValueError) as error:
        raise RtxError(f"{name} is not readable as JSON ({error}); {advice}.") from error
    if missing := [key for key in needs if not isinstance(content, dict) or key not in content]:
        raise RtxError(f"{name} lacks {', '.join(missing)}; {advice}.")
    return content


def read(path: Path) -> Record:
    """The record in a file, checked."""
    return Record(check(read_json(path), f"{path.parent.name}/{path.name}"), path)
