"""How long one sentence takes to classify, against the plain way and the floor: `python -m benchmarks.latency`.

Writes results/benchmarks/latency-<cpu or cuda>.json.  The floor is the time to read every weight outside the embedding
once. One sentence and 16 at once are also classified with products of 16 bits. Weights need no training for this;
sentences are SST-2's.
"""

import numpy as np
import torch

from benchmarks import timing
from benchmarks.plain import padded, tokenized
from rtx_core.data import ClassificationData, task
from rtx_core.data.splits import parts
from rtx_core.fast import onednn
from rtx_core.models import build_model, count_parameters
from rtx_core.models.packed import Packed
from rtx_core.train.trainer import autocast_of

ROUNDS, WARM_UP, SIZES = 200, 20, (1, 16)


def thin_products(model, where: torch.device, length: int = 13) -> float | None:
    """The packed matrix products of one sentence alone: what is left when everything else costs nothing."""
    c = model.config
    d, f = c.hidden_size, c.intermediate_size
    if where.type != "cpu" or torch.float32 not in onednn.FORMATS:
        return None
    shapes = [(d, 3 * d), (d, d), (d, f), (d, f), (f, d)] * c.num_layers
    pairs = [(torch.randn(length, k), onednn.packed(torch.randn(n, k), 16)) for k, n in shapes] * c.num_passes
    work = {"": lambda i: [onednn.linear(x, matrix) for x, matrix in pairs]}
    return timing.interleaved(work, 50)[""]["median_ms"]


def served(model, batches: dict[int, list[Packed]], where: torch.device, rounds: int) -> dict[str, dict]:
    """Batches of each size, with products of 32 and of 16 bits, in turn."""
    ways = {}
    for size, group in batches.items():
        for bits, precision in (("32 bits", "fp32"), ("bf16 products", "bf16")):

            def answer(i: int, group=group, autocast=autocast_of(precision, where)) -> torch.Tensor:
                with autocast:
                    return model(group[i % len(group)].to(where)).cpu()

            ways[f"batch of {size}, {bits}"] = answer
    return timing.interleaved(ways, rounds, warm_up=WARM_UP)


@torch.inference_mode()
def measure(options: timing.Options) -> dict:
    where, rounds = options.where, options.rounds(ROUNDS)
    data = ClassificationData(corpus="sst2", source=options.source)
    sst2, texts = task(data, 1), list(parts(data)["test"]["text"])
    test, tokenizer = sst2.parts["test"], sst2.tokenizer()
    rows, by_size = np.random.RandomState(0).permutation(len(test)), {}
    for size in SIZES:
        chosen = rows[: size * min(rounds + WARM_UP, len(rows) // size)].reshape(-1, size)
        by_size[size] = [Packed.from_flat(*test.take(some)[:2]) for some in chosen]
    batches, content = by_size[1], {"models": {}, "served": {}}
    content["tokens_per_sentence"] = float(np.mean([len(batch.ids) for batch in batches]))
    for name in ("baseline", "recurrent"):
        model = build_model(name, seed=0).to(where).eval()
        weights = torch.randn(count_parameters(model)["non_embedding"], device=where)
        half = torch.empty(len(weights) // 2, device=where)  # read and written, it moves as many bytes

        def plainly(i: int, length: int | None = None) -> torch.Tensor:
            ids, mask = tokenized(tokenizer, [texts[rows[i]]], length)
            return model(padded(ids.to(where), mask.to(where)), rows_only=False).cpu()

        torch.testing.assert_close(plainly(0), model(batches[0].to(where)).cpu(), rtol=1e-3, atol=1e-4)
        contestants = {
            "plain, padded to 128": lambda i: plainly(i, 128),
            "plain, one sentence": plainly,
            "packed, the model as it is": lambda i: model(batches[i].to(where)).cpu(),
            "reading the weights, by a sum": lambda i: weights.sum().cpu(),
            "reading the weights, by a copy": lambda i: half.copy_(weights[: len(half)]),
        }
        times = timing.interleaved(contestants, rounds, warm_up=WARM_UP)
        limits = {"weights_mib": 4 * len(weights) / 2**20, "matrix_products_ms": thin_products(model, where)}
        content["models"][name] = times | limits
        content["served"][name] = served(model, by_size, where, rounds)
    return content


if __name__ == "__main__":
    options = timing.options(__doc__)
    timing.save("latency", measure(options), options)
