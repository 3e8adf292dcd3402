"""What a record holds: its schema, and the key that follows from what decides its numbers."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, ValidationError

from rtx_core.errors import RtxError

VERSION = 2  # of the schema
RESTORE = "restore a copy of it (git has the paper's), or move it away and run the experiment again"


def _dated(text: str) -> str:
    """A date and time with its zone: records of several machines are compared by it."""
    if not datetime.fromisoformat(text).tzinfo:
        raise ValueError("it has no time zone")
    return text


Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Key = Annotated[str, Field(pattern="^[0-9a-f]{24}$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")]
Date = Annotated[str, Field(max_length=40), AfterValidator(_dated)]
Name = Annotated[str, Field(min_length=1, max_length=1000)]
FileName = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f\x7f]+$", max_length=1000)]  # a part of one
Count = Annotated[int, Field(ge=0, lt=2**63)]
Size = Annotated[int, Field(gt=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0, lt=1e15)]  # of milliseconds, seconds, MiB
Loss = Annotated[float, Field(gt=-1e15, lt=1e15)]
Share = Annotated[float, Field(ge=0, le=1)]
COLUMNS = {"step", "validation_loss"}  # of every history
OF_CLASSIFIERS = {"epoch", "train_loss", "train_accuracy", "validation_accuracy"}
Json = None | bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | float | str | list[JsonValue] | dict[str, JsonValue]
Settings = dict[str, Json]


class Part(BaseModel):
    """The fields that are named, and others that are plain JSON."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, Json]  # pyright: ignore[reportIncompatibleVariableOverride]


class Numbers(Part):
    """The fields that are named, and others that are numbers."""

    __pydantic_extra__: dict[str, float]  # pyright: ignore[reportIncompatibleVariableOverride]


class Data(Part):
    name: Name
    source: Name
    sha256: Hash
    n_train: Count
    split: Name | None = None


class Environment(Part):
    device: Name
    device_type: Name
    threads: Annotated[int, Field(gt=0, le=4096)]
    packages: dict[str, str | None] = Field(default_factory=dict)


class Code(Part):
    commit: Commit | None
    clean: bool
    hashes: list[Hash] = Field(min_length=1)
    task: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[\w.<>]+$", max_length=200)


class Config(Part):
    architecture: Name
    model: Settings
    data: Settings
    train: Settings
    compile: str = ""


class Request(Part):
    model: str | Settings
    settings: Settings


class Selected(Numbers):
    step: Count
    validation_loss: float


class ClassifierTest(Numbers):
    n: Size
    loss: Amount
    accuracy: Share
    precision: Share
    recall: Share
    f1: Share
    average: Literal["binary", "macro"]
    confusion: list[list[Count]] = Field(min_length=1)


class Counted(Part):
    """The test sequences of one kind: as many answers, and the share of wrong ones, after each pass as well."""

    __pydantic_extra__: dict[str, Count | Name]  # pyright: ignore[reportIncompatibleVariableOverride]
    answers: Count
    error: Share
    error_by_passes: list[Share] = Field(default_factory=list)


class DecoderTest(Part):
    n: Size
    loss: float
    error: Amount
    batch_losses: list[Loss] = Field(min_length=2)
    batch_sizes: list[Size]
    accuracy: Share | None = None
    by: Name | None = None
    parts: list[Counted] = Field(default_factory=list)


def _kind(test: Any) -> str:
    return "decoder" if isinstance(test, dict) and "batch_losses" in test else "classifier"


Test = Annotated[
    Annotated[DecoderTest, Tag("decoder")] | Annotated[ClassifierTest, Tag("classifier")], Discriminator(_kind)
]


class MostAccurate(Part):
    step: Count
    validation_accuracy: Share
    test: ClassifierTest


class Timing(Part):
    median_ms: Amount
    p10_ms: Amount
    p90_ms: Amount
    threads: Size


class ClassifierTiming(Timing):
    batch: Size
    per_sentence_ms: Amount


class Latency(Part):
    measured: list[Timing] = Field(min_length=1)
    environment: Environment


class ClassifierLatency(Part):
    measured: list[ClassifierTiming] = Field(min_length=1)


class Sample(Part):
    prompt: str
    text: str


class Passes(Part):
    training_sample: list[float]
    validation: list[float]


class Exit(Numbers):
    """What leaving the loop early costs, where `allowed` nats more are."""

    allowed: float


