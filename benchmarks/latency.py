"""How long one sentence takes to classify, against the plain way and the floor: `python -m benchmarks.latency`.

Writes results/benchmarks/latency-<cpu or cuda>.json.  The floor is the time to read every weight outside the embedding once.
Weights need no training for this; sentences are SST-2's.
"""

import argparse

import numpy as np
import torch

from benchmarks.plain import padded, plain_copy
from benchmarks.timing import interleaved, save
from rtx_core.corpora import splits, tokens
from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import resolve
from rtx_core.models import build_model, count_parameters
from rtx_core.models.fused import ONEDNN
from rtx_core.models.packed import Packed
from rtx_core.models.serving import serving

ROUNDS = 200


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    test, frame = dataset("sst2", "real", "seeded", 128).test, splits.parts("sst2", resolve("real"), "seeded")["test"]
    tokenizer = tokens.vocabulary(resolve("real"), [])
    rows = np.random.RandomState(0).permutation(len(test))[: ROUNDS + 20]
    batches = [Packed.from_flat(*test.take(row[None])[:2]) for row in rows]
    content = {"tokens_per_sentence": float(np.mean([len(batch.ids) for batch in batches])), "models": {}}
    for name in ("baseline", "recurrent"):
        model = build_model(name, seed=0).to(device).eval()
        plain, fast = plain_copy(model).to(device).eval(), serving(model)
        weights = torch.randn(count_parameters(model)["non_embedding"], device=device)
        half = torch.empty(len(weights) // 2, device=device)  # reading and writing half of them moves as many bytes

        def padded_to(length: int | None):
            return lambda i: plain(*(t.to(device) for t in padded(tokenizer, [frame["text"][rows[i]]], length))).cpu()

        took = interleaved(
            {
                "plain, padded to 128": padded_to(128),
                "plain, one sentence": padded_to(None),
                "packed, the model as it is": lambda i: model(batches[i].to(device)).cpu(),
                "packed, prepared for serving": lambda i: fast(batches[i].to(device)).cpu(),
                "reading the weights, by a sum": lambda i: weights.sum().cpu(),
                "reading the weights, by a copy": lambda i: half.copy_(weights[: len(half)]),
            },
            ROUNDS, warm_up=20, device=device,
        )  # fmt: skip
        content["models"][name] = took | {"weights_mib": 4 * len(weights) / 2**20, "matrix_products_ms": products(model, 13, device)}
    save("latency", content, device)


def products(model, length: int, device: str) -> float | None:
    """The packed matrix products of one sentence of `length` tokens alone: what is left when everything else costs nothing."""
    c = model.config
    if device != "cpu" or not ONEDNN:
        return None
    d, f, matrices = c.hidden_size, c.intermediate_size, []
    for _ in range(c.num_layers):
        for k, n in ((d, 3 * d), (d, d), (d, f), (d, f), (f, d)):
            matrices.append(torch.ops.mkldnn._reorder_linear_weight(torch.randn(n, k), 16))
    inputs = {k: torch.randn(length, k) for k in (d, f)}
    sizes = [k for _ in range(c.num_layers) for k in (d, d, d, d, f)]

    def work(i: int) -> None:
        for _ in range(c.num_passes):
            for k, matrix in zip(sizes, matrices):
                torch.ops.mkldnn._linear_pointwise.default(inputs[k], matrix, None, "none", [], "")

    return interleaved({"products": work}, 50)["products"]["median_ms"]


if __name__ == "__main__":
    main()
