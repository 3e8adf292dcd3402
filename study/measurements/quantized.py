"""Trained looped models with the weights of their layers rounded to b bits afterwards: the error by number of passes.

A shared layer repeats its rounding errors in every pass, so loops should suffer more than layers of their own do.
Embedding and norms stay exact; one scale a row of a matrix (`rounding.rounded`).
"""

from contextlib import nullcontext

import torch

from study.measurements.rounding import with_rounded_layers

BITS = (8, 6, 5, 4, 3)


def of_run(record, study) -> list[tuple]:
    """The run's test at every number of bits."""
    model, cpu = study.trained(record).cpu(), torch.device("cpu")
    results = []
    for bits in BITS:
        test, predictions = study.task.test(with_rounded_layers(model, bits), cpu, nullcontext())
        results.append(({"suffix": [f"int{bits}"], "bits": bits, "test": test}, predictions))
    return results
