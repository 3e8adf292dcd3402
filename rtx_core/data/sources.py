"""Where text comes from: the hub, a local mirror in the hub's schema, or text generated here.

Each gives a dict of splits, tables with columns `text` (str) and `label` (int).  Which one is used is said by the
caller and recorded; real text is never replaced by generated text.
"""

import codecs
import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pandas as pd

from rtx_core.data.config import FORMATS
from rtx_core.data.corpora import CORPORA, Corpus, Mixture
from rtx_core.data.synthetic import reviews
from rtx_core.errors import RtxError
from rtx_core.paths import user_path
from rtx_core.progress import say

REVISIONS = {  # commits of the hub, where a name alone may give other data tomorrow
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "karpathy/tiny_shakespeare": "refs/convert/parquet",  # the hub's own tables; the text is known by its hash
    "mteb/amazon_polarity": "e2d317d38cd51312af73b3d32a06d1a08b442046",
    "roneneldan/TinyStories": "f54c09fd23315a6f9c86f9dc80f725de7d8f9c64",
    "stanfordnlp/imdb": "e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
    "stanfordnlp/sst2": "8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb",
    "Yelp/yelp_review_full": "c1f9ee939b7d05667af864ee1cb066393154bf85",
}


def resolve(source: str) -> str:
    """`real` means the mirror that RTX_DATA names, else the hub; the others mean themselves."""
    if source == "real":
        return "mirror" if os.environ.get("RTX_DATA") else "hub"
    return source


