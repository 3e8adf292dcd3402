"""How many threads of the CPU a run trains on, which is chosen here alone.

`OMP_NUM_THREADS` is respected.  Without it a run of the paper takes what its configuration states, and any other what
the machine has free, as far as more threads make its steps clearly faster.  A step's threads wait for each other, so
beside other programs two take several times as long as one.  A resumed run keeps its number (`train.trainer`)."""

import os
import time
from collections.abc import Callable

import psutil
import torch

from rtx_core.experiments.configure import RunConfig
from rtx_core.fast import accelerate
from rtx_core.models.build import build_model
from rtx_core.train.trainer import Loop, OptimizerStep

AVAILABLE = torch.get_num_threads()  # as many as torch takes by itself
MIN_STEPS = 50  # of a run whose steps are worth timing
ROUNDS = 4  # of which the first warms up
MAX_SHARE = 0.8  # of the time of half as many threads, which are safer beside programs that start later


def set_threads(config: RunConfig, model, task, device: torch.device) -> int:
    """Set the number of threads for a run that begins, and give it."""
    if device.type == "cpu" and not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(config.threads or fastest_threads(config, model, task))
    return torch.get_num_threads()


def fastest_threads(config: RunConfig, model, task) -> int:
    """1, 2, 4, … threads, as many as CPUs are free: doubled while that makes a step faster."""
    threads, most = 1, min(AVAILABLE, round(free_cpus()))
    if most < 2 or config.train.total_steps(task.steps_per_epoch) < MIN_STEPS:
        return threads
    step = training_step(config, model, task)
    while 2 * threads <= most and share(step, threads) < MAX_SHARE:
        threads *= 2
    return threads


def free_cpus() -> float:
    """How many of the CPUs that this process may use are idle."""
    busy = psutil.cpu_percent(interval=0.3, percpu=True)
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(busy))
    return sum(1 - busy[cpu] / 100 for cpu in usable if cpu < len(busy))


def training_step(config: RunConfig, model, task) -> Callable[[int], None]:
    """A step of this run, by its number, on another model of its kind."""
    twin = build_model(config.architecture, seed=0, **model.config.model_dump()).train()
    loop = Loop(twin, task, config.train, config.seed, accelerate(twin) or OptimizerStep(), say=lambda line: None)

    def step(i: int) -> None:
        loop.progress.step = i
        loop.step(config.train.learning_rate)

    return step


def share(step: Callable[[int], None], threads: int) -> float:
    """The time of twice as many threads over that of these, which take turns."""
    pairs = [[seconds(step, i, n) for n in (threads, 2 * threads)] for i in range(ROUNDS)]
    slow, fast = map(sum, zip(*pairs[1:]))
    return fast / slow


def seconds(step: Callable[[int], None], i: int, threads: int) -> float:
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    step(i)
    return time.perf_counter() - begin
