"""How fast a story model trains, and the memory of a step, against the plain way: `python -m benchmarks.decoder`.

Writes results/benchmarks/decoder-<cpu or cuda>.json.  Plain and ours take turns in one process, each a whole optimizer step on
the same stories, at 32 bits and with 16-bit matrix products, on two tasks: stories, which the plain way pads to the longest, and
full blocks as llama2.c trains, with attention across stories and nothing to pad.  The plain way holds all logits, and leaves
AdamW as its constructor makes it.  Needs the real stories (RTX_DATA or the hub); ten minutes on a quiet core.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks import timing
from benchmarks.plain import plain_step
from rtx_core.data import LanguageData, task
from rtx_core.experiments import configure, experiment
from rtx_core.models import build_model
from rtx_core.models.packed import Packed
from rtx_core.models.registry import config_of
from rtx_core.train.device import keep_heap, peak_memory_mib, reset_peak_memory
from rtx_core.train.trainer import autocast_of

NAMES, ROUNDS = ("control", "frailt", "three-part", "relaxed"), 4
BATCH = 8  # sequences in a step, as in the reduced runs
IGNORED = -100  # the target of what pads


def batches(asked: timing.Options, across: bool = False) -> tuple[list, int]:
    """(batches of a step, size of the vocabulary)"""
    stories = task(LanguageData(corpus="tinystories", source=asked.source, across_stories=across), BATCH)
    found = [stories.step(0, i)[0] for i in range(asked.rounds(ROUNDS) + 1)]
    return [(b.to(asked.where), targets.to(asked.where)) for b, targets in found], stories.vocab_size


def built(name: str, vocabulary: int, where: torch.device) -> nn.Module:
    config = configure("tinystories", name)
    # three-part's noise is drawn, but of size 0, so that the plain model is the same function
    silent = {"state_std": 0.0} if name == "three-part" else {}
    settings = config.overrides | silent | {"vocab_size": vocabulary}
    return build_model(config.architecture, seed=0, **settings).to(where)


def ours(name: str, vocabulary: int, batches: list, where, precision: str, compile: str = "") -> timing.Work:
    config = configure("tinystories", name).train.but(batch_size=BATCH, precision=precision)
    model = built(name, vocabulary, where)
    return timing.stepping(model, timing.Prepared(batches), config, where, compile=compile)


def padded(batch: Packed, targets: torch.Tensor) -> tuple[Packed, torch.Tensor]:
    """Every sequence as long as the longest; what pads it stands after its tokens and is no target."""
    n, longest = len(batch), batch.longest
    cells = batch.cell.cpu().numpy()
    ids, aims = np.zeros(n * longest, dtype=np.int64), np.full(n * longest, IGNORED)
    ids[cells], aims[cells] = batch.ids.cpu().numpy(), targets.cpu().numpy()
    whole = Packed.from_flat(ids, np.full(n, longest))
    return whole.to(targets.device), torch.from_numpy(aims).to(targets.device)


def plain_loss(model: nn.Module, batch: Packed, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(batch).float(), targets, ignore_index=IGNORED)


def plain(name: str, vocabulary: int, pairs: list, where: torch.device, precision: str) -> timing.Work:
    model, autocast = built(name, vocabulary, where), autocast_of(precision, where)

    def loss(i: int) -> torch.Tensor:
        with autocast:
            return plain_loss(model, *pairs[i % len(pairs)])

    return plain_step(model, loss)


def products_ms(name: str, tokens: int, vocabulary: int) -> float:
    """A step's matrix products at the best rate of their shapes, forward and both gradients, at 32 bits."""
    c = config_of(name)
    d, f = c.hidden_size, c.intermediate_size
    inside = getattr(c, "num_core_layers", c.num_layers)
    applied = inside * c.num_passes + c.num_layers - inside
    times = {(d, vocabulary): 1, (d, 3 * d): applied, (d, d): applied, (d, 2 * f): applied, (f, d): applied}
    times |= {(2 * d, d): c.num_passes} if inside < c.num_layers else {}
    return sum(n * sum(timing.products(tokens, *shape).values()) for shape, n in times.items())


def added_memory(name: str, asked: timing.Options) -> float:
    """MiB that a model of the study and one training step of it add to this process, which has done nothing else."""
    (batch, *_), vocabulary = batches(asked)
    reset_peak_memory(asked.where)
    before = peak_memory_mib(asked.where)
    ours(name, vocabulary, [batch], asked.where, "fp32")(0)
    return peak_memory_mib(asked.where) - before


def measure(asked: timing.Options) -> dict:
    where, on_gpu = asked.where, asked.device == "cuda"
    stories, vocabulary = batches(asked)
    blocks, _ = batches(asked, across=True)
    tasks = {"stories": stories, "blocks": blocks}
    tokens = len(stories[0][1])
    content = {"tokens_a_step": tokens, "models": {}, "products_ms": {}, "memory_mib": {}}
    for name in NAMES:
        model, ways = built(name, vocabulary, where), {}
        with torch.no_grad():
            expected = plain_loss(model, *padded(*stories[0]))
            torch.testing.assert_close(model(*stories[0]), expected, rtol=1e-4, atol=1e-4)
        for kind, packed in tasks.items():
            pairs = [padded(*batch) for batch in packed]
            for bits, precision in (("32 bits", "fp32"), ("bf16 products", "bf16")):
                label, given = f"{kind}, {bits}", (name, vocabulary, packed, where, precision)
                ways[label, "plain"] = plain(name, vocabulary, pairs, where, precision)
                ways[label, "ours"] = ours(*given)
                if on_gpu:
                    ways[label, "ours, compiled"] = ours(*given, timing.GRAPHS)
        # on a GPU a shape costs something the first time that it is seen
        took = timing.interleaved(ways, asked.rounds(ROUNDS), warm_up=ROUNDS + 1 if on_gpu else 1)
        found = content["models"][name] = {}
        for (label, way), times in took.items():
            found.setdefault(label, {})[way] = times
        if not on_gpu:
            content["products_ms"][name] = products_ms(name, tokens, vocabulary)
    for name in experiment("tinystories").shown:
        content["memory_mib"][name] = timing.apart(added_memory, name, asked)
    return content


if __name__ == "__main__":
    asked = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    timing.save("decoder", measure(asked), asked)
