"""Which data a run reads, as plain settings that are recorded with the run; a class for each kind of data.

What the library must know of a kind stands in its class alone.  A new kind is a subclass of `DataConfig`, in any module
that is imported before it is used; a new corpus of a known kind is a line of `corpora`.
"""

import codecs
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from pathlib import PurePath
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rtx_core.data.corpora import CORPORA, LANGUAGE_CORPORA
from rtx_core.errors import RtxError, reason, unknown
from rtx_core.models.configs import EncoderConfig, GPTConfig, LoopedConfig
from rtx_core.reads import Entries
from rtx_core.settings import LARGEST, AtLeastTwo, NaturalInt, PositiveInt, Settings, Share

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.random import RandomState
    from torch import Tensor

    from rtx_core.data.tasks import Task

Source = Literal["real", "hub", "mirror", "embedded"]  # "real": the mirror that RTX_DATA names, else the hub
# Of what is drawn by a rule every source of real texts means "generated"; "embedded" is a trial, kept in `_build`
AlgorithmicSource = Annotated[
    Literal["generated", "embedded"],
    BeforeValidator(lambda value: "generated" if value in ("real", "hub", "mirror") else value),
]
SampleSize = Annotated[int, Field(ge=2, le=1_000_000)]  # sequences or batches, which are held in memory
MaxLength = Annotated[int, Field(ge=3, le=LARGEST)]


def text_encoding(name: str) -> str:
    """The name of a text encoding that Python knows."""
    try:
        if codecs.lookup(name)._is_text_encoding:
            return name
    except (LookupError, ValueError):
        pass
    raise ValueError("it must be a text encoding of Python, such as utf-8, utf-16 or cp1252")


FileName = Annotated[str, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)]
Encoding = Annotated[str, AfterValidator(text_encoding)]
SOURCE = "real: the folder RTX_DATA, else the hub; hub, mirror (that folder) or embedded (generated texts)"
EVAL_TEXTS, TEST_TEXTS = "sequences that every evaluation reads", "sequences that the test reads"
FORMATS = {  # of files of one's own: suffix -> "module:function", which gives the table of a path
    ".csv": "rtx_core.data.sources:separated",
    ".tsv": "rtx_core.data.sources:separated",
    ".jsonl": "rtx_core.data.sources:json_lines",
    ".parquet": "rtx_core.data.sources:parquet",
}
TEXT_SUFFIXES = (".txt", ".md")  # that the command line takes for running text
CHARACTERS = {  # nanoGPT's way of training on characters, shorter
    **{"epochs": 0, "steps": 1000, "batch_size": 16, "learning_rate": 1e-3, "min_learning_rate": 1e-4},
    **{"schedule": "cosine", "beta2": 0.99, "weight_decay": 0.1, "decay": "matrices"},
    **{"eval_every": 100, "stop_patience": 0},
}


