"""A trained loop read token by token, with the keys and values of every pass and with those of the last pass alone.

Of the first test sequences: the loss, the share of wrong answers (by part, where the task has parts) and the bytes that
the cache takes for a token of a sequence.  Nothing is trained for either cache.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

CACHES = ("all", "last")
BATCHES = 8  # of the test


@torch.inference_mode()
def read(model: nn.Module, inputs: Tensor, cache: str) -> tuple[Tensor, float]:
    """Logits (B, N, V) of sequences (B, N), and the cache's bytes for a token of one of them."""
    state = model.eval().start(len(inputs), cache=cache)
    logits = torch.stack([model.advance(ids, state) for ids in inputs.unbind(1)], 1)
    size = sum(each.numel() * each.element_size() for pair in state.cache.values() for each in pair)
    return logits, size / inputs.numel()


def of_run(record, study) -> list[tuple]:
    model, task, content = study.trained(record).cpu(), study.task, {}
    batches = task.test_batches()[:BATCHES]
    for cache in CACHES:
        losses, wrong, parts = [], [], []
        for inputs, targets in batches:
            logits, size = read(model, inputs, cache)
            scored = targets >= 0
            losses.append(F.cross_entropy(logits[scored], targets[scored], reduction="none"))
            wrong.append((logits.argmax(-1) != targets)[scored])
            if hasattr(task, "part_of"):
                parts.append(task.part_of(inputs).expand_as(targets)[scored])
        errors = torch.cat(wrong).double().numpy()
        content[cache] = {"loss": float(torch.cat(losses).double().mean()), "error": float(errors.mean())}
        content[cache]["bytes_per_token"] = size
        if parts:
            part = torch.cat(parts).numpy()
            sums = np.bincount(part, errors, len(task.parts)) / np.bincount(part, minlength=len(task.parts))
            content[cache][f"error_by_{task.by}"] = sums.tolist()
    return [({"answers": len(errors), **content}, None)]
