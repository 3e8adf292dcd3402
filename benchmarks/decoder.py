"""How many tokens a second a story model trains on, and the memory of a step, against the plain way: `python -m benchmarks.decoder [--device cuda]`.

Writes results/benchmarks/decoder-<cpu or cuda>.json.  Plain and ours take turns in one process, each a whole optimizer step on
the same stories, at 32 bits and with 16-bit matrix products, on two tasks: stories, which the plain way pads as most code does,
and full blocks as llama2.c trains, with attention across stories and nothing to pad.  Needs the real stories (RTX_DATA or the
hub); ten minutes on a quiet core.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.timing import interleaved, products, save
from rtx_core.corpora import stories, story_stream
from rtx_core.language import LANGUAGE
from rtx_core.models import build_model, model_config
from rtx_core.models.packed import Packed
from rtx_core.training import packed_graph
from rtx_core.training.devices import device, keep_heap, peak_memory_mib, reset_peak_memory
from rtx_core.training.language import optimizer_of

NAMES, ROUNDS, IGNORED = ("control", "frailt", "three-part", "relaxed"), 4, -100
BATCH = 8  # sequences in a step, as in the reduced runs


class Norm(nn.Module):
    """RMSNorm as llama2.c writes it."""

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Linear(nn.Module):
    """A matrix of its own, and for each pass a low-rank path for the tokens where the model has one."""

    def __init__(self, weight: Tensor, paths: list[tuple[Tensor, Tensor]], scale: float):
        super().__init__()
        self.weight, self.scale = nn.Parameter(weight.detach().clone()), scale
        self.a = nn.ParameterList(nn.Parameter(a.detach().clone()) for a, _ in paths)
        self.b = nn.ParameterList(nn.Parameter(b.detach().clone()) for _, b in paths)

    def forward(self, x: Tensor, r: int) -> Tensor:
        out = F.linear(x, self.weight)
        return out + self.scale * F.linear(F.linear(x, self.a[r]), self.b[r]) if len(self.a) else out


class PlainLayer(nn.Module):
    def __init__(self, model: nn.Module, index: int):
        super().__init__()
        layer, self.heads, linears = model.layers[index], model.config.num_heads, []
        for m, (matrix, n) in enumerate(zip(layer.matrices, (3, 1, 2, 1))):
            for i, weight in enumerate(matrix.chunk(n)):
                paths = [(lora[index].down[m][i], lora[index].up[m][i]) for lora in getattr(model, "lora", [])]
                linears.append(Linear(weight, paths, getattr(model.config, "lora_scale", 1.0)))
        self.q, self.k, self.v, self.o, self.gate, self.up, self.down = linears
        self.norm1, self.norm2 = Norm(layer.attention_norm.weight), Norm(layer.ffn_norm.weight)

    def forward(self, x: Tensor, turn: Tensor, r: int) -> Tensor:  # (B, L, d)
        B, L, d = x.shape
        y = self.norm1(x)
        q, k, v = (linear(y, r).view(B, L, self.heads, -1).transpose(1, 2) for linear in (self.q, self.k, self.v))

        def rotated(z: Tensor) -> Tensor:
            a, b = z.chunk(2, -1)
            return torch.cat((a * turn[0] - b * turn[1], b * turn[0] + a * turn[1]), -1)

        mixed = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(B, L, d), r)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y, r)) * self.up(y, r), r)


class Plain(nn.Module):
    """(ids, targets), both (B, L) -> loss: the same weights and function, written as most code is."""

    def __init__(self, model: nn.Module):
        super().__init__()
        c = self.c = model.config
        self.word = nn.Embedding(c.vocab_size, c.hidden_size, _weight=model.word.weight.detach().clone())
        self.layers = nn.ModuleList(PlainLayer(model, i) for i in range(c.num_layers))
        self.norm = Norm(model.norm.weight)
        self.encoding, self.adapter = (
            nn.Parameter(getattr(model, name).detach().clone()) if hasattr(model, name) else None for name in ("encoding", "adapter")
        )
        self.state_norm = Norm(model.state_norm.weight) if hasattr(model, "state_norm") else None
        self.ends = (c.num_layers - c.num_core_layers) // 2 if self.adapter is not None else 0  # layers of prelude, and of coda

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        size = self.c.hidden_size // self.c.num_heads
        position, pair = (torch.arange(*of, device=ids.device) for of in ((ids.shape[1],), (0, size, 2)))
        angle = position[:, None] * self.c.rope_base ** (-pair / size)
        h, turn = self.word(ids), (angle.cos(), angle.sin())
        for layer in self.layers[: self.ends]:
            h = layer(h, turn, 0)
        read, h = h, h if self.adapter is None else self.c.state_std * torch.randn_like(h)
        for r in range(self.c.num_passes):
            h = h if self.encoding is None else h + self.encoding[r]
            h = h if self.adapter is None else F.linear(torch.cat((h, read), -1), self.adapter)
            for layer in self.layers[self.ends : len(self.layers) - self.ends]:
                h = layer(h, turn, r)
        h = h if self.adapter is None else self.state_norm(h)
        for layer in self.layers[len(self.layers) - self.ends :]:
            h = layer(h, turn, 0)
        logits = F.linear(self.norm(h), self.word.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def padded(batch: Packed, targets: Tensor) -> tuple[Tensor, Tensor]:
    """(B, L) ids and targets of a packed batch."""
    grids = []
    for values, filler in ((batch.ids, 0), (targets, IGNORED)):
        grids.append(torch.full((len(batch) * batch.longest,), filler, device=values.device).index_copy(0, batch.cell, values).view(len(batch), -1))
    return tuple(grids)


def step_of(model: nn.Module, recipe, optimizer: torch.optim.Optimizer, batches: list, autocast: bool = False):
    def work(i: int) -> None:
        with torch.autocast(batches[0][1].device.type, torch.bfloat16, enabled=autocast):
            loss = model(*batches[i % len(batches)])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        optimizer.zero_grad()

    return work


def products_ms(name: str, tokens: int, vocabulary: int) -> float:
    """What the matrix products of a step take at the best rate measured for their shapes, forward and both gradients, at 32 bits."""
    c = model_config(name)
    d, f = c.hidden_size, c.intermediate_size
    inside = getattr(c, "num_core_layers", c.num_layers)
    applied = inside * c.num_passes + c.num_layers - inside
    once = {(d, vocabulary): 1} | {shape: applied for shape in ((d, 3 * d), (d, d), (d, 2 * f), (f, d))}
    once |= {(2 * d, d): c.num_passes} if inside < c.num_layers else {}
    return sum(times * sum(products(tokens, *shape).values()) for shape, times in once.items())


def added_memory(name: str, where: torch.device) -> float:
    """MiB that a model of the study and one training step of it add to this process, which has done nothing else."""
    recipe = replace(LANGUAGE["tinystories"].recipes["report"], batch_size=BATCH)
    data = stories.data("real", recipe)
    batch = tuple(part.to(where) for part in next(iter(data.step(0, 0))))
    reset_peak_memory(where)
    before = peak_memory_mib(where)
    architecture, overrides = LANGUAGE["tinystories"].models[name]
    model = build_model(architecture, seed=0, vocab_size=data.vocab_size, **overrides).to(where).train()
    step_of(model, recipe, optimizer_of(model, recipe), [batch])(0)
    return peak_memory_mib(where) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    chosen = parser.parse_args()
    where = device(chosen.device)
    torch.set_num_threads(chosen.threads)
    keep_heap()
    recipe = replace(LANGUAGE["tinystories"].recipes["report"], batch_size=BATCH)
    data, stream = stories.data("real", recipe), story_stream.data("real", recipe)
    packed, blocks = ([tuple(part.to(where) for part in next(iter(texts.step(0, i)))) for i in range(ROUNDS + 1)] for texts in (data, stream))
    tasks = {"stories": (packed, [padded(*b) for b in packed]), "blocks": (blocks, [(b.ids.view(BATCH, -1), t.view(BATCH, -1)) for b, t in blocks])}
    tokens = BATCH * recipe.block_size
    content = {"tokens_a_step": tokens, "models": {}, "products_ms": {}, "memory_mib": {}}
    for name in NAMES:
        silent = {"state_std": 0.0} if name == "three-part" else {}  # its noise drawn, but of size 0, so that both are one function
        model = build_model(name, seed=0, vocab_size=data.vocab_size, **silent).to(where)
        with torch.no_grad():  # the plain model is the same function
            torch.testing.assert_close(Plain(model)(*tasks["stories"][1][0]), model(*packed[0]), rtol=1e-4, atol=1e-4)
        ways = {}
        for task, (ours, plain) in tasks.items():
            for precision in ("32 bits", "bf16 products"):
                for who, batches in (("plain", plain), ("ours", ours)):
                    own = build_model(name, seed=0, vocab_size=data.vocab_size, **silent).to(where).train()
                    if who == "ours" and chosen.device == "cuda":
                        packed_graph.install(own, recipe.block_size)
                    own = Plain(own) if who == "plain" else own
                    optimizer = torch.optim.AdamW(own.parameters(), lr=5e-4) if who == "plain" else optimizer_of(own, recipe)
                    ways[task, precision, who] = step_of(own, recipe, optimizer, batches, precision != "32 bits")
        first = ROUNDS + 1 if chosen.device == "cuda" else 1  # there a shape costs something the first time that it is seen
        took = interleaved(ways, ROUNDS, warm_up=first, device=chosen.device)
        found = content["models"][name] = {}
        for (task, precision, who), times in took.items():
            found.setdefault(f"{task}, {precision}", {})[who] = times
        if chosen.device == "cpu":
            content["products_ms"][name] = products_ms(name, tokens, data.vocab_size)
        print(name, {task: f"{t['plain']['median_ms'] / t['ours']['median_ms']:.2f}x" for task, t in found.items()}, flush=True)
    for name in LANGUAGE["tinystories"].models:
        if chosen.device == "cuda":  # its peak is counted anew
            content["memory_mib"][name] = added_memory(name, where)
        else:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                content["memory_mib"][name] = apart.submit(added_memory, name, where).result()
        print(name, f"{content['memory_mib'][name]:,.0f} MiB", flush=True)
    save("decoder", content, chosen.device)


if __name__ == "__main__":
    main()
