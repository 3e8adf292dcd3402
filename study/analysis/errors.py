"""The sentences on which two models and a bag of words err, and on how many texts two runs differ."""

from collections.abc import Sequence
from itertools import combinations
from statistics import mean

import numpy as np

from rtx_core.reads import remembered
from rtx_core.records import Record
from rtx_core.report import statistics


class Errors:
    """Of each test sentence whether two models, one run each, and a bag of words err on it."""

    def __init__(self, pair: Sequence[Record], words: Record):
        self._pair, self._words = pair, words

    @remembered
    def _labels_and_answers(self) -> tuple[np.ndarray, ...]:
        return statistics.same_texts(*self._pair)

    @property
    def positive(self) -> np.ndarray:
        return self._labels_and_answers[0] == 1

    @property
    def first(self) -> np.ndarray:
        return self._labels_and_answers[1] != self._labels_and_answers[0]

    @property
    def second(self) -> np.ndarray:
        return self._labels_and_answers[2] != self._labels_and_answers[0]

    @property
    def words(self) -> np.ndarray:
        return self._words.predictions["logits"].argmax(1) != self._labels_and_answers[0]

    @property
    def only_models_right(self) -> np.ndarray:
        return ~self.first & ~self.second & self.words

    @property
    def only_words_right(self) -> np.ndarray:
        return self.first & self.second & ~self.words

    def answered_positive(self, errors: np.ndarray) -> int:
        """How many sentences are called positive by whatever errs so."""
        return int((self.positive ^ errors).sum())


def disagreement(runs: Sequence[Record], same_model: bool) -> float:
    """On what share of the test texts two runs answer differently, of one model or of two, in the mean over pairs."""
    shares = []
    for a, b in combinations(runs, 2):
        if (a["model"] == b["model"]) == same_model:
            _, first, second = statistics.same_texts(a, b)
            shares.append(float((first != second).mean()))
    return mean(shares)
