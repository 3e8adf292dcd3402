"""Classification metrics from logits, by scikit-learn."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
from torch import nn

from rtx_core.corpora.tokens import Tokens
from rtx_core.training.batches import evaluation_batches


@torch.inference_mode()
def logits_of(model: nn.Module, tokens: Tokens, device: torch.device, autocast: torch.autocast) -> np.ndarray:
    """(N, C) float32 logits in the order of `tokens`, in evaluation mode; the model's mode is put back."""
    was_training = model.training
    model.eval()
    out: np.ndarray | None = None
    for batch, rows in evaluation_batches(tokens):
        with autocast:
            logits = model(batch.to(device)).float().cpu().numpy()
        out = np.empty((len(tokens), logits.shape[1]), dtype=np.float32) if out is None else out
        out[rows] = logits
    model.train(was_training)
    return out


def loss_and_accuracy(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy in nats, and the share of right answers."""
    loss = F.cross_entropy(torch.tensor(logits), torch.tensor(labels)).item()
    return loss, float((logits.argmax(1) == labels).mean())


def metrics(logits: np.ndarray, labels: np.ndarray) -> dict:
    """n, loss, accuracy, precision, recall, F1 and the confusion matrix (rows: truth).

    Two classes: precision, recall and F1 of class 1 (positive).  More: macro averages, with weighted ones beside.
    """
    guesses = logits.argmax(1)
    loss, _ = loss_and_accuracy(logits, labels)
    classes = list(range(logits.shape[1]))
    result = {"n": len(labels), "loss": loss, "accuracy": float(accuracy_score(labels, guesses))}
    for average in ("binary",) if len(classes) == 2 else ("macro", "weighted"):
        p, r, f, _ = precision_recall_fscore_support(labels, guesses, average=average, labels=None if len(classes) == 2 else classes, zero_division=0.0)
        suffix = "_weighted" if average == "weighted" else ""
        result |= {f"precision{suffix}": float(p), f"recall{suffix}": float(r), f"f1{suffix}": float(f)}
    result["average"] = "binary" if len(classes) == 2 else "macro"
    result["confusion"] = confusion_matrix(labels, guesses, labels=classes).tolist()
    return result
