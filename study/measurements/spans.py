"""Which products a loop that tracks a state holds after each pass: linear probes of its states on the word problem.

`prefix`: at each place n, the product of the first n elements, which is what is asked for there.
`spans`: at the second half of the places, the product of the last m elements, which a scan would build and a walk from
the left would not.
"""

import numpy as np
import torch

from rtx_core.data.tasks import EVALUATION_SEED
from rtx_core.evaluate import inside

SPANS = (1, 2, 3, 4, 8)
TEXTS = 1024


def of_last(table: np.ndarray, elements: np.ndarray, m: int) -> np.ndarray:
    """(B, N): the product of the last m elements (B, N) up to each place; −1 where there are fewer."""
    length = elements.shape[1] - m + 1
    products = elements[:, :length]
    for k in range(1, m):
        products = table[products, elements[:, k : k + length]]
    return np.pad(products, ((0, 0), (m - 1, 0)), constant_values=-1)


def of_run(record, study) -> list[tuple]:
    """Shares that probes read, (passes + 1, places) and (passes + 1, spans): before the first pass, and after each."""
    model, task = study.trained(record).cpu(), study.task
    random, letters = np.random.RandomState([EVALUATION_SEED, 2]), task.config.letters
    inputs, targets = task.texts(random, TEXTS, letters)
    elements, order = inputs % len(task.table), np.random.RandomState(0)
    ids, half = torch.from_numpy(inputs), slice(letters // 2, letters)
    text = torch.arange(TEXTS)
    states = [model.word(ids).detach()]
    states += [state.view(*ids.shape, -1).clone() for state in inside.steps(model, ids)]
    span_targets = [torch.from_numpy(of_last(task.table, elements, m)[:, half].reshape(-1)) for m in SPANS]
    texts, prefix, spans = text.repeat_interleave(half.stop - half.start), [], []
    for state in states:
        prefix_targets = (torch.from_numpy(targets[:, n]) for n in range(letters))
        prefix.append([inside.probe(state[:, n], y, text, order) for n, y in enumerate(prefix_targets)])
        spans.append([inside.probe(state[:, half].flatten(0, 1), y, texts, order) for y in span_targets])
    content = {"spans_read": SPANS, "places": [1, letters], "late_places": [half.start + 1, letters]}
    for name, probes in (("prefix", prefix), ("spans", spans)):
        content[name] = {field: [[getattr(p, field) for p in row] for row in probes] for field in inside.Probe._fields}
    return [(content, None)]
