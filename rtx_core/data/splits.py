"""Splitting a corpus into train, validation and test: each way is a function of the source's row order alone.

`seeded`     all rows, permuted by a fixed seed and cut 80/10/10 as the report did, unseeded.
Only of SST-2, whose rows are phrases of sentences:
`published`  the assignment behind the report's Table 1, read from a file that only the mirror has;
`official`   GLUE train cut 95/5 into train and validation, GLUE dev as the test set;
`grouped`    the sentences (rows that no longer row contains), permuted and cut 80/10/10, each with its phrases.  A
             phrase of several sentences goes to the training part if one of them is there, and is left out if they
             are in validation and test only; so no text of validation or test is (a part of) a training text.

Then subsets: the shortest or longest texts of every part, and a stratified share of the training texts.
"""

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from rtx_core.data.config import ClassificationData
from rtx_core.data.corpora import CORPORA, Mixture
from rtx_core.data.preprocess import clean_all
from rtx_core.data.sources import load, mirror_file, read_table, resolve, revision, sha256_of, verify
from rtx_core.errors import RtxError, unknown

PARTS = ("train", "validation", "test")
PUBLISHED_FILE = "sst2/pooled_splits.parquet"  # its hash is of the parts, a line each
PUBLISHED_SHA256 = "3751fa9961dfe425d4a35a32c313541636f49b8ca348dc9ccbdb204fa7cc2371"
SPLIT_SEED = 0  # of all permutations here; RandomState's stream is frozen across NumPy versions

Parts = dict[str, pd.DataFrame]


def parts(data: ClassificationData) -> Parts:
    """{"train", "validation", "test"} of a corpus: loaded, split, cut down."""
    corpus, source = CORPORA[data.corpus], resolve(data.source)
    tables = load(data.corpus, source)
    rows = corpus.rows if source != "embedded" else 0
    if isinstance(corpus, Mixture):
        complete = mixture(tables, rows)
    else:
        complete = split(tables, data.split, source, rows)
    return subset(complete, data)


def facts(data: ClassificationData) -> dict:
    """What a record says of the data before it is tokenised."""
    source = resolve(data.source)
    content = {"name": CORPORA[data.corpus].name(source), "source": source}
    content |= revision(content["name"], source) | {"split": data.split, "max_length": data.max_length}
    content |= {"fraction": data.fraction} if data.fraction < 1 else {}
    return content | ({n: getattr(data, n) for n in ("length", "length_fraction")} if data.length != "all" else {})


def vocabulary_source(data: ClassificationData) -> str | None:
    """Where BERT's vocabulary comes from; None of generated texts, for which one is trained."""
    return None if data.source == "embedded" else resolve(data.source)


def split(tables: dict[str, pd.DataFrame], how: str, source: str = "", rows: int = 0) -> Parts:
    """The parts of a corpus's own tables; `seeded` may take a sample of `rows` rows."""
    pool = pd.concat(tables.values(), ignore_index=True)
    match how:
        case "seeded":
            chosen = seeded(len(pool), rows)
        case "grouped":
            chosen = grouped(pool)
        case "published":
            chosen = published(source)
        case "official":
            n = len(tables["train"])
            chosen = [*np.split(_permutation(n), [int(0.95 * n)]), np.arange(n, len(pool))]
        case _:
            raise unknown("split", how, ("seeded", "grouped", "published", "official"))
    return {part: pool.iloc[rows].reset_index(drop=True) for part, rows in zip(PARTS, chosen, strict=True)}


def _permutation(n: int) -> np.ndarray:
    return np.random.RandomState(SPLIT_SEED).permutation(n)


def seeded(n: int, rows: int = 0) -> list[np.ndarray]:
    """The first `rows` (0: all) of a permutation of n, 80/10/10: 54,576 / 6,822 / 6,823 of 68,221."""
    if rows > n:
        raise RtxError(f"The corpus has {n:,} usable rows of {rows:,} needed: use another source.")
    order = _permutation(n)[: rows or n]
    a = int(0.8 * len(order))
    return np.split(order, [a, a + int(0.1 * len(order))])


