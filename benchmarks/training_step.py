"""How long one training step takes, against the plain way, a public library and the floor: `python -m benchmarks.training_step`.

Writes results/benchmarks/training-step-<cpu or cuda>.json.  Needs the real SST-2 (RTX_DATA or the hub) and, for one row, the
package transformers.  Run it on a machine that does nothing else: about ten minutes on two CPU cores.
"""

import argparse
import time
from collections import defaultdict
from functools import partial

import numpy as np
import torch
import torch._inductor.config
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.plain import PlainStep, padded, plain_copy
from benchmarks.timing import copy_rate, interleaved, products, save
from rtx_core.corpora import splits, tokens
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import resolve
from rtx_core.corpora.tokens import Tokens
from rtx_core.models import build_model
from rtx_core.models.masks import Masks
from rtx_core.models.packed import Packed
from rtx_core.training.batches import training_batches
from rtx_core.training.devices import keep_heap
from rtx_core.training.graph import GraphStep
from rtx_core.training.protocol import Protocol
from rtx_core.training.step import Step
from rtx_core.training.words import Words

BATCH, SEED, ROUNDS = 16, 10_000, 30
LENGTHS, BATCHES = (8, 16, 32, 64, 128, 256, 512), (1, 2, 4, 8, 16, 32, 64)


class FastStep:
    """This project's step on prepared batches."""

    def __init__(self, name: str, parts: tuple[Tokens, ...], device: str, precision: str = "fp32", graph: bool = True):
        self.model, where = build_model(name, seed=0).to(device).train(), torch.device(device)
        self.model.word = Words(self.model.word, parts)
        kind = GraphStep if device == "cuda" and graph else Step
        self.step = kind(self.model, self.model.word, Protocol(precision=precision), where)
        self.host = device == "cpu"

    def __call__(self, batch: Packed, labels: torch.Tensor, i: int) -> None:
        self.step(batch, labels, Masks(0, i) if self.host else None)


class Sst2:
    """The first training batches of SST-2, packed, and their texts."""

    def __init__(self):
        data, frame = dataset("sst2", "real", "seeded", 128), splits.parts("sst2", resolve("real"), "seeded")["train"]
        self.parts, self.frame, self.tokenizer = (data.train, data.validation, data.test), frame, tokens.vocabulary(resolve("real"), [])
        self.order = np.random.RandomState([SEED, 0]).permutation(len(frame))
        self.batches = [pair for pair, _ in zip(training_batches(data.train, BATCH, SEED, 0), range(ROUNDS + 20))]

    def texts(self, i: int) -> tuple[list[str], torch.Tensor]:
        rows = self.frame.iloc[self.order[BATCH * i : BATCH * (i + 1)]]
        return list(rows["text"]), torch.tensor(rows["label"].to_numpy())

    def plainly(self, name: str, length: int | None, device: str):
        """The plain step of a model that gives this project's logits, which is checked."""
        model = build_model(name, seed=0).eval()
        plain = plain_copy(model).eval()
        with torch.no_grad():
            expected = model(self.batches[0][0])
            torch.testing.assert_close(plain(*padded(self.tokenizer, self.texts(0)[0], 128)), expected, rtol=1e-3, atol=1e-4)
        step = PlainStep(plain, self.tokenizer, length, device)
        return lambda i: step(*self.texts(i))

    def fast(self, name: str, device: str, precision: str = "fp32"):
        step = FastStep(name, self.parts, device, precision)
        return lambda i: step(*self.batches[i], i)


