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
        logits_by_step = torch.stack([logits.flatten(0, -2) for logits in inside.logits(model, inputs)])  # (R, T, V)
        expected.append(targets.flatten())
        losses.append(torch.stack([F.cross_entropy(step, expected[-1], reduction="none") for step in logits_by_step]))
        answers.append(logits_by_step.argmax(-1))
    losses, answers, expected = torch.cat(losses, 1), torch.cat(answers, 1), torch.cat(expected)

    def statistics(rows_of: torch.Tensor) -> dict:
        share = inside.changed_share(answers[:, rows_of]).tolist()[1:]
        right = (answers[:, rows_of] == expected[rows_of]).double().mean(1)
        return {"loss": losses[:, rows_of].double().mean(1).tolist(), "right": right.tolist(), "changed": share}

    counts = torch.bincount(expected)
    frequent = counts.argsort(descending=True)[: min(TOKENS, int((counts > 0).sum()))].tolist()
    rows = [{"token": task.decode(np.array([i])), "n": int(counts[i])} | statistics(expected == i) for i in frequent]
    ids = torch.as_tensor(task.encode(SENTENCE))[None]
    predictions = [[task.decode(i[None]) for i in logits[0].argmax(-1).numpy()] for logits in inside.logits(model, ids)]
    read = [task.decode(i[None]) for i in ids[0].numpy()]
    content = {"n": len(expected)} | statistics(torch.ones_like(expected, dtype=torch.bool))
    return [(content | {"tokens": rows, "sentence": {"read": read, "said": predictions}}, None)]
