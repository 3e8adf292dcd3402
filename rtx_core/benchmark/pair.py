"""Two models side by side, of cards or of what is recorded: a row of differences for each task."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from rtx_core.benchmark.card import Card, Count, Counts, Part, Point, TaskResult, folder, page, read, table
from rtx_core.benchmark.compare import ENOUGH, verdicts, welch
from rtx_core.benchmark.recorded import counts_of, recorded_points, runs_of
from rtx_core.benchmark.suite import BUDGETS, unit_of
from rtx_core.benchmark.words import of_seeds
from rtx_core.errors import RtxError, unknown
from rtx_core.paths import write_atomically
from rtx_core.report.evidence import COUNTS, device_of
from rtx_core.report.style import number

NOTE = (
    "Parameters: those of matrices outside the vocabulary, and the multiply-adds of one token in them. "
    "Verdicts on errors are by their odds, whose interval they give."
)


class Row(Part):
    """A task: what both models get, and the difference first − second in its unit, a share of errors or nats.  From
    three seeds that both have, these alone are compared, with an interval and a verdict on the first model."""

    task: str
    unit: Literal["error", "nats"]
    first: Point | None = None
    second: Point | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    verdict: Literal["better", "worse", "equal", "cannot say"] | None = None
    says: str = ""


class Comparison(Part):
    version: Literal[1] = 1
    budget: str
    names: tuple[str, str]
    counts: tuple[Counts, Counts]
    rows: list[Row]

    def cells(self) -> list[list[str]]:
        """The table: its head, the tasks, and the sizes."""
        first, second = self.names
        lines = [["", first, second, f"{first} − {second}", "Verdict"]]
        for row in self.rows:
            scores = [score_and_seeds(each, row.unit) for each in (row.first, row.second)]
            lines.append([row.task, *scores, difference_in_words(row), row.says])
        for label, field in (("parameters", "weights"), ("multiply-adds", "applied")):
            a, b = (getattr(size, field) for size in self.counts)
            lines.append([label, f"{a:,}", f"{b:,}", size_in_words(a, b), ""])
        return lines

    def __str__(self) -> str:
        lines = self.cells()
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def score_and_seeds(point: Point | None, unit: str) -> str:
    if point is None:
        return "none"
    n = len(point.errors)
    seeds = ", ".join(map(str, point.seeds)) if point.seeds else ""
    plural = "s" * (n > 1)
    return f"{of_seeds(point, unit)}, {f'seed{plural} {seeds}' if seeds else f'{n} seed{plural}'}"


def difference_in_words(row: Row) -> str:
    if row.difference is None:
        return ""
    is_nats = row.unit == "nats"
    form, scale = ("+.3f", 1) if is_nats else ("+.2f" if abs(row.difference) < 0.01 else "+.1f", 100)
    low_high = (
        f" ({' to '.join(number(scale * end, form) for end in row.interval)})" if row.interval and is_nats else ""
    )
    return f"{number(scale * row.difference, form)} {'nats' if is_nats else 'points'}{low_high}"


def size_in_words(a: Count, b: Count) -> str:
    return f"{number(a - b, '+,d')} ({number(a / b, '.2f')} times)"


def is_file(word: str) -> bool:
    return word.endswith(".json") or os.sep in word


def card_of(name: str, budget: str) -> Card:
    """What a card shows of a recorded model; else the card of that name, where one was written."""
    if budget not in BUDGETS:
        raise unknown("budget", budget, BUDGETS)
    by_task = {task: recorded_points(task, budget) for task in BUDGETS[budget].tasks}
    names = list(dict.fromkeys(each for points in by_task.values() for each in points))
    if name not in names:
        if (file := folder() / f"{name}-{budget}.json").is_file():
            return read(file)
        if not names:
            raise RtxError(
                f"{name!r:.60} is not recorded at the budget {budget}, nor any other; give the JSON of its card."
            )
        raise unknown("recorded model", name, names)
    tasks, latest = [], []
    for task, points in by_task.items():
        if name in points:
            runs = runs_of(task, budget)[name]
            latest.append(max(runs, key=lambda run: run["finished"]))
            tasks.append(
                TaskResult(
                    task=task,
                    unit=unit_of(task),
                    candidate=points.pop(name).model_copy(update={"role": "candidate"}),
                    others=list(points.values()),
                    minutes=sum(run["seconds"] for run in runs) / 60,
                    memory_mib=runs[0]["peak_memory_mib"],
                )
            )
    last = max(latest, key=lambda run: run["finished"])
    details = {"date": last["finished"], "machine": device_of(last), "counts": counts_of(last), "check": []}
    return Card(name=name, budget=budget, tasks=tasks, **details)


def on_seeds(point: Point, seeds: Sequence[int]) -> Point:
    by_seed = dict(zip(point.seeds, point.errors))
    return point.model_copy(update={"errors": [by_seed[seed] for seed in seeds], "seeds": list(seeds)})


def row_of(task: str, unit: Literal["error", "nats"], first: Point | None, second: Point | None) -> Row:
    """A row without a verdict."""
    if not (first and second):
        return Row(task=task, unit=unit, first=first, second=second)
    fewest = min(len(first.errors), len(second.errors))
    are_known = first.seeds and second.seeds
    why = "too few seeds in common" if are_known else "which seeds is not known"
    why = f"{COUNTS[fewest]} seed{'s' * (fewest > 1)}" if fewest < ENOUGH else why
    difference = float(np.mean(first.errors) - np.mean(second.errors))
    return Row(task=task, unit=unit, first=first, second=second, difference=difference, says=f"{why}, no verdict")


def in_common(row: Row) -> tuple[Point, Point] | None:
    """Both models on the seeds that both have, if these are enough for a verdict."""
    if row.first and row.second:
        seeds = [seed for seed in row.first.seeds if seed in row.second.seeds]
        if len(seeds) >= ENOUGH:
            return on_seeds(row.first, seeds), on_seeds(row.second, seeds)
    return None


def with_verdicts(rows: Sequence[Row], names: tuple[str, str]) -> list[Row]:
    """The same, with an interval and a verdict where the seeds are enough; the tests of a table are one family."""
    pairs = {row.task: (*pair, row.unit) for row in rows if (pair := in_common(row))}
    judgments, judged = verdicts(pairs, lambda task: names[1]), []
    for row in rows:
        if row.task in pairs:
            first, second, _ = pairs[row.task]
            value, low, high, _ = welch(first.errors, second.errors)
            judgment = judgments[row.task]
            is_clear = judgment.verdict in ("better", "worse")
            says = f"{f'{names[0]} is ' * is_clear}{judgment.verdict}. {judgment.says}"
            changes = {"difference": value, "interval": (low, high), "verdict": judgment.verdict, "says": says}
            row = row.model_copy(update=changes)
        judged.append(row)
    return judged


def compare(*words: str, budget: str = "quick") -> tuple[Comparison, Path]:
    """The differences of two models, each the JSON file of a card or the name of a recorded model, and the page that
    draws both; they are written beside the cards, as JSON too."""
    if len(words) != 2:
        raise RtxError(
            f"Got {len(words)} to compare; give two, each the JSON of a card or the name of a recorded model."
        )
    files = [read(word) if is_file(word) else None for word in words]
    budget = next((card.budget for card in files if card), budget)
    first, second = (card or card_of(word, budget) for card, word in zip(files, words))
    if first.budget != second.budget:
        raise RtxError(f"The cards are of the budgets {first.budget} and {second.budget}; compare two of one budget.")
    stem = f"{first.name}-and-{second.name}".replace("/", "-")
    if first.name == second.name:
        numbered = (card.model_copy(update={"name": f"{card.name} ({n})"}) for n, card in enumerate((first, second), 1))
        first, second = numbered
    names = first.name, second.name
    sides = [{task.task: task.candidate for task in card.tasks} for card in (first, second)]
    rows = [row_of(task, unit_of(task), *(side.get(task) for side in sides)) for task in sides[0] | sides[1]]
    if all(row.difference is None for row in rows):
        raise RtxError(f"{names[0]} and {names[1]} have no trained task in common; bench them on the same tasks.")
    rows = with_verdicts(rows, names)
    compared = Comparison(budget=budget, names=names, counts=(first.counts, second.counts), rows=rows)
    head, *lines = compared.cells()
    lead = f"<h2>Differences</h2>{table(head, lines)}<p>{NOTE}</p>"
    write_atomically(folder() / f"{stem}.json", compared.model_dump_json(indent=1).encode())
    write_atomically(path := folder() / f"{stem}.html", page(first, second, lead=lead).encode())
    return compared, path
