"""Where [CLS] looks in a sentence, and numbers of the derivations:
collisions of rotary positions, distances between activations.
"""

import numpy as np
from scipy.special import ndtr

from rtx_core.models.registry import config_of
from rtx_core.report.values import Space
from study import paper

OFFSETS = 512  # looked at for collisions, from 0


def attention() -> Space:
    """By model, of its first seed: the probability of "negative", and the token that [CLS] weighs most each time."""
    first = {measured["model"]: measured for measured in reversed(paper.measurements("attention", "sst2"))}
    negative = {model: m["probabilities"][m["classes"].index("negative")] for model, m in first.items()}
    most = {model: np.mean(m["weights"], axis=1).argmax(1) for model, m in first.items()}  # (applications,)
    words = {model: [first[model]["tokens"][place] for place in places] for model, places in most.items()}
    return Space({model: {"negative": negative[model], "most": words[model]} for model in first})


def derived() -> Space:
    """Of heads as ours are: offsets from 2 on whose token looks as near as the next one, s(m) ≥ s(1); where SiLU is
    lowest, and the largest distances between activations."""
    c = config_of("baseline")
    head = c.hidden_size // c.num_heads
    theta = c.rope_base ** (-np.arange(0, head, 2) / head)
    s = np.cos(np.outer(np.arange(OFFSETS), theta)).mean(1)
    z = np.linspace(-8, 8, 160_001)
    silu, swish, sharp = (z / (1 + np.exp(-beta * z)) for beta in (1.0, 1.702, 10.0))
    found = {"head": head, "furthest": OFFSETS - 1, "collisions": int((s[2:] >= s[1]).sum())}
    found |= {"silu_low": float(silu.min()), "silu_at": float(z[silu.argmin()])}
    distances = {"silu_gelu": silu - z * ndtr(z), "swish_gelu": swish - z * ndtr(z), "swish_relu": sharp - z.clip(0)}
    return Space(found | {name: float(abs(each).max()) for name, each in distances.items()})


VALUES = {"attention": attention, "derived": derived}
