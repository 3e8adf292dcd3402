"""How long a training step takes, against the plain way, a public library and the floor: `python -m
benchmarks.training_step`.

Writes results/benchmarks/training-step-<cpu or cuda>.json.  Ours takes part with products of 32 and of 16 bits, on
sentences and on texts of 128 tokens.  Needs the real SST-2 (RTX_DATA or the hub).  Run it on a machine that does
nothing else: about five minutes on two CPU cores, with a C++ compiler for torch.compile.
"""

import time

import numpy as np
import torch
import torch._inductor.config
import torch.nn.functional as F
from transformers import EuroBertConfig, EuroBertForSequenceClassification

from benchmarks import timing
from benchmarks.plain import padded, plain_step, tokenized
from rtx_core.data import ClassificationData, task
from rtx_core.data.splits import parts
from rtx_core.data.tasks import Classification
from rtx_core.data.tokens import Tokens
from rtx_core.fast import accelerate
from rtx_core.fast.encoder import DropoutMasks
from rtx_core.models import build_model
from rtx_core.models.encoder import Encoder
from rtx_core.train.config import TrainConfig
from rtx_core.train.device import keep_heap
from rtx_core.train.trainer import OptimizerStep, rng_streams

BATCH, ROUNDS, NAMES = 16, 20, ("baseline", "recurrent")
LONG = 128  # tokens to which Yelp's reviews, most of them longer, are cut


def library_step(name: str, task, where, precision: str = "fp32", compile: str = "") -> timing.Work:
    config = TrainConfig(precision=precision)
    return timing.stepping(build_model(name, seed=0), task, config, where, compile=compile)


def both(name: str, task, where) -> dict[str, timing.Work]:
    """Ours with products of 32 and of 16 bits."""
    way = f"{name}, this project"
    return {way: library_step(name, task, where), f"{way}, bf16": library_step(name, task, where, "bf16")}


def at_medium(step: timing.Work) -> timing.Work:
    """The step with torch's `set_float32_matmul_precision("medium")`, which lets products of 32 bits be made of 16."""

    def work(i: int) -> None:
        torch.set_float32_matmul_precision("medium")
        try:
            step(i)
        finally:
            torch.set_float32_matmul_precision("highest")

    return work


def plain(model: torch.nn.Module, batch, where: torch.device) -> timing.Work:
    """`batch(i)` is (ids, mask, labels), made while the clock runs."""
    model.to(where)

    def loss(i: int) -> torch.Tensor:
        ids, mask, labels = (part.to(where) for part in batch(i))
        if isinstance(model, Encoder):
            return F.cross_entropy(model(padded(ids, mask), rows_only=False), labels)
        return F.cross_entropy(model(input_ids=ids, attention_mask=mask).logits, labels)

    return plain_step(model, loss)


class Sst2:
    """The first training steps of SST-2, as texts and as a task; everybody assembles a batch while the clock runs."""

    def __init__(self, options: timing.Options):
        data = ClassificationData(corpus="sst2", source=options.source)
        self.task, self.where, train = task(data, BATCH), options.where, parts(data)["train"]
        self.tokenizer, self.texts = self.task.tokenizer(), list(train["text"])
        self.labels, self.order = torch.tensor(train["label"].to_numpy()), rng_streams(0)["order"]
        self.rows = np.random.RandomState([self.order, 0]).permutation(len(train))

    def texts_of(self, i: int, length: int | None) -> tuple[torch.Tensor, ...]:
        rows = self.rows[BATCH * i : BATCH * (i + 1)]
        return *tokenized(self.tokenizer, [self.texts[row] for row in rows], length), self.labels[rows]

    def plain(self, name: str, length: int | None) -> timing.Work:
        """That it gives our logits is checked."""
        model, [(batch, labels)] = build_model(name, seed=0, dropout=0.0), self.task.step(self.order, 0)
        with torch.no_grad():
            expected = model(padded(*self.texts_of(0, 128)[:2]))
            accelerate(model).begin(0, 0)
            torch.testing.assert_close(model(batch)[: len(labels)], expected, rtol=1e-3, atol=1e-4)
        return plain(build_model(name, seed=0), lambda i: self.texts_of(i, length), self.where)


def against_others(sst2: Sst2, rounds: int) -> dict:
    """The same batches for everybody, in turn."""
    ways, where = {}, sst2.where
    for name in NAMES:
        ways[f"{name}, plain, padded to 128"] = sst2.plain(name, 128)
        ways[f"{name}, plain, padded to the longest"] = sst2.plain(name, None)
        ways |= both(name, sst2.task, where)
        if where.type == "cpu":
            ways[f"{name}, this project, medium"] = at_medium(library_step(name, sst2.task, where))
        else:
            ways[f"{name}, this project, compiled"] = library_step(name, sst2.task, where, "bf16", timing.GRAPHS)
    library = "baseline, transformers' EuroBert, padded to the longest"
    ways[library] = plain(eurobert(), lambda i: sst2.texts_of(i, None), where)
    keep_heap()  # for every contestant alike
    steps = [sst2.task.train.take(sst2.rows[BATCH * i : BATCH * (i + 1)])[1] for i in range(rounds)]
    return {
        "batch": BATCH,
        "tokens_per_step": float(np.mean([lengths.sum() for lengths in steps])),
        "longest_per_step": float(np.mean([lengths.max() for lengths in steps])),
        "steps": timing.interleaved(ways, rounds, warm_up=20 if where.type == "cuda" else 4),
    }