def mixture(pools: dict[str, pd.DataFrame], rows: int) -> Parts:
    """Equally many distinct rows of each pool (0: what the smallest has), labelled by the pool's number."""
    distinct = [pool.drop_duplicates("text", ignore_index=True) for pool in pools.values()]
    rows = rows or min(map(len, distinct))
    labelled = [{"train": pool.assign(label=label)} for label, pool in enumerate(distinct)]
    members = [split(tables, "seeded", rows=rows) for tables in labelled]
    return {part: pd.concat([member[part] for member in members], ignore_index=True) for part in PARTS}


def grouped(pool: pd.DataFrame) -> list[np.ndarray]:
    texts = clean_all(pool["text"])  # as the models see them
    numbers_of = sentences(texts)
    part_of = np.empty(1 + max(number for numbers in numbers_of.values() for number in numbers), dtype=int)
    for part, numbers in enumerate(seeded(len(part_of))):
        part_of[numbers] = part
    parts = [set(part_of[numbers_of[text]]) for text in texts]
    chosen = [[0 in each for each in parts], [each == {1} for each in parts], [each == {2} for each in parts]]
    return [np.flatnonzero(rows) for rows in chosen]


def published(source: str) -> list[np.ndarray]:
    if source != "mirror":
        raise RtxError(f"The split 'published' is a mirror's {PUBLISHED_FILE}: set RTX_DATA, or use split='seeded'.")
    table = read_table(mirror_file(PUBLISHED_FILE), PUBLISHED_FILE)
    assignment = table["split_a"] if "split_a" in table else pd.Series()
    verify(PUBLISHED_FILE, sha256_of("\n".join(map(str, assignment))), PUBLISHED_SHA256)
    return [np.flatnonzero(assignment == part) for part in PARTS]


def subset(complete: Parts, data: ClassificationData) -> Parts:
    """`complete` cut down; lengths come first, so that `fraction` is of the short or long training texts."""
    if data.length != "all":
        complete = {p: by_length(frame, data.length, data.length_fraction) for p, frame in complete.items()}
    if data.fraction < 1:
        complete = complete | {"train": stratified(complete["train"], data.fraction)}
    for part, frame in complete.items():
        if frame.empty:
            raise RtxError(f"fraction {data.fraction:g} with length {data.length!r} leaves no {part} text: take more.")
    return complete


def stratified(frame: pd.DataFrame, fraction: float) -> pd.DataFrame:
    """This share of the rows, labels in proportion, in their order; a larger share holds every smaller one: the rows,
    permuted, are ranked by how far through their own label they stand, and the first ones are kept."""
    of_label = frame.iloc[_permutation(len(frame))].groupby("label")["label"]
    rank = (of_label.cumcount() + 0.5) / of_label.transform("size")
    selected = rank.sort_values(kind="stable").index[: round(fraction * len(frame))]
    return frame.loc[np.sort(selected)].reset_index(drop=True)


def by_length(frame: pd.DataFrame, length: str, fraction: float) -> pd.DataFrame:
    """The shortest or longest texts by words, in their order; among equals the first rows."""
    words = frame["text"].str.split().str.len()
    ranked = words.sort_values(kind="stable", ascending=length == "short").index
    return frame.loc[np.sort(ranked[: int(fraction * len(frame))])].reset_index(drop=True)


def sentences(texts: Iterable[str]) -> dict[str, list[int]]:
    """Text -> numbers of the sentences it is, or a contiguous run of words of; a sentence is a text that no longer one
    contains.  From the longest on: one that no earlier sentence marked marks every run of its words that is a text.
    """
    numbers_of: dict[str, list[int]] = {text: [] for text in texts}
    number = 0
    for text in sorted(numbers_of, key=lambda text: (-text.count(" "), text)):
        if numbers_of[text]:
            continue
        ends = [blank.start() for blank in re.finditer(" |$", text)]
        starts = [0, *(end + 1 for end in ends[:-1])]
        for i, start in enumerate(starts):
            for end in ends[i:]:
                numbers = numbers_of.get(text[start:end])
                if numbers is not None and numbers[-1:] != [number]:
                    numbers.append(number)
        number += 1
    return numbers_of


def contained(texts: Iterable[str], rows: Iterable[str]) -> list[bool]:
    """Of each text, whether it is a row or a part of one."""
    spaced = [[f" {' '.join(text.split())} " for text in column] for column in (texts, rows)]
    everything = "\n".join(spaced[1])
    return [text in everything for text in spaced[0]]
