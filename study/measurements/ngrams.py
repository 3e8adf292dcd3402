"""What counted pairs and triples of characters predict: a floor that a language model has to leave behind.

p(c | context) = (count(context, c) + a) / (count(context) + a · V),   counted in the training part
"""

import numpy as np

SMOOTHING = {2: 1.0, 3: 0.1}  # a, by the length of the n-gram


def nats_per_token(train: np.ndarray, validation: np.ndarray, vocabulary: int, n: int, smoothing: float) -> float:
    """Mean −log p over the validation part, in nats."""

    def grams(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        windows = np.lib.stride_tricks.sliding_window_view(ids.astype(np.int64), n)
        return windows[:, :-1] @ vocabulary ** np.arange(n - 2, -1, -1), windows[:, -1]

    counts = np.full((vocabulary ** (n - 1), vocabulary), smoothing)
    np.add.at(counts, grams(train), 1)
    context, token = grams(validation)
    return float(-np.log(counts[context, token] / counts[context].sum(1)).mean())


def identity(study) -> dict:
    return {"name": "ngrams-seed0", "model": "ngrams", "seed": 0}


def of_study(study) -> tuple[dict, None]:
    parts = [study.task.parts[name].numpy() for name in ("train", "validation")]
    losses = {n: nats_per_token(*parts, study.task.vocab_size, n, a) for n, a in SMOOTHING.items()}
    return {"losses": {str(n): loss for n, loss in losses.items()}}, None