def against_others(sst2: Sst2, device: str) -> dict:
    """The same batches for everybody, in turn."""
    contestants = {}
    for name in ("baseline", "recurrent"):
        contestants[f"{name}, plain, padded to 128"] = sst2.plainly(name, 128, device)
        contestants[f"{name}, plain, padded to the longest"] = sst2.plainly(name, None, device)
        contestants[f"{name}, this project"] = sst2.fast(name, device)
        if device == "cuda":
            contestants[f"{name}, this project, bf16"] = sst2.fast(name, device, "bf16")
    if (public := eurobert()) is not None:
        other = PlainStep(public, sst2.tokenizer, None, device)
        other.model.forward = partial(_named_mask, other.model.forward)
        contestants["baseline, transformers' EuroBert, padded to the longest"] = lambda i: other(*sst2.texts(i))
    keep_heap()  # for every contestant alike
    lengths, words = [batch.offsets.diff() for batch, _ in sst2.batches[:ROUNDS]], Words(build_model("recurrent", seed=0).word, sst2.parts)
    return {
        "batch": BATCH,
        "tokens_per_step": float(np.mean([n.sum().item() for n in lengths])),
        "longest_per_step": float(np.mean([n.max().item() for n in lengths])),
        "rows_trained": len(words.used),
        "rows": len(words.initial),
        "steps": interleaved(contestants, ROUNDS, warm_up=20 if device == "cuda" else 4, device=device),
    }


def _named_mask(forward, ids, mask):
    return forward(input_ids=ids, attention_mask=mask)


def eurobert():
    """The baseline's shape in a public library; None where transformers is not installed."""
    try:
        from transformers import EuroBertConfig, EuroBertForSequenceClassification
    except ImportError:
        return None
    c = build_model("baseline", seed=0).config
    return EuroBertForSequenceClassification(EuroBertConfig(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, num_hidden_layers=c.num_layers, num_attention_heads=c.num_heads,
        num_key_value_heads=c.num_heads, intermediate_size=c.intermediate_size, attention_bias=True, mlp_bias=True,
        attention_dropout=c.dropout, num_labels=c.num_labels, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    ))  # fmt: skip


def floor(name: str, tokens_per_step: float, rows: int) -> dict:
    """What no code can beat here: the step's matrix products at the better library's rate, and AdamW's memory traffic."""
    model = build_model(name, seed=0)
    c, T = model.config, round(tokens_per_step)
    d, f = c.hidden_size, c.intermediate_size
    full, last = c.num_layers * c.num_passes - 1, 1
    shapes = {(T, d, 3 * d): full, (T, d, d): full, (T, d, 2 * f): full, (T, f, d): full}
    for shape in ((T, d, 2 * d), (BATCH, d, d), (BATCH, d, d), (BATCH, d, 2 * f), (BATCH, f, d)):  # only [CLS] asks, at the end
        shapes[shape] = shapes.get(shape, 0) + last
    seconds = sum(count * sum(products(*shape).values()) for shape, count in shapes.items())
    flops = sum(count * 6 * m * k * n for (m, k, n), count in shapes.items())
    moved = sum(p.numel() for p in model.parameters()) - model.word.weight.numel() + rows * d
    rate = copy_rate()
    return {
        "matrix_products_ms": seconds, "gflops_per_step": flops / 1e9, "gflops_per_second": flops / seconds / 1e6,
        "adamw_ms": 28 * moved / rate, "copy_gb_per_second": rate / 1e6, "parameters_updated": moved,
        "ms": seconds + 28 * moved / rate,
    }  # fmt: skip


KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "mkldnn::_linear_pointwise"),
    "attention": ("aten::bmm", "aten::baddbmm", "aten::_softmax", "aten::_softmax_backward_data", "aten::_scaled_dot_product"),
    "random numbers": ("masks", "aten::bernoulli", "aten::ge"),
    "optimizer": ("aten::_fused_adamw", "Optimizer.step", "aten::addcdiv", "aten::lerp", "aten::addcmul_", "aten::sqrt"),
    "fills and copies": ("aten::fill", "aten::zero", "aten::copy", "aten::clone", "aten::empty", "aten::cat", "aten::index", "aten::embedding"),
}


