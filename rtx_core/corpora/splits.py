"""Cutting a corpus into train, validation and test: each way is a function of the source's row order alone.

`seeded`     all rows, permuted by a fixed seed and cut 80/10/10 as the report did (its own permutation was unseeded).
Only of SST-2, whose rows are phrases of sentences:
`published`  the assignment behind the report's Table 1, read from a file that only the mirror has;
`official`   GLUE train cut 95/5 into train and validation, GLUE dev as the test set;
`grouped`    the sentences, permuted and cut 80/10/10, each with its phrases.  GLUE does not say which sentence a phrase is
             from, so a sentence is a row that no longer row contains.  A phrase of several sentences goes to the training
             part if one of them is there, and is left out if they are in validation and test only; so no text of
             validation or test is a training text or a part of one.
"""

import hashlib

import numpy as np
import pandas as pd

from rtx_core.corpora.containment import sentences
from rtx_core.corpora.preprocess import clean_all
from rtx_core.corpora.sources import CORPORA, Mixture, load, mirror_table
from rtx_core.errors import RtxError, unknown

SPLITS = ("seeded", "published", "official", "grouped")
PARTS = ("train", "validation", "test")
PUBLISHED_SHA256 = "3751fa9961dfe425d4a35a32c313541636f49b8ca348dc9ccbdb204fa7cc2371"  # of the parts, a line each
SPLIT_SEED = 0  # of the permutation; RandomState's stream is frozen across NumPy versions

Parts = dict[str, pd.DataFrame]


def parts(name: str, source: str, how: str) -> Parts:
    """{"train", "validation", "test"} of a corpus from a source."""
    tables, corpus = load(name, source), CORPORA[name]
    if how not in corpus.splits:
        raise unknown(f"split of {name}", how, corpus.splits)
    rows = corpus.rows if source != "embedded" else 0
    return mixture(tables, rows) if isinstance(corpus, Mixture) else split(tables, how, source, rows)


def split(corpus: dict[str, pd.DataFrame], how: str, source: str, rows: int = 0) -> Parts:
    """The parts of a corpus's own tables; `seeded` may take a sample of `rows` rows."""
    if how not in SPLITS:
        raise unknown("split", how, SPLITS)
    if how == "official":
        order = np.random.RandomState(SPLIT_SEED).permutation(len(corpus["train"]))
        cut = int(0.95 * len(order))
        train = corpus["train"]
        return _named(train.iloc[order[:cut]], train.iloc[order[cut:]], corpus["validation"])
    pool = pd.concat(corpus.values(), ignore_index=True)
    if how == "published":
        return _published(pool, source)
    return grouped(pool) if how == "grouped" else seeded(pool, rows)


def seeded(pool: pd.DataFrame, rows: int = 0) -> Parts:
    if rows > len(pool):
        raise RtxError(f"The corpus has {len(pool):,} usable rows, expected at least {rows:,}; use the source it was written for.")
    train, validation, test = _cut(len(pool), rows)
    return _named(pool.iloc[train], pool.iloc[validation], pool.iloc[test])


def mixture(pools: dict[str, pd.DataFrame], rows: int) -> Parts:
    """Equally many rows of each pool, distinct, cut alike; the label is the pool's number.  0 rows: as many as the smallest has."""
    distinct = [pool.drop_duplicates("text", ignore_index=True).assign(label=label) for label, pool in enumerate(pools.values())]
    cut = [seeded(pool, rows or min(map(len, distinct))) for pool in distinct]
    return {part: pd.concat([of_pool[part] for of_pool in cut], ignore_index=True) for part in PARTS}


def grouped(pool: pd.DataFrame) -> Parts:
    texts = clean_all(pool["text"])  # as the models see them
    within = sentences(texts)
    part_of = np.empty(1 + max(number for numbers in within.values() for number in numbers), dtype=int)
    for part, numbers in enumerate(_cut(len(part_of))):
        part_of[numbers] = part
    found = [set(part_of[within[text]]) for text in texts]
    chosen = [[0 in of for of in found], [of == {1} for of in found], [of == {2} for of in found]]
    return _named(*(pool[rows] for rows in chosen))


def _cut(n: int, rows: int = 0) -> list[np.ndarray]:
    """The first `rows` (0: all) of a permutation of n in three, 80/10/10: 54,576 / 6,822 / 6,823 of 68,221."""
    order = np.random.RandomState(SPLIT_SEED).permutation(n)[: rows or n]
    a = int(0.8 * len(order))
    return np.split(order, [a, a + int(0.1 * len(order))])


def _published(pool: pd.DataFrame, source: str) -> dict[str, pd.DataFrame]:
    if source != "mirror":
        raise RtxError(
            f"The split 'published' needs the mirror's assignment file sst2/pooled_splits.parquet, but the source is "
            f"{source!r}; set RTX_DATA and source='mirror', or use split='seeded'."
        )
    table = mirror_table("sst2/pooled_splits.parquet")
    if "split_a" not in table or len(table) != len(pool):
        raise RtxError(
            f"The mirror's sst2/pooled_splits.parquet has {len(table):,} rows and columns {list(table.columns)}, expected "
            f"{len(pool):,} rows with a column split_a; fetch it again."
        )
    assignment = table["split_a"].to_numpy()
    if (got := hashlib.sha256("\n".join(map(str, assignment)).encode()).hexdigest()) != PUBLISHED_SHA256:
        raise RtxError(
            f"The mirror's sst2/pooled_splits.parquet has content hash {got[:12]}…, expected {PUBLISHED_SHA256[:12]}…: "
            f"the file is damaged or another version; fetch it again."
        )
    return _named(*(pool[assignment == part] for part in PARTS))


def _named(*frames: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {part: frame.reset_index(drop=True) for part, frame in zip(PARTS, frames, strict=True)}
