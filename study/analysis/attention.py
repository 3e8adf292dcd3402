"""Where [CLS] looks in one sentence, as a measurement of a trained classifier holds it."""

import numpy as np

from rtx_core.records import Record


def mean_weights(measurement: Record) -> np.ndarray:
    """(applications, tokens): the weight of each token in each application of a layer, the mean over heads."""
    return np.mean(measurement["weights"], axis=1)


def heaviest_tokens(measurement: Record) -> list[str]:
    """The token of the largest weight in each application of a layer."""
    return [measurement["tokens"][place] for place in mean_weights(measurement).argmax(1)]


def probability(measurement: Record, label: str) -> float:
    return measurement["probabilities"][measurement["classes"].index(label)]
