"""What the runs of the paper cost: time and memory of each experiment, and of all."""

import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.table import device_of
from rtx_core.release import records


def runs(*, label: str) -> Displayed:
    """Training time and most memory, by experiment and machine, with a sum for each machine."""
    found = pd.DataFrame([
        {"Experiment": r["experiment"], "Protocol": r["protocol"], "Machine": device_of(r), "seconds": r["seconds"], "MiB": r["peak_memory_mib"]}
        for r in records().values() if "history" in r.content
    ], columns=["Experiment", "Protocol", "Machine", "seconds", "MiB"])  # fmt: skip
    if found.empty:
        return display.text("Not measured yet: `results/` holds no training run.")
    each = found.groupby(["Experiment", "Protocol", "Machine"], sort=True).agg(Runs=("seconds", "size"), seconds=("seconds", "sum"), MiB=("MiB", "max"))
    whole = found.groupby("Machine").agg(Runs=("seconds", "size"), seconds=("seconds", "sum"), MiB=("MiB", "max")).reset_index()
    rows = pd.concat([each.reset_index(), whole.assign(Experiment="all", Protocol=None)])
    rows["Minutes a run"] = [f"{s / n / 60:.1f}" for s, n in zip(rows["seconds"], rows["Runs"])]
    rows["Hours in all"] = [f"{s / 3600:.2f}" for s in rows["seconds"]]
    rows["Most memory (MiB)"] = [f"{m:,.0f}" for m in rows["MiB"]]
    note = (
        "Wall time of training and validation, restarts included and whatever else the machine did; the final test, the measurements beside the runs "
        "and trials that left no record are not in it. Energy is not recorded."
    )
    columns = ["Experiment", "Protocol", "Machine", "Runs", "Minutes a run", "Hours in all", "Most memory (MiB)"]
    return display.table(rows[columns], label=label, caption="What the recorded runs cost.", note=note)
