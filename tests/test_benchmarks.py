"""The benchmarks at small sizes: each writes what pages read, and refuses ways that are not one function.
No time is judged."""

import json
from dataclasses import replace

import pytest
import torch
from conftest import CPU, SMALL

from benchmarks import decoder, latency, recurrence, sitting, small, timing
from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import configure
from rtx_core.paths import REPOSITORY

QUICK = timing.Options(quick=True)


@pytest.fixture(autouse=True)
def small_sizes(small_models, monkeypatch):
    """Small models, run once; a process apart would have large ones, and a hundred megabytes take a while to copy."""
    monkeypatch.setattr(timing, "in_own_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(timing, "COPIED", 1000)
    monkeypatch.setattr(timing, "interleaved", lambda ways, rounds, warm_up=0, of=timing.interleaved: of(ways, 1, 0))
    monkeypatch.setattr(latency, "WARM_UP", 1)
    monkeypatch.setattr(small, "configure", lambda study, name, source: smaller(configure(study, name, source=source)))


def smaller(config):
    return replace(config, overrides=config.overrides | SMALL)


DELETED = "packed, prepared for serving"  # a way of earlier code


def lacks(made, kept):
    """Whether a key is missing, all the way down; of a list, in its first entry."""
    if isinstance(kept, dict):
        return any(key not in made or lacks(made[key], kept[key]) for key in kept.keys() - {"ms", "model", DELETED})
    return isinstance(kept, list) and isinstance(kept[0], dict) and lacks(made[0], kept[0])


def training_step(options: timing.Options) -> dict:
    from benchmarks import training_step  # which imports transformers

    return training_step.measure(options)


MADE = {"training-step": training_step, "latency": latency.measure, "decoder": decoder.measure}
MADE |= {"small": small.measure, "recurrence": lambda _: recurrence.measure(recurrence.QUICK, CPU)}


@pytest.mark.parametrize("name", MADE)
def test_a_quick_record_has_the_keys_of_the_committed_one_and_replaces_none(name, home):
    timing.save(name, MADE[name](QUICK), QUICK)
    made = json.loads((home / f"_build/benchmarks/{name}-cpu.json").read_text())
    kept = json.loads((REPOSITORY / f"results/benchmarks/{name}-cpu.json").read_text())
    assert {"threads", "instructions"} <= made["environment"].keys()
    kept = {key: of for key, of in kept.items() if key not in ("environment", "compiled")}  # the last is None here
    assert (name == "training-step") == ("compiled" in made) and not lacks(made, kept)
    assert name != "training-step" or made["tokens_per_step"] > made["batch"]
    if name == "recurrence":
        assert 0 <= made["difference"] < 1e-4 and [row["segment"] for row in made["memory"]] == [None, 0]


def test_a_sitting_times_what_records_hold():
    record = records.read(REPOSITORY / "results" / "sst2-10pct" / "recurrent-seed0.json")
    ((key, measured),) = sitting.measure(QUICK, [record]).items()
    assert key == ("sst2-10pct", "recurrent")
    assert [row.keys() for row in measured] == [row.keys() for row in record["latency"]["measured"]]


def test_ways_that_differ_are_refused(monkeypatch):
    right = recurrence.built

    def wrong(name, where, fast=True, **overrides):
        model = right(name, where, fast, **overrides)
        with torch.no_grad():
            model.layers[0].up.weight[0] += 0 if fast else 1
        return model

    monkeypatch.setattr(recurrence, "built", wrong)
    with pytest.raises(RtxError, match="they are not the same function"):
        recurrence.difference(recurrence.QUICK, CPU)