class Extra(Part):
    """Of a looped decoder."""

    components: dict[str, Count] = Field(default_factory=dict)
    flops_per_token: list[Count] = Field(default_factory=list)
    trained_passes: Size = 1
    passes: Passes | None = None
    exits: list[Exit] = Field(default_factory=list)


class Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    schema_: Literal[2] = Field(alias="schema")
    key: Key
    experiment: FileName
    name: FileName
    model: FileName
    seed: Count
    recipe: str
    budget: Literal["full", "reduced"]
    asked: Request | None = None  # what `configure` was called with: model, settings; younger than the first records
    config: Config
    data: Data
    parameters: dict[Literal["total", "non_embedding", "frozen"], Count] = Field(min_length=2)
    size_mb: Amount
    history: list[dict[str, float]] = Field(min_length=1)  # an evaluation each
    selected: Selected
    test: Test
    most_accurate: MostAccurate | None = None  # of classifiers: the same run, by another rule of selection
    latency: Latency
    environment: Environment
    code: Code
    seconds: Amount
    peak_memory_mib: Amount
    finished: Date
    samples: list[Sample] | None = None  # of language models
    extra: Extra | None = None
    tensors_sha256: Hash | None = None  # of the weights beside the record, if any
    weights: Hash | None = None  # before: the hash of their file (`released`)


class OfClassifier(BaseModel):
    """What the record of a classifier must hold beside that."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False)

    latency: ClassifierLatency


class Measurement(Part):
    """What every measurement holds; the rest is of its kind."""

    schema_: Literal[2] = Field(default=VERSION, alias="schema")
    kind: FileName
    of: FileName
    name: FileName
    model: FileName
    seed: Count
    budget: Literal["full", "reduced"] = "full"
    run: Key | None = None
    runs: list[Key] | dict[str, Key] = Field(default_factory=list)
    test: Test | None = None
    data: Data
    environment: Environment
    code: Code
    made_by: Name
    finished: Date


class Trial(BaseModel):
    """What a task says of its data, of an evaluation and of a test, before it is trained on."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    facts: Data
    evaluation: dict[str, float]
    test: Test


def run_key(config: Mapping, data_sha256: str, seed: int) -> str:
    """The address of a run by its content: everything that decides its numbers but the code."""
    identity = [config["architecture"], config["model"], config["train"], data_sha256, seed]
    identity += [config["compile"]] if config.get("compile") else []
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]


def _validate(schema: type[BaseModel], content: object) -> None:
    try:
        schema.model_validate(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, problem["loc"]))[:100] or "the top"
        raise RtxError(f"at {place}, {problem['msg'][:160]}") from None


def check_measurement(content: Any) -> None:
    """An error that names the first thing wrong with what should be a measurement."""
    _validate(Measurement, content)
    _check_parts(content.get("test"))


def check_trial(content: dict) -> None:
    """An error that names what of a task's answers no record can hold."""
    _validate(Trial, content)
    _check_parts(content["test"])


def _check_parts(test: dict | None) -> None:
    test = test or {}
    for part in test.get("parts", ()):
        if test.get("by") not in part:
            raise RtxError(f"a part of its test does not say its {test.get('by')}")


def check(content: dict) -> None:
    """An error that names the first thing wrong with what should be a record."""
    test = content.get("test") if isinstance(content, dict) else None
    _validate(Schema, content)
    if _kind(test) == "classifier":
        _validate(OfClassifier, content)
    _check_parts(test)
    if content["key"] != run_key(content["config"], content["data"]["sha256"], content["seed"]):
        raise RtxError("its key does not follow from its configuration, data and seed")
    rows, most_accurate = content["history"], content.get("most_accurate")
    columns = COLUMNS | (OF_CLASSIFIERS if _kind(test) == "classifier" else set())
    if any(not columns <= row.keys() or type(row["step"]) is not int for row in rows):
        raise RtxError(f"a row of its history lacks one of {', '.join(sorted(columns))}")
    best = min(rows, key=lambda row: row["validation_loss"])  # the first of equals
    if any(best.get(part) != value for part, value in content["selected"].items()):
        raise RtxError(f"it does not select the best step of its history, {best.get('step')}")
    if most_accurate and most_accurate["validation_accuracy"] != max(row["validation_accuracy"] for row in rows):
        raise RtxError("it does not select the most accurate step of its history")
