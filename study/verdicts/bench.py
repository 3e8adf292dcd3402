"""When predictions of the bench hold and when they are contradicted."""

from rtx_core import records
from study.analysis.ranking import correlation, quick_and_standard
from study.folders import OWN, Folders
from study.verdicts.runs import Conditions, planned


def bench_s3_standard() -> Conditions:
    bench = Folders(lambda name: records.records(name=name))  # which `paper`, with its plan of claims, leaves out
    runs = bench.all_rates("bench-s3", OWN, 0.001, 0.004).records
    quick, standard = quick_and_standard(bench.records("bench-s3-quick"), runs)
    planned(sorted(quick.keys() & standard.keys()), 10)
    agreement = correlation(quick, standard)
    first = all(min(errors.values()) == errors["LSTM"] for errors in (quick, standard))
    return agreement >= 0.7 and first, agreement < 0.4
