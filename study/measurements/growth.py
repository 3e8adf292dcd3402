"""Where the state of a loop over pointers goes when the loop runs on: its length, its errors, its direction.

To 256 passes, free and with each token's norm held as it is after the last trained pass; and the spectral radius of
the normalised pass, which tells whether a small change of direction dies out (below 1) or grows.
"""

import numpy as np
import torch

from rtx_core.data.algorithmic import IGNORE_INDEX
from rtx_core.data.tasks import EVALUATION_SEED
from rtx_core.evaluate import inside

PASSES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
TEXTS = 24  # of each number of hops
STATE_TEXTS = 3  # texts of the most hops, whose states are measured


def of_run(record, study) -> list[tuple]:
    """Errors (passes, hops); mean norm, step and cosine to the last state by pass, radii (texts,) after three."""
    model, task = study.trained(record).cpu(), study.task
    random, trained = np.random.RandomState([EVALUATION_SEED, 2]), model.config.num_passes
    ids, targets = map(torch.from_numpy, task.texts(random, np.repeat(task.parts, TEXTS), IGNORE_INDEX))
    part, scored = task.part_of(ids).expand_as(targets), targets >= 0
    answers = [int((scored & (part == k)).sum()) for k in task.parts]
    content = {"trained": trained, "passes": PASSES, "hops": task.parts, "answers": answers}
    for name, hold_after in (("free", None), ("held", trained)):
        edit, errors = inside.hold(hold_after) if hold_after else None, []
        for r, logits in enumerate(inside.logits(model, ids, PASSES[-1], edit), 1):
            if r in PASSES:
                wrong = (logits.argmax(-1) != targets) & scored
                errors.append([int((wrong & (part == k)).sum()) / n for k, n in zip(task.parts, answers)])
        motion = inside.motion(model, ids[-STATE_TEXTS:], PASSES[-1], hold_after)
        content[name] = {"error": errors}
        for quantity in ("norm", "step", "cosine"):  # a first pass has no step
            values = [motion[r - 1][quantity] for r in PASSES]
            content[name][quantity] = [None if value != value else round(value, 6) for value in values]
    content["radius"], exact = {}, model.double()
    for r in (trained, 64, PASSES[-1]):
        passes = (inside.normalised_pass(exact, ids[-i : len(ids) - i + 1], r) for i in range(1, STATE_TEXTS + 1))
        content["radius"][str(r)] = [inside.spectral_radius(*arguments) for arguments in passes]
    return [(content, None)]
