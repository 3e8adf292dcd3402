"""Runs and audits."""

from rtx_core.records import Record
from rtx_core.report import device_of, number
from rtx_core.report.quantities import Quantities


def quantities(runs: list[Record], unrecorded: list[dict]) -> Quantities:
    """Of all runs of the paper, and of those that left no record."""
    numbers = {
        "runs": lambda: number(len(runs), ","),
        "hours": lambda: number(sum(run["seconds"] for run in runs) / 3600, ".0f"),  # of training and validation
        "unrecorded": lambda: str(sum(row["runs"] for row in unrecorded)),
        "machines": lambda: " and ".join(sorted({device_of(run) for run in runs})),
    }
    return Quantities(numbers)
