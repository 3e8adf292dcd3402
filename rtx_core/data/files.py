"""Labelled texts from files of one's own, or from any data set on the hub."""

import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rtx_core.data.config import FORMATS, TEXT_SUFFIXES, DataConfig, FilesData, TextData
from rtx_core.data.sources import decoded, hub_table, read_table, sha256_of
from rtx_core.errors import RtxError
from rtx_core.paths import user_path
from rtx_core.progress import say

MAX_CLASSES = 1000
INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]")  # letters that look like none
MIN_ROWS = 10  # rows a class, below which it is said
MAX_DUPLICATES = 0.05  # texts of another part that also stand in training, before it is told


def from_files(train: str, text: str = "text", label: str = "label", **settings: Any) -> FilesData:
    """Your own labelled texts as settings for `task`: CSV, TSV, JSON lines, parquet, or a data set's name on the hub.

    The columns of a CSV may be split at commas, semicolons or tabs; `encoding` is UTF-8 unless given.  The classes are
    the distinct labels, sorted.  A part for which no file is given (`validation`, `test`) is a tenth of `train`, drawn
    by `seed`.  Records lie in `runs/own-NAME`, by the training file's name unless one is given; of `generated` texts
    in `_build/results/`.
    """
    if reserved := settings.keys() & {"classes", "digest"}:
        raise RtxError(f"{min(reserved)} is read from the files; leave it out.")
    config = FilesData(train=train, text=text, label=label, **settings, classes=())
    table = read(config.train, config)
    classes, rows = table["label"].unique(), len(table)
    summary = f"{config.train} has {len(classes):,} different label(s) in the {rows:,} rows of column {config.label!r}"
    if not 2 <= len(classes) <= min(MAX_CLASSES, rows // 2):
        raise RtxError(f"{summary}; expected 2 to {MAX_CLASSES:,}, each on several rows.")
    spellings: dict[str, list[str]] = {}
    for spelling in sorted(classes):
        visible = INVISIBLE.sub("", unicodedata.normalize("NFKC", spelling))
        spellings.setdefault(visible.casefold(), []).append(spelling)
    if len(similar := max(spellings.values(), key=len)) > 1:
        say(f"{config.train} has labels that look alike, {similar[0]!a} and {similar[1]!a}: each spelling is a class.")
    ends = re.compile(rf"[,;\t]\"?({'|'.join(map(re.escape, classes))})\"?$")  # of a row whose last cell is its label
    several = [i for i, text in enumerate(table["text"]) if any(map(ends.search, text.splitlines()[:-1]))]
    if several:
        say(f"{config.train}, row {several[0] + 1}, has a text that reads as several rows: is a quote left open?")
    if rows < MIN_ROWS * len(classes):
        say(f"{summary}: few rows to learn each from.")
    classes = in_order(classes)
    config = config.replace(classes=classes)
    tables = parts(config)
    for part in ("validation", "test"):
        duplicates, n = int(tables[part]["text"].isin(tables["train"]["text"]).to_numpy().sum()), len(tables[part])
        if duplicates > MAX_DUPLICATES * n:
            say(f"{duplicates} of {n} {part} texts also stand in the training texts, so results will be too good.")
    return config.replace(digest=_digest(tables))


def from_text(train: str, **settings: Any) -> TextData:
    """A plain text of your own as settings for `task`, which decoders read by characters.

    The first 80 % train, the next 10 % select the weights, the last 10 % test.  Settings: `encoding`, `block_size` and
    `eval_batches`, and `name`, by which records are called, else by the file's.
    """
    if "digest" in settings:
        raise RtxError("digest is read from the file; leave it out.")
    config = TextData(train=train, **settings)
    return config.replace(digest=sha256_of([running_text(config)])[:16])


def from_words(name: str, settings: dict[str, Any]) -> str | DataConfig:
    """The data of a file that is named in the place of an experiment, which takes what it reads out of `settings`; any
    other name is given back."""
    suffix = Path(name).suffix.lower()
    labelled = suffix in FORMATS or not {"text", "label"}.isdisjoint(settings)
    if not labelled and suffix not in TEXT_SUFFIXES:
        return name
    kind, reader = (FilesData, from_files) if labelled else (TextData, from_text)
    return reader(name, **{key: settings.pop(key) for key in kind.file_settings if key in settings})


def running_text(config: TextData) -> str:
    """The text of the file, its lines ended by line feeds."""
    try:
        content = user_path(config.train).read_bytes()
        text = decoded(content, config.encoding).replace("\r\n", "\n")
    except RtxError as error:
        raise RtxError(f"{config.train}, {error}") from None
    except (OSError, ValueError) as error:  # a name with a NUL
        why = getattr(error, "strerror", error)
        raise RtxError(f"{config.train!r} cannot be read ({why}), seen from {Path.cwd()}.") from error
    if config.digest not in ("", sha256_of([text])[:16]):
        raise RtxError(f"{config.train} holds another text than when from_text read it: call that again.")
    return text


def in_order(labels: Iterable[str]) -> list[str]:
    """Labels by value where all are numbers, so 2 before 10, else by letters; whatever their order was."""
    with suppress(ValueError):
        if all(math.isfinite(float(label)) for label in labels):
            return sorted(labels, key=lambda label: (float(label), label))
    return sorted(labels)


def _digest(tables: dict[str, pd.DataFrame]) -> str:
    content = "".join(table.to_csv(index=False) for table in tables.values())
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def vocabulary_source(config: FilesData) -> None:
    """None: word pieces are trained on the training texts."""


def facts(config: FilesData) -> dict:
    missing = [part for part in ("validation", "test") if getattr(config, part) is None]
    content = {"name": Path(config.train).name, "source": config.source, "max_length": config.max_length}
    content["split"] = f"{' and '.join(missing)} drawn" if missing else "given"
    return content | {"vocabulary": "trained on the training texts", "classes": list(config.classes)}


def parts(config: FilesData) -> dict[str, pd.DataFrame]:
    """All parts as tables of text and label number; what has no file is a tenth of train, drawn."""
    files = {"train": config.train, "validation": config.validation, "test": config.test}
    tables = {part: _numbered(path, config) for part, path in files.items() if path is not None}
    missing = [part for part in files if part not in tables]
    train = tables["train"]
    order, tenth = np.random.RandomState(config.seed).permutation(len(train)), len(train) // 10
    if missing and not tenth:
        raise RtxError(f"{config.train} has {len(train)} rows, too few to draw a {missing[0]} part: give 10.")
    start = len(train) * (10 - len(missing)) // 10
    cuts = [start + tenth * i for i in range(len(missing))]
    for part, rows in zip(["train", *missing], np.split(order, cuts)):
        tables[part] = train.iloc[rows].reset_index(drop=True)
    complete = {part: tables[part] for part in files}
    if empty := [part for part, table in complete.items() if table.empty]:
        raise RtxError(f"{getattr(config, empty[0])} has no rows; give a {empty[0]} file with texts, or none.")
    if config.digest not in ("", _digest(complete)):
        raise RtxError(f"{config.train} holds other texts than when from_files read it: call that again.")
    return complete


def _numbered(path: str, config: FilesData) -> pd.DataFrame:
    table = read(path, config)
    known = set(config.classes)
    for row, label in enumerate(table["label"], start=1):
        if label in known:
            continue
        place, classes = f"{path}, row {row}, column {config.label!r}", ", ".join(config.classes[:9])
        raise RtxError(f"{place} has the label {label!r}, and the classes are {classes}.")
    return table.assign(label=table["label"].map(config.classes.index))


def read(path: str, config: FilesData) -> pd.DataFrame:
    """A table of `text` and `label`, both strings; errors name file, row (from 1) and column."""
    file = user_path(path)
    if os.path.exists(file):
        table = read_table(file, path, config.encoding)
    elif file.suffix.lower() in FORMATS or file.is_absolute() or not path:
        raise RtxError(f"There is no file {path!r}, seen from {Path.cwd()}; name one of {', '.join(FORMATS)}.")
    else:
        name, _, split = path.partition(":")
        try:
            table = hub_table(name, split or "train")
        except RtxError as error:
            problem = f"There is no file {path}, seen from {Path.cwd()}, and no such data set on the hub"
            raise RtxError(f"{problem} ({type(error.__cause__).__name__}); name one, with its ending.") from error
    values = {}
    for kind, column in (("text", config.text), ("label", config.label)):
        if (count := list(table.columns).count(column)) != 1:
            problem = f"{count} columns" if count else "no column"
            names = ", ".join(map(str, table.columns))
            raise RtxError(f"{path} has {problem} {column!r}, and one was expected: it has {names:.200}.")
        values[kind] = [_cell(value, config.encoding, numbers=kind == "label") for value in table[column]]
        if "" in values[kind]:
            row = values[kind].index("")
            place, cell = f"{path}, row {row + 1}, column {column!r}", table[column][row]
            raise RtxError(f"{place} holds {cell!r:.60} where a {kind} was expected: take out all such rows.")
    texts = pd.DataFrame(values | {"label": [label.strip() for label in values["label"]]}, dtype="str")
    if len(names := np.flatnonzero((texts["text"] == config.text) & (texts["label"] == config.label))):
        raise RtxError(f"{path}, row {names[0] + 1}, repeats the names of the columns: take out all such rows.")
    return texts


def _cell(value: object, encoding: str, numbers: bool) -> str:
    """A cell as text, "" for none: bytes decoded; with `numbers` also 1.0 and Decimal("1.00") as 1, since pandas makes
    floats of whole numbers where one is missing."""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            value = value.decode(encoding)
    if numbers and not isinstance(value, str | bytes | list | dict | np.ndarray) and pd.isna(value) is not True:
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        value = f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, str) and value.strip() and not re.search("[\ud800-\udfff]", value):  # halves of pairs
        return value
    return ""
