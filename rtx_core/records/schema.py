"""What a record holds: its schema, and the key that follows from what decides its numbers."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtx_core.errors import RtxError

VERSION = 2  # of the schema
RESTORE = "restore it from git, or move it away and run the experiment again"


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class _Config(_Part):
    architecture: str
    model: dict[str, Any]
    data: dict[str, Any]
    train: dict[str, Any]
    compile: str = ""  # a mode of torch.compile; here, and in the key, only where there is one


class _Asked(_Part):
    """What `configure` was called with; whatever else the configuration holds follows from the experiment."""

    model: str | dict[str, Any]
    settings: dict[str, Any]


class _Parameters(_Part):
    total: int
    non_embedding: int


class _Selected(_Part):
    step: int
    validation_loss: float


class _MostAccurate(_Part):
    step: int
    validation_accuracy: float
    test: dict[str, Any]


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
    asked: _Asked | None = None  # younger than the first records
    config: _Config
    data: dict[str, Any]
    parameters: _Parameters
    size_mb: float
    history: list[dict[str, int | float]] = Field(min_length=1)
    selected: _Selected
    test: dict[str, Any]
    most_accurate: _MostAccurate | None = None  # of classifiers: the same run, by another rule of selection
    latency: _Latency
    environment: dict[str, Any]
    code: _Code
    seconds: float
    peak_memory_mib: float
    finished: str
    samples: list[dict[str, Any]] | None = None  # of language models
    extra: dict[str, Any] | None = None
    weights: str | None = Field(None, pattern="^[0-9a-f]{64}$")  # hash of the file in results/weights, if any


def run_key(config: Mapping, data_sha256: str, seed: int) -> str:
    """The address of a run by its content: everything that decides its numbers but the code."""
    identity = [config["architecture"], config["model"], config["train"], data_sha256, seed]
    identity += [config["compile"]] if config.get("compile") else []
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def check(content: object, name: str) -> dict:
    """The content if it is a record, else an error that names the first thing wrong with it."""
    try:
        Schema.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the top"
        wrong = f"at {place}, {first['msg'][:160]}"
        raise RtxError(f"{name} is no record of schema {VERSION}: {wrong}; {RESTORE}.") from None
    if content["key"] != run_key(content["config"], content["data"]["sha256"], content["seed"]):
        raise RtxError(f"{name} was altered: its key does not follow from its configuration, data and seed; {RESTORE}.")
    best = min(content["history"], key=lambda row: row.get("validation_loss", math.inf))  # the first of equals
    if any(best.get(part) != value for part, value in content["selected"].items()):
        raise RtxError(f"{name} does not select the best step of its history, {best.get('step')}; {RESTORE}.")
    other, rows = content.get("most_accurate"), content["history"]
    if other and other["validation_accuracy"] != max(row["validation_accuracy"] for row in rows):
        raise RtxError(f"{name} does not select the most accurate step of its history; {RESTORE}.")
    return content
