"""Cutting SST-2 into train, validation and test: three ways, each a function of the hub's row order alone.

`seeded`     the pooled 68,221 rows, permuted by a fixed seed and cut 80/10/10 as the report did (its own was unseeded);
`published`  the assignment behind the report's Table 1, read from a file that only the mirror has;
`official`   GLUE train cut 95/5 into train and validation, GLUE dev as the test set.
"""

import numpy as np
import pandas as pd

from rtx_core.corpora.sources import mirror_table
from rtx_core.errors import RtxError, unknown

SPLITS = ("seeded", "published", "official")
PARTS = ("train", "validation", "test")
SPLIT_SEED = 0  # of the permutation; RandomState's stream is frozen across NumPy versions


def split(corpus: dict[str, pd.DataFrame], how: str, source: str) -> dict[str, pd.DataFrame]:
    """{"train", "validation", "test"} from the corpus's own `train` and `validation` tables."""
    if how not in SPLITS:
        raise unknown("split", how, SPLITS)
    if how == "official":
        order = np.random.RandomState(SPLIT_SEED).permutation(len(corpus["train"]))
        cut = int(0.95 * len(order))
        train = corpus["train"]
        return _named(train.iloc[order[:cut]], train.iloc[order[cut:]], corpus["validation"])
    pool = pd.concat([corpus["train"], corpus["validation"]], ignore_index=True)
    if how == "published":
        return _published(pool, source)
    return _named(*_cut(pool.iloc[np.random.RandomState(SPLIT_SEED).permutation(len(pool))]))


def _cut(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """80/10/10, the rest in the test part: 54,576 / 6,822 / 6,823 of 68,221."""
    a, b = int(0.8 * len(rows)), int(0.8 * len(rows)) + int(0.1 * len(rows))
    return rows.iloc[:a], rows.iloc[a:b], rows.iloc[b:]


def _published(pool: pd.DataFrame, source: str) -> dict[str, pd.DataFrame]:
    if source != "mirror":
        raise RtxError(
            f"The split 'published' needs the mirror's assignment file sst2/pooled_splits.parquet, but the source is "
            f"{source!r}; set RTX_DATA and source='mirror', or use split='seeded'."
        )
    table = mirror_table("sst2/pooled_splits.parquet")
    assignment = table["split_a"].to_numpy() if "split_a" in table else np.array([])
    if len(assignment) != len(pool) or not np.isin(assignment, PARTS).all():
        raise RtxError(
            f"The mirror's sst2/pooled_splits.parquet must assign each of {len(pool):,} rows to {', '.join(PARTS)} in a column "
            f"split_a; it has {len(table):,} rows and columns {list(table.columns)}: fetch it again."
        )
    sizes = tuple(int((assignment == part).sum()) for part in PARTS)
    if sizes != (expected := tuple(len(part) for part in _cut(pool))):
        raise RtxError(f"The mirror's sst2/pooled_splits.parquet cuts into {sizes}, expected {expected}: fetch it again.")
    return _named(*(pool[assignment == part] for part in PARTS))


def _named(*frames: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {part: frame.reset_index(drop=True) for part, frame in zip(PARTS, frames, strict=True)}
