"""Records: one JSON file a run, `results/<name>/<model>-seed<k>.json`, its test predictions beside it; and all of them as one
table.

Runs on generated text lie in `_build/results/` instead, so synthetic and real numbers cannot meet.  What is measured
beside the runs lies in `results/<kind>/<of>/<name>.json` and reads the same way:

transfer      trained on one corpus, tested on another          precision   a trained model in another number format
rounding      how a rounding error grows with depth             attention   where [CLS] looks in a sentence
yardstick     what word counts alone can do                     ngrams      what counted pairs and triples predict
initial       losses before training, over many seeds           judge       stories graded by a language model
audits        recorded runs that were trained again             demo        a trained model as the page Try it runs it
quantized     a trained looped model with its layers rounded
"""

import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtx_core import code
from rtx_core.errors import RtxError
from rtx_core.metrics import classification_metrics
from rtx_core.models import registry
from rtx_core.paths import build, home, write_atomically, write_json

VERSION = 2  # of the schema
KINDS = (
    "transfer",
    "precision",
    "rounding",
    "quantized",
    "attention",
    "yardstick",
    "ngrams",
    "initial",
    "judge",
    "audits",
    "demo",
)
NO_RUNS = (*KINDS, "data", "benchmarks")  # folders of `results/` that hold no runs
DECIDED_BY_DATA = ("num_labels", "vocab_size", "block_size")  # fields of a model's configuration
RESTORE = "restore it from git, or move it away and run the experiment again"


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class _Config(_Part):
    architecture: str
    model: dict[str, Any]
    data: dict[str, Any]
    train: dict[str, Any]


class _Parameters(_Part):
    total: int
    non_embedding: int


class _Selected(_Part):
    step: int
    validation_loss: float


class _Code(_Part):
    commit: str | None
    clean: bool
    hashes: list[str] = Field(min_length=1)


class _Latency(_Part):
    measured: list[dict[str, int | float]] = Field(min_length=1)
    environment: dict[str, Any]


class Schema(_Part):
    """What a record holds."""

    schema_: Literal[2] = Field(alias="schema")
    key: str = Field(pattern="^[0-9a-f]{24}$")
    experiment: str
    name: str
    model: str
    seed: int = Field(ge=0)
    recipe: str
    budget: Literal["full", "reduced"]
    config: _Config
    data: dict[str, Any]
    parameters: _Parameters
    size_mb: float
    history: list[dict[str, int | float]] = Field(min_length=1)
    selected: _Selected
    test: dict[str, Any]
    latency: _Latency
    environment: dict[str, Any]
    code: _Code
    seconds: float
    peak_memory_mib: float
    finished: str
    samples: list[dict[str, Any]] | None = None  # of language models
    extra: dict[str, Any] | None = None


def run_key(config: Mapping, data_sha256: str, seed: int) -> str:
    """The address of a run by its content: everything that decides its numbers but the code."""
    identity = [config["architecture"], config["model"], config["train"], data_sha256, seed]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


# -- one record --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stored:
    """A file of `results/`: `stored["test"]["accuracy"]` reads the JSON."""

    content: dict
    path: Path

    def __getitem__(self, key: str):
        return self.content[key]

    def get(self, key: str, default=None):
        return self.content.get(key, default)

    @property
    def synthetic(self) -> bool:
        return self["data"]["source"] == "embedded"

    @cached_property
    def predictions(self) -> dict[str, np.ndarray]:
        """`logits` (n, C) and `labels` (n,) of the test set, in its order; of language models there are none."""
        path = self.path.with_suffix(".npz")
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in ("logits", "labels")}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise RtxError(
                f"{path.name} beside its record cannot be read ({error}); restore it from git."
            ) from error


class Record(Stored):
    """One run."""

    @property
    def today(self) -> str | None:
        """The hash of today's code for this model; None for a model that is not registered here."""
        architecture = self["config"]["architecture"]
        return code.model_hash(architecture) if architecture in registry.MODELS else None

    def note(self, data_sha256: str | None = None) -> str:
        """Why it cannot be trusted as today's, empty when it can; `data_sha256`: of today's data, where it is at hand."""
        notes = []
        if self.today is None:
            notes.append(f"of a model that is not registered here ({self['config']['architecture']})")
        elif not code.is_current(self["code"]["hashes"], self.today):
            notes.append(
                f"made by another version of the code (commit {(self['code']['commit'] or 'unknown')[:9]})"
            )
        if data_sha256 not in (None, self["data"]["sha256"]):
            notes.append(
                f"made on other data ({self['data']['sha256'][:12]}…) than today's ({data_sha256[:12]}…)"
            )
        return " and ".join(notes)


class Measurement(Stored):
    """Something measured beside the runs; `made_by` is the module of `rtx_core.evaluate` whose code it depends on."""

    def note(self) -> str:
        if self["kind"] == "audits":  # which are of the code that they name
            return ""
        today = code.module_hash(self["made_by"])
        if code.is_current(self["code"]["hashes"], today):
            return ""
        return f"made by another version of the code (commit {(self['code']['commit'] or 'unknown')[:9]})"


