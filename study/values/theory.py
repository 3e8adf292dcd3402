"""What a further pass is worth on 10 % of SST-2, where [CLS] looks in a sentence, and numbers of the derivations:
collisions of rotary positions, distances between activations.
"""

import numpy as np

from rtx_core.models.registry import config_of
from rtx_core.report import statistics
from rtx_core.report.values import Space, Value
from study import paper


def passes() -> Space:
    """Test loss in nats with a second pass minus that without."""
    twice, once = (paper.records(name=name, model="recurrent") for name in ("sst2-10pct", "sst2-10pct-numpasses1"))
    losses = [[record["test"]["loss"] for record in side] for side in zip(*statistics.common(twice, once))]
    *loss, p = statistics.over_seeds(*losses)
    return Space({"second_loss": Value(*loss, form="+.3f"), "second_loss_p": p})


def attention() -> Space:
    """By model: the probability of "negative", and the token that [CLS] weighs most in each application."""
    found = {}
    for measured in paper.measurements("attention", "sst2"):
        weights = np.mean(measured["weights"], axis=1)  # (applications, tokens)
        found.setdefault(
            measured["model"],
            {
                "negative": measured["probabilities"][measured["classes"].index("negative")],
                "most": [measured["tokens"][place] for place in weights.argmax(1)],
            },
        )
    return Space(found)


FURTHEST = 512


def collisions(size: int, base: float) -> int:
    """Offsets from 2 on whose token looks at least as near as the next one: s(m) ≥ s(1)."""
    theta = base ** (-np.arange(0, size, 2) / size)
    s = np.cos(np.outer(np.arange(FURTHEST), theta)).mean(1)
    return int((s[2:] >= s[1]).sum())


def derived() -> Space:
    c = config_of("baseline")
    found = {"collisions_64": collisions(64, c.rope_base)}
    found |= {"head": c.hidden_size // c.num_heads, "furthest": FURTHEST - 1}
    return Space(found)


VALUES = {"passes": passes, "attention": attention, "derived": derived}
