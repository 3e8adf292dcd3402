"""What a language model would say if it stopped after each of its passes, or layers: the output matrix read there.

By the token that follows, too: which of them are settled early, and which change in the last step?
"""

import numpy as np
import torch
import torch.nn.functional as F

from rtx_core.evaluate import inside

SENTENCE = "The king is in the garden and he will not speak to me."  # our own: no data set's text is distributed
TOKENS = 40  # the most frequent


def of_run(record, study) -> list[tuple]:
    """Loss (nats), shares of answers right and changed by step (R,): of all, of each frequent token that follows."""
    model, task = study.trained(record).cpu().eval(), study.task
    losses, answers, expected = [], [], []
    for inputs, targets in task.evaluation_batches("validation"):
        every = torch.stack([logits.flatten(0, -2) for logits in inside.logits(model, inputs)])  # (R, T, V)
        expected.append(targets.flatten())
        losses.append(torch.stack([F.cross_entropy(step, expected[-1], reduction="none") for step in every]))
        answers.append(every.argmax(-1))
    losses, answers, expected = torch.cat(losses, 1), torch.cat(answers, 1), torch.cat(expected)

    def told(kept: torch.Tensor) -> dict:
        changed = inside.changed_share(answers[:, kept]).tolist()[1:]
        right = (answers[:, kept] == expected[kept]).double().mean(1)
        return {"loss": losses[:, kept].double().mean(1).tolist(), "right": right.tolist(), "changed": changed}

    counts = torch.bincount(expected)
    often = counts.argsort(descending=True)[: min(TOKENS, int((counts > 0).sum()))].tolist()
    rows = [{"token": task.decode(np.array([i])), "n": int(counts[i])} | told(expected == i) for i in often]
    ids = torch.as_tensor(task.encode(SENTENCE))[None]
    said = [[task.decode(i[None]) for i in logits[0].argmax(-1).numpy()] for logits in inside.logits(model, ids)]
    read = [task.decode(i[None]) for i in ids[0].numpy()]
    content = {"n": len(expected)} | told(torch.ones_like(expected, dtype=torch.bool))
    return [(content | {"tokens": rows, "sentence": {"read": read, "said": said}}, None)]
