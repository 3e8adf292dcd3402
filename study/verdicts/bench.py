"""When predictions of the bench hold and when they are contradicted."""

from statistics import mean

from rtx_core import records
from rtx_core.benchmark.bench import controls, counts, find_candidate
from rtx_core.benchmark.suite import LADDER, error
from rtx_core.report.rates import at_best_rate
from study.analysis.ranking import correlation, errors, errors_at_best_rates
from study.bench_plan import IN_FULL
from study.folders import OWN, Folders
from study.verdicts.runs import Conditions, planned


def bench_s3_standard() -> Conditions:
    bench = Folders(lambda name: records.records(name=name))  # which `paper`, with its plan of claims, leaves out
    runs = bench.all_rates("bench-s3", OWN, 0.001, 0.004).records
    models = (*LADDER, "LSTM")
    quick = errors([run for run in bench.records("bench-s3-quick") if run["model"] in models and run["seed"] == 0])
    standard = errors_at_best_rates([run for run in runs if run["model"] in models])
    planned(sorted(quick.keys() & standard.keys()), 10)
    agreement = correlation(quick, standard)
    first = all(min(map(mean, scores.values())) == mean(scores["LSTM"]) for scores in (quick, standard))
    return agreement >= 0.7 and first, agreement < 0.4


def bench_in_full() -> Conditions:
    """Of two recurrences and, of each, the stacks as large and as deep; each at its best rate."""
    bench = Folders(lambda name: records.records(name=name))

    def score(task: str, model: str) -> float:
        runs = bench.all_rates(f"bench-{task}", OWN, 0.001, 0.004).of(model)
        planned(runs, 9)
        return mean(error(task, run)[0] for run in at_best_rate(runs))

    stacks = {name: [*controls(counts(find_candidate(name).fresh()))] for name in IN_FULL}
    large, _ = stacks["Universal"]
    follows = score("pointers", "Universal") < score("pointers", large)
    stores = {name: (score("facts", name), *(score("facts", stack) for stack in stacks[name])) for name in IN_FULL}
    reads = all(score("characters", name) > score("characters", stacks[name][1]) for name in IN_FULL)
    holds = follows and reads and all(error_there > max(others) for error_there, *others in stores.values())
    return holds, not follows or any(error_there < deep for error_there, _, deep in stores.values())
