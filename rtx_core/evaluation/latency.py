"""Inference latency measured properly: warmed up, synchronised, on unpadded sentences, median and spread."""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rtx_core.corpora.tokens import Tokens
from rtx_core.models.packed import Packed

WARM_UP = 10  # batches before the clock starts
TIMED = 200  # batches under the clock


@torch.inference_mode()
def latency(
    logits: Callable[[Packed], Tensor], tokens: Tokens, batch_sizes: tuple[int, ...], device: torch.device, autocast: torch.autocast
) -> list[dict]:
    """For each batch size: milliseconds from host ids to host logits over `TIMED` random batches of real sentences.

    `logits` is a model in evaluation mode, or what `serving` made of it.
    """
    rows_of = np.random.RandomState(0)
    results = []
    for size in batch_sizes:
        times = []
        for i in range(WARM_UP + TIMED):
            ids, lengths, _ = tokens.take(rows_of.choice(len(tokens), size=min(size, len(tokens)), replace=False))
            begin = time.perf_counter()
            with autocast:
                logits(Packed.from_flat(ids, lengths).to(device)).cpu()  # .cpu() waits for the device
            if i >= WARM_UP:
                times.append(1e3 * (time.perf_counter() - begin))
        low, median, high = np.percentile(times, [10, 50, 90])
        results.append(
            {"batch": size, "median_ms": float(median), "p10_ms": float(low), "p90_ms": float(high),
             "per_sentence_ms": float(median) / size, "batches": TIMED, "threads": torch.get_num_threads()}
        )
    return results
