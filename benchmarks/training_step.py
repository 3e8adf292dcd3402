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
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.plain import PlainStep, padded, plain_copy
from benchmarks.timing import copy_rate, interleaved, products, save
from rtx_core.corpora import splits, tokens
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import resolve
from rtx_core.corpora.tokens import Tokens
from rtx_core.models import build_model, fused
from rtx_core.models.masks import Masks
from rtx_core.models.packed import Packed
from rtx_core.training.devices import keep_heap
from rtx_core.training.graph import GraphStep
from rtx_core.training.protocol import Protocol
from rtx_core.training.step import Step
from rtx_core.training.words import Words

BATCH, SEED, ROUNDS = 16, 10_000, 20
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
        self.step(batch, labels, Masks(0, i) if self.host else None, len(labels))


class Sst2:
    """The first training batches of SST-2, as texts and as tokens; everybody assembles a batch while the clock runs."""

    def __init__(self):
        data, frame = dataset("sst2", "real", "seeded", 128), splits.parts("sst2", resolve("real"), "seeded")["train"]
        self.parts, self.tokenizer = (data.train, data.validation, data.test), tokens.vocabulary(resolve("real"), [])
        self.words, self.labels = list(frame["text"]), torch.tensor(frame["label"].to_numpy())
        self.order = np.random.RandomState([SEED, 0]).permutation(len(frame))

    def rows(self, i: int) -> np.ndarray:
        return self.order[BATCH * i : BATCH * (i + 1)]

    def texts(self, i: int) -> tuple[list[str], torch.Tensor]:
        return [self.words[row] for row in self.rows(i)], self.labels[self.rows(i)]

    def batch(self, i: int) -> tuple[Packed, torch.Tensor]:
        ids, lengths, labels = self.parts[0].take(self.rows(i))
        return Packed.from_flat(ids, lengths), torch.from_numpy(labels)

    def plainly(self, name: str, length: int | None, device: str):
        """The plain step of a model that gives the logits of this project's, which is checked, that of its training step too."""
        model = build_model(name, seed=0, dropout=0.0)
        plain = plain_copy(build_model(name, seed=0))
        batch, inputs = self.batch(0)[0], padded(self.tokenizer, self.texts(0)[0], 128)
        with torch.no_grad():
            expected = plain.eval()(*inputs)
            for logits in (model.eval()(batch), model.train()(batch, masks=Masks(0, 0))):  # the plain and the fused blocks
                torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-4)
        step = PlainStep(plain, self.tokenizer, length, device)
        return lambda i: step(*self.texts(i))

    def fast(self, name: str, device: str, precision: str = "fp32"):
        step = FastStep(name, self.parts, device, precision)
        return lambda i: step(*self.batch(i), i)


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
    lengths, words = [sst2.batch(i)[0].offsets.diff() for i in range(ROUNDS)], Words(build_model("recurrent", seed=0).word, sst2.parts)
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
    """The step's matrix products at the rate of MKL or oneDNN, whichever is better, and then AdamW's memory traffic."""
    model = build_model(name, seed=0)
    c, T = model.config, round(tokens_per_step)
    d, f = c.hidden_size, c.intermediate_size
    full, last = c.num_layers * c.num_passes - 1, 1
    shapes = {(T, d, 3 * d): full, (T, d, d): full, (T, d, 2 * f): full, (T, f, d): full}
    for shape in ((T, d, 2 * d), (BATCH, d, d), (BATCH, d, d), (BATCH, d, 2 * f), (BATCH, f, d)):  # only [CLS] asks, at the end
        shapes[shape] = shapes.get(shape, 0) + last
    ms = sum(count * sum(products(*shape).values()) for shape, count in shapes.items())
    flops = sum(count * 6 * m * k * n for (m, k, n), count in shapes.items())
    moved = sum(p.numel() for p in model.parameters()) - model.word.weight.numel() + rows * d
    rate = copy_rate()
    return {
        "matrix_products_ms": ms, "gflops_per_step": flops / 1e9, "gflops_per_second": flops / ms / 1e6,
        "adamw_ms": 28 * moved / rate, "copy_gb_per_second": rate / 1e6, "parameters_updated": moved,
        "ms": ms + 28 * moved / rate,
    }  # fmt: skip