def eurobert() -> torch.nn.Module:
    """The baseline's shape in a public library."""
    c = build_model("baseline", seed=0).config
    same = ("hidden_size", "intermediate_size", "vocab_size", "num_labels")
    shape = {name: getattr(c, name) for name in same}
    shape |= dict.fromkeys(("num_attention_heads", "num_key_value_heads"), c.num_heads)
    shape |= {"num_hidden_layers": c.num_layers, "attention_dropout": c.dropout}
    shape |= {"attention_bias": True, "mlp_bias": True}
    shape |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 3}
    return EuroBertForSequenceClassification(EuroBertConfig(**shape))


def floor(name: str, tokens: float) -> dict:
    """The step's matrix products at the rate of MKL or oneDNN, whichever is better, and AdamW's memory traffic."""
    model, T = build_model(name, seed=0), round(tokens)
    c, d, f = model.config, model.config.hidden_size, model.config.intermediate_size
    shapes = [(T, d, 3 * d), (T, d, d), (T, d, 2 * f), (T, f, d)] * (c.num_layers * c.num_passes - 1)
    # at the end only [CLS] asks
    shapes += [(T, d, 2 * d), (BATCH, d, d), (BATCH, d, d), (BATCH, d, 2 * f), (BATCH, f, d)]
    took = {shape: sum(timing.products(*shape).values()) for shape in dict.fromkeys(shapes)}
    ms, flops = sum(took[shape] for shape in shapes), sum(6 * m * k * n for m, k, n in shapes)
    moved = sum(p.numel() for p in model.parameters())
    rates = {"gflops_per_step": flops / 1e9, "gflops_per_second": flops / ms / 1e6}
    return {"matrix_products_ms": ms, "parameters_updated": moved} | rates | timing.with_adamw(ms, moved)


def eager(sst2: Sst2, layers_compiled: bool = False) -> timing.Work:
    """The packed, plain formulation of the baseline."""
    model = build_model("baseline", seed=0)
    for layer in model.layers if layers_compiled else ():
        layer.compile(dynamic=True)
    return timing.stepping(model, sst2.task, TrainConfig(), sst2.where, OptimizerStep())


def ablation(sst2: Sst2, rounds: int) -> dict[str, dict]:
    """What each part gains: one after the other is added to the packed, eager step of the baseline."""
    ways = {"packed, eager": eager(sst2)}
    for way in ("+ clipping in AdamW", "+ masks by the step", "+ one node a block"):
        model = build_model("baseline", seed=0)
        path = accelerate(model)
        if "node" not in way:
            path.ids = set()
            masks = DropoutMasks if "masks" in way else lambda seed, step: None
            path.begin = lambda *now, model=model, masks=masks: setattr(model, "step_dropout", masks(*now))
        ways[way] = timing.stepping(model, sst2.task, TrainConfig(), sst2.where, path)
    return timing.interleaved(ways, rounds, warm_up=4)


def compiled(sst2: Sst2, rounds: int = 15) -> dict:
    """The plain formulation of the blocks under torch.compile: what it gains and what it costs."""
    torch._inductor.config.force_disable_caches = True  # or the next benchmark here finds what this one compiled
    ways, begin = ({"packed, eager": eager(sst2), "packed, torch.compile": eager(sst2, True)}, time.perf_counter())
    for i in range(5):
        ways["packed, torch.compile"](i)
    seconds = time.perf_counter() - begin
    took = timing.interleaved(ways, rounds)
    return took | {"compile_seconds": seconds - 5 * took["packed, torch.compile"]["median_ms"] / 1e3}


def on_long_texts(where: torch.device, rounds: int) -> dict[str, dict]:
    """A step on made-up texts, all of one length."""
    ids, labels = np.random.RandomState(0).randint(1000, 12_000, BATCH * LONG), np.zeros(BATCH, dtype=np.int64)
    tokens = Tokens(ids.astype(np.int32), np.arange(BATCH + 1) * LONG, labels)
    made_up = Classification(dict.fromkeys(("train", "validation", "test"), tokens), ("a", "b"), {}, BATCH)
    return timing.interleaved(both(NAMES[0], made_up, where) | both(NAMES[1], made_up, where), rounds)


def measure(options: timing.Options) -> dict:
    sst2, rounds = Sst2(options), options.rounds(ROUNDS)
    content = against_others(sst2, rounds)
    if options.device == "cpu":
        content["floor"] = {name: floor(name, content["tokens_per_step"]) for name in NAMES}
        steps = {
            way.replace(", this project", ""): step
            for name in NAMES
            for way, step in both(name, sst2.task, sst2.where).items()
        }
        content["by_kind"] = {way: timing.by_kind(step, rounds) for way, step in steps.items()}
        content["ablation"] = ablation(sst2, rounds)
        content["compiled"] = None if options.quick else compiled(sst2)
    return content | {"long_texts": on_long_texts(options.where, rounds)}


if __name__ == "__main__":
    options = timing.options(__doc__)
    timing.save("training-step", measure(options), options)
