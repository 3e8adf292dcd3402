"""Where text comes from: the hub, a local mirror in the hub's schema, or the embedded corpus.

Every source gives the same thing: a dict of splits, each a table with columns `text` (str) and `label` (int).
Which one is used is always said by the caller and written into the record; real text is never replaced by embedded text.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rtx_core.corpora import embedded
from rtx_core.errors import RtxError, unknown

SOURCES = ("real", "hub", "mirror", "embedded")


@dataclass(frozen=True)
class Corpus:
    hub: str  # dataset name on the hub
    folder: str  # its folder in a mirror, one parquet file a split
    text: str  # column that holds the text
    classes: tuple[str, ...]  # class names, in label order
    contents: dict[str, str]  # split -> content hash that a mirror must have; the hub checks its own files
    domain: str  # of the embedded stand-in
    style: str  # of the embedded stand-in
    embedded_rows: dict[str, int]  # split -> size of the embedded stand-in


CORPORA = {
    "sst2": Corpus(
        hub="stanfordnlp/sst2",
        folder="sst2",
        text="sentence",
        classes=("negative", "positive"),
        contents={
            "train": "d69ae5db77b9491ec657699306821b2558c5dd96f74406a63cd773321eca0fb7",
            "validation": "357a99d8042dea9217f4d51d9a5d60ad4f964c60aa08dc17b7b06d2879936437",
        },
        domain="movie",
        style="phrase",
        embedded_rows={"train": 5000, "validation": 500},
    ),
}


def resolve(source: str) -> str:
    """`real` means the mirror that RTX_DATA names, or the hub where there is none; the others mean themselves."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    if source == "real":
        return "mirror" if os.environ.get("RTX_DATA") else "hub"
    return source


def load(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The splits of a corpus from a source (see `resolve`)."""
    if name not in CORPORA:
        raise unknown("corpus", name, CORPORA)
    corpus, source = CORPORA[name], resolve(source)
    if source == "embedded":
        return _embedded(corpus)
    read = {"hub": _from_hub, "mirror": _from_mirror}[source]
    splits = {split: _tidy(read(corpus, split), corpus, f"{source} {corpus.hub} {split}") for split in corpus.contents}
    for split, frame in splits.items():
        if source == "mirror" and (got := content_sha256(frame)) != corpus.contents[split]:
            raise RtxError(
                f"The mirror's {corpus.folder}/{split}.parquet has content hash {got[:12]}…, expected "
                f"{corpus.contents[split][:12]}…: the data is damaged or another version; fetch it again."
            )
    return splits


def content_sha256(frame: pd.DataFrame) -> str:
    """Hash of labels and texts in order, whatever file format they came in."""
    digest = hashlib.sha256()
    for text, label in zip(frame["text"], frame["label"]):
        digest.update(f"{label}\t{text}\n".encode())
    return digest.hexdigest()


def mirror_file(relative: str) -> Path:
    """A file of the mirror; one sentence if there is no mirror or no such file."""
    root = os.environ.get("RTX_DATA")
    if not root:
        raise RtxError("The source 'mirror' needs the variable RTX_DATA, which is not set; set it to the mirror's folder.")
    path = Path(root).expanduser() / relative
    if not path.is_file():
        raise RtxError(f"The mirror has no file {relative}; RTX_DATA must name a folder that holds it.")
    return path


def from_hub(fetch, what: str):
    """Run a hub download; a failure to reach the hub becomes one sentence, and nothing else is used instead."""
    try:
        return fetch()
    except Exception as error:  # whatever the client libraries raise, the user's choices are the same
        raise RtxError(
            f"The hub did not give {what} ({type(error).__name__}); check the network, or use a mirror (RTX_DATA) "
            f"or source='embedded', whose results are synthetic."
        ) from error


def _from_hub(corpus: Corpus, split: str) -> pd.DataFrame:
    import datasets

    datasets.disable_progress_bars()
    return from_hub(lambda: datasets.load_dataset(corpus.hub, split=split).to_pandas(), f"{corpus.hub} ({split})")


def _from_mirror(corpus: Corpus, split: str) -> pd.DataFrame:
    return mirror_table(f"{corpus.folder}/{split}.parquet")


def mirror_table(relative: str) -> pd.DataFrame:
    """A parquet file of the mirror; a damaged one is one sentence."""
    try:
        return pd.read_parquet(mirror_file(relative))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise RtxError(f"The mirror's {relative} is no readable parquet file ({reason}); fetch it again.") from error


def _tidy(frame: pd.DataFrame, corpus: Corpus, where: str) -> pd.DataFrame:
    missing = {corpus.text, "label"} - set(frame.columns)
    if missing:
        raise RtxError(f"{where} has columns {list(frame.columns)} and lacks {sorted(missing)}; it must keep the hub's schema.")
    frame = frame.rename(columns={corpus.text: "text"})[["text", "label"]]
    wrong = frame[~frame["label"].isin(range(len(corpus.classes)))]
    if len(wrong):
        raise RtxError(
            f"{where} has label {wrong['label'].iloc[0]} in row {wrong.index[0]}; labels are 0 to {len(corpus.classes) - 1}."
        )
    return frame


def _embedded(corpus: Corpus) -> dict[str, pd.DataFrame]:
    rows = embedded.reviews(corpus.domain, sum(corpus.embedded_rows.values()), seed=0, style=corpus.style)
    splits, start = {}, 0
    for split, n in corpus.embedded_rows.items():
        splits[split] = rows.iloc[start : start + n].reset_index(drop=True)[["text", "label"]]
        start += n
    return splits
