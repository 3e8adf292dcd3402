"""What a record holds: its schema, and the key that follows from what decides its numbers."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rtx_core.errors import RtxError

VERSION = 2  # of the schema
RESTORE = "restore a copy of it (git has the paper's), or move it away and run the experiment again"
Part = dict[str, Any]


class Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    schema_: Literal[2] = Field(alias="schema")
    key: str = Field(pattern="^[0-9a-f]{24}$")
    experiment: str
    name: str
    model: str
    seed: int = Field(ge=0)
    recipe: str
    budget: Literal["full", "reduced"]
    asked: Part | None = None  # what `configure` was called with: model, settings; younger than the first records
    config: Part  # architecture, model, data, train; compile, where there is one
    data: Part
    parameters: dict[str, int]  # total, non_embedding
    size_mb: float
    history: list[dict[str, int | float]] = Field(min_length=1)
    selected: dict[str, int | float]  # step, validation_loss
    test: Part
    most_accurate: Part | None = None  # of classifiers: the same run, by another rule of selection
    latency: Part  # measured, environment
    environment: Part
    code: Part  # commit, clean, hashes
    seconds: float
    peak_memory_mib: float
    finished: str
    samples: list[Part] | None = None  # of language models
    extra: Part | None = None
    weights: str | None = Field(None, pattern="^[0-9a-f]{64}$")  # hash of the file in results/weights, if any


def run_key(config: Mapping, data_sha256: str, seed: int) -> str:
    """The address of a run by its content: everything that decides its numbers but the code."""
    identity = [config["architecture"], config["model"], config["train"], data_sha256, seed]
    identity += [config["compile"]] if config.get("compile") else []
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def check(content: object) -> None:
    """An error that names the first thing wrong with what should be a record."""
    try:
        Schema.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise RtxError(f"at {'.'.join(map(str, first['loc'])) or 'the top'}, {first['msg'][:160]}") from None
    if content["key"] != run_key(content["config"], content["data"]["sha256"], content["seed"]):
        raise RtxError("its key does not follow from its configuration, data and seed")
    rows, other = content["history"], content.get("most_accurate")
    best = min(rows, key=lambda row: row.get("validation_loss", math.inf))  # the first of equals
    if any(best.get(part) != value for part, value in content["selected"].items()):
        raise RtxError(f"it does not select the best step of its history, {best.get('step')}")
    if other and other["validation_accuracy"] != max(row["validation_accuracy"] for row in rows):
        raise RtxError("it does not select the most accurate step of its history")
