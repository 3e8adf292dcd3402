"""How fast a story model trains, and the memory of a step, against the plain way: `python -m benchmarks.decoder`.

Writes results/benchmarks/decoder-<cpu or cuda>.json.  Plain and ours take turns in one process, each a whole optimizer
step on the same stories, at 32 bits and with 16-bit matrix products, on two tasks: stories, which the plain way pads to
the longest, and full blocks as llama2.c trains, with attention across stories and nothing to pad.  The plain way holds
all logits, and leaves AdamW as its constructor makes it.  Needs the real stories (RTX_DATA or the hub); ten minutes on
a quiet core.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import timing
from benchmarks.plain import padded, plain_step
from rtx_core.data import LanguageData, task
from rtx_core.experiments.configure import configure, find_experiment
from rtx_core.models import build_model
from rtx_core.models.packed import Packed
from rtx_core.models.registry import config_of
from rtx_core.train.device import keep_heap, peak_memory_mib, reset_peak_memory
from rtx_core.train.trainer import autocast_of

NAMES, ROUNDS = ("control", "frailt", "three-part", "relaxed"), 4
BATCH = 8  # sequences in a step, as in the reduced runs
IGNORED = -100  # the target of what pads


def read(options: timing.Options, across: bool = False) -> tuple[list, int]:
    """(batches of a step, size of the vocabulary)"""
    size = {"block_size": 32 if options.quick else 256, "across_stories": across}
    stories = task(LanguageData(corpus="tinystories", source=options.source, **size), BATCH)
    batches = [stories.step(0, i)[0] for i in range(options.rounds(ROUNDS) + 1)]
    return [(b.to(options.where), targets.to(options.where)) for b, targets in batches], stories.vocab_size


def to_longest(batch: Packed, targets: Tensor) -> tuple[Packed, Tensor]:
    """What pads a sequence stands after its tokens, where none looks, and is no target."""
    ids = targets.new_zeros(len(batch) * batch.max_seqlen).index_copy(0, batch.cell, batch.ids)
    targets = torch.full_like(ids, IGNORED).index_copy(0, batch.cell, targets)
    return padded(ids.view(len(batch), -1)), targets


def plain_loss(model: nn.Module, batch: Packed, targets: Tensor) -> Tensor:
    return F.cross_entropy(model(batch).float(), targets, ignore_index=IGNORED)


def built(name: str, vocabulary: int, where: torch.device) -> nn.Module:
    config = configure("tinystories", name)
    settings = config.overrides | {"vocab_size": vocabulary}
    return build_model(config.architecture, seed=0, **settings).to(where)


def library_step(model: nn.Module, batches: list, where, precision: str, compile: str = "") -> timing.Work:
    config = configure("tinystories", "control").train.replace(batch_size=BATCH, precision=precision)
    return timing.stepping(model, timing.Prepared(batches), config, where, compile=compile)


def plain_way(model: nn.Module, batches: list, where: torch.device, precision: str) -> timing.Work:
    pairs, autocast = [to_longest(*batch) for batch in batches], autocast_of(precision, where)

    def loss(i: int) -> Tensor:
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


def added_memory(name: str, options: timing.Options) -> float:
    """MiB that a model of the study and one training step of it add to this process, which has done nothing else."""
    batches, vocabulary = read(options)
    reset_peak_memory(options.where)
    before = peak_memory_mib(options.where)
    library_step(built(name, vocabulary, options.where), batches, options.where, "fp32")(0)
    return peak_memory_mib(options.where) - before


def measure(options: timing.Options) -> dict:
    where, on_gpu = options.where, options.device == "cuda"
    stories, vocabulary = read(options)
    tasks, tokens = {"stories": stories, "blocks": read(options, across=True)[0]}, len(stories[0][1])
    content = {"tokens_a_step": tokens, "models": {}, "products_ms": {}, "memory_mib": {}}
    for name in NAMES:
        model, ways = built(name, vocabulary, where).eval(), {}
        with torch.no_grad():
            expected = plain_loss(model, *to_longest(*stories[0]))
            torch.testing.assert_close(model(*stories[0]), expected, rtol=1e-4, atol=1e-4)
        for kind, batches in tasks.items():
            for bits, precision in (("32 bits", "fp32"), ("bf16 products", "bf16")):
                label, arguments = f"{kind}, {bits}", (batches, where, precision)
                ways[label, "plain"] = plain_way(built(name, vocabulary, where), *arguments)
                ways[label, "ours"] = library_step(built(name, vocabulary, where), *arguments)
                if on_gpu:
                    graphs = library_step(built(name, vocabulary, where), *arguments, timing.GRAPHS)
                    ways[label, "ours, compiled"] = graphs
        # on a GPU a shape costs something the first time that it is seen
        times_of = timing.interleaved(ways, options.rounds(ROUNDS), warm_up=ROUNDS + 1 if on_gpu else 1)
        times_by_label = content["models"][name] = {}
        for (label, way), times in times_of.items():
            times_by_label.setdefault(label, {})[way] = times
        if not on_gpu:
            content["products_ms"][name] = products_ms(name, tokens, vocabulary)
    for name in find_experiment("tinystories").default_models:
        content["memory_mib"][name] = timing.in_own_process(added_memory, name, options)
    return content


if __name__ == "__main__":
    options = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    timing.save("decoder", measure(options), options)
