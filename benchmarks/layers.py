"""What compiling the layers of small models gains on a CPU: `python -m benchmarks.layers`.

Writes results/benchmarks/layers-cpu.json.  Both ways take turns in one process on one thread; the first step, which
compiles, is not timed.  What matrix products and attention take of a compiled step is the least that any step takes
with torch's kernels.  Two minutes on a quiet core.
"""

import torch

from benchmarks import timing
from rtx_core.experiments.configure import configure
from rtx_core.experiments.run import prepare
from rtx_core.train.device import keep_heap

STEPS = {  # (experiment, model, settings)
    "pointers, 1x4": ("khop", "1x4", {}),
    "facts, 2x2": ("facts", "2x2", {"facts": 49152}),
    "characters, 1x6": ("iso-depth", "1x6-64", {}),
}
ROUNDS = 40


def ways(name: str, options: timing.Options) -> dict[str, timing.Work]:
    """A training step as written, and with compiled layers."""
    experiment, model, settings = STEPS[name]
    config, steps = configure(experiment, model, 0, source=options.source, **settings), {}
    for way, mode in (("as written", ""), ("layers compiled", "layers")):
        task, built = prepare(config, options.where)
        steps[way] = timing.stepping(built, task, config.train, options.where, compile=mode)
    return steps


def measure(options: timing.Options) -> dict[str, dict]:
    results = {}
    for name in STEPS:
        steps = ways(name, options)
        results[name] = timing.interleaved(steps, options.rounds(ROUNDS))
        results[name]["by_kind"] = timing.by_kind(steps["layers compiled"], options.rounds(ROUNDS))
    return results


if __name__ == "__main__":
    options = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    timing.save("layers", {"models": measure(options)}, options)