def short_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def read_json(path: Path, needs: Sequence[str] = ()) -> dict:
    """A JSON file of `results/`; one that is missing, truncated or lacks what it needs is one clear sentence."""
    try:
        content = json.loads(
            path.read_text(encoding="utf-8"), parse_constant=_no_constant, parse_float=_finite
        )
    except (OSError, ValueError, RecursionError) as error:
        raise RtxError(f"{short_name(path)} is not readable as JSON ({error}); {RESTORE}.") from error
    if missing := [key for key in needs if not isinstance(content, dict) or key not in content]:
        raise RtxError(f"{short_name(path)} lacks {', '.join(missing)}; {RESTORE}.")
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is too large for a number")
    return value


def check(content: object, name: str) -> dict:
    """The content if it is a record, else an error that names the first thing wrong with it."""
    try:
        Schema.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the top"
        raise RtxError(
            f"{name} is no record of schema {VERSION}: at {place}, {first['msg'][:160]}; {RESTORE}."
        ) from None
    if content["key"] != run_key(content["config"], content["data"]["sha256"], content["seed"]):
        raise RtxError(
            f"{name} was altered: its key does not follow from its configuration, data and seed; restore it from git."
        )
    if content["selected"]["step"] not in [row["step"] for row in content["history"]]:
        raise RtxError(
            f"{name} selects step {content['selected']['step']}, which is not in its history; restore it from git."
        )
    if "batch_losses" in (test := content["test"]):
        mean = sum(a * n for a, n in zip(test["batch_losses"], test["batch_sizes"])) / test["n"]
        if sum(test["batch_sizes"]) != test["n"] or not math.isclose(mean, test["loss"], rel_tol=1e-9):
            raise RtxError(f"{name} has a test loss that its test batches do not give; restore it from git.")
    return content


def verify(stored: Stored) -> None:
    """An error unless every test metric follows from what was predicted."""
    if (test := stored.get("test")) is None:
        return
    if "batch_losses" in test:  # whose mean and number are compared as a record is read
        losses, share = np.array(test["batch_losses"]), np.array(test["batch_sizes"]) / test["n"]
        variance = ((share * (losses - test["loss"])) ** 2).sum() * len(losses) / (len(losses) - 1)
        counted = test | {"error": math.sqrt(variance)}
        if "parts" in test:
            wrong = sum(part["answers"] * part["error"] for part in test["parts"])
            counted["accuracy"] = 1 - wrong / sum(part["answers"] for part in test["parts"])
    else:
        counted = classification_metrics(**stored.predictions)
        counted["n"] = len(stored.predictions["labels"])
    for name in sorted(counted | test):
        got, value = test.get(name), counted.get(name)
        same = math.isclose(got, value, rel_tol=1e-5) if type(got) is type(value) is float else got == value
        if not same:
            raise RtxError(
                f"{short_name(stored.path)} says that its test {name} is {got}, and what was predicted gives {value}; "
                f"restore both from git, or make the run again."
            )


# -- the folder --------------------------------------------------------------------------------------------------------


def folder(source: str = "hub") -> Path:
    return build() / "results" if source == "embedded" else home() / "results"


def path_of(name: str, model: str, seed: int, source: str = "hub") -> Path:
    return folder(source) / name / f"{model}-seed{seed}.json"


def read(path: Path) -> Record:
    """The record in a file, checked; one that was put under another run's name is an error."""
    found = Record(check(read_json(path), short_name(path)), path)
    if (found["name"], f"{found['model']}-seed{found['seed']}") != (path.parent.name, path.stem):
        raise RtxError(
            f"{short_name(path)} holds the record of {found['name']}, {found['model']}, seed {found['seed']}; "
            f"move it to where it belongs."
        )
    verify(found)
    return found


def find(name: str, model: str, seed: int, source: str = "hub") -> Record | None:
    path = path_of(name, model, seed, source)
    return read(path) if path.exists() else None


def at(address: str, source: str = "hub") -> Record:
    """The record of an address such as "sst2/recurrent-seed0", its path without the ending."""
    name, _, stem = address.removesuffix(".json").rpartition("/")
    path = folder(source) / name / f"{stem}.json"
    if not name or not path.exists():
        known = [f"{p.parent.name}/{p.stem}" for p in paths(source)]
        there = (
            f"the {len(known)} there are, {known[0]} for one"
            if known
            else "what is recorded, and nothing is yet"
        )
        raise RtxError(f"There is no record {address!r}; `python -m rtx_core results` lists {there}.")
    return read(path)


def paths(source: str = "hub") -> Iterator[Path]:
    """The files of all runs, in the order of their names, then seeds."""
    found = [path for path in folder(source).glob("*/*-seed*.json") if path.parent.name not in NO_RUNS]
    return iter(sorted(found, key=lambda path: (path.parent.name, *_model_and_seed(path))))


