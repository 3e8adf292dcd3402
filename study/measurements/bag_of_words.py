"""Logistic regression on a bag of words: what can be told without any order.

Each text is the set of its tokens, weighted by TF-IDF.  It reads exactly the tokens that the neural models
read, after the same preprocessing and the same cut, so predictions can be paired text by text.
"""

import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from rtx_core.data.tasks import loss_and_accuracy
from rtx_core.data.tokens import Tokens
from rtx_core.metrics import classification_metrics

NAME = "bag-of-words"


def counts(tokens: Tokens, vocabulary: int) -> csr_matrix:
    """(N, vocabulary): how often each token occurs in each text."""
    shape = (len(tokens), vocabulary)
    matrix = csr_matrix((np.ones(len(tokens.ids)), tokens.ids, tokens.offsets), shape=shape, copy=True)
    matrix.sum_duplicates()  # sorts in place, hence the copy
    return matrix


def fit(train: Tokens, test: Tokens) -> tuple[Pipeline, np.ndarray]:
    """The classifier fitted with scikit-learn's defaults, and its (N, C) test logits: log-probabilities."""
    vocabulary = 1 + max(int(part.ids.max()) for part in (train, test))
    model = make_pipeline(TfidfTransformer(), LogisticRegression(max_iter=1000, tol=1e-6))
    model.fit(counts(train, vocabulary), train.labels)
    return model, model.predict_log_proba(counts(test, vocabulary)).astype(np.float32)


def identity(study) -> dict:
    return {"name": f"{NAME}-seed0", "model": NAME, "seed": 0}  # of nothing: the fit is deterministic


def of_study(study) -> tuple[dict, dict]:
    train, test = study.task.parts["train"], study.task.parts["test"]
    begin = time.perf_counter()
    model, logits = fit(train, test)
    content = {
        "tokens_known": len(np.unique(train.ids)),
        "parameters": int(model[-1].coef_.size + model[-1].intercept_.size),
        "iterations": int(model[-1].n_iter_.max()),
        "test": classification_metrics(logits, test.labels) | {"loss": loss_and_accuracy(logits, test.labels)[0]},
        "seconds": time.perf_counter() - begin,
    }
    return content, {"logits": logits, "labels": test.labels}
