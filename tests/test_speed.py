"""What was won in speed is not lost: today's training step against the plain one, in one run."""

import os
import time

import numpy as np
import pytest
import torch

from benchmarks import layers, recurrence, timing, training_step
from rtx_core.experiments.configure import configure
from rtx_core.train.device import has_bf16
from rtx_core.train.trainer import OptimizerStep

pytestmark = pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="a minute: RTX_LONG=1")
CPU, ROUNDS = torch.device("cpu"), 8
# How many times as long the plain step must take at least, and in brackets what was seen, on a quiet machine or not.
LEAST = {
    "baseline": 1.6,  # (2.1 to 2.3) texts that lie end to end
    "kausik": 1.5,  # (1.8 to 2.2) the recurrence along the text
    "layers": 1.03,  # (1.13 to 1.24) compiled layers of a small decoder
    "baseline, bf16": 1.1,  # (1.25 on two threads, avx512_bf16) our own step with products of 32 bits over that of 16
}


def steps(of: str) -> dict[str, timing.Work]:
    if of == "kausik":
        model = recurrence.built("kausik", CPU)
        given = timing.Prepared([recurrence.characters(model, 2, 32)]), configure("shakespeare", "kausik").train, CPU
        plain = timing.stepping(recurrence.built("kausik", CPU, fast=False), *given, OptimizerStep())
        return {"plain": plain, "ours": timing.stepping(model, *given)}
    if of == "layers":
        return dict(zip(("plain", "ours"), layers.ways("pointers, 1x4", timing.Options(quick=True)).values()))
    sst2 = training_step.Sst2(timing.Options(quick=True))
    ours, half = training_step.both("baseline", sst2.task, CPU).values()
    pair = (ours, half) if of.endswith("bf16") else (sst2.plain("baseline", None), ours)
    return dict(zip(("plain", "ours"), pair))


@pytest.mark.parametrize("of", LEAST)
def test_a_step_is_as_many_times_faster_than_the_plain_one(of, monkeypatch):
    """The median of pairs on one batch, in time of the one thread, which other programs stretch little."""
    if "bf16" in of and not has_bf16(CPU):
        pytest.skip("this processor has no bf16 products")
    monkeypatch.setattr(timing.time, "perf_counter", time.process_time)
    took = timing.interleaved(steps(of), ROUNDS)
    assert np.median(np.divide(took["plain"]["ms"], took["ours"]["ms"])) > LEAST[of]
