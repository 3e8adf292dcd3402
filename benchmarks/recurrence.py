"""What the recurrence along the sequence costs, against its plain loop and against attention: `python -m benchmarks.recurrence`.

Writes results/benchmarks/recurrence-<cpu or cuda>.json.  Needs no data: the models are untrained and read random characters, which
cost what any others do.  Run it on a machine that does nothing else: about ten minutes on two CPU cores.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from benchmarks.timing import copy_rate, interleaved, products, save, summary
from rtx_core.errors import RtxError
from rtx_core.evaluation.generation import latency
from rtx_core.language import LANGUAGE
from rtx_core.models import build_model
from rtx_core.models.kausik import Kausik, plain, product
from rtx_core.training.devices import keep_heap, peak_memory_mib, reset_peak_memory
from rtx_core.training.language import graphed, optimizer_of

AGREEMENT = 1e-3  # relative difference in a gradient beyond which the two ways are not the same function


@dataclass(frozen=True)
class Sizes:
    """What is measured; the tests measure less."""

    batch: int = 8
    length: int = 256  # characters a sequence, of the step
    rounds: int = 6
    lengths: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192)
    length_rounds: int = 2
    memory_lengths: tuple[int, ...] = (256, 512, 1024, 2048)
    segments: tuple[int, ...] = (0, 16, 64)  # positions that are recomputed at a time; 0: everything is kept
    generated: tuple[int, ...] = (16, 64, 256, 1024, 4096)  # lengths of text whose next character is timed
    texts: int = 2
    model: dict = field(default_factory=dict)  # overrides of every model


class PlainKausik(Kausik):
    """The same model, by the equations: T applied to a window, position after position."""

    def trunk(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        for layer in self.layers:
            _, x = plain(layer, x, self.config.window)
        return x.transpose(0, 1)


def built(name: str, sizes: Sizes, device: str, **overrides) -> nn.Module:
    return build_model(name, seed=0, **sizes.model | overrides).to(device).train()


def plainly(model: Kausik) -> PlainKausik:
    other = PlainKausik(model.config).to(model.word.weight.device).train()
    other.load_state_dict(model.state_dict())
    return other


def characters(model: nn.Module, batch: int, length: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """(inputs, targets), (batch, length) each."""
    ids = torch.randint(model.config.vocab_size, (batch, length + 1), generator=torch.Generator().manual_seed(seed))
    return tuple(part.contiguous().to(model.word.weight.device) for part in (ids[:, :-1], ids[:, 1:]))


def gradients(model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    model(inputs, targets).backward()
    model.zero_grad()


def differences(sizes: Sizes, device: str) -> float:
    """How far loss and gradients of both ways are apart without dropout: the largest relative difference of a tensor."""
    model = built("kausik", sizes, device, dropout=0.0)
    batch, found = characters(model, sizes.batch, sizes.length), []
    for one in (model, plainly(model)):
        loss = one(*batch)
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in one.parameters())])
    worst = max(((a - b).norm() / b.norm()).item() for a, b in zip(*found))
    if not worst < AGREEMENT:
        raise RtxError(f"The recurrence and its plain loop differ by {worst:.2g} in a gradient, more than {AGREEMENT:g}: they are not the same function.")
    return worst


# -- one training step --------------------------------------------------------------------------------------------------


def steps(sizes: Sizes, device: str) -> dict[str, dict]:
    """A whole optimizer step with dropout, by each way in turn."""
    recipe = LANGUAGE["shakespeare"].recipes["report"]
    fast = built("kausik", sizes, device)
    batch = characters(fast, sizes.batch, sizes.length)

    def stepping(model: nn.Module, called: nn.Module):
        optimizer = optimizer_of(model, recipe)

        def step(i: int) -> None:
            called(*batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm, foreach=True)
            optimizer.step()
            optimizer.zero_grad()

        return step

    slow = plainly(fast)
    contestants = {"plain loop": stepping(slow, slow), "this project": stepping(fast, fast)}
    if device == "cuda":  # not run yet: no GPU was at hand
        model = built("kausik", sizes, device)
        data = SimpleNamespace(step=lambda seed, step: [batch])
        contestants["this project, CUDA graph"] = stepping(model, graphed(model, data, torch.autocast(device, enabled=False), torch.device(device)))
    return interleaved(contestants, sizes.rounds, warm_up=2, device=device)


def floor(sizes: Sizes) -> dict[str, float]:
    """What no code with these matrix products can beat here: those of the loop one position at a time, all others at once, and AdamW.

    In the loop a product reads a whole matrix for `batch` rows; it is timed as it occurs there, the four matrices in turn.
    """
    model = built("kausik", sizes, "cpu")
    c = model.config
    d, f, N, rows = c.hidden_size, c.intermediate_size, sizes.length, sizes.batch * sizes.length
    looped = [(d, 2 * d), (d, d), (d, f), (f, d)]  # k and v of the state, out, up, down
    at_once = [(d, 3 * d), (d, d), (d, d), (d, f), (f, d), (d, c.vocab_size)]  # q, k, v of the characters; the outputs' v, out, up, down; the head
    sequential = N * sum(in_turn([torch.randn(n, k) for k, n in pairs], sizes.batch) for pairs in (looped, [(n, k) for k, n in looped]))
    parallel = sum(sum(products(rows, k, n).values()) for k, n in at_once) + sum(products(rows, k, n)["weight"] for k, n in looped)
    rate, parameters = copy_rate(), sum(p.numel() for p in model.parameters())
    gflop = {
        "sequential_gflop": N * sum(4 * sizes.batch * k * n for k, n in looped) / 1e9,
        "parallel_gflop": (sum(6 * rows * k * n for k, n in at_once) + sum(2 * rows * k * n for k, n in looped)) / 1e9,
    }
    return gflop | {
        "sequential_ms": sequential, "parallel_ms": parallel, "adamw_ms": 28 * parameters / rate, "copy_gb_per_second": rate / 1e6,
        "ms": sequential + parallel + 28 * parameters / rate,
    }  # fmt: skip


def in_turn(weights: list[Tensor], rows: int, times: int = 64) -> float:
    """Milliseconds of one product with each of the matrices, one after the other as in the loop, by the faster library."""
    inputs = [torch.randn(rows, weight.shape[1]) for weight in weights]
    ways = {"MKL": [lambda x, w=w.t().contiguous(): x @ w for w in weights], "oneDNN": [product(w, rows) for w in weights]}

    def loop(multiply):
        return lambda i: [m(x) for _ in range(times) for m, x in zip(multiply, inputs)]

    with torch.inference_mode():
        took = interleaved({way: loop(multiply) for way, multiply in ways.items()}, 15)
    return min(t["median_ms"] for t in took.values()) / times


# -- against length -----------------------------------------------------------------------------------------------------


def by_length(sizes: Sizes, device: str) -> list[dict]:
    """Forward and backward pass of one sequence; without dropout, with which torch's attention keeps all scores on a CPU."""
    rows = []
    for length in sizes.lengths:
        contestants = {}
        for who, (name, overrides) in LANGUAGE["shakespeare"].models.items():
            if who in ("gpt-2", "gpt-6", "kausik"):
                model = built(name, sizes, device, dropout=0.0, block_size=length, **overrides)
                batch = characters(model, 1, length)
                contestants[who] = lambda i, model=model, batch=batch: gradients(model, *batch)
        rows += [{"who": who, "length": length} | t for who, t in interleaved(contestants, sizes.length_rounds, warm_up=1, device=device).items()]
    return rows


