"""Where text comes from: the hub, a local mirror in the hub's schema, or text generated here.

Every source gives the same thing: a dict of splits, each a table with columns `text` (str) and `label` (int).
Which one is used is always said by the caller and recorded; real text is never replaced by generated text.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from rtx_core.data.corpora import CORPORA, SOURCES, Corpus, Mixture
from rtx_core.data.synthetic import reviews
from rtx_core.errors import RtxError, unknown


def resolve(source: str) -> str:
    """`real` means the mirror that RTX_DATA names, else the hub; the others mean themselves, as do one's own files."""
    if source not in (*SOURCES, "files"):
        raise unknown("source", source, SOURCES)
    if source == "real":
        return "mirror" if os.environ.get("RTX_DATA") else "hub"
    return source


def load(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The tables of a corpus: its splits, or all rows of each member of a mixture."""
    if name not in CORPORA:
        raise unknown("corpus", name, CORPORA)
    corpus = CORPORA[name]
    source = resolve(source)
    if isinstance(corpus, Mixture):
        tables = {member: load(member, source) for member in corpus.members}
        return {member: pd.concat(splits.values(), ignore_index=True) for member, splits in tables.items()}
    if source == "embedded":
        return _generated(corpus)
    splits = {}
    for split, expected in corpus.contents.items():
        if source == "hub":
            raw = hub_table(corpus.hub, split)
        else:
            raw = mirror_table(f"{corpus.folder}/{split}.parquet")
        frame = _tidy(
            raw, corpus, f"{source} {corpus.hub} {split}", corpus.labels if source == "hub" else None
        )
        if source == "mirror":
            verify(f"{corpus.folder}/{split}.parquet", content_sha256(frame), expected)
        splits[split] = frame
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
    """One sentence for data that is not what the records were made from."""
    if got != expected:
        raise RtxError(
            f"{what} has SHA-256 {got[:12]}…, not {expected[:12]}…, so it is damaged or another version: "
            f"replace it, or choose another source."
        )


def mirror_file(relative: str) -> Path:
    """A file of the mirror; one sentence if there is no mirror or no such file."""
    named = os.environ.get("RTX_DATA")
    if not named:
        raise RtxError("The source 'mirror' needs RTX_DATA, which is not set: set it to the mirror's folder.")
    root = Path(named).expanduser()
    if not root.is_dir():
        kind = "a file" if root.exists() else "missing"
        raise RtxError(
            f"RTX_DATA names {named}, which is {kind}: set it to the mirror's folder, or unset it."
        )
    if not (root / relative).is_file():
        raise RtxError(
            f"RTX_DATA names {named}, which has no {relative}: set it to a folder that holds this file."
        )
    return root / relative


def mirror_table(relative: str) -> pd.DataFrame:
    return read_parquet(mirror_file(relative), f"The mirror's {relative}")


def read_parquet(path: Path, what: str) -> pd.DataFrame:
    """A parquet file; a damaged one is one sentence."""
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise RtxError(
            f"{what} cannot be read as parquet ({reason}): replace it with a sound copy."
        ) from error


def from_hub(fetch, what: str):
    """Run a hub download; a failure becomes one sentence, and nothing else is used instead."""
    try:
        return fetch()
    except Exception as error:  # whatever the client libraries raise, the user's choices are the same
        raise RtxError(
            f"The hub did not give {what} ({type(error).__name__}): check the network, or use a mirror "
            f"(RTX_DATA) or source='embedded', whose results are synthetic."
        ) from error


def hub_table(name: str, split: str, **options: object) -> pd.DataFrame:
    """A split of a data set on the hub."""

    def fetch() -> pd.DataFrame:
        import datasets

        datasets.disable_progress_bars()
        return datasets.load_dataset(name, split=split, **options).to_pandas()

    return from_hub(fetch, f"{name} ({split})")


def _tidy(
    frame: pd.DataFrame, corpus: Corpus, where: str, labels: dict[int, int | None] | None
) -> pd.DataFrame:
    missing = {corpus.text, "label"} - set(frame.columns)
    if missing:
        columns = list(frame.columns)
        raise RtxError(
            f"{where} has columns {columns} and lacks {sorted(missing)}: it must keep the hub's schema."
        )
    frame = frame.rename(columns={corpus.text: "text"})[["text", "label"]]
    known = range(len(corpus.classes)) if labels is None else labels
    wrong = frame[~frame["label"].isin(known)]
    if len(wrong):
        label, row = wrong["label"].iloc[0], wrong.index[0]
        raise RtxError(f"{where} has label {label} in row {row}: labels are 0 to {len(known) - 1}.")
    if labels is None:
        return frame
    frame = frame.assign(label=frame["label"].map(labels)).dropna(subset="label")
    return frame.astype({"label": "int64"}).reset_index(drop=True)


def _generated(corpus: Corpus) -> dict[str, pd.DataFrame]:
    rows = reviews(corpus.domain, sum(corpus.embedded_rows.values()), seed=0, style=corpus.style)
    splits = {}
    for split, n in corpus.embedded_rows.items():
        splits[split], rows = rows[:n].reset_index(drop=True), rows[n:]
    return splits