class DataConfig(Settings):
    """Settings of one kind of data, and what the library must know of that kind."""

    task_class: ClassVar[str | type] = ""  # or "module:name"; called with (config, batch_size, micro_batches)
    labeled: ClassVar[bool] = False  # a model gives labels; else it says what comes next
    algorithmic: ClassVar[bool] = False  # by a rule, and so never real text
    has_epochs: ClassVar[bool] = False  # a pass over it has an end
    generates: ClassVar[str] = ""  # the kind of text that a trained model writes, if any
    smoke_settings: ClassVar[Mapping[str, Any]] = {}  # the run's settings with which it takes seconds
    budget_fields: ClassVar[tuple[str, ...]] = ()  # settings of which less is a reduced budget
    excluded_from_name: ClassVar[tuple[str, ...]] = ("source",)  # settings that do not tell which texts are read
    derived_fields: ClassVar[tuple[str, ...]] = ("vocab_size", "block_size")  # fields of a model's configuration
    # of the library's models that can be trained on it; a registered class is taken at its word
    model_configs: ClassVar[tuple[type[Settings], ...]] = (GPTConfig, LoopedConfig)
    train_defaults: ClassVar[Mapping[str, Any]] = {}  # settings of `TrainConfig` where no experiment states any
    model_defaults: ClassVar[Mapping[str, int]] = {}  # and of this package's models

    def task(self, batch_size: int, micro_batches: int = 1) -> "Task":
        """What the trainer asks of this data, in steps of `batch_size` texts or sequences."""
        try:
            kind = resolve_name(self.task_class) if isinstance(self.task_class, str) else self.task_class
            return kind(self, batch_size, micro_batches)
        except (RtxError, MemoryError):
            raise
        except Exception as error:
            if type(self).__module__.startswith(f"{__package__}."):
                raise
            raise RtxError(f"{type(self).__name__} gives no examples ({reason(error)}).") from error

    @property
    def slug(self) -> str:
        """What folders of runs on these data are called where no experiment has them: by class and settings."""
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self).__name__.removesuffix("Data")).lower()
        fields = type(self).model_fields
        changes = {k: v for k, v in self if v != fields[k].default and k not in self.excluded_from_name}
        return "-".join([kind, *name_parts(changes)])

    @property
    def command_words(self) -> list[str]:
        """What names these data on the command line where no experiment has them; nothing if only Python does."""
        return []

    @classmethod
    def settable(cls) -> list[str]:
        """The settings that a run of an experiment may change."""
        return [name for name in cls.names() if name != "corpus"]

    def name_parts(self, default: "DataConfig") -> list[str]:
        """What of a run's name says how this differs from the experiment's own data."""
        return name_parts(self.changes(default))

    def is_smaller_than(self, full: "DataConfig") -> bool:
        """Whether a run sees less than the experiment's own data, apart from a subset that is the point of it."""
        return any(getattr(self, name) < getattr(full, name) for name in self.budget_fields)

    def changes(self, default: Settings) -> dict[str, Any]:
        return {key: value for key, value in super().changes(default).items() if key not in self.excluded_from_name}

    def texts_differ(self, record: Entries) -> bool:
        """Whether a record is of other texts, under the same settings."""
        return False

    def check(self) -> None:
        """An error where texts are not any more what they were when this was made."""


def name_parts(changes: Mapping[str, object]) -> list[str]:
    """`maxlength512` of {"max_length": 512}; no two values give the same part."""
    return [f"{key.replace('_', '')}{exact(value)}" for key, value in changes.items()]


def exact(value: object) -> str:
    """A value in a name: of a float as few digits as tell it from every other; of what no folder should be called, such
    as "../x", the beginning of its hash."""
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    if re.fullmatch(r"[\w.+-]*", text, re.ASCII):
        return text
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def percent(share: float | None) -> str:
    return f"{(Decimal(repr(share)) * 100).normalize():f}pct" if share else ""


class LabeledData(DataConfig):
    """Texts with labels; the module `reader` has `parts`, `facts` and `vocabulary_source`, called with the settings."""

    task_class = "rtx_core.data.texts:classification"
    labeled = True
    has_epochs = True
    derived_fields = ("num_labels",)
    model_configs = (EncoderConfig,)
    reader: ClassVar[str] = ""