KINDS = {
    "matrix products": {"aten::mm", "aten::addmm", "mkldnn::_linear_pointwise"},
    "attention": {"aten::bmm", "aten::baddbmm", "aten::_softmax", "aten::_softmax_backward_data"},
    "random numbers": {"masks", "aten::bernoulli_"},
    "fills and copies": {"aten::fill_", "aten::zero_", "aten::copy_", "aten::empty", "aten::empty_strided", "aten::cat", "aten::index_select",
                         "aten::index", "aten::index_copy_", "aten::index_add_", "aten::embedding_dense_backward"},
}  # fmt: skip


def kind_of(event) -> str:
    """The kind of work of a profiled event; what the optimizer or a mask calls belongs to them."""
    above = event
    while above is not None:
        if above.name.startswith("Optimizer.step"):
            return "optimizer"
        if above.name == "masks":
            return "random numbers"
        above = above.cpu_parent
    return next((kind for kind, names in KINDS.items() if event.name in names), "small kernels and bookkeeping")


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
    for event in found.events():
        spent[kind_of(event)] += event.self_cpu_time_total / 1e3 / rounds
    return dict(spent)


def ablation(sst2: Sst2) -> dict[str, dict]:
    """What each part gains: one after the other is added to the packed, eager step of the baseline."""
    model = build_model("baseline", seed=0).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, weight_decay=0.01, fused=True)

    def eager(i: int) -> None:
        batch, labels = sst2.batch(i)
        F.cross_entropy(model(batch), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    rows, masks, whole = (FastStep("baseline", sst2.parts, "cpu") for _ in range(3))

    def unfused(i: int) -> None:
        usable, fused.usable = fused.usable, lambda x: False
        try:
            masks(*sst2.batch(i), i)
        finally:
            fused.usable = usable

    return interleaved(
        {
            "packed, eager": eager,
            "+ rows in use, clipping in AdamW": lambda i: rows.step(*sst2.batch(i), None),
            "+ masks by the step": unfused,
            "+ one node a block": lambda i: whole(*sst2.batch(i), i),
        },
        ROUNDS, warm_up=4,
    )  # fmt: skip


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
    work = {name: lambda i, fast=fast: fast.step(*sst2.batch(i), None) for name, fast in steps.items()}  # no `Masks`: not fused
    begin = time.perf_counter()
    for i in range(5):
        work["packed, torch.compile"](i)
    seconds = time.perf_counter() - begin
    took = interleaved(work, rounds)
    return took | {"compile_seconds": seconds - 5 * took["packed, torch.compile"]["median_ms"] / 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out (it needs a C++ compiler and a minute)")
    options = parser.parse_args()
    sst2, device, say = Sst2(), options.device, partial(print, flush=True)
    say("steps")
    content = against_others(sst2, device)
    if device == "cpu":
        say("floor")
        content["floor"] = {name: floor(name, content["tokens_per_step"], content["rows_trained"]) for name in ("baseline", "recurrent")}
        say("breakdown")
        eager = FastStep("baseline", sst2.parts, device)
        content["breakdown"] = {
            "plain, padded to 128": breakdown(sst2.plainly("baseline", 128, device), rounds=4),
            "packed, eager": breakdown(lambda i: eager.step(*sst2.batch(i), None)),
            "this project": breakdown(sst2.fast("baseline", device)),
        }
        say("ablation")
        content["ablation"] = ablation(sst2)
        say("compiled")
        content["compiled"] = None if options.no_compile else compiled(sst2)
    say("sizes")
    content["by_size"] = by_size(device)
    save("training-step", content, device)


if __name__ == "__main__":
    main()
