"""When predictions of the bench hold and when they are contradicted."""

from rtx_core import records
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from study.analysis.ranking import correlation, mean_errors
from study.folders import OWN, Folders
from study.verdicts.runs import Conditions, planned


def bench_s3_standard() -> Conditions:
    bench = Folders(lambda name: records.records(name=name))  # which `paper`, with its plan of claims, leaves out
    quick = mean_errors([run for run in bench.records("bench-s3-quick") if run["seed"] == 0])
    runs = by_model(bench.all_rates("bench-s3", OWN, 0.001, 0.004).records)
    at_best = [run for of_model in runs.values() if len(of_model) == 9 for run in at_best_rate(of_model)]
    standard = mean_errors(at_best)
    planned(sorted(quick.keys() & standard.keys()), 10)
    agreement = correlation(quick, standard)
    first = all(min(errors.values()) == errors["LSTM"] for errors in (quick, standard))
    return agreement >= 0.7 and first, agreement < 0.4
