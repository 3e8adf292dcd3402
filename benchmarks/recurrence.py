"""What the recurrence along the text costs, against its plain loop and attention: `python -m benchmarks.recurrence`.

Writes results/benchmarks/recurrence-<cpu or cuda>.json.  Needs no data: the models are untrained and read random
characters, which cost what any others do.  Run it on a machine that does nothing else: about ten minutes on two CPU
cores.
"""

import time
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from benchmarks import timing
from rtx_core.errors import RtxError
from rtx_core.evaluate.generation import latency
from rtx_core.experiments.configure import configure
from rtx_core.fast import accelerate
from rtx_core.fast.recurrence import product
from rtx_core.models import build_model, count_parameters
from rtx_core.train.device import keep_heap, peak_memory_mib, reset_peak_memory
from rtx_core.train.trainer import OptimizerStep

AGREEMENT = 1e-3  # relative difference in a gradient beyond which the two ways are not the same function


@dataclass(frozen=True)
class Sizes:
    batch: int = 8
    length: int = 256  # characters a sequence, of the step
    rounds: int = 6
    lengths: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192)
    length_rounds: int = 2
    memory_lengths: tuple[int, ...] = (256, 512, 1024, 2048)
    segments: tuple[int, ...] = (0,)  # once also positions that were recomputed at a time; 0: everything is kept
    generated: tuple[int, ...] = (16, 64, 256, 1024, 4096)  # lengths of text whose next character is timed
    texts: int = 2


QUICK = Sizes(2, 16, 1, (8, 16), 1, (16,), (0,), (4, 8), 1)


def built(name: str, where, fast: bool = True, **overrides) -> nn.Module:
    """A model of the Shakespeare study; not `fast`: by its equations, position after position."""
    config = configure("shakespeare", name)
    model = build_model(config.architecture, seed=0, **config.overrides | overrides).to(where).train()
    if fast:
        accelerate(model)
    return model


