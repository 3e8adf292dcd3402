"""Cutting SST-2 into train, validation and test: three ways, each a function of the hub's row order alone.

`seeded`     the pooled 68,221 rows, permuted by a fixed seed and cut 80/10/10 as the report did (its own was unseeded);
`published`  the assignment behind the report's Table 1, read from a file that only the mirror has;
`official`   GLUE train cut 95/5 into train and validation, GLUE dev as the test set.
"""

import hashlib

import numpy as np
import pandas as pd

from rtx_core.corpora.sources import mirror_table
from rtx_core.errors import RtxError, unknown

SPLITS = ("seeded", "published", "official")
PARTS = ("train", "validation", "test")
PUBLISHED_SHA256 = "3751fa9961dfe425d4a35a32c313541636f49b8ca348dc9ccbdb204fa7cc2371"  # of the parts, a line each
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
    order = np.random.RandomState(SPLIT_SEED).permutation(len(pool))
    a, b = int(0.8 * len(pool)), int(0.8 * len(pool)) + int(0.1 * len(pool))  # 54,576 / 6,822 / 6,823 of 68,221
    return _named(pool.iloc[order[:a]], pool.iloc[order[a:b]], pool.iloc[order[b:]])


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
