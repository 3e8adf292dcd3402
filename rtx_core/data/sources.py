"""Where text comes from: the hub, a local mirror in the hub's schema, or text generated here.

Every source gives the same thing: a dict of splits, each a table with columns `text` (str) and `label` (int).
Which one is used is always said by the caller and recorded; real text is never replaced by generated text.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from rtx_core.data.corpora import CORPORA, Corpus, Mixture
from rtx_core.data.synthetic import reviews
from rtx_core.errors import RtxError


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
        file = f"{corpus.folder}/{split}.parquet"
        table = hub_table(corpus.hub, split) if source == "hub" else mirror_table(file)
        labels = corpus.labels if source == "hub" else None
        splits[split] = _tidy(table, corpus, labels, f"{source} {corpus.hub} {split}")
        if source == "mirror":
            verify(file, content_sha256(splits[split]), expected)
    return splits


def _tidy(
    table: pd.DataFrame, corpus: Corpus, labels: dict[int, int | None] | None, where: str
) -> pd.DataFrame:
    if missing := {corpus.text, "label"} - set(table.columns):
        raise RtxError(f"{where} lacks the columns {sorted(missing)}: it must keep the hub's schema.")
    table = table.rename(columns={corpus.text: "text"})[["text", "label"]]
    labels = labels or {i: i for i in range(len(corpus.classes))}
    wrong = table[~table["label"].isin(labels)]
    if len(wrong):
        label, row = wrong["label"].iloc[0], wrong.index[0]
        raise RtxError(f"{where} has label {label} in row {row}: labels are 0 to {len(labels) - 1}.")
    table = table.assign(label=table["label"].map(labels)).dropna(subset="label")
    return table.astype({"label": "int64"}).reset_index(drop=True)


def _generated(corpus: Corpus) -> dict[str, pd.DataFrame]:
    rows = reviews(corpus.domain, sum(corpus.embedded_rows.values()), style=corpus.style)
    splits = {}
    for split, n in corpus.embedded_rows.items():
        splits[split], rows = rows[:n].reset_index(drop=True), rows[n:]
    return splits


def content_sha256(frame: pd.DataFrame) -> str:
    """Hash of labels and texts in order, whatever file format they came in."""
    return sha256_of(f"{label}\t{text}\n" for text, label in zip(frame["text"], frame["label"]))


def sha256_of(pieces: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode())
    return digest.hexdigest()


def verify(what: str, got: str, expected: str) -> None:
    """An error for data that is not what the records were made from."""
    if got != expected:
        found = f"SHA-256 {got[:12]}…, not {expected[:12]}…"
        raise RtxError(f"{what} has {found}: replace it with a sound copy, or choose another source.")


def mirror_file(relative: str) -> Path:
    named = os.environ.get("RTX_DATA")
    if not named:
        raise RtxError("The source 'mirror' needs RTX_DATA, which is not set: set it to the mirror's folder.")
    root = Path(named).expanduser()
    if not (root / relative).is_file():
        kind = f"has no {relative}" if root.is_dir() else "is a file" if root.exists() else "is missing"
        raise RtxError(f"RTX_DATA names {named}, which {kind}: name the mirror's folder, or unset it.")
    return root / relative


def mirror_table(relative: str) -> pd.DataFrame:
    path = mirror_file(relative)
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise RtxError(f"{relative} of the mirror cannot be read ({reason}): replace it.") from error


@contextmanager
def asking_the_hub(what: str) -> Iterator[None]:
    """A download that fails is one sentence, and nothing else is used instead."""
    try:
        yield
    except Exception as error:  # whatever the client libraries raise, the user's choices are the same
        raise RtxError(
            f"The hub did not give {what} ({type(error).__name__}): check the network, or use a mirror "
            f"(RTX_DATA) or source='embedded', whose results are synthetic."
        ) from error


def hub_table(name: str, split: str, **options: object) -> pd.DataFrame:
    with asking_the_hub(f"{name} ({split})"):
        import datasets

        datasets.disable_progress_bars()
        return datasets.load_dataset(name, split=split, **options).to_pandas()
