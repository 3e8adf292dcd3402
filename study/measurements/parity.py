"""Whether a loop that tracks a permutation of three holds its parity before the permutation itself (after Li et al.
2025, who find networks that do): linear probes of its states, as in `spans`, for even or odd.
"""

import numpy as np
import torch

from rtx_core.data.tasks import EVALUATION_SEED
from rtx_core.errors import RtxError
from rtx_core.evaluate import inside
from study.measurements.spans import TEXTS


def odd(table: np.ndarray) -> np.ndarray:
    """(6,): whether each element of S3 is odd, that is an exchange: its square, and not itself, is the identity."""
    elements = np.arange(len(table))
    identity = int(np.flatnonzero((table == elements).all(1))[0])
    return (table[elements, elements] == identity) & (elements != identity)


def of_run(record, study) -> list[tuple]:
    """Shares that probes read, (passes + 1, places): the parity of the product of the first n elements at place n."""
    if study.task.config.group != "S3":
        raise RtxError(f"parity got the group {study.task.config.group}; expected S3.")
    model, task = study.trained(record).cpu(), study.task
    random, letters = np.random.RandomState([EVALUATION_SEED, 2]), task.config.letters
    inputs, targets = task.texts(random, TEXTS, letters)
    parities, order = torch.from_numpy(odd(task.table)[targets].astype(np.int64)), np.random.RandomState(0)
    ids, text = torch.from_numpy(inputs), torch.arange(TEXTS)
    states = [model.word(ids).detach()]
    states += [state.view(*ids.shape, -1).clone() for state in inside.steps(model, ids)]
    rows = [[inside.probe(state[:, n], parities[:, n], text, order) for n in range(letters)] for state in states]
    parity = {field: [[getattr(p, field) for p in row] for row in rows] for field in inside.Probe._fields}
    return [({"places": [1, letters], "parity": parity}, None)]