class ClassificationData(LabeledData):
    """A corpus of labelled texts (`corpora`), the way it is split (`splits`), and how much of it is used."""

    reader = "rtx_core.data.splits"
    smoke_settings = {"epochs": 1, "train_rows": 64, "fraction": 1.0}
    budget_fields = ("max_length",)

    corpus: str
    source: Source = Field(default="real", description=SOURCE)
    split: str = Field(
        default="seeded", description="into training, validation and test; SST-2 also: official, grouped, published"
    )
    # stratified; a larger one holds every smaller one
    fraction: Share = Field(default=1.0, description="share of the training texts that is used")
    length: Literal["all", "short", "long"] = Field(
        default="all", description="the shortest or longest texts of every part"
    )
    length_fraction: Share = Field(default=0.3, description="share of the texts that is short or long")
    max_length: MaxLength = Field(default=128, description="tokens of a text, [CLS] and [SEP] included")
    train_rows: NaturalInt = Field(default=0, description="a fixed random sample of so many training texts; 0: all")
    validation_rows: NaturalInt = Field(default=0, description="the same of the validation texts, for trials")
    test_rows: NaturalInt = Field(default=0, description="the same of the test texts, for trials")

    @model_validator(mode="after")
    def _check_corpus(self) -> "ClassificationData":
        if self.corpus not in CORPORA:
            raise unknown("corpus", self.corpus, CORPORA)
        if self.split not in CORPORA[self.corpus].splits:
            raise unknown(f"split of {self.corpus}", self.split, CORPORA[self.corpus].splits)
        return self

    @property
    def classes(self) -> tuple[str, ...]:
        return CORPORA[self.corpus].classes

    def texts_differ(self, record: Entries) -> bool:
        name = CORPORA[self.corpus].name  # a mirror may hold other rows than the hub
        sources = {self.source, record["config"]["data"]["source"]}
        return sources == {"hub", "mirror"} and name("hub") != name("mirror")

    def name_parts(self, default: DataConfig) -> list[str]:
        """`official`, `long20pct` and `10pct`, then the rest as of every kind."""
        changes = self.changes(default)
        parts = [changes.pop("split")] if "split" in changes else []
        if length := changes.pop("length", None):
            parts.append(length + percent(changes.pop("length_fraction", None)))
        if fraction := changes.pop("fraction", None):
            parts.append(percent(fraction))
        return parts + name_parts(changes)

    def is_smaller_than(self, full: DataConfig) -> bool:
        return max(self.train_rows, self.validation_rows, self.test_rows) > 0 or super().is_smaller_than(full)


