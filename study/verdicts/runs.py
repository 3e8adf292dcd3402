"""The paper's runs, and what a verdict is."""

from collections.abc import Sequence

from rtx_core.report.values import Unmeasured
from study import paper
from study.folders import Folders

Conditions = tuple[bool, bool]  # whether a prediction holds, whether it is contradicted
RUNS = Folders(paper.records)


def planned(runs: Sequence, seeds: int = 3) -> None:
    """An error before all planned seeds are there."""
    if len(runs) < seeds:
        raise Unmeasured(f"There are {len(runs)} of {seeds} planned seeds; run the others first.")
