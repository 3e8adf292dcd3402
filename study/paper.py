"""The paper's own runs: those of its plan, at its seeds and settings.

What a reader adds to `results/` (experiments, models, seeds) stands on *Runs* and in the notebook that made it, and
changes no verdict: claims, predictions and the conclusions are judged from these.
"""

from functools import cache
from pathlib import Path

import yaml

from rtx_core import paths
from rtx_core import records as store
from rtx_core.errors import RtxError
from rtx_core.inputs import look_for
from study import plan
from study.published import published

# the tests that two classifiers are compared on, which are one family: name in prose -> folder, full budget first
TESTS = {"grouped": "sst2-grouped", "sst2": "sst2", "official": "sst2-official", "short": "sst2-short"}
TESTS |= {"tenth": "sst2-10pct", "half": "sst2-50pct", "long": "sst2-long"}
TESTS |= {"yelp": "yelp", "domains": "multi-domain", "yelp_512": "yelp-maxlength512-trainrows10000-epochs1"}


@cache
def planned() -> tuple[tuple[str, str, str, int], ...]:
    """Experiment, name, model and seed of every run of the plan, at any of its budgets, in order of their names."""
    planned_runs = {(c.experiment, c.name, c.model, c.seed) for reduced in (False, True) for c in plan.planned(reduced)}
    return tuple(sorted(planned_runs, key=lambda run: run[1:]))


def records(name: str | None = None, experiment: str | None = None, model: str | None = None) -> list[store.Record]:
    """The paper's recorded runs, as far as they are of this folder, experiment and model."""
    of = [run for run in planned() if all(want in (None, of) for want, of in zip((experiment, name, model), run))]
    return [record for run in of if (record := store.read_or_none(store.path_of(*run[1:])))]


def measurements(kind: str, of: str | None = None) -> list[store.Record]:
    """What was measured beside the paper's runs, of one folder or experiment, or of all."""
    known, runs = {name for run in planned() for name in run[:2]}, {run[1:] for run in planned()}

    def ours(measured: store.Record) -> bool:
        name = measured["of"].partition("-to-")[0]  # of a model of one corpus that is tested on another
        return name in known and ("run" not in measured.content or (name, measured["model"], measured["seed"]) in runs)

    return list(filter(ours, store.measurements(kind, of or "*")))


def folders(*experiments: str) -> dict[str, list[store.Record]]:
    """The runs of experiments by their folders."""
    by_folder: dict[str, list[store.Record]] = {}
    for run in (run for experiment in experiments for run in records(experiment=experiment)):
        by_folder.setdefault(run["name"], []).append(run)
    return by_folder


def tests() -> dict[str, list[store.Record]]:
    """The runs of classifiers on each test."""
    return {test: records(name) for test, name in TESTS.items()}


def claim_sources() -> dict[str, object]:
    """What `study.claims.Sources` takes: the records that the claims of the four sources are judged by."""
    experiments = (
        "sst2",
        "yelp",
        "multi-domain",
        "shakespeare",
        "shakespeare-small",
        "tinystories",
        "tinystories-small",
    )
    kinds = ("transfer", "yardstick", "rounding", "initial")
    cuts = ("seeded", "published", "seeded-10pct", "seeded-50pct", "seeded-long", "seeded-short")
    data_sets = [f"sst2-{cut}-128" for cut in cuts] + ["yelp-seeded-128", "multi-domain-seeded-128"]
    return {
        "folders": folders(*experiments),
        "measured": [one for kind in kinds for one in measurements(kind)],
        "profiles": {name: profile(name) for name in data_sets},
        "times": {name: times(name) for name in ("recurrence", "decoder")},
        "printed": published(),
    }


def times(name: str) -> dict:
    """What a benchmark took on a CPU."""
    return store.read_json(paths.REPOSITORY / "results" / "benchmarks" / f"{name}-cpu.json")


def test_part(data_set: str) -> dict:
    """What was counted of the test part of a data set."""
    if (counted := profile(data_set)) is None:
        raise RtxError(f"There is no count of {data_set} in results/data; make it with rtx.data.profile.")
    return counted["parts"]["test"]


def profile(name: str) -> store.Record | None:
    """What was counted of a data set, by parts, where it was."""
    path = paths.home() / "results" / "data" / f"{name}.json"
    return store.Record(store.read_json(path), path) if look_for(path) else None


def unrecorded() -> list[dict]:
    """Pilots and runs that ended without a record, a row for each occasion: `date`, `runs`, `what` and `why`."""
    return yaml.safe_load(Path(__file__).with_name("unrecorded.yaml").read_text(encoding="utf-8"))
