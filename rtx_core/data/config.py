"""Which data a run reads, as plain settings that are recorded with the run."""

import re
from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from rtx_core.data.corpora import CORPORA
from rtx_core.errors import unknown
from rtx_core.settings import NaturalInt, PositiveInt, Settings, Share

Source = Literal["real", "hub", "mirror", "embedded"]  # "real": the mirror that RTX_DATA names, else the hub
AtLeastTwo = Annotated[int, Field(ge=2)]
MaxLength = Annotated[int, Field(ge=3)]  # tokens of a text, [CLS] and [SEP] included


class ClassificationData(Settings):
    """A corpus of labelled texts (`corpora`), the way it is split (`splits`), and how much of it is used."""

    corpus: str
    source: Source = "real"
    split: str = "seeded"
    fraction: Share = 1.0  # of the training texts, stratified; a larger one holds every smaller one
    length: Literal["all", "short", "long"] = "all"  # the shortest or longest texts of every part
    length_fraction: Share = 0.3  # how many of them, where `length` is not "all"
    max_length: MaxLength = 128
    train_rows: NaturalInt = 0  # > 0: a fixed random sample of that many training texts

    @model_validator(mode="after")
    def _known(self) -> "ClassificationData":
        if self.corpus not in CORPORA:
            raise unknown("corpus", self.corpus, CORPORA)
        if self.split not in CORPORA[self.corpus].splits:
            raise unknown(f"split of {self.corpus}", self.split, CORPORA[self.corpus].splits)
        return self


class LanguageData(Settings):
    """Running text for a language model: tiny Shakespeare by characters, or TinyStories by tokens."""

    corpus: Literal["shakespeare", "tinystories"]
    source: Source = "real"
    block_size: PositiveInt = 256  # characters or tokens of a sequence
    eval_batches: AtLeastTwo = 80  # of each part; a standard error needs two
    across_stories: bool = False  # a token attends to the stories before its own too, as in llama2.c

    @model_validator(mode="after")
    def _stories_only(self) -> "LanguageData":
        if self.across_stories and self.corpus != "tinystories":
            raise ValueError(f"across_stories is of tinystories only, and the corpus is {self.corpus}")
        return self


class HopData(Settings):
    """k-hop induction (`algorithmic.KHop`), drawn afresh for every step."""

    source: Literal["generated", "embedded"] = "generated"  # "embedded": a trial, recorded as those are
    letters: AtLeastTwo = 32  # of a text
    alphabet: AtLeastTwo = 4
    hops: NaturalInt = 4  # the most; each text has a number of its own, uniform from 0
    scored: Literal["answers", "all"] = "answers"  # in training; "all": "no answer" is one too
    eval_texts: AtLeastTwo = 640
    test_texts: AtLeastTwo = 10_240  # 2,048 of each number of hops

    @model_validator(mode="after")
    def _answerable(self) -> "HopData":
        if self.hops > self.letters - 2:  # each leads back by a letter or more
            raise ValueError(
                f"hops is {self.hops}, and a text of {self.letters} letters has room for {self.letters - 2}"
            )
        return self


class GroupData(Settings):
    """State tracking (`algorithmic.GroupWords`), drawn afresh for every step."""

    source: Literal["generated", "embedded"] = "generated"
    group: Literal["S3", "Z6", "S4", "S5"]
    letters: Literal[8, 16, 32, 64, 128] = 64  # of the longest text, which holds products of every length
    eval_texts: Annotated[int, Field(ge=16)] = 256  # sixteen at a time, or more where they are shorter
    test_texts: AtLeastTwo = 1024


class FactData(Settings):
    """Random facts (a, b) → v to be learned by heart (`algorithmic.Facts`); the same facts for every run."""

    source: Literal["generated", "embedded"] = "generated"
    facts: AtLeastTwo = 16_384  # of the keys² pairs
    keys: AtLeastTwo = 256  # that a is one of, and b
    values: AtLeastTwo = 256  # that v is one of, all equally likely: log2(values) bits a fact
    eval_texts: AtLeastTwo = 4096  # facts that every evaluation reads; the test reads all

    @model_validator(mode="after")
    def _enough_keys(self) -> "FactData":
        if self.facts > self.keys**2:
            raise ValueError(f"facts is {self.facts}, and {self.keys} keys make {self.keys**2} pairs")
        return self


class FilesData(Settings):
    """Labelled texts of one's own, as `rtx_core.data.from_files` describes them after a look at the files."""

    train: str  # CSV, TSV, JSON lines or parquet; where there is no such file, a data set on the hub
    text: str = "text"  # column of the texts
    label: str = "label"  # column of the labels
    validation: str | None = None  # None: a tenth of `train`, drawn by `seed`
    test: str | None = None
    max_length: MaxLength = 128
    seed: NaturalInt = 0
    classes: Annotated[tuple[str, ...], BeforeValidator(tuple)]  # in label order
    vocabulary: Literal["bert", "trained"]  # BERT's released one, or one trained on the training texts
    generated: bool = False  # no real texts: runs on them are kept apart, as those on embedded ones
    name: str = ""  # of the records' folder, "own-" in front; "": the training file's
    digest: str = ""  # of the texts and labels of all parts

    @property
    def source(self) -> str:
        return "embedded" if self.generated else "files"

    @property
    def slug(self) -> str:
        """The name for folders; the same texts in BERT's pieces are other data."""
        called = (self.name or PurePath(self.train).stem).lower()
        stem = re.sub(r"[^a-z0-9]+", "-", called).strip("-") or "data"
        return f"{stem}-vocabularybert" if self.vocabulary == "bert" else stem
