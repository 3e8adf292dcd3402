"""How many threads a run takes: what its configuration or the environment says, else what is free and pays."""

import pytest
import torch
from conftest import CPU

from rtx_core.experiments import threads
from rtx_core.experiments.configure import configure
from rtx_core.experiments.run import prepare


@pytest.fixture(autouse=True)
def machine(monkeypatch, small_models):
    """Eight CPUs, all of them idle; the environment names no number."""
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(threads, "AVAILABLE", 8)
    monkeypatch.setattr(threads, "free_cpus", lambda: 7.9)
    yield
    torch.set_num_threads(1)


def chosen(monkeypatch, times: dict[int, float], **settings) -> int:
    """The number for a run whose step takes so many seconds, by the number of threads."""
    monkeypatch.setattr(threads, "seconds", lambda step, i, n: step(i) or times[n])
    config = configure("sst2", "recurrent", **{"source": "embedded", "epochs": 2} | settings)
    number = threads.set_threads(config, *reversed(prepare(config, CPU)), CPU)
    assert torch.get_num_threads() == number
    return number


def test_a_trial_takes_as_many_threads_as_make_its_steps_faster(monkeypatch):
    assert chosen(monkeypatch, {1: 4.0, 2: 2.0, 4: 1.2, 8: 1.1}) == 4
    assert chosen(monkeypatch, {1: 1.0, 2: 0.9, 4: 0.1}) == 1


def test_beside_other_programs_a_trial_takes_what_is_free(monkeypatch):
    halves = {1: 4.0, 2: 2.0, 4: 1.0, 8: 0.5}
    assert chosen(monkeypatch, halves) == 8
    monkeypatch.setattr(threads, "free_cpus", lambda: 2.2)
    assert chosen(monkeypatch, halves) == 2
    monkeypatch.setattr(threads, "free_cpus", lambda: 0.3)
    assert chosen(monkeypatch, halves) == 1


def test_a_short_run_is_not_timed(monkeypatch):
    assert chosen(monkeypatch, {}, epochs=0, steps=10, eval_every=10) == 1


def test_the_environment_is_respected(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    torch.set_num_threads(3)  # as torch does when it is imported
    assert chosen(monkeypatch, {}) == 3


def test_a_run_of_the_paper_keeps_the_number_of_its_configuration():
    assert configure("sst2", "recurrent", source="real").threads == 1
    assert configure("sst2", "recurrent", source="embedded").threads == 0
    config = configure("khop", "1x4")
    torch.set_num_threads(2)
    assert threads.set_threads(config, None, None, CPU) == config.threads == 1


def test_idle_processors_are_counted(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(threads.psutil, "cpu_percent", lambda interval, percpu: [0.0] * 4096)
    idle = threads.free_cpus()
    monkeypatch.setattr(threads.psutil, "cpu_percent", lambda interval, percpu: [100.0] * 4096)
    assert idle >= 1 and threads.free_cpus() == 0