def breakdown(work, rounds: int = 12) -> dict[str, float]:
    """Milliseconds a step by kind of work, from the profiler's self times; the rest are small kernels and bookkeeping."""
    draw = Masks.draw

    def noted(self, p, shape):
        with record_function("masks"):
            return draw(self, p, shape)

    for i in range(3):
        work(i)
    Masks.draw = noted
    try:
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for i in range(rounds):
                work(i)
    finally:
        Masks.draw = draw
    spent: dict[str, float] = defaultdict(float)
    for event in found.key_averages():
        kind = next((k for k, names in KINDS.items() if event.key.startswith(names)), "small kernels and bookkeeping")
        spent[kind] += event.self_cpu_time_total / 1e3 / rounds
    return dict(spent)


def by_size(device: str) -> list[dict]:
    """Made-up sentences of one length: the step's cost against that length, and against their number."""
    random, rows = np.random.RandomState(0), []
    for swept, length, batch in [("length", n, BATCH) for n in LENGTHS] + [("batch", 16, n) for n in BATCHES]:
        ids = random.randint(1000, 12_000, (batch, length))
        part = Tokens(ids.flatten().astype(np.int32), np.arange(batch + 1) * length, np.zeros(batch, dtype=np.int64))
        packed, labels = Packed.from_flat(part.ids, part.lengths), torch.zeros(batch, dtype=torch.int64)
        contestants = {}
        for name in ("baseline", "recurrent"):
            fast = FastStep(name, (part,), device)
            contestants[name] = lambda i, fast=fast: fast(packed, labels, i)
        slow = PlainStep(plain_copy(build_model("baseline", seed=0)), Ready(ids), None, device)
        contestants["baseline, plain"] = lambda i, slow=slow: slow([""] * batch, labels)
        took = interleaved(contestants, 3 if batch * length > 2000 else 9, warm_up=2, device=device)
        rows += [{"swept": swept, "length": length, "batch": batch, "who": who} | t for who, t in took.items()]
    return rows


class Ready:
    """A tokenizer for sentences that are tokens already."""

    def __init__(self, ids: np.ndarray):
        self.encoded = [type("Encoded", (), {"ids": row, "attention_mask": [1] * len(row)}) for row in ids.tolist()]

    def enable_truncation(self, length: int) -> None: ...

    def enable_padding(self, length: int | None) -> None: ...

    def encode_batch(self, texts: list[str]) -> list:
        return self.encoded


def compiled(sst2: Sst2, rounds: int = 15) -> dict:
    """The plain formulation of the blocks under torch.compile: what it gains and what it costs.  The trainer does without."""
    torch._inductor.config.force_disable_caches = True  # or the second benchmark on a machine finds what the first compiled
    steps = {"packed, eager": FastStep("baseline", sst2.parts, "cpu"), "packed, torch.compile": FastStep("baseline", sst2.parts, "cpu")}
    for layer in steps["packed, torch.compile"].model.layers:
        layer.compile(dynamic=True)
    work = {name: lambda i, fast=fast: fast.step(*sst2.batches[i], None) for name, fast in steps.items()}  # no `Masks`: not fused
    begin = time.perf_counter()
    for i in range(5):
        work["packed, torch.compile"](i)
    seconds = time.perf_counter() - begin
    took = interleaved(work, rounds)
    return took | {"compile_seconds": seconds - 5 * took["packed, torch.compile"]["median_ms"] / 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    say = partial(print, flush=True)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (it needs a C++ compiler and a minute)")
    options = parser.parse_args()
    sst2, device = Sst2(), options.device
    say("steps")
    content = against_others(sst2, device)
    if device == "cpu":
        say("floor")
        content["floor"] = {name: floor(name, content["tokens_per_step"], content["rows_trained"]) for name in ("baseline", "recurrent")}
        say("breakdown")
        eager = FastStep("baseline", sst2.parts, device)
        content["breakdown"] = {
            "plain, padded to 128": breakdown(sst2.plainly("baseline", 128, device), rounds=4),
            "packed, eager": breakdown(lambda i: eager.step(*sst2.batches[i], None)),
            "this project": breakdown(sst2.fast("baseline", device)),
        }
        say("compiled")
        content["compiled"] = None if options.no_compile else compiled(sst2)
    say("sizes")
    content["by_size"] = by_size(device)
    save("training-step", content, device)


if __name__ == "__main__":
    main()
