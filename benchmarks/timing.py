"""Timing that survives a noisy machine: the contestants take turns in one process, and medians are compared."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch

from rtx_core.models.fused import linear
from rtx_core.paths import REPOSITORY, write_json
from rtx_core.results.code import code
from rtx_core.training.devices import environment


def interleaved(contestants: dict[str, Callable[[int], object]], rounds: int, warm_up: int = 3, device: str = "cpu") -> dict[str, dict]:
    """Milliseconds of each contestant: called with 0, 1, 2, … in turn, so that a slow minute of the machine meets all."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for i in range(warm_up + rounds):
        for name, work in contestants.items():
            if device == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
            work(i)
            if device == "cuda":
                torch.cuda.synchronize()
            if i >= warm_up:
                times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: summary(values) for name, values in times.items()}


def summary(values: list[float]) -> dict:
    low, median, high = np.percentile(values, [10, 50, 90])
    return {"median_ms": float(median), "p10_ms": float(low), "p90_ms": float(high), "rounds": len(values), "ms": [round(value, 3) for value in values]}


def products(m: int, k: int, n: int) -> dict[str, float]:
    """Milliseconds of x (m, k) times W (n, k): forward and both gradients, each by the faster of the two libraries."""
    x, w, g = torch.randn(m, k), torch.randn(n, k), torch.randn(m, n)
    ways = {
        "forward MKL": lambda i: torch.mm(x, w.t()), "forward oneDNN": lambda i: linear(x, w),
        "input MKL": lambda i: torch.mm(g, w), "input oneDNN": lambda i: linear(g, w.t()),
        "weight MKL": lambda i: torch.mm(g.t(), x), "weight oneDNN": lambda i: linear(g.t(), x.t()),
    }  # fmt: skip
    took = {way: t["median_ms"] for way, t in interleaved(ways, 15).items()}
    return {part: min(took[f"{part} MKL"], took[f"{part} oneDNN"]) for part in ("forward", "input", "weight")}


def copy_rate() -> float:
    """Bytes a millisecond, read and written."""
    source = torch.randn(25_000_000)
    target = torch.empty_like(source)
    return 8 * source.numel() / interleaved({"copy": lambda i: target.copy_(source)}, 10)["copy"]["median_ms"]


def save(name: str, content: dict, where: str = "cpu") -> None:
    """`results/benchmarks/<name>-<cpu or cuda>.json`, with the machine and the code that made it."""
    machine = environment(torch.device(where))
    with suppress(PackageNotFoundError):  # a contestant where it is installed
        machine["packages"]["transformers"] = version("transformers")
    content = content | {
        "benchmark": name, "environment": machine, "code": code(),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip
    write_json(REPOSITORY / "results" / "benchmarks" / f"{name}-{where}.json", content)