def characters(model: nn.Module, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """(inputs, targets), (batch, length) each."""
    random = torch.Generator().manual_seed(0)  # the same for every model
    ids = torch.randint(model.config.vocab_size, (batch, length + 1), generator=random)
    ids = ids.to(model.word.weight.device)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def gradients(model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    model(inputs, targets).backward()
    model.zero_grad()


def difference(sizes: Sizes, where: torch.device) -> float:
    """The largest relative difference between both ways in the loss or a gradient, without dropout."""
    results = []
    for fast in (True, False):
        model = built("kausik", where, fast, dropout=0.0)
        loss = model(*characters(model, sizes.batch, sizes.length))
        loss.backward()
        results.append([loss.detach(), *(p.grad for p in model.parameters())])
    worst = max(((a - b).norm() / b.norm()).item() for a, b in zip(*results))
    if not worst < AGREEMENT:
        raise RtxError(f"A gradient differs by {worst:.2g} between two ways: they are not the same function.")
    return worst


def steps(sizes: Sizes, where: torch.device) -> dict[str, dict]:
    """A whole optimizer step with dropout, by each way in turn."""
    config, model = configure("shakespeare", "kausik").train, built("kausik", where)
    task = timing.Prepared([characters(model, sizes.batch, sizes.length)])
    work, half = (task, config, where), (task, config.replace(precision="bf16"), where)
    ways = {"plain loop": timing.stepping(built("kausik", where, fast=False), *work, OptimizerStep())}
    ways["this project"] = timing.stepping(model, *work)
    ways["this project, bf16"] = timing.stepping(built("kausik", where), *half)
    if where.type == "cuda":
        ways["compiled"] = timing.stepping(built("kausik", where), *work, compile=timing.GRAPHS)
    return timing.interleaved(ways, sizes.rounds, warm_up=2)


def floor(sizes: Sizes) -> dict[str, float]:
    """What no code with these matrix products can beat: those of the loop by positions, all others at once, and AdamW.

    In the loop a product reads a whole matrix for `batch` rows; it is timed as it occurs there, the four matrices in
    turn.
    """
    model = built("kausik", "cpu")
    c, rows = model.config, sizes.batch * sizes.length
    d, f = c.hidden_size, c.intermediate_size
    looped = [(d, 2 * d), (d, d), (d, f), (f, d)]  # k and v of the state, out, up, down
    # q, k, v of the characters; the outputs' v, out, up, down; the head
    at_once = [(d, 3 * d), (d, d), (d, d), (d, f), (f, d), (d, c.vocab_size)]
    forward, backward = ([torch.randn(*shape[::order]) for shape in looped] for order in (-1, 1))
    sequential = sizes.length * (in_turn(forward, sizes.batch) + in_turn(backward, sizes.batch))
    parallel = sum(sum(timing.products(rows, *shape).values()) for shape in at_once)
    parallel += sum(timing.products(rows, *shape)["weight"] for shape in looped)
    size, size_at_once = (sum(k * n for k, n in shapes) for shapes in (looped, at_once))
    floors = {"sequential_gflop": 4 * rows * size / 1e9, "sequential_ms": sequential}
    floors |= {"parallel_gflop": rows * (6 * size_at_once + 2 * size) / 1e9, "parallel_ms": parallel}
    return floors | timing.with_adamw(sequential + parallel, count_parameters(model)["total"])


def in_turn(weights: list[Tensor], rows: int, times: int = 64) -> float:
    """Milliseconds of one product with each of the matrices, in turn as in the loop, by the faster library."""
    inputs, ways = [torch.randn(rows, weight.shape[1]) for weight in weights], {}
    mkl = [lambda x, w=w.t().contiguous(): x @ w for w in weights]
    for library, multiply in (("MKL", mkl), ("oneDNN", [product(w, rows) for w in weights])):
        pairs = list(zip(multiply, inputs)) * times
        ways[library] = lambda i, pairs=pairs: [contestant(x) for contestant, x in pairs]
    with torch.inference_mode():
        return min(t["median_ms"] for t in timing.interleaved(ways, 15).values()) / times


def by_length(sizes: Sizes, where: torch.device) -> list[dict]:
    """Both passes of one sequence; without dropout, with which attention keeps all scores on a CPU."""
    rows = []
    for length in sizes.lengths:
        ways = {}
        for who in ("gpt-2", "gpt-6", "kausik"):
            model = built(who, where, dropout=0.0, block_size=length)
            batch = characters(model, 1, length)
            ways[who] = lambda i, model=model, batch=batch: gradients(model, *batch)
        took = timing.interleaved(ways, sizes.length_rounds, warm_up=1)
        rows += [{"who": who, "length": length} | t for who, t in took.items()]
    return rows


def memory(sizes: Sizes, where: torch.device) -> list[dict]:
    """Most memory that both passes add to what the model takes; segment None: by the plain loop."""
    ways = [(length, segment) for length in sizes.memory_lengths for segment in (None, *sizes.segments)]
    rows = [timing.in_own_process(added_memory, sizes, where, *way) for way in ways]
    return [{"segment": s, "length": n, "batch": sizes.batch} | row for (n, s), row in zip(ways, rows)]


def added_memory(sizes: Sizes, where: torch.device, length: int, segment: int | None) -> dict[str, float]:
    """MiB and milliseconds of one forward and backward pass."""
    model = built("kausik", where, fast=segment is not None)
    gradients(model, *characters(model, 1, 3))  # what is set up once is not counted
    batch = characters(model, sizes.batch, length)
    reset_peak_memory(where)
    before, begin = peak_memory_mib(where), time.perf_counter()
    gradients(model, *batch)
    if where.type == "cuda":
        torch.cuda.synchronize()
    return {"ms": 1e3 * (time.perf_counter() - begin), "mib": peak_memory_mib(where) - before}


def next_character(sizes: Sizes, where: torch.device) -> list[dict]:
    """One more character at several lengths of text: the carried state against cached keys and values."""
    models = {who: built(who, where, block_size=max(sizes.generated)) for who in ("gpt-6", "kausik")}
    rows: dict[tuple[str, int], list[float]] = {}
    for _ in range(sizes.texts):  # by turns, so that no model's weights evict the other's between characters
        for who, model in models.items():
            for row in latency(model, sizes.generated, where, repeats=1):
                rows.setdefault((who, row["length"]), []).append(row["median_ms"])
    return [{"who": who, "length": n} | timing.summary(times) for (who, n), times in rows.items()]


def measure(sizes: Sizes, where: torch.device) -> dict:
    parts = (memory, difference, steps, by_length, next_character)
    content = {"sizes": asdict(sizes), "parameters": count_parameters(built("kausik", where))["total"]}
    content |= {part.__name__: part(sizes, where) for part in parts}
    return content | {"floor": floor(sizes) if where.type == "cpu" else None}


if __name__ == "__main__":
    options = timing.options(__doc__)
    keep_heap()  # for every contestant alike
    timing.save("recurrence", measure(QUICK if options.quick else Sizes(), options.where), options)
