"""How well one ranking of models agrees with another, by the mean errors of their seeds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import mean

import numpy as np

from rtx_core.benchmark.suite import BUDGETS
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from rtx_core.report.statistics import scipy
from study.analysis.hops import wrong

LEAST_MODELS, LEAST_SEEDS = 10, 3  # of which the order of one seed is compared with that of the others
Errors = Mapping[str, Sequence[float]]  # of each model, by seed


def correlation(first: Errors, second: Errors) -> float:
    """Spearman's, over the models of both."""
    models = sorted(first.keys() & second.keys())
    return float(scipy.stats.spearmanr(*([mean(errors[m]) for m in models] for errors in (first, second))).statistic)


def correlation_interval(first: Errors, second: Errors, draws: int = 1000) -> tuple[float, float]:
    """95 % of the correlations if the seeds of each model are drawn again with replacement."""
    random = np.random.default_rng(0)

    def again(errors: Errors) -> Errors:
        return {model: random.choice(values, len(values)).tolist() for model, values in errors.items()}

    low, high = np.quantile([correlation(again(first), again(second)) for _ in range(draws)], (0.025, 0.975))
    return float(low), float(high)


def swapped(first: Errors, second: Errors) -> list[tuple[str, str]]:
    """The pairs of models whose order differs."""
    before, after = ({model: mean(values) for model, values in errors.items()} for errors in (first, second))
    pairs = combinations(sorted(before.keys() & after.keys()), 2)
    return [(a, b) for a, b in pairs if (before[a] - before[b]) * (after[a] - after[b]) < 0]


def by_seed(runs: Iterable[Record], hops: int) -> dict[int, tuple[int, float]]:
    """Of each seed with enough models: their number, and the correlation of its errors at so many hops with the mean
    errors of the other seeds."""
    errors: dict[str, dict[int, float]] = {}
    for run in runs:
        errors.setdefault(run["model"], {})[run["seed"]] = wrong(run, hops)
    errors = {model: by for model, by in errors.items() if len(by) >= LEAST_SEEDS}
    agreement = {}
    for seed in sorted({seed for by in errors.values() for seed in by}):
        alone = {model: [by[seed]] for model, by in errors.items() if seed in by}
        others = {model: [error for s, error in by.items() if s != seed] for model, by in errors.items()}
        if len(alone) >= LEAST_MODELS:
            agreement[seed] = len(alone), correlation(alone, others)
    return agreement


def in_full(runs: Sequence[Record]) -> dict[str, list[Record]]:
    """Of one task: of each model that has all seeds at all rates of the standard budget, the runs at its best rate."""
    budget = BUDGETS["standard"]
    complete = len(budget.seeds) * len(budget.rates)
    return {model: at_best_rate(tried) for model, tried in by_model(runs).items() if len(tried) == complete}


def errors_at_best_rates(runs: Sequence[Record]) -> Errors:
    """Of the models that are run in full at the standard budget."""
    return errors([run for tried in in_full(runs).values() for run in tried])


def errors(runs: Sequence[Record]) -> Errors:
    """The shares of wrong answers of each model, by seed."""
    return {model: [1 - run["test"]["accuracy"] for run in tried] for model, tried in by_model(runs).items()}
