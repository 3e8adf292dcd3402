"""How long a model takes to classify: warmed up, synchronized, on unpadded texts, median and spread."""

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from rtx_core.data.tokens import Tokens
from rtx_core.models.packed import Packed
from rtx_core.train.trainer import autocast_of

WARM_UP = 10  # batches before the clock starts
TIMED = 200  # batches under the clock


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median, and where the middle 80 % of the times lie."""
    low, median, high = np.percentile(milliseconds, [10, 50, 90])
    return {"median_ms": float(median), "p10_ms": float(low), "p90_ms": float(high)}


@torch.inference_mode()
def latency(
    model: nn.Module,
    tokens: Tokens,
    sizes: Sequence[int],
    device: torch.device,
    autocast: torch.autocast,
    timed: int | None = None,
) -> list[dict]:
    """Milliseconds from host ids to host logits, for each batch size over `timed` (or `TIMED`) random batches."""
    timed = min(timed or TIMED, TIMED)
    random, rows = np.random.RandomState(0), []
    for size in sizes:
        times = []
        for _ in range(WARM_UP + timed):
            chosen = random.choice(len(tokens), size=min(size, len(tokens)), replace=False)
            ids, lengths, _ = tokens.take(chosen)
            begin = time.perf_counter()
            with autocast:
                model(Packed.from_flat(ids, lengths).to(device)).cpu()  # .cpu() waits for the device
            times.append(1e3 * (time.perf_counter() - begin))
        row = {"batch": size, "batches": timed, "threads": torch.get_num_threads(), **percentiles(times[WARM_UP:])}
        rows.append(row | {"per_sentence_ms": row["median_ms"] / size})
    return rows


def of_classifier(model: nn.Module, task, train, device: torch.device, timed: int | None = None) -> list[dict]:
    """Of one text and of a training batch."""
    autocast = autocast_of(train.precision, device)
    return latency(model.eval(), task.parts["test"], (1, train.batch_size), device, autocast, timed)