class LanguageData(DataConfig):
    """Running text for a language model: tiny Shakespeare by characters, or TinyStories by tokens."""

    smoke_settings = {"steps": 2, "batch_size": 8, "block_size": 64, "eval_every": 2, "eval_batches": 2}
    budget_fields = ("block_size", "eval_batches")

    corpus: str
    source: Source = Field(default="real", description=SOURCE)
    block_size: PositiveInt = Field(default=256, description="characters or tokens of a sequence")
    # an error needs two
    eval_batches: SampleSize = Field(default=80, description="batches of each part in an evaluation")
    # as in llama2.c
    across_stories: bool = Field(default=False, description="a token attends to earlier stories (TinyStories)")

    @property
    def task_class(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  (of each corpus)
        return LANGUAGE_CORPORA[self.corpus].task_class

    @property
    def generates(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return LANGUAGE_CORPORA[self.corpus].generates

    @property
    def model_configs(self) -> tuple[type[Settings], ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (LoopedConfig,) if LANGUAGE_CORPORA[self.corpus].packed else super().model_configs

    @model_validator(mode="after")
    def _check_corpus(self) -> "LanguageData":
        if self.corpus not in LANGUAGE_CORPORA:
            raise unknown("corpus", self.corpus, LANGUAGE_CORPORA)
        if self.across_stories and self.corpus != "tinystories":
            raise ValueError(f"across_stories is of tinystories only, and the corpus is {self.corpus}")
        return self


class AlgorithmicData(DataConfig):
    """What is drawn by a rule (`algorithmic`); a model also maps inputs alone to logits (B, N, V)."""

    algorithmic = True
    smoke_settings = {"steps": 2, "batch_size": 8, "eval_every": 2, "eval_texts": 16, "test_texts": 16}

    source: AlgorithmicSource = Field(default="generated", description='"embedded": a trial, kept in _build/')


class HopData(AlgorithmicData):
    """k-hop induction (`algorithmic.KHop`), drawn afresh for every step."""

    task_class = "rtx_core.data.algorithmic:KHop"

    letters: AtLeastTwo = Field(default=32, description="letters of a sequence")
    alphabet: AtLeastTwo = Field(default=4, description="different letters")
    hops: NaturalInt = Field(default=4, description="the most hops; each sequence has 0 to so many, uniformly")
    scored: Literal["answers", "all"] = Field(
        default="answers", description='in training; "all": "no answer" counts as well'
    )
    eval_texts: SampleSize = Field(default=640, description=EVAL_TEXTS)
    test_texts: SampleSize = Field(default=10_240, description=TEST_TEXTS)  # 2,048 of each number of hops

    @model_validator(mode="after")
    def _answerable(self) -> "HopData":
        if self.hops > self.letters - 2:  # each leads back by a letter or more
            raise ValueError(f"hops is {self.hops}, and {self.letters} letters have room for {self.letters - 2}")
        return self


class GroupData(AlgorithmicData):
    """State tracking (`algorithmic.GroupWords`), drawn afresh for every step."""

    task_class = "rtx_core.data.algorithmic:GroupWords"

    group: Literal["S3", "Z6", "S4", "A5", "S5"] = Field(description="the group whose elements are multiplied")
    # of the longest text, which holds products of every length
    letters: Literal[8, 16, 32, 64, 128] = Field(default=64, description="elements of the longest sequence")
    # sixteen at a time, or more where they are shorter
    eval_texts: Annotated[int, Field(ge=16, le=1_000_000)] = Field(default=256, description=EVAL_TEXTS)
    test_texts: SampleSize = Field(default=1024, description=TEST_TEXTS)


class ScanData(GroupData):
    """The same texts; in training every pass has a target (`algorithmic.GroupScan`)."""

    task_class = "rtx_core.data.algorithmic:GroupScan"
    model_configs = (LoopedConfig,)


class FactData(AlgorithmicData):
    """Random facts (a, b) → v to be learned by heart (`algorithmic.Facts`); the same facts for every run."""

    task_class = "rtx_core.data.algorithmic:Facts"
    has_epochs = True
    smoke_settings = {"epochs": 1, "batch_size": 8, "facts": 16, "eval_texts": 16}

    facts: AtLeastTwo = Field(default=16_384, description="facts (a, b) → v, of the keys² pairs")
    keys: AtLeastTwo = Field(default=256, description="different a, and different b")
    values: AtLeastTwo = Field(default=256, description="different v, equally likely: log2(values) bits a fact")
    eval_texts: SampleSize = Field(default=4096, description="facts that every evaluation reads; the test reads all")

    @model_validator(mode="after")
    def _enough_keys(self) -> "FactData":
        if self.facts > self.keys**2:
            raise ValueError(f"facts is {self.facts}, and {self.keys} keys make {self.keys**2} pairs")
        return self


class SequenceTask(AlgorithmicData):
    """A task of one's own, in a subclass with its settings as fields: sequences drawn by `draw`, learned by decoders.

    A test reports the error of each of `parts`, which `part_of` tells apart; unless it is overridden, there is one.
    """

    task_class = "rtx_core.data.algorithmic:Sequences"
    train_defaults = CHARACTERS | {"steps": 2000}
    model_defaults = {"hidden_size": 64, "num_heads": 4, "intermediate_size": 176}
    vocab_size: ClassVar[int]  # or a property: tokens are 0 … vocab_size − 1
    by: ClassVar[str] = "examples"  # what the parts are, such as "length"
    parts: ClassVar[Sequence] = ("all",)

    eval_texts: SampleSize = Field(default=640, description=EVAL_TEXTS)
    test_texts: SampleSize = Field(default=2560, description=TEST_TEXTS)

    def draw(self, random: "RandomState", n: int) -> tuple["ndarray | Tensor", "ndarray | Tensor"]:
        """n examples: inputs and targets, whole numbers (n, N) each; a target is the token expected at that position,
        or −100 where none is scored."""
        raise RtxError(f"{type(self).__name__} draws no examples; define draw(self, random, n), as in SequenceTask.")

    def part_of(self, inputs: "Tensor") -> "Tensor":
        """The index of each position's part, (B, N) or what broadcasts to it, of inputs (B, N)."""
        return inputs.new_zeros(1, 1)

    def texts_differ(self, record: Entries) -> bool:
        return record["data"]["sha256"] != self.task(2).facts["sha256"]


class UserFile(DataConfig):
    """A file of the user's, in the place of an experiment."""

    excluded_from_name = ("train", "name", "encoding")  # `digest` tells the texts
    file_settings: ClassVar[tuple[str, ...]] = ("encoding", "name")  # settings that are given with the file's name

    train: FileName
    encoding: Encoding = "utf-8"
    name: str = ""  # of the records' folder, "own-" in front; "": the file's
    digest: str = ""  # of all texts, and their labels

    @property
    def source(self) -> str:
        return "files"

    @property
    def slug(self) -> str:
        """The name for folders: of x.csv "x", of x.jsonl "x-jsonl", of a data set of the hub with its owner."""
        file = PurePath(self.train)
        on_the_hub = self.labeled and file.suffix.lower() not in FORMATS
        title = self.name or (self.train if on_the_hub else file.name.removesuffix(".csv"))
        plain = unicodedata.normalize("NFKC", title).lower()  # one spelling of letters that have two
        return re.sub(r"[\W_]+", "-", plain).strip("-") or "data"

    @property
    def command_words(self) -> list[str]:
        fields = type(self).model_fields.items()
        changes = {name: getattr(self, name) for name, field in fields if getattr(self, name) != field.default}
        changes = {name: value for name, value in changes.items() if name not in ("train", "digest", "classes")}
        complete = changes.keys() <= {*self.file_settings}
        return [self.train, *(f"{name}={value}" for name, value in changes.items())] if complete else []

    def texts_differ(self, record: Entries) -> bool:
        return record["config"]["data"].get("digest") != self.digest


class FilesData(UserFile, LabeledData):
    """Labelled texts of one's own, as `rtx_core.data.from_files` describes them after a look at the files."""

    reader = "rtx_core.data.files"
    excluded_from_name = (*UserFile.excluded_from_name, "validation", "test")
    file_settings = ("text", "label", "validation", "test", *UserFile.file_settings)

    text: str = "text"  # column of the texts
    label: str = "label"  # column of the labels
    validation: FileName | None = None  # None: a tenth of `train`, drawn by `seed`
    test: FileName | None = None
    max_length: MaxLength = Field(default=128, description="tokens of a text, [CLS] and [SEP] included")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    classes: Annotated[tuple[str, ...], BeforeValidator(tuple)]  # in label order
    generated: bool = False  # no real texts: runs on them are kept apart, as those on embedded ones

    @property
    def source(self) -> str:
        return "embedded" if self.generated else "files"

    @classmethod
    def settable(cls) -> list[str]:
        return ["max_length"]

    def check(self) -> None:
        from rtx_core.data.files import parts

        parts(self)


class TextData(UserFile):
    """A plain text of one's own, read by characters, as `rtx_core.data.from_text` describes it after a look at it."""

    task_class = "rtx_core.data.characters:TextFile"
    generates = "characters"
    train_defaults = CHARACTERS
    model_defaults = {"hidden_size": 128, "num_heads": 4, "intermediate_size": 512}

    block_size: PositiveInt = Field(default=128, description="characters of a sequence")
    eval_batches: SampleSize = Field(default=20, description="batches of each part in an evaluation")

    @classmethod
    def settable(cls) -> list[str]:
        return ["block_size", "eval_batches"]

    def check(self) -> None:
        from rtx_core.data.files import running_text

        running_text(self)
