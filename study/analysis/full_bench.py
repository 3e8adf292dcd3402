"""The bench's standard budget of a recurrence, beside the two stacks that the bench makes for it."""

from collections.abc import Iterable, Sequence
from functools import cache

import pandas as pd

from rtx_core import records
from rtx_core.benchmark.bench import controls, find_candidate
from rtx_core.benchmark.card import Counts, Verdict, score
from rtx_core.benchmark.compare import verdicts
from rtx_core.benchmark.recorded import counts, point
from rtx_core.benchmark.suite import BUDGETS, PREFIX, unit_of
from rtx_core.records import Record
from study.analysis.ranking import in_full

STANDARD = BUDGETS["standard"]


def standard_runs() -> list[Record]:
    """All that are recorded at the standard budget."""
    names = {f"{PREFIX}{task}" for task in STANDARD.tasks}
    return [run for run in records.records() if run["name"].split("-learningrate")[0] in names]


@cache
def opponents(name: str) -> tuple[Counts, dict[str, dict]]:
    """What is counted of a recurrence, and the stacks that the bench makes for it."""
    size = counts(find_candidate(name).fresh())
    return size, controls(size)


def judged(name: str, runs: Iterable[Record]) -> dict[tuple[str, str], tuple[list[float], list[float], Verdict]]:
    """(task, role of a stack) -> the scores of the recurrence and of the stack, and the verdict on the recurrence; of
    the tasks that are run in full."""
    (size, stacks), pairs = opponents(name), {}
    for task in STANDARD.tasks:
        best = in_full([run for run in runs if run["experiment"] == f"{PREFIX}{task}"])
        for stack, settings in stacks.items():
            if {name, stack} <= best.keys():
                first = point(task, name, best[name], "candidate", size)
                pairs[task, settings["role"]] = first, point(task, stack, best[stack], settings["role"]), unit_of(task)
    by_pair = verdicts(pairs)
    return {key: (first.errors, second.errors, by_pair[key]) for key, (first, second, _) in pairs.items()}


def table(names: Iterable[str], runs: Sequence[Record]) -> pd.DataFrame:
    """A row for each recurrence and task: the mean scores of it and of its stacks, with the verdicts on it."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        for (task, role), (scores, control, verdict) in judged(name, runs).items():
            unit = unit_of(task)
            own = {"Recurrence": name, "Task": task, "Score": score(sum(scores) / len(scores), unit)}
            row = rows.setdefault((name, task), own)
            row[f"Stack {role}"] = score(sum(control) / len(control), unit)
            row[f"Beside the stack {role}"] = verdict.verdict
    return pd.DataFrame(list(rows.values()))
