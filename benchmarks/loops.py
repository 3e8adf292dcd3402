"""What a loop costs in memory and time beside its stack: `python -m benchmarks.loops`.

Writes results/benchmarks/loops-<cpu or cuda>.json.  Of decoders of width 256 with weights as they are initialized: the
bytes that a training step keeps for its gradients, a token, and its time, with every layer application kept and with
each computed again in the backward pass (torch.utils.checkpoint); and the time of one more token with a KV cache, by
passes and by what the cache keeps, and the same by width, from weights that a processor's cache holds to some that it
does not.  Contestants take turns, so a noisy machine changes their ratios little.
"""

from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from benchmarks import timing
from rtx_core.models import build_model, count_parameters
from rtx_core.train.config import TrainConfig

SHAPES = {"1x1": (1, 1), "1x2": (1, 2), "1x4": (1, 4), "2x1": (2, 1), "2x2": (2, 2), "4x1": (4, 1)}
SIZES = {"vocab_size": 512, "hidden_size": 256, "num_heads": 8, "intermediate_size": 688}
BATCH, LENGTH = 8, 128  # of a training step
CONTEXTS = (64, 512)  # tokens read before the one that is timed
ROUNDS = 10
WIDTHS = (128, 256, 512, 1024)  # four layers of half the width have as many weights as one
TOKENS = 16  # in a turn, so that weights stay in a cache that they fit in


def model_of(name: str, width: int = SIZES["hidden_size"]):
    (layers, passes), times = SHAPES[name], width / SIZES["hidden_size"]
    sizes = {size: value if size == "vocab_size" else int(value * times) for size, value in SIZES.items()}
    return build_model("looped", seed=0, num_layers=layers, num_passes=passes, **sizes)


def recomputed(model, saved: dict[int, int] | None = None):
    """The same model, whose layer applications keep their inputs alone; their bytes are added to `saved`."""

    def again(forward, x: Tensor, *inputs):
        if saved is not None:
            saved[x.data_ptr()] = x.untyped_storage().nbytes()
        return checkpoint(forward, x, *inputs, use_reentrant=False)

    for layer in model.layers:
        layer.forward = partial(again, layer.forward)
    return model


def kept_bytes(name: str, recompute: bool, ids: Tensor) -> float:
    """Bytes a token that a training step keeps until its backward pass, without the weights."""
    saved: dict[int, int] = {}
    model = model_of(name).train()
    weights = {p.data_ptr() for p in model.parameters()}
    if recompute:
        recomputed(model, saved)

    def pack(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(ids, ids.roll(-1, 1))
    total = sum(saved.values()) / ids.numel()
    loss.backward()
    return total


def training(options: timing.Options) -> dict[str, dict]:
    ids = torch.randint(SIZES["vocab_size"], (BATCH, LENGTH), generator=torch.Generator().manual_seed(0))
    task, ways = timing.Prepared([(ids.to(options.where), ids.roll(-1, 1).to(options.where))]), {}
    config = TrainConfig(epochs=0, steps=1000, eval_every=1000, batch_size=BATCH, learning_rate=1e-3)
    for name in SHAPES:
        for way, model in (("kept", model_of(name)), ("recomputed", recomputed(model_of(name)))):
            ways[name, way] = timing.stepping(model, task, config, options.where)
    times = timing.interleaved(ways, options.rounds(ROUNDS))
    return {
        name: {
            "parameters": count_parameters(model_of(name))["total"],
            **{way: times[name, way] | {"bytes_per_token": kept_bytes(name, way != "kept", ids)}
               for way in ("kept", "recomputed")},
        }
        for name in SHAPES
    }  # fmt: skip


@torch.inference_mode()
def decoding(options: timing.Options) -> list[dict]:
    """Milliseconds of one more token of one text, for each model, number of passes and cache."""
    rows = []
    for context in CONTEXTS:
        ways, sizes = {}, {}
        for name, cache in [(name, "all") for name in SHAPES] + [("1x4", "last"), ("2x2", "last")]:
            model = model_of(name).to(options.where).eval()
            token, state = torch.zeros(1, dtype=torch.long, device=options.where), model.start(1, cache=cache)
            for _ in range(context):
                model.advance(token, state)

            def one_more(i: int, model=model, token=token, state=state, read=context) -> Tensor:
                state.max_seqlen = read  # the token is read anew each time
                return model.advance(token, state)

            ways[name, cache] = one_more
            saved = sum(k.numel() + v.numel() for k, v in state.cache.values())
            sizes[name, cache] = 4 * saved / context
        times = timing.interleaved(ways, options.rounds(10 * ROUNDS), warm_up=10)
        rows += [
            {"model": name, "cache": cache, "context": context, "cache_bytes_per_token": sizes[name, cache], **took}
            for (name, cache), took in times.items()
        ]
    return rows


@torch.inference_mode()
def decoding_by_width(options: timing.Options) -> list[dict]:
    """Milliseconds of `TOKENS` more tokens of one text, for each width and model, with its weights' bytes."""
    ways, weights = {}, {}
    for name, width in product(SHAPES, WIDTHS):
        model = model_of(name, width).to(options.where).eval()
        token, state = torch.zeros(1, dtype=torch.long, device=options.where), model.start(1)
        for _ in range(CONTEXTS[0]):
            model.advance(token, state)

        def more(i: int, model=model, token=token, state=state) -> None:
            state.max_seqlen = CONTEXTS[0]  # the same tokens each time
            for _ in range(TOKENS):
                model.advance(token, state)

        ways[name, width] = more
        weights[name, width] = 4 * count_parameters(model)["non_embedding"]
    times = timing.interleaved(ways, options.rounds(5 * ROUNDS), warm_up=3)
    return [
        {"model": name, "width": width, "tokens": TOKENS, "weight_bytes": weights[name, width], **took}
        for (name, width), took in times.items()
    ]


def measure(options: timing.Options) -> dict:
    content = {"batch": BATCH, "length": LENGTH, "width": SIZES["hidden_size"], "threads": torch.get_num_threads()}
    content |= {"training": training(options), "decoding": decoding(options)}
    return content | {"decoding_by_width": decoding_by_width(options)}


if __name__ == "__main__":
    options = timing.options(__doc__)
    torch.set_num_threads(1)
    timing.save("loops", measure(options), options)