def _model_and_seed(path: Path) -> tuple[str, int]:
    model, _, seed = path.stem.rpartition("-seed")
    return model, int(seed) if re.fullmatch(r"\d{1,10}", seed) else 0


def records(
    name: str | None = None, experiment: str | None = None, model: str | None = None, source: str = "hub"
) -> list[Record]:
    """The recorded runs, as far as they are of this folder, experiment and model."""
    found = (read(path) for path in paths(source) if name in (None, path.parent.name))
    return [r for r in found if experiment in (None, r["experiment"]) and model in (None, r["model"])]


def save(content: dict, predictions: Mapping[str, np.ndarray] | None = None, replace: bool = False) -> Record:
    """Write predictions, then the record; one that is there is replaced only when `replace` says so."""
    path = path_of(content["name"], content["model"], content["seed"], content["data"]["source"])
    check(content, short_name(path))
    if path.exists() and not replace and content["data"]["source"] != "embedded":
        raise RtxError(
            f"{short_name(path)} is recorded already; give replace=True to overwrite it, or another setting or name."
        )
    if predictions is not None:
        save_predictions(path.with_suffix(".npz"), **predictions)
    write_json(path, content)
    return read(path)


def save_predictions(path: Path, logits: np.ndarray, labels: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, logits=logits.astype(np.float32), labels=labels.astype(np.int8))
    write_atomically(path, buffer.getvalue())


# -- measurements ------------------------------------------------------------------------------------------------------

NEEDS = (
    "schema",
    "kind",
    "of",
    "name",
    "model",
    "seed",
    "data",
    "environment",
    "code",
    "made_by",
    "finished",
)


def read_measurement(path: Path) -> Measurement:
    content = read_json(path, needs=NEEDS)
    if (content["kind"], content["of"], content["name"]) != (*path.parts[-3:-1], path.stem):
        raise RtxError(
            f"{'/'.join(path.parts[-3:])} holds the measurement {content['kind']}/{content['of']}/{content['name']}; "
            f"move it to where it belongs."
        )
    found = Measurement(content, path)
    verify(found)
    return found


def measurements(kind: str, of: str = "*", source: str = "hub") -> list[Measurement]:
    """All measurements of a kind, in the order of their names."""
    return [read_measurement(path) for path in sorted((folder(source) / kind).glob(f"{of}/[!.]*.json"))]


def save_measurement(
    content: dict, logits: np.ndarray | None = None, labels: np.ndarray | None = None
) -> Measurement:
    """Write predictions, where there are any, then the measurement, dated now."""
    content = {"schema": VERSION, **content, "finished": now()}
    path = folder(content["data"]["source"]) / content["kind"] / content["of"] / f"{content['name']}.json"
    if logits is not None:
        save_predictions(path.with_suffix(".npz"), logits, labels)
    write_json(path, content)
    return read_measurement(path)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# -- one table ---------------------------------------------------------------------------------------------------------


def results(source: str = "hub", **only: object) -> pd.DataFrame:
    """Every recorded run, one row each; `results(experiment="sst2", model=["baseline", "recurrent"])` keeps some."""
    return frame(records(source=source), **only)


def frame(found: Sequence[Record], **only: object) -> pd.DataFrame:
    """Runs as rows: what was measured, every setting under its own name, why the record is stale, and the record itself."""
    table = pd.DataFrame([_row(record) for record in found])
    for column, wanted in only.items():
        if len(table) and column not in table:
            raise RtxError(f"The results have no column {column!r}; they have {', '.join(table.columns)}.")
        if len(table):
            table = table[table[column].isin(wanted if isinstance(wanted, (list, tuple)) else [wanted])]
    return table.reset_index(drop=True)


def _row(record: Record) -> dict:
    test, config, measured = record["test"], record["config"], record["latency"]["measured"]
    row = {name: record[name] for name in ("experiment", "name", "model", "seed", "recipe", "budget")}
    row["source"] = record["data"]["source"]
    row |= {name: test.get(name) for name in ("accuracy", "loss", "f1", "precision", "recall")}
    row |= {"n_train": record["data"]["n_train"], "n_test": test["n"]}
    row |= {"parameters": record["parameters"]["total"], "size_mb": record["size_mb"]}
    last = measured[-1]
    row["ms_per_text"] = last.get("per_sentence_ms")  # in a batch
    row["ms_single"] = measured[0].get("per_sentence_ms", measured[0]["median_ms"])  # one text, or one token
    row |= {"minutes": record["seconds"] / 60, "selected_step": record["selected"]["step"]}
    selected = next(r for r in record["history"] if r["step"] == record["selected"]["step"])
    row["selected_epoch"] = selected.get("epoch")
    for part in ("data", "train", "model"):
        row |= {name: value for name, value in config[part].items() if name not in row}
    return row | {"architecture": config["architecture"], "stale": record.note(), "record": record}
