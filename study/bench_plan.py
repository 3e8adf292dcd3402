"""The runs of the book's own benches: its recurrences on several seeds, and two of them on the standard budget."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from rtx_core.experiments.configure import RunConfig, configure
from rtx_core.report.statistics import ENOUGH_SEEDS
from rtx_core.study import declaration

IN_FULL = ("Universal", "TRM")  # on the bench
RANKED = ("s3",)  # tasks of the bench on which its quick and its standard budget are compared


def bench(**extra: Any) -> Iterator[RunConfig]:
    """Runs on the bench: at the quick budget of the recurrences that the study declares, on as many seeds as a verdict
    needs, and at the standard budget of the models whose ranks are compared.  Torch is needed to name them."""
    from rtx_core.benchmark.bench import register_declared
    from rtx_core.benchmark.suite import BUDGETS, LADDER, PREFIX

    register_declared()
    for seed, task, name in product(range(ENOUGH_SEEDS), BUDGETS["quick"].tasks, declaration("RECURRENCES")):
        yield configure(f"{PREFIX}{task}", name, seed, budget="quick", **extra)
    standard = BUDGETS["standard"]
    for seed, rate, task, name in product(standard.seeds, standard.rates, RANKED, (*LADDER, "LSTM")):
        yield configure(f"{PREFIX}{task}", name, seed, budget="standard", learning_rate=rate, **extra)
    yield from bench_in_full(**extra)


def bench_in_full(**extra: Any) -> Iterator[RunConfig]:
    """The standard budget of two of the study's recurrences and of the controls that the bench makes for them, with
    Shakespeare's plays as the text."""
    from rtx_core.benchmark import bench
    from rtx_core.benchmark.suite import TEXT

    for name in IN_FULL:
        candidate = bench.find_candidate(name)
        stacks = bench.controls(bench.counts(candidate.fresh()))
        requests = [{"base": "looped", "name": stack} | settings for stack, settings in stacks.items()]
        for request in requests:
            request.pop("role")
        for task, configs in bench.plan("standard", [candidate.request, *requests]).items():
            for c in configs:
                real = {"source": "real"} if task == TEXT else {}
                yield configure(c.experiment, c.model_spec, c.seed, **c.settings | real | extra)
