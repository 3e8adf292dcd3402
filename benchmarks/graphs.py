"""What a CUDA graph gains on the small models of this book: `python -m benchmarks.graphs --device cuda`.

Writes results/benchmarks/graphs-cuda.json.  Both ways take turns in one process; `kernels_ms` is how long the GPU works
in a step, which no way of launching can beat, and `kernels` how many it launches.  Half a minute on a GPU.
"""

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import timing
from rtx_core.experiments.configure import configure
from rtx_core.experiments.run import prepare

STEPS = {  # (experiment, model, settings)
    "k-hop, 1x4": ("khop", "1x4", {}),
    "k-hop, 4x1": ("khop", "4x1", {}),
    "facts, 2x2": ("facts", "2x2", {}),
    "98 letters, 1x4, width 128": ("khop-published", "1x4", {}),
    "98 letters, 1x4, width 256": ("khop-published", "1x4-w256", {}),
}
ROUNDS, PROFILED, TOGETHER = 12, 5, 10  # `TOGETHER` steps are timed as one, since launches run ahead of the GPU


def kernels(step) -> dict[str, float]:
    """How many kernels a step launches, and how long they take in all."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for i in range(PROFILED):
            step(i)
        torch.cuda.synchronize()
    events = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    microseconds = sum(event.time_range.elapsed_us() for event in events)
    return {"kernels": len(events) / PROFILED, "kernels_ms": microseconds / PROFILED / 1e3}


def measure(options: timing.Options) -> dict[str, dict]:
    results = {}
    for name, (experiment, model, settings) in STEPS.items():
        config, ways = configure(experiment, model, 0, **settings), {}
        for way, mode in (("as written", ""), ("graph", "graph")):
            task, built = prepare(config, options.where)
            step = timing.stepping(built, task, config.train, options.where, compile=mode)
            ways[way] = lambda i, step=step: [step(TOGETHER * i + j) for j in range(TOGETHER)]
            if not mode:  # a graph launches the same
                launched = kernels(step)
        took = timing.interleaved(ways, options.rounds(ROUNDS), warm_up=1)
        results[name] = launched | {way: times | {"steps": TOGETHER} for way, times in took.items()}
    return results


if __name__ == "__main__":
    options = timing.options(__doc__)
    timing.save("graphs", {"models": measure(options)}, options)
