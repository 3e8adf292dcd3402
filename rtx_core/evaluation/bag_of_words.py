"""The yardstick: logistic regression on a bag of words, `python -m rtx_core.evaluation.bag_of_words sst2 [name=value …]`.

Each text is the set of its tokens, weighted by TF-IDF: order is lost, and so is all that depends on it.  It reads exactly the
tokens that the neural models read, after the same preprocessing and the same cut, so predictions can be paired text by text.
"""

import time

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from rtx_core.corpora.dataset import Dataset, dataset
from rtx_core.corpora.tokens import Tokens
from rtx_core.evaluation.command import command, say
from rtx_core.evaluation.metrics import metrics
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.training.devices import environment

NAME = "bag-of-words"


def counts(tokens: Tokens, vocabulary: int) -> csr_matrix:
    """(N, vocabulary): how often each token occurs in each text."""
    shape = (len(tokens), vocabulary)
    found = csr_matrix((np.ones(len(tokens.ids)), tokens.ids, tokens.offsets), shape=shape, copy=True)
    found.sum_duplicates()  # sorts in place, hence the copy
    return found


def fit(data: Dataset) -> tuple[Pipeline, np.ndarray]:
    """The classifier fitted to the training part to convergence, with scikit-learn's defaults, and its (N, C) test logits: log-probabilities."""
    vocabulary = 1 + max(int(part.ids.max()) for part in (data.train, data.test))
    model = make_pipeline(TfidfTransformer(), LogisticRegression(max_iter=1000, tol=1e-6))
    model.fit(counts(data.train, vocabulary), data.train.labels)
    return model, model.predict_log_proba(counts(data.test, vocabulary)).astype(np.float32)


def bag_of_words(experiment: str, given: dict[str, object]) -> None:
    chosen = settings(experiment, given)
    data = dataset(**chosen.data)
    made_by, begin = measurement.made_by("yardstick"), time.perf_counter()
    model, logits = fit(data)
    content = {
        "kind": "yardstick",
        "of": chosen.variant,
        "name": f"{NAME}-seed0",
        "model": NAME,
        "seed": 0,  # of nothing: the fit is deterministic
        "protocol": "reduced" if chosen.train_rows else "report",
        "data": data.facts,
        "tokens_known": int(len(np.unique(data.train.ids))),
        "parameters": int(model[-1].coef_.size + model[-1].intercept_.size),
        "iterations": int(model[-1].n_iter_.max()),
        "test": metrics(logits, data.test.labels),
        "seconds": time.perf_counter() - begin,
        "environment": environment(torch.device("cpu")),
        "code": made_by,
    }
    made = measurement.save(content, logits, data.test.labels)
    say(chosen.variant, NAME, f"test accuracy {made['test']['accuracy']:.4f}", f"{made['seconds']:.1f} s")


if __name__ == "__main__":
    command(bag_of_words, "EXPERIMENT")
