"""Intervals of 95 % hold the truth 93 to 97 times of a hundred, at the numbers of seeds and texts in use."""

import numpy as np
import pytest
from report_records import Record

from rtx_core.report import statistics

DRAWS = 2000


def held(draw, truth: float) -> float:
    """How often (value, low, high) of a random draw holds the truth."""
    random = np.random.RandomState(0)
    bounds = np.array([draw(random)[-2:] for _ in range(DRAWS)])
    return np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_students_interval_over_seeds(seeds):
    assert 0.93 <= held(lambda random: statistics.mean_interval(random.normal(0.8, 0.01, seeds).tolist()), 0.8) <= 0.97


@pytest.mark.parametrize("seeds", [3, 5, 8])
def test_a_paired_difference_over_seeds(seeds):
    def draw(random):
        shared, own = random.normal(0, 0.02, seeds), random.normal(0, 0.01, (2, seeds))
        return statistics.over_seeds(list(0.8 + shared + own[0]), list(0.78 + shared + own[1]))[:3]

    assert 0.93 <= held(draw, 0.02) <= 0.97


@pytest.mark.parametrize(("n", "accuracy"), [(872, 0.8), (872, 0.95), (6823, 0.9)])
def test_wilsons_interval_over_texts(n, accuracy):
    def draw(random):
        return statistics.accuracy_interval(Record(test={"n": n, "accuracy": random.binomial(n, accuracy) / n}))

    assert 0.93 <= held(draw, accuracy) <= 0.97


@pytest.mark.parametrize("n", [682, 872])
def test_the_bootstrap_of_a_paired_difference_over_texts(n, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 500)  # whose bounds are as right, and less smooth

    def draw(random):  # right together 75 %, the first alone 7 %, the second alone 5 %, wrong together 13 %
        kind = random.choice(4, n, p=[0.75, 0.07, 0.05, 0.13])
        a, b = (np.isin(kind, [0, 1]), np.isin(kind, [0, 2]))
        return statistics.bootstrap(lambda a, b, weights: weights @ (a * 1.0 - b) / weights.sum(-1), a, b)

    assert 0.93 <= held(draw, 0.02) <= 0.97
