"""Timing that survives a noisy machine: the contestants take turns in one process, and medians are compared."""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from rtx_core import records
from rtx_core.data.tasks import Language
from rtx_core.fast import accelerate
from rtx_core.fast.fused_block import linear
from rtx_core.fast.layers import compile_layers
from rtx_core.paths import REPOSITORY, build, write_json
from rtx_core.records import fingerprint
from rtx_core.train.device import choose, environment
from rtx_core.train.trainer import Loop, OptimizerStep

GRAPHS = "reduce-overhead"  # the mode of torch.compile that records CUDA graphs
COPIED = 25_000_000  # numbers, more than a cache holds
KINDS = {  # of the operators of a CPU; all others are the rest
    "matrix products": ("mm", "addmm", "_linear_pointwise"),
    "attention": (
        *("bmm", "baddbmm", "_softmax", "_softmax_backward_data", "index_select", "index_copy_"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
    ),
    "AdamW": ("_fused_adamw_",),
    "norms of gradients and states": ("linalg_vector_norm",),
}
Work = Callable[[int], object]


@dataclass(frozen=True)
class Options:
    """What is asked for on the command line."""

    device: str = "cpu"
    quick: bool = False  # one round on generated text, which says nothing of times

    @property
    def where(self) -> torch.device:
        return choose(self.device)

    @property
    def source(self) -> str:
        return "embedded" if self.quick else "real"

    def rounds(self, n: int) -> int:
        return 1 if self.quick else n


def options(description: str) -> Options:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="one round, written to _build/benchmarks/")
    return Options(**vars(parser.parse_args()))


def interleaved(contestants: dict[str, Work], rounds: int, warm_up: int = 3) -> dict[str, dict]:
    """Milliseconds of each: called with 0, 1, 2, … in turn, so that a slow minute of the machine meets all."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(warm_up + rounds):
        for name, work in contestants.items():
            wait()
            begin = time.perf_counter()
            work(i)
            wait()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: summary(values[warm_up:]) for name, values in times.items()}


def summary(values: list[float]) -> dict:
    low, median, high = np.percentile(values, [10, 50, 90])
    row = {"median_ms": float(median), "p10_ms": float(low), "p90_ms": float(high)}
    return row | {"rounds": len(values), "ms": [round(value, 3) for value in values]}


class Prepared(Language):
    """Batches of (inputs, targets) that are ready, in turn, as a task for the trainer."""

    micro_batch = evaluation_batches = test_batches = None

    def __init__(self, batches: list):
        self.batches = batches

    def step(self, seed: int, i: int) -> list:
        return [self.batches[i % len(self.batches)]]

    def examples(self, i: int) -> int:
        return self.batches[i % len(self.batches)][1].numel()


def stepping(model, task, config, where: torch.device, path=None, compile: str = "") -> Work:
    """The trainer's own optimizer step, by the fast path of the model unless another is given."""
    model.to(where).train()
    path = path or accelerate(model) or OptimizerStep()
    loop = Loop(model, task, config, 0, path, compile=compile_layers(model, compile))
    return lambda i: loop.step(config.learning_rate)


def by_kind(work: Work, rounds: int) -> dict[str, float]:
    """Milliseconds of a step by kind of operator, under torch's profiler, which itself takes some."""
    for i in range(4):
        work(i)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for i in range(rounds):
            work(i)
    took = dict.fromkeys((*KINDS, "the rest"), 0.0)
    for row in profiler.key_averages():
        kinds = [kind for kind, names in KINDS.items() if row.key.split("::")[-1] in names]
        took[kinds[0] if kinds else "the rest"] += row.self_cpu_time_total / 1e3 / rounds
    return took


def products(m: int, k: int, n: int) -> dict[str, float]:
    """Milliseconds of x (m, k) times W (n, k): forward and both gradients, each by the faster library."""
    x, w, g = torch.randn(m, k), torch.randn(n, k), torch.randn(m, n)
    pairs, ways = {"forward": (x, w), "input": (g, w.t()), "weight": (g.t(), x.t())}, {}
    for part, (a, b) in pairs.items():  # each is a bᵀ
        ways[part, "MKL"] = lambda i, a=a, b=b: torch.mm(a, b.t())
        ways[part, "oneDNN"] = lambda i, a=a, b=b: linear(a, b)
    took = interleaved(ways, 15)
    return {part: min(took[part, way]["median_ms"] for way in ("MKL", "oneDNN")) for part in pairs}


def with_adamw(ms: float, parameters: int) -> dict[str, float]:
    """`ms` and what AdamW must read and write: 28 bytes a parameter at the rate of copying."""
    source = torch.randn(COPIED)
    target = torch.empty_like(source)
    copy_ms = interleaved({"copy": lambda i: target.copy_(source)}, 10)["copy"]["median_ms"]
    rate = 8 * source.numel() / copy_ms  # bytes a millisecond
    row = {"adamw_ms": 28 * parameters / rate, "copy_gb_per_second": rate / 1e6}
    return row | {"ms": ms + row["adamw_ms"]}


def in_own_process(function: Callable, *arguments):
    """The function's result in a process of its own, whose memory has held nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def on_machine(where: torch.device) -> dict:
    """The environment, and the processor's instructions that products can use."""
    able = (name for name, is_available in torch.cpu.get_capabilities().items() if is_available is True)
    instructions = sorted(name for name in able if name.startswith(("amx", "avx", "fma", "bf16", "sve")))
    return environment(where) | {"instructions": instructions}


def save(name: str, content: dict, options: Options) -> None:
    """`results/benchmarks/<name>-<device>.json`, with the machine and the code; a quick one under `_build/`."""
    machine = on_machine(options.where)
    machine["packages"]["transformers"] = version("transformers")  # a contestant
    content |= {"benchmark": name, "environment": machine, "code": fingerprint.commit(), "finished": records.now()}
    folder = build() if options.quick else REPOSITORY / "results"
    write_json(folder / "benchmarks" / f"{name}-{options.device}.json", content)
