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
    classes: tuple[str, ...]  # class names, in label order
    contents: dict[str, str]  # split -> content hash that a mirror must have; the hub checks its own files
    domain: str  # of the embedded stand-in
    style: str  # of the embedded stand-in
    embedded_rows: dict[str, int]  # split -> size of the embedded stand-in
    text: str = "text"  # column that holds the text
    labels: dict[int, int | None] | None = None  # the hub's label -> ours, None: dropped; unset where they are the same
    stand_in: str = ""  # what a mirror holds where it cannot hold the hub's own rows
    rows: int = 0  # a fixed random sample of this many rows of real text; 0 = all
    splits: tuple[str, ...] = ("seeded",)  # ways of cutting it (see `splits`)

    def name(self, source: str) -> str:
        """What records and pages call the data from this source."""
        if source == "embedded":
            return f"embedded {self.domain} {self.style}s"
        return f"{self.stand_in} in place of {self.hub}" if source == "mirror" and self.stand_in else self.hub


@dataclass(frozen=True)
class Mixture:
    """A corpus whose label says where a text comes from: equally many rows of several corpora, their own labels ignored."""

    classes: tuple[str, ...]  # class names, in label order
    members: tuple[str, ...]  # the corpora behind them
    rows: int  # of each member, without repetitions; on the embedded corpus as many as the smallest has
    splits: tuple[str, ...] = ("seeded",)

    def name(self, source: str) -> str:
        return " + ".join(CORPORA[member].name(source) for member in self.members)


POLARITY = ("negative", "positive")
DOMAINS = ("local business", "movie", "shopping")  # the order of the report's Table 3
CORPORA: dict[str, Corpus | Mixture] = {
    "sst2": Corpus(
        hub="stanfordnlp/sst2",
        folder="sst2",
        text="sentence",
        classes=POLARITY,
        contents={
            "train": "d69ae5db77b9491ec657699306821b2558c5dd96f74406a63cd773321eca0fb7",
            "validation": "357a99d8042dea9217f4d51d9a5d60ad4f964c60aa08dc17b7b06d2879936437",
        },
        domain="movie",
        style="phrase",
        embedded_rows={"train": 5000, "validation": 500},
        splits=("seeded", "published", "official", "grouped"),
    ),
    "yelp": Corpus(
        hub="Yelp/yelp_review_full",
        folder="yelp_polarity",
        labels={0: 0, 1: 0, 2: None, 3: 1, 4: 1},  # one to five stars; three say neither
        stand_in="another sample of the Yelp challenge of 2015",
        classes=POLARITY,
        contents={"train": "ba91b1cc831d48b8fc989a6cd0f87c1acb0b8d4a0dfaf3e2f566d67589f0d9de"},
        rows=68_221,  # as many as SST-2 has
        domain="restaurant",
        style="review",
        embedded_rows={"train": 1500},
    ),
    "imdb": Corpus(
        hub="stanfordnlp/imdb",
        folder="imdb",
        classes=POLARITY,
        contents={"train": "36d6a5f9fb26eab941a672bb0287c64306839e958e62bf00eb0491e06f4902a6", "test": "cb8b470f655cc84034cc6e190b5250a2d28cb9f516e5e93dd5940831d0d7c3a4"},
        domain="movie",
        style="review",
        embedded_rows={"train": 1500},
    ),
    "amazon": Corpus(
        hub="mteb/amazon_polarity",
        folder="amazon_polarity",
        stand_in="the older Multi-Domain Sentiment Dataset",
        classes=POLARITY,
        contents={"train": "9e3b4c04e720b4bec49871ece16f2b107c234f5067a71db54b05e66f5ce9d78d"},
        domain="product",
        style="review",
        embedded_rows={"train": 1500},
    ),
    "multi-domain": Mixture(classes=DOMAINS, members=("yelp", "sst2", "amazon"), rows=22_740),
    "multi-domain-imdb": Mixture(classes=DOMAINS, members=("yelp", "imdb", "amazon"), rows=22_740),
}


def resolve(source: str) -> str:
    """`real` means the mirror that RTX_DATA names, or the hub where there is none; the others mean themselves."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    if source == "real":
        return "mirror" if os.environ.get("RTX_DATA") else "hub"
    return source


def load(name: str, source: str) -> dict[str, pd.DataFrame]:
    """The tables of a corpus from a source (see `resolve`): its splits, or all rows of each member of a mixture."""
    if name not in CORPORA:
        raise unknown("corpus", name, CORPORA)
    corpus, source = CORPORA[name], resolve(source)
    if isinstance(corpus, Mixture):
        return {member: pd.concat(load(member, source).values(), ignore_index=True) for member in corpus.members}
    if source == "embedded":
        return _embedded(corpus)
    read = {"hub": _from_hub, "mirror": _from_mirror}[source]
    labels = corpus.labels if source == "hub" else None
    splits = {split: _tidy(read(corpus, split), corpus, f"{source} {corpus.hub} {split}", labels) for split in corpus.contents}
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


def _tidy(frame: pd.DataFrame, corpus: Corpus, where: str, labels: dict[int, int | None] | None) -> pd.DataFrame:
    missing = {corpus.text, "label"} - set(frame.columns)
    if missing:
        raise RtxError(f"{where} has columns {list(frame.columns)} and lacks {sorted(missing)}; it must keep the hub's schema.")
    frame = frame.rename(columns={corpus.text: "text"})[["text", "label"]]
    known = range(len(corpus.classes)) if labels is None else labels
    wrong = frame[~frame["label"].isin(known)]
    if len(wrong):
        raise RtxError(f"{where} has label {wrong['label'].iloc[0]} in row {wrong.index[0]}; labels are 0 to {len(known) - 1}.")
    if labels is None:
        return frame
    frame = frame.assign(label=frame["label"].map(labels)).dropna(subset="label")
    return frame.astype({"label": "int64"}).reset_index(drop=True)


def _embedded(corpus: Corpus) -> dict[str, pd.DataFrame]:
    rows = embedded.reviews(corpus.domain, sum(corpus.embedded_rows.values()), seed=0, style=corpus.style)
    splits, start = {}, 0
    for split, n in corpus.embedded_rows.items():
        splits[split] = rows.iloc[start : start + n].reset_index(drop=True)[["text", "label"]]
        start += n
    return splits
