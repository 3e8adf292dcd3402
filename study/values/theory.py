"""Where [CLS] looks in a sentence."""

import numpy as np

from rtx_core.report.values import Space
from study import paper


def attention() -> Space:
    """By model, of its first seed: the probability of "negative", and the token that [CLS] weighs most each time."""
    found = {}
    for m in reversed(paper.measurements("attention", "sst2")):
        most = np.mean(m["weights"], axis=1).argmax(1)  # (applications,)
        negative = m["probabilities"][m["classes"].index("negative")]
        found[m["model"]] = {"negative": negative, "most": [m["tokens"][place] for place in most]}
    return Space(found)


VALUES = {"attention": attention}
