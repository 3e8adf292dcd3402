"""How well one ranking of models agrees with another."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import mean

from rtx_core.benchmark.suite import BUDGETS
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from rtx_core.report.statistics import scipy
from study.analysis.hops import wrong

LEAST_MODELS, LEAST_SEEDS = 10, 3  # of which the order of one seed is compared with that of the others


def correlation(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Spearman's, over the models of both."""
    models = sorted(first.keys() & second.keys())
    return float(scipy.stats.spearmanr([first[m] for m in models], [second[m] for m in models]).statistic)


def swapped(first: Mapping[str, float], second: Mapping[str, float]) -> list[tuple[str, str]]:
    """The pairs of models whose order differs."""
    pairs = combinations(sorted(first.keys() & second.keys()), 2)
    return [(a, b) for a, b in pairs if (first[a] - first[b]) * (second[a] - second[b]) < 0]


def by_seed(runs: Iterable[Record], hops: int) -> dict[int, tuple[int, float]]:
    """Of each seed with enough models: their number, and the correlation of its errors at so many hops with the mean
    errors of the other seeds."""
    errors: dict[str, dict[int, float]] = {}
    for run in runs:
        errors.setdefault(run["model"], {})[run["seed"]] = wrong(run, hops)
    errors = {model: by for model, by in errors.items() if len(by) >= LEAST_SEEDS}
    agreement = {}
    for seed in sorted({seed for by in errors.values() for seed in by}):
        alone = {model: by[seed] for model, by in errors.items() if seed in by}
        others = {model: mean(error for s, error in by.items() if s != seed) for model, by in errors.items()}
        if len(alone) >= LEAST_MODELS:
            agreement[seed] = len(alone), correlation(alone, others)
    return agreement


def quick_and_standard(
    quick: Iterable[Record], standard: Iterable[Record]
) -> tuple[dict[str, float], dict[str, float]]:
    """The errors of the first seed of quick runs, and the mean errors of the standard budget at each model's best rate,
    of the models that have all seeds at all rates there."""
    at_best = [run for runs in in_full(standard).values() for run in runs]
    return mean_errors([run for run in quick if run["seed"] == 0]), mean_errors(at_best)


def in_full(runs: Iterable[Record]) -> dict[str, list[Record]]:
    """Of one task: of each model that has all seeds at all rates of the standard budget, the runs at its best rate."""
    budget = BUDGETS["standard"]
    complete = len(budget.seeds) * len(budget.rates)
    return {model: at_best_rate(tried) for model, tried in by_model(runs).items() if len(tried) == complete}


def mean_errors(runs: Sequence[Record]) -> dict[str, float]:
    """The mean share of wrong answers of each model."""
    return {
        model: mean(1 - run["test"]["accuracy"] for run in runs if run["model"] == model)
        for model in dict.fromkeys(run["model"] for run in runs)
    }
