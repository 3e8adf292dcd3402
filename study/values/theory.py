"""Where [CLS] looks in a sentence, and collisions of rotary positions."""

import numpy as np

from rtx_core.models.registry import config_of
from rtx_core.report.values import Space
from study import paper

OFFSETS = 512  # looked at for collisions, from 0


def attention() -> Space:
    """By model, of its first seed: the probability of "negative", and the token that [CLS] weighs most each time."""
    found = {}
    for m in reversed(paper.measurements("attention", "sst2")):
        most = np.mean(m["weights"], axis=1).argmax(1)  # (applications,)
        negative = m["probabilities"][m["classes"].index("negative")]
        found[m["model"]] = {"negative": negative, "most": [m["tokens"][place] for place in most]}
    return Space(found)


def derived() -> Space:
    """Of heads as ours are: the offsets from 2 on whose token looks as near as the next one, s(m) ≥ s(1)."""
    c = config_of("baseline")
    head = c.hidden_size // c.num_heads
    theta = c.rope_base ** (-np.arange(0, head, 2) / head)
    s = np.cos(np.outer(np.arange(OFFSETS), theta)).mean(1)
    return Space({"head": head, "furthest": OFFSETS - 1, "collisions": int((s[2:] >= s[1]).sum())})


VALUES = {"attention": attention, "derived": derived}
