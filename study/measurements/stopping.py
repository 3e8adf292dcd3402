"""When a trained loop over pointers may stop: passes spent and wrong answers, by the number of hops.

`fixed`      so many passes for every answer, from one to the trained number
`agree`      after the first pass that gives the same answer as the pass before
`confident`  after the first pass whose most likely answer has at least this probability
`gate`       after the first pass by which a trained gate has stopped with at least this probability (`halting`)
An answer at which the rule never stops is that of the last trained pass.
"""

import numpy as np
import torch
from torch import Tensor

from rtx_core.data.tasks import evaluation_mode
from rtx_core.evaluate import inside
from rtx_core.models.packed import Packed

BATCHES = 4  # of the test
CONFIDENT = (0.5, 0.9, 0.99, 0.999)
STOPPED = (0.3, 0.5, 0.7, 0.9, 0.99)


def first(stops: Tensor) -> Tensor:
    """(R, n) whether a rule would stop after each pass -> (n,) the pass after which it does, from 1."""
    stops[-1] = True
    return stops.int().argmax(0) + 1


def of_run(record, study) -> list[tuple]:
    model, task = study.trained(record).cpu(), study.task
    probabilities, stopped, parts, targets = [], [], [], []
    for inputs, expected in task.test_batches()[:BATCHES]:
        scored = expected >= 0
        if model.config.halting:
            batch = Packed.from_rows(inputs)
            with evaluation_mode(model):
                hidden = torch.stack([model.output_hidden(state, batch) for state in model.states(batch)])
                stopped.append(model.stopping(hidden).cumsum(0)[:, scored.flatten()])
        logits = torch.stack([each[scored] for each in inside.logits(model, inputs, model.config.num_passes)])
        probabilities.append(logits.double().softmax(-1))
        parts.append(task.part_of(inputs).expand_as(expected)[scored])
        targets.append(expected[scored])
    likely, answers = torch.cat(probabilities, 1).max(-1)  # (R, n) each
    part, target = torch.cat(parts).numpy(), torch.cat(targets)
    agree = torch.zeros_like(answers, dtype=torch.bool)
    agree[1:] = answers[1:] == answers[:-1]
    rules = {"agree": agree} | {f"confident {share}": likely >= share for share in CONFIDENT}
    rules |= {f"gate {share}": torch.cat(stopped, 1) >= share for share in STOPPED if stopped}
    spent = {rule: first(stops) for rule, stops in rules.items()}
    spent |= {f"fixed {r}": torch.full_like(target, r) for r in range(1, len(answers) + 1)}
    counts, rows = np.bincount(part, minlength=len(task.parts)), []
    for rule, passes in spent.items():
        wrong = (answers.gather(0, passes[None] - 1)[0] != target).numpy()
        by_hops = {"passes": passes.numpy(), "error": wrong}
        sums = {name: np.bincount(part, values, len(counts)) / counts for name, values in by_hops.items()}
        rows.append({"rule": rule} | {name: values.tolist() for name, values in sums.items()})
    return [({"answers": counts.tolist(), "trained": len(answers), "rules": rows}, None)]
