"""What is measured beside the runs, found or made: `measure("transfer", "sst2", to="yelp", fraction=0.1, seeds=[0])`.

A kind is a module of the study: `of_run(record, study)` gives a list of what is measured of one trained run,
`of_study(study)` what is measured of all; each is (content, predictions or None).  `identity` gives what else must
agree for a measurement to be found.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any

import torch

from rtx_core import records
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments.configure import configure, distinct, find_experiment
from rtx_core.experiments.weights import load_weights
from rtx_core.progress import say
from rtx_core.records import fingerprint
from rtx_core.study import declaration
from rtx_core.train.device import choose, environment


class MeasuredRuns:
    """The runs of one experiment; what is measured of them is measured on its data, or on those of `to`."""

    def __init__(self, experiment: str, /, models: Sequence = (), seeds: Sequence | None = None, to="", **settings):
        fixed = find_experiment(experiment)
        self.experiment, self.settings = experiment, settings
        self.models = distinct("models", models or fixed.default_models)
        self.seeds = distinct("seeds", fixed.seeds if seeds is None else seeds)
        self.config = configure(experiment, self.models[0], self.seeds[0], **settings)
        self.name, self.source = self.config.name, self.config.source
        shared = {name: settings[name] for name in ("source", "max_length") if name in settings}
        self.target = MeasuredRuns(to, **shared) if to else self

    @cached_property
    def device(self) -> torch.device:
        return choose(self.config.device)

    @cached_property
    def task(self):
        return self.config.data.task(self.config.train.batch_size, self.config.train.micro_batches)

    def runs(self) -> Iterator[records.Record]:
        for model, seed in product(self.models, self.seeds):
            config = configure(self.experiment, model, seed, **self.settings)
            yield records.load(f"{config.name}/{config.model}-seed{seed}", self.source)

    def trained(self, record: records.Record) -> Any:
        """The model of a run with its trained weights, which lie where the run was made."""
        return load_weights(record)


def measurement_jobs(kind: ModuleType, study: MeasuredRuns) -> Iterator[tuple[dict, dict, Callable[[], list]]]:
    """(what must agree for a measurement to be found, facts of the data, what makes it) of each."""
    if hasattr(kind, "of_study"):
        yield {"of": study.name} | kind.identity(study), study.task.facts, lambda: [kind.of_study(study)]
        return
    for record in study.runs():
        identity = {"of": study.name, "model": record["model"], "seed": record["seed"], "run": record["key"]}
        identity |= kind.identity(record) if hasattr(kind, "identity") else {}
        facts = record["data"]
        if study.target is not study:
            identity["of"], facts = f"{study.name}-to-{study.target.name}", study.target.task.facts
        yield identity, facts, partial(kind.of_run, record, study)


def measure(kind: str, experiment: str, /, to="", *, again=False, **settings: Any) -> list[records.Record]:
    """All measurements of this kind under these settings: found, if today's code would make them, or made now."""
    kinds = declaration("MEASUREMENTS")
    if kind not in kinds:
        raise unknown("kind of measurement", kind, kinds)
    if to and kind != "transfer":
        raise RtxError(f"{kind} is measured on the data of the runs; leave out to={to}.")
    module, experiments = kinds[kind], declaration("MEASURED_ON").get(kind, [experiment])
    if unfit := [name for name in (experiment, *[to] * bool(to)) if name not in experiments]:
        raise RtxError(f"{kind} is not measured on {unfit[0]!r:.60}; choose from {', '.join(experiments)}.")
    study, results = MeasuredRuns(experiment, to=to, **settings), []
    jobs = list(measurement_jobs(import_module(module), study))  # now: of a run without a record, nothing is measured
    task = fingerprint.task_of(study.target.config.data, study.target.task)
    code = fingerprint.commit() | {"hashes": [fingerprint.module_hash(module, task)]}  # now: files may change
    code["task"] = fingerprint.name_of(task)
    if not code["commit"]:
        say(f"{kind} · no commit of this code is known to git, so it will be named by a hash alone")
    for identity, facts, make in jobs:
        matches = records.measurements(kind, identity["of"], study.source)
        matches = [m for m in matches if all(m.get(k) == v for k, v in identity.items())]
        matches = [m for m in matches if m["data"]["sha256"] == facts["sha256"] and not m.stale_reason()]
        if matches and not again:
            results += matches
            continue
        for content, predictions in make():
            name = "-".join([f"{identity['model']}-seed{identity['seed']}", *content.pop("suffix", [])])
            record = {"kind": kind, "name": name, "budget": study.config.budget, "data": facts} | identity
            record |= {"environment": environment(torch.device("cpu"))} | content
            record |= {"code": code, "made_by": module}
            results.append(records.save_measurement(record, predictions))
            score = next((name for name in ("accuracy", "loss") if name in content.get("test", {})), "")
            text = f" · {score} {content['test'][score]:.4f}" if score else ""
            say(f"{kind} · {record['of']} · {record['name']}{text}")
    return results
