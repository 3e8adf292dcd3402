"""Where the heads of a model over pointers look in each pass: the attention that they give to the letters on the chain.

Only the positions that are asked count.  p_j is the letter j hops from the letter in question.
"""

import numpy as np
import torch

from rtx_core.data.algorithmic import IGNORE_INDEX
from rtx_core.data.tasks import EVALUATION_SEED
from rtx_core.evaluate import inside

TEXTS, MOST_HOPS = 128, 8


def of_run(record, study) -> list[tuple]:
    """Mean attention to p_0 … p_hops, (steps, layers, heads, hops + 1), in texts that ask for `hops`."""
    model, task = study.trained(record).cpu(), study.task
    hops, random = min(MOST_HOPS, task.config.hops), np.random.RandomState([EVALUATION_SEED, 3])
    ids, targets = map(torch.from_numpy, task.texts(random, np.full(TEXTS, hops), IGNORE_INDEX))
    alpha = inside.attention(model, ids)
    rows = inside.roles(alpha, ids, targets >= 0, most=hops)
    shares = np.array([[round(row[f"p_{j}"], 5) for j in range(hops + 1)] for row in rows])
    return [({"hops": hops, "texts": TEXTS, "attention": shares.reshape(*alpha.shape[:3], -1).tolist()}, None)]
