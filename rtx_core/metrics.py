"""Classification metrics from logits and labels: records are checked without torch."""

import numpy as np
from scipy.special import log_softmax


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean cross-entropy of (N, C) logits in nats, counted in float64 and rounded to float32."""
    losses = -log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(labels)), labels]
    return float(np.float32(losses.mean()))


def classification_metrics(logits: np.ndarray, labels: np.ndarray) -> dict:
    """n, loss, accuracy, precision, recall, F1 and confusion matrix (rows: truth) of (N, C) logits.

    Two classes: precision, recall and F1 of class 1 (positive).  More: macro averages, with weighted ones
    beside.  Where a score is 0/0 (a class that is never guessed), it is 0.  Equal to scikit-learn's; the
    loss to 1e-6 of torch's float32.
    """
    classes = logits.shape[1]
    pairs = labels.astype(np.int64) * classes + logits.argmax(1)
    confusion = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
    correct, actual, predicted = np.diag(confusion), confusion.sum(1), confusion.sum(0)
    scores = {"precision": _ratio(correct, predicted), "recall": _ratio(correct, actual)}
    scores["f1"] = _ratio(2.0 * correct, actual + predicted)
    result = {"n": len(labels), "loss": cross_entropy(logits, labels), "accuracy": float(correct.sum() / len(labels))}
    if classes == 2:
        result |= {name: float(score[1]) for name, score in scores.items()}
    else:
        result |= {name: float(np.average(score)) for name, score in scores.items()}
        result |= {f"{name}_weighted": float(np.average(score, weights=actual)) for name, score in scores.items()}
    result["average"] = "binary" if classes == 2 else "macro"
    result["confusion"] = confusion.tolist()
    return result


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.zeros(len(denominator)), where=denominator != 0)