def load(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The tables of a corpus: its splits, or all rows of each member of a mixture."""
    corpus, source = CORPORA[name], resolve(source)
    if isinstance(corpus, Mixture):
        tables = {member: load(member, source) for member in corpus.members}
        return {member: pd.concat(splits.values(), ignore_index=True) for member, splits in tables.items()}
    if source == "embedded":
        return _generated(corpus)
    splits = {}
    for split, expected in corpus.contents.items():
        table = real_table(source, corpus.hub, corpus.folder, split, corpus.text, "label")
        table = table.set_axis(["text", "label"], axis=1)
        if source == "mirror":
            verify(f"{corpus.folder}/{split}.parquet", content_sha256(table), expected)
        else:
            labels = corpus.labels or {i: i for i in range(len(corpus.classes))}
            if unknown := set(table["label"]) - labels.keys():
                raise RtxError(f"{corpus.hub}, {split}, has the label {unknown.pop()}, not among {[*labels]}.")
            table = table.assign(label=table["label"].map(labels.get)).dropna(subset="label")
        splits[split] = table.astype({"label": "int64"}).reset_index(drop=True)
    return splits


def _generated(corpus: Corpus) -> dict[str, pd.DataFrame]:
    rows = reviews(corpus.domain, sum(corpus.embedded_rows.values()), style=corpus.style)
    splits = {}
    for split, n in corpus.embedded_rows.items():
        splits[split], rows = rows.iloc[:n].reset_index(drop=True), rows.iloc[n:]
    return splits


def content_sha256(frame: pd.DataFrame) -> str:
    """Hash of labels and texts in order, whatever file format they came in."""
    return sha256_of(f"{label}\t{text}\n" for text, label in zip(frame["text"], frame["label"]))


def sha256_of(pieces: Iterable[str | bytes | np.ndarray]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        content = piece.data if isinstance(piece, np.ndarray) else piece
        digest.update(content.encode() if isinstance(content, str) else content)
    return digest.hexdigest()


def verify(name: str, got: str, expected: str) -> None:
    """An error for data that is not what the records were made from."""
    if got != expected:
        raise RtxError(f"{name} has SHA-256 {got[:12]}…, not {expected[:12]}…: replace it, or choose another source.")


def mirror_file(relative: str) -> Path:
    folder = os.environ.get("RTX_DATA")
    if not folder:
        raise RtxError("The source 'mirror' needs RTX_DATA, which is not set: set it to the mirror's folder.")
    path = user_path(folder) / relative
    if not path.is_file():
        raise RtxError(f"RTX_DATA names {folder}, which has no {relative}: name the mirror's folder, or unset it.")
    return path


def real_table(source: str, hub: str, folder: str, split: str, *columns: str) -> pd.DataFrame:
    """These columns of a split, from the hub or from `folder` in the mirror."""
    if source == "hub":
        table = hub_table(hub, split)
    else:
        file = f"{folder}/{split}.parquet"
        table = read_table(mirror_file(file), file)
    if missing := set(columns) - set(table.columns):
        raise RtxError(f"{hub}, {split}, lacks {sorted(missing)} in the {source}: keep the hub's schema.")
    return table.loc[:, list(columns)]


_say = cache(say)  # each line once


def read_table(file: Path, name: str, encoding: str = "utf-8") -> pd.DataFrame:
    """A file as a table, by its suffix; `encoding` is that of its text."""
    if (suffix := file.suffix.lower()) not in FORMATS:
        hint = "; rtx.data.from_text reads it as running text for a decoder" * (suffix == ".txt")
        raise RtxError(f"{name} ends in none of {', '.join(FORMATS)}: give such a file, or a data set's name{hint}.")
    try:
        return resolve_name(FORMATS[suffix])(file, encoding)
    except RtxError as error:
        raise RtxError(f"{name}, {error}") from error
    except (OSError, TypeError, ValueError, csv.Error) as error:  # pandas names the line
        reason = str(error).partition("\n")[0].removeprefix("Error tokenizing data. C error: ").rstrip(".")
        raise RtxError(f"{name} cannot be read ({reason}): repair or replace it.") from error


def decoded(content: bytes, encoding: str = "utf-8") -> str:
    """Text of these bytes, without a byte-order mark; an error begins with the line of what cannot be decoded."""
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        likely = "latin-1" if encoding == "cp1252" else "cp1252"
        likely = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else likely
        place, do = f"line {line:,}, is not {encoding}", f"give its encoding, such as encoding={likely!r}"
        raise RtxError(f"{place} (byte {error.start:,} is 0x{content[error.start]:02x}); {do}.") from None


def separated(file: Path, encoding: str) -> pd.DataFrame:
    """A CSV or TSV, split at the comma, semicolon or tab that gives its first line most columns; an odd one is said."""
    text = decoded(file.read_bytes(), encoding).lstrip("\r\n")
    lines, default = io.StringIO(text, newline=""), "," if file.suffix.lower() == ".csv" else "\t"
    header = next(lines, "")
    delimiter = max((default, *",;\t"), key=lambda candidate: len(next(csv.reader([header], delimiter=candidate), ())))
    if delimiter != default:
        _say(f"{file}: the columns are split at {delimiter!r}")
    table = pd.read_csv(io.StringIO(text, newline=""), sep=delimiter, header=None, dtype="str", keep_default_na=False)
    names, table = table.iloc[0].str.strip().tolist(), table.iloc[1:].reset_index(drop=True)
    rows = sum(1 for line in lines if line.strip("\r\n"))
    if delimiter == "\t" and len(table) != rows:  # texts seldom quoted
        _say(f"{file}: {rows:,} lines are read as {len(table):,} rows; if no text has several, a quote is left open")
    return table.set_axis(names, axis=1)


def json_lines(file: Path, encoding: str) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(decoded(file.read_bytes(), encoding).split("\n"), start=1):
        try:
            rows += [{**json.loads(line, object_pairs_hook=_refuse_repeated)}] if line.strip() else []
        except (RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"line {number} is no JSON object: {error}") from None
    return pd.DataFrame(rows, dtype=object)


def _refuse_repeated(pairs: list[tuple]) -> dict:
    if repeated := [name for name, n in Counter(name for name, _ in pairs).items() if n > 1]:
        raise ValueError(f"it holds {repeated[0]!r} more than once")
    return dict(pairs)


def parquet(file: Path, encoding: str) -> pd.DataFrame:
    return pd.read_parquet(file).reset_index(drop=True)


@contextmanager
def hub_errors(name: str) -> Iterator[None]:
    """A download that fails is one sentence, and nothing else is used instead."""
    try:
        yield
    except Exception as error:  # whatever the client libraries raise, the user's choices are the same
        do = "check the network, or use a mirror (RTX_DATA) or generated text (source='embedded')"
        raise RtxError(f"The hub did not give {name} ({type(error).__name__}): {do}.") from error


def hub_table(name: str, split: str) -> pd.DataFrame:
    """A split of a data set on the hub: of the commit in `REVISIONS`, else of today's."""
    with hub_errors(f"{name} ({split})"):
        import datasets

        datasets.disable_progress_bars()
        table = datasets.load_dataset(name, split=split, revision=REVISIONS.get(name)).to_pandas()
        assert isinstance(table, pd.DataFrame)  # as it is not asked for in batches
        return table


def revision(name: str, source: str) -> dict[str, str]:
    """What a record says of the hub's commits that data sets (of a mixture, joined by " + ") were read at."""
    commits = [REVISIONS[member] for member in name.split(" + ") if member in REVISIONS] if source == "hub" else []
    return {"revision": " + ".join(commits)} if commits else {}
