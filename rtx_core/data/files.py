"""Labelled texts from files of one's own, or from any data set on the hub."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.data.config import FORMATS, FilesData
from rtx_core.data.sources import hub_table, read_table
from rtx_core.errors import RtxError

MOST_CLASSES = 1000
TOLERATED = 0.05  # texts of another part that also stand in training, before it is told


def from_files(train: str, text: str = "text", label: str = "label", **settings: object) -> FilesData:
    """Your own labelled texts as settings for `task`: CSV, TSV, JSON lines, parquet, or a data set's name on the hub.

    The columns of a CSV may be split at commas, semicolons or tabs.  The classes are the distinct labels, sorted.  A
    part for which no file is given (`validation`, `test`) is a tenth of `train`, drawn by `seed`.  Records lie in
    `results/own-NAME`, by the training file's name unless one is given; of `generated` texts in `_build/results/`.
    """
    if taken := settings.keys() & {"classes", "digest"}:
        raise RtxError(f"{min(taken)} is read from the files; leave it out.")
    train = str(train) if isinstance(train, Path) else train
    config = FilesData(train=train, text=text, label=label, **settings, classes=())
    classes = read(config.train, config.text, config.label)["label"].unique()
    if not 2 <= len(classes) <= MOST_CLASSES:
        found = f"{len(classes):,} different label(s) in column {config.label!r}"
        raise RtxError(f"{config.train} has {found}; expected 2 to {MOST_CLASSES:,}.")
    try:
        classes = sorted(classes, key=float)  # so 2 before 10
    except ValueError:
        classes = sorted(classes)
    config = config.replace(classes=classes)
    found = parts(config)
    for part in ("validation", "test"):
        seen, n = int(found[part]["text"].isin(found["train"]["text"]).sum()), len(found[part])
        if seen > TOLERATED * n:
            print(f"{seen} of {n} {part} texts also stand in the training texts, so results will be too good.")
    return config.replace(digest=_digest(found))


def _digest(tables: dict[str, pd.DataFrame]) -> str:
    held = "".join(table.to_csv(index=False) for table in tables.values())
    return hashlib.sha256(held.encode()).hexdigest()[:16]


def vocabulary_source(config: FilesData) -> None:
    """None: word pieces are trained on the training texts."""


def facts(config: FilesData) -> dict:
    drawn = [part for part in ("validation", "test") if getattr(config, part) is None]
    known = {"name": Path(config.train).name, "source": config.source, "max_length": config.max_length}
    known["split"] = f"{' and '.join(drawn)} drawn" if drawn else "given"
    return known | {"vocabulary": "trained on the training texts", "classes": list(config.classes)}


def parts(config: FilesData) -> dict[str, pd.DataFrame]:
    """All parts as tables of text and label number; what has no file is a tenth of train, drawn."""
    files = {"train": config.train, "validation": config.validation, "test": config.test}
    tables = {part: _numbered(path, config) for part, path in files.items() if path is not None}
    drawn = [part for part in files if part not in tables]
    train = tables["train"]
    order, tenth = np.random.RandomState(config.seed).permutation(len(train)), len(train) // 10
    if drawn and not tenth:
        raise RtxError(f"{config.train} has {len(train)} rows, too few to draw a {drawn[0]} part: give 10.")
    start = len(train) * (10 - len(drawn)) // 10
    for part, rows in zip(["train", *drawn], np.split(order, [start + tenth * i for i in range(len(drawn))])):
        tables[part] = train.iloc[rows].reset_index(drop=True)
    found = {part: tables[part] for part in files}
    if empty := [part for part, table in found.items() if table.empty]:
        raise RtxError(f"{getattr(config, empty[0])} has no rows; give a {empty[0]} file with texts, or none.")
    if config.digest not in ("", _digest(found)):
        raise RtxError(f"{config.train} holds other texts than when from_files read it: call that again.")
    return found


def _numbered(path: str, config: FilesData) -> pd.DataFrame:
    table = read(path, config.text, config.label)
    strange = table[~table["label"].isin(config.classes)]
    for row, given in strange["label"].items():
        place, known = f"{path}, row {row + 1}, column {config.label!r}", ", ".join(config.classes[:9])
        raise RtxError(f"{place} has the label {given!r}, and the classes are {known}.")
    return table.assign(label=table["label"].map(config.classes.index))


def read(path: str, text: str, label: str) -> pd.DataFrame:
    """A table of `text` and `label`, both strings; errors name file, row (from 1) and column."""
    file = Path(path).expanduser()
    if file.exists() or file.suffix.lower() in FORMATS or file.is_absolute():
        table = read_table(file, path)
    else:
        name, _, split = path.partition(":")
        try:
            table = hub_table(name, split or "train")
        except RtxError as error:
            what = f"There is no file {path}, seen from {Path.cwd()}, and no such data set on the hub"
            raise RtxError(f"{what} ({type(error.__cause__).__name__}); name one, with its ending.") from error
    for column in (text, label):
        if column not in table:
            raise RtxError(f"{path} has no column {column!r}: it has {', '.join(map(str, table.columns))}.")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what the first line names not for row names
        raise RtxError(f"{path} has rows of more columns than its first line, which must name each of them.")
    texts = [t if isinstance(t, str) and t.strip() and _is_unicode(t) else "" for t in table[text]]
    labels = [_label(value) for value in table[label]]
    for kind, column, values in (("text", text, texts), ("label", label, labels)):
        if "" in values:
            place, held = f"{path}, row {values.index('') + 1}, column {column!r}", table[column][values.index("")]
            raise RtxError(f"{place} holds {held!r:.60} where a {kind} was expected: take out all such rows.")
    return pd.DataFrame({"text": texts, "label": labels}, dtype="str")


def _label(value: object) -> str:
    """A label as text, "" for none; 1.0 is 1, which pandas makes of it where another label is missing."""
    if isinstance(value, list | dict | np.ndarray) or pd.isna(value):
        return ""
    called = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    return called if _is_unicode(called) else ""


def _is_unicode(text: str) -> bool:
    """Half of a surrogate pair, which JSON can hold, is not."""
    return not re.search("[\ud800-\udfff]", text)
