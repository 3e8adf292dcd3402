"""What is recorded on the suite: the models of this library, and the recurrences that the study declares."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import nn

from rtx_core import records
from rtx_core.benchmark.card import RECORDED, RECURRENCE, Counts, Point
from rtx_core.benchmark.subject import Subject, definition, instance, vocabulary
from rtx_core.benchmark.suite import BUDGETS, PREFIX, error, kilobits, unit_of
from rtx_core.benchmark.words import of_seeds
from rtx_core.models.build import build_model
from rtx_core.records import Record
from rtx_core.report.evidence import by_model
from rtx_core.report.rates import at_best_rate
from rtx_core.study import declaration

TOKENS = 61  # of the module that is checked and counted: no other size of it is likely to be that
LENGTH = 32


def counts(module: nn.Module) -> Counts:
    """Matrices outside the vocabulary's, and how often a forward pass applies them; of a model that does not run, once.

    The width is the size that most of their sides have.
    """
    tokens, parameters = vocabulary(module, TOKENS), dict(module.named_parameters())
    try:
        subject = Subject(module, tokens, LENGTH, 0)
        times, passes = subject.applications[0], max(1, subject.in_depth)
    except Exception:  # the check says why
        times, passes = dict.fromkeys((name for name, p in parameters.items() if p.dim() > 1), 1), 1
    times = {name: n for name, n in times.items() if tokens not in parameters[name].shape}
    sizes = [size for name in times for size in parameters[name].shape] or [1]
    width = max(set(sizes), key=lambda size: (sizes.count(size), size))
    weights = max(1, sum(parameters[name].numel() for name in times))
    applied = max(weights, sum(parameters[name].numel() * n for name, n in times.items()))
    return Counts(weights=weights, applied=applied, width=width, passes=passes)


@cache
def counts_at(address: str) -> Counts:
    """Of the class at an address, made without a trace on what is drawn afterwards."""
    with torch.random.fork_rng(devices=[]):
        return counts(instance(definition(address), TOKENS, LENGTH))


def counts_of(record: Record) -> Counts:
    """Of the model of a record, which is of this library or of a class that the study declares."""
    if address := declaration("RECURRENCES").get(record["model"]):
        return counts_at(address)
    config = record["config"]
    return counts(build_model(config["architecture"], seed=0, **config["model"] | {"vocab_size": TOKENS}))


def point(task: str, name: str, runs: list[Record], role: str = RECORDED, size: Counts | None = None) -> Point:
    """A model on a task as the card shows it; its sizes, where they are not given, are those of `looped`."""
    model, scores = runs[0]["config"]["model"], [error(task, record) for record in runs]
    passes, layers = model.get("num_passes", 1), model.get("num_layers", 1)
    return Point(
        name=name,
        role=role,
        errors=[score for score, _ in scores],
        seeds=[record["seed"] for record in runs],
        answers=scores[0][1],
        kilobits=[kilobits(record) for record in runs] if task == "facts" else [],
        weights=size.weights if size else runs[0]["parameters"]["non_embedding"],
        depth=size.depth if size else layers * passes,
        passes=size.passes if size else passes,
        rate=runs[0]["config"]["train"]["learning_rate"],
    )


def runs_of(task: str, budget: str) -> dict[str, list[Record]]:
    """Of every model that is recorded on this task at this budget, the runs at its best rate."""
    runs = [
        record
        for record in records.records(experiment=f"{PREFIX}{task}")
        if (record.get("asked") or {}).get("settings", {}).get("budget") == budget
    ]
    return {name: at_best_rate(group) for name, group in by_model(runs).items()}


def recorded_points(task: str, budget: str) -> dict[str, Point]:
    """Every recorded model on this task at this budget that can be counted: one of this library, or of a class that the
    study declares."""
    declared, points = declaration("RECURRENCES"), {}
    for name, runs in runs_of(task, budget).items():
        if name in declared:
            points[name] = point(task, name, runs, RECURRENCE, counts_at(declared[name]))
        elif "num_layers" in runs[0]["config"]["model"]:
            points[name] = point(task, name, runs)
    return points


def matrix(budget: str = "quick") -> pd.DataFrame:
    """The recorded models at a budget (`recorded_points`), a row each, and what they are scored by on each task."""
    rows: dict[str, dict] = {}
    for task in BUDGETS[budget].tasks:
        unit = unit_of(task)
        for name, each in recorded_points(task, budget).items():
            facts = {"Parameters": each.weights, "Depth": each.depth, "Passes": each.passes, "Seeds": len(each.errors)}
            row = rows.setdefault(name, {"Model": name} | facts)
            row[f"{task}, {unit}"] = of_seeds(each, unit)
            if each.kilobits:
                row["facts, kilobits"] = f"{np.mean(each.kilobits):.0f}"
    order = sorted(rows.values(), key=lambda row: (row["Passes"] > 1, row["Parameters"], row["Depth"]))
    return pd.DataFrame(order)
