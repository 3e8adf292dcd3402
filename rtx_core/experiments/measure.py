"""What is measured beside the runs, found or made: `measure("transfer", "sst2", to="yelp", fraction=0.1, seeds=[0])`.

A kind is a module of the study: `of_run(record, measured)` gives a list of what is measured of one trained run,
`of_study(measured)` what is measured of all; each is (content, predictions or None).  `identity` gives what else must
agree for a measurement to be found.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import product
from types import ModuleType

import torch
from torch import nn

from rtx_core import records
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments import configure as experiments
from rtx_core.experiments.weights import load_weights
from rtx_core.progress import say
from rtx_core.records import fingerprint
from rtx_core.study import declared
from rtx_core.train.device import choose, environment


class Measured:
    """The runs of one experiment; what is measured of them is measured on its data, or on those of `to`."""

    def __init__(self, experiment: str, /, models: Sequence = (), seeds: Sequence | None = None, to="", **settings):
        fixed = experiments.experiment(experiment)
        self.experiment, self.settings = experiment, settings
        self.models = experiments.distinct("models", models or fixed.shown)
        self.seeds = experiments.distinct("seeds", fixed.seeds if seeds is None else seeds)
        self.config = experiments.configure(experiment, self.models[0], self.seeds[0], **settings)
        self.name, self.source = self.config.name, self.config.source
        shared = {name: settings[name] for name in ("source", "max_length") if name in settings}
        self.target = Measured(to, **shared) if to else self

    @cached_property
    def device(self) -> torch.device:
        return choose(self.config.device)

    @cached_property
    def task(self):
        return self.config.data.task(self.config.train.batch_size, self.config.train.micro_batches)

    def runs(self) -> Iterator[records.Record]:
        for model, seed in product(self.models, self.seeds):
            config = experiments.configure(self.experiment, model, seed, **self.settings)
            yield records.at(f"{config.name}/{config.model}-seed{seed}", self.source)

    def trained(self, record: records.Record) -> nn.Module:
        """The model of a run with its trained weights, which lie where the run was made."""
        return load_weights(record)


def wanted(kind: ModuleType, study: Measured) -> Iterator[tuple[dict, dict, Callable[[], list]]]:
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


def measure(kind: str, experiment: str, /, to="", *, again=False, **settings: object) -> list[records.Record]:
    """All measurements of this kind under these settings: found, if today's code would make them, or made now."""
    known = declared("MEASUREMENTS")
    if kind not in known:
        raise unknown("kind of measurement", kind, known)
    if to and kind != "transfer":
        raise RtxError(f"{kind} is measured on the data of the runs; leave out to={to}.")
    made_by, fitting = known[kind], declared("MEASURED_ON").get(kind, [experiment])
    if strange := [name for name in (experiment, *[to] * bool(to)) if name not in fitting]:
        raise RtxError(f"{kind} is not measured on {strange[0]!r:.60}; choose from {', '.join(fitting)}.")
    study, measured = Measured(experiment, to=to, **settings), []
    every = list(wanted(import_module(made_by), study))  # now: of a run without a record, nothing is measured
    task = fingerprint.task_of(study.target.config.data, study.target.task)
    made_with = fingerprint.commit() | {"hashes": [fingerprint.module_hash(made_by, task)]}  # now: files may change
    made_with["task"] = fingerprint.name_of(task)
    if not made_with["commit"]:
        say(f"{kind} · no commit of this code is known to git, so it will be named by a hash alone")
    for identity, facts, make in every:
        there = records.measurements(kind, identity["of"], study.source)
        there = [m for m in there if all(m.get(k) == v for k, v in identity.items())]
        there = [m for m in there if m["data"]["sha256"] == facts["sha256"] and not m.stale_reason()]
        if there and not again:
            measured += there
            continue
        for content, predictions in make():
            name = "-".join([f"{identity['model']}-seed{identity['seed']}", *content.pop("suffix", [])])
            whole = {"kind": kind, "name": name, "budget": study.config.budget, "data": facts} | identity
            whole |= {"environment": environment(torch.device("cpu"))} | content
            whole |= {"code": made_with, "made_by": made_by}
            measured.append(records.save_measurement(whole, predictions))
            accuracy = f" · accuracy {content['test']['accuracy']:.4f}" if "test" in content else ""
            say(f"{kind} · {whole['of']} · {whole['name']}{accuracy}")
    return measured
