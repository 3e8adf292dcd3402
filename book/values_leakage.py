"""Whether chance in the choice of test texts explains what leakage is worth: Fisher's exact test."""

from rtx_core import records
from rtx_core.report.statistics import same_share
from rtx_core.report.style import p_value
from rtx_core.report.values import Space


def leak_p() -> Space:
    """p as pages write it by model, on seed 0 at one epoch; `values` are the numbers."""
    found = {}
    for model in ("baseline", "recurrent"):
        tests = [records.find(name, model, 0)["test"] for name in ("sst2-epochs1", "sst2-grouped-epochs1")]
        counts = [number for test in tests for number in (round(test["accuracy"] * test["n"]), test["n"])]
        found[model] = same_share(*counts)
    return Space({model: p_value(p) for model, p in found.items()} | {"values": list(found.values())})


VALUES = {"leak_p": leak_p}
