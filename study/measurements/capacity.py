"""Models of random facts with every matrix, embeddings included, rounded to b bits: what they still store.

A model of P parameters of b bits each is one of at most 2^(b P) models, so it cannot store more than b P bits, however
often its layers run.
"""

from contextlib import nullcontext
from copy import deepcopy

import torch

from study.measurements.rounding import rounded

BITS = (8, 6, 5, 4, 3, 2)


@torch.no_grad()
def of_run(record, study) -> list[tuple]:
    """The run's test at every number of bits."""
    model, cpu = study.trained(record).cpu(), torch.device("cpu")
    results = []
    for bits in BITS:
        copy = deepcopy(model)
        for parameter in copy.parameters():
            parameter.copy_(rounded(parameter, bits))
        test, predictions = study.task.test(copy, cpu, nullcontext())
        results.append(({"suffix": [f"int{bits}"], "bits": bits, "test": test}, predictions))
    return results