def memory(sizes: Sizes, device: str) -> list[dict]:
    """Most memory that forward and backward pass add to what the model takes, each in a process of its own."""
    rows = []
    for length in sizes.memory_lengths:
        for segment in (None, *sizes.segments):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                found = apart.submit(added_memory, sizes, device, length, segment).result()
            rows.append({"segment": segment, "length": length, "batch": sizes.batch} | found)
    return rows


def added_memory(sizes: Sizes, device: str, length: int, segment: int | None) -> dict[str, float]:
    """MiB and milliseconds of one forward and backward pass, recomputed by segments; None: by the plain loop."""
    where = torch.device(device)
    model = built("kausik", sizes, device, checkpoint=segment or 0)
    model = plainly(model) if segment is None else model
    gradients(model, *characters(model, 1, 3))  # what is set up once is not counted
    batch = characters(model, sizes.batch, length)
    reset_peak_memory(where)
    before, begin = peak_memory_mib(where), time.perf_counter()
    gradients(model, *batch)
    if device == "cuda":
        torch.cuda.synchronize()
    ms = 1e3 * (time.perf_counter() - begin)
    return {"mib": peak_memory_mib(where) - before, "ms": ms}


def next_character(sizes: Sizes, device: str) -> list[dict]:
    """One more character at several lengths of text: the carried state against six layers' cached keys and values."""
    longest = max(sizes.generated)
    models = {who: built(name, sizes, device, block_size=longest, **overrides)
              for who, (name, overrides) in LANGUAGE["shakespeare"].models.items() if who in ("gpt-6", "kausik")}  # fmt: skip
    texts = {who: [] for who in models}
    for _ in range(sizes.texts):  # text by text, so that one model's weights do not evict the other's between two characters
        for who, model in models.items():
            texts[who].append(latency(model, sizes.generated, torch.device(device), repeats=1))
    return [{"who": who, "length": found[0]["length"]} | summary([row["median_ms"] for row in found]) for who, rows in texts.items() for found in zip(*rows)]


def measure(sizes: Sizes, device: str) -> dict:
    content = {"sizes": asdict(sizes), "parameters": sum(p.numel() for p in built("kausik", sizes, "cpu").parameters())}
    parts = {
        "memory": lambda: memory(sizes, device),
        "difference": lambda: differences(sizes, device),
        "steps": lambda: steps(sizes, device),
        "floor": lambda: floor(sizes) if device == "cpu" else None,
        "by_length": lambda: by_length(sizes, device),
        "next_character": lambda: next_character(sizes, device),
    }
    for name, part in parts.items():
        print(name, flush=True)
        content[name] = part()
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    keep_heap()  # for every contestant alike
    save("recurrence", measure(Sizes(), device), device)


if __name__ == "__main__":
    main()
