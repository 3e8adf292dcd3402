"""Labelled texts from files of one's own, or from any data set on the hub."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from rtx_core.data.config import FilesData
from rtx_core.data.sources import hub_table, mirror_file
from rtx_core.data.tokens import VOCABULARY
from rtx_core.errors import RtxError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
MOST_CLASSES = 1000


def described(**given: object) -> FilesData:
    """Settings for these files after a look at them: the classes found, and which vocabulary is at hand."""
    path, label = str(given["train"]), str(given["label"])
    found = read(path, str(given["text"]), label)["label"].unique()
    if not 2 <= len(found) <= MOST_CLASSES:
        expected = f"2 to {MOST_CLASSES:,} classes were expected"
        raise RtxError(f"{path}, column {label!r} has {len(found):,} different labels, and {expected}.")
    classes = tuple(sorted(found, key=_by_value))
    config = FilesData(**given, classes=classes, vocabulary="bert" if bert_source() else "trained")
    parts(config)
    return config


def _by_value(label: str) -> tuple[float, str]:
    """Numbers by their value, so 2 before 10; then words by the alphabet."""
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def bert_source() -> str | None:
    """Where BERT's vocabulary is at hand without a download."""
    try:
        mirror_file("bert-base-uncased/vocab.txt")
        return "mirror"
    except RtxError:
        from huggingface_hub import (
            try_to_load_from_cache,
        )  # which warns in notebooks, so only where it is needed

        return "hub" if isinstance(try_to_load_from_cache(VOCABULARY, "vocab.txt"), str) else None


def facts(config: FilesData) -> dict:
    drawn = [part for part in ("validation", "test") if getattr(config, part) is None]
    bert = config.vocabulary == "bert"
    return {
        "name": Path(config.train).name,
        "source": "files",
        "split": f"{' and '.join(drawn)} drawn" if drawn else "given",
        "max_length": config.max_length,
        "vocabulary": VOCABULARY if bert else "trained on the training texts",
        "classes": list(config.classes),
    }


def parts(config: FilesData) -> dict[str, pd.DataFrame]:
    """All parts as tables of text and label number; what has no file is a tenth of train, drawn."""
    files = {"train": config.train, "validation": config.validation, "test": config.test}
    tables = {part: _numbered(path, config) for part, path in files.items() if path is not None}
    drawn = [part for part in files if part not in tables]
    train = tables["train"]
    order = np.random.RandomState(config.seed).permutation(len(train))
    start = len(train) * (10 - len(drawn)) // 10
    ends = [start + len(train) // 10 * i for i in range(len(drawn))]
    for part, rows in zip(["train", *drawn], np.split(order, ends), strict=True):
        if not len(rows):
            raise RtxError(
                f"{config.train} has {len(train)} rows, too few to draw a {part} part: give 10 or more."
            )
        tables[part] = train.iloc[rows].reset_index(drop=True)
    return {part: tables[part] for part in files}


def _numbered(path: str, config: FilesData) -> pd.DataFrame:
    table = read(path, config.text, config.label)
    strange = table[~table["label"].isin(config.classes)]
    if len(strange):
        row, label = strange.index[0] + 1, strange["label"].iloc[0]
        place = f"{path}, row {row}, column {config.label!r}"
        raise RtxError(
            f"{place} has the label {label!r}, and the classes are {', '.join(config.classes[:9])}."
        )
    return table.assign(label=table["label"].map(config.classes.index))


def read(path: str, text: str, label: str) -> pd.DataFrame:
    """A table of `text` and `label`, both strings; errors name file, row (from 1) and column."""
    file = Path(path).expanduser()
    if file.is_file():
        table = _table(file, path)
    elif file.suffix in SUFFIXES or file.is_absolute() or file.exists():
        raise RtxError(
            f"{path} is no file: give one that ends in {', '.join(SUFFIXES)}, or the name of a hub data set."
        )
    else:
        name, _, split = path.partition(":")
        table = hub_table(name, split or "train")
    for column in (text, label):
        if column not in table:
            raise RtxError(f"{path} has no column {column!r}: it has {', '.join(map(str, table.columns))}.")
    if not isinstance(
        table.index, pd.RangeIndex
    ):  # pandas takes what the first line does not name for row names
        raise RtxError(f"{path} has rows of more columns than its first line, which must name each of them.")
    if table.empty or text == label:
        raise RtxError(
            f"{path} must have rows, and its texts (column {text!r}) and labels ({label!r}) in two columns."
        )
    names = [_label(value) for value in table[label]]
    for row, (content, name) in enumerate(zip(table[text], names, strict=True)):
        if not isinstance(content, str) or not content.strip():
            raise RtxError(
                f"{path}, row {row + 1}, column {text!r} holds {content!r:.60} where a text was expected."
            )
        if not name:
            value = table[label].iloc[row]
            raise RtxError(
                f"{path}, row {row + 1}, column {label!r} holds {value!r:.60} where a label was expected."
            )
    return pd.DataFrame({"text": table[text].astype("str"), "label": pd.Series(names, dtype="str")})


def _label(value: object) -> str:
    """A label as text, "" for none; 1.0 is 1, which pandas makes of it where another label is missing."""
    if isinstance(value, list | dict | np.ndarray) or pd.isna(value):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def _table(file: Path, path: str) -> pd.DataFrame:
    try:
        match file.suffix.lower():
            case ".csv" | ".tsv" as suffix:
                separator = "," if suffix == ".csv" else "\t"
                return pd.read_csv(
                    file, sep=separator, dtype="str", keep_default_na=False, encoding="utf-8-sig"
                )
            case ".jsonl":
                return pd.DataFrame(_json_lines(file), dtype=object)
            case ".parquet":
                return pd.read_parquet(file).reset_index(drop=True)
    except (OSError, ValueError) as error:  # pandas names the line
        reason = str(error).partition("\n")[0].removeprefix("Error tokenizing data. C error: ").rstrip(".")
        raise RtxError(f"{path} cannot be read ({reason}): repair it, or save it anew as UTF-8.") from error
    raise RtxError(f"{path} ends in {file.suffix!r}: give a file that ends in {', '.join(SUFFIXES)}.")


def _json_lines(file: Path) -> list[dict]:
    rows = []
    for number, line in enumerate(file.read_text("utf-8-sig").split("\n"), start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise ValueError(f"line {number} is no JSON: {error}") from error
        if row is not None and not isinstance(row, dict):
            raise ValueError(f"line {number} is no JSON object")
        rows += [row] if row else []
    return rows
