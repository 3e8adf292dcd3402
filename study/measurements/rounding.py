"""Does weight sharing amplify the error of rounded weights?

The matrices of the layers are rounded to b bits, symmetrically, with one scale s an output row, all else stays exact,
and the hidden states h_k after each layer application k are compared with those of the exact weights:

    ŵ = s · round(w / s),   s = max|w| / (2^(b−1) − 1),     e_k = ‖ĥ_k − h_k‖ / ‖h_k‖ over all tokens

`random`   fresh models of one width and depth: n layers twice (shared) against 2n layers once (unshared), without the
           scaled residual, so that sharing is all they differ in; one pair a seed.
`trained`  the trained models, each with its own weights.
`draws`    one trained looped model, rounded at random to ⌊w/s⌋ or ⌈w/s⌉ with mean w / s: the same draw in every pass
           (shared) against a new one a pass (unshared), so that only the errors differ.
"""

from copy import deepcopy
from itertools import pairwise

import torch
from torch import Tensor, nn

from rtx_core.models import build_model
from rtx_core.models.packed import Packed
from rtx_core.models.registry import config_of

BITS = (2, 3, 4, 5, 6, 7, 8)
TEXTS = 128  # the first of the test part
SEEDS = range(5)  # of random pairs, and of draws
LOOPED = "recurrent-wide"  # the baseline's width


class PerPass(nn.Module):
    """A shared layer as one copy a pass: the r-th call runs the r-th copy."""

    def __init__(self, layer: nn.Module, passes: int):
        super().__init__()
        self.copies = nn.ModuleList(deepcopy(layer) for _ in range(passes))
        self.calls = 0

    def forward(self, *args, **kwargs) -> Tensor:
        self.calls += 1
        return self.copies[(self.calls - 1) % len(self.copies)](*args, **kwargs)


def untied(model: nn.Module) -> nn.Module:
    """The same function with layers of its own for every pass."""
    copy = deepcopy(model)
    copy.layers = nn.ModuleList(PerPass(layer, model.config.num_passes) for layer in model.layers)
    return copy


def rounded(weight: Tensor, bits: int, random: torch.Generator | None = None) -> Tensor:
    """(rows, columns), each row on its own grid of 2^bits − 1 values; with `random`, up or down by chance."""
    if weight.dim() < 2:
        return weight
    largest = 2 ** (bits - 1) - 1
    scale = weight.abs().amax(1, keepdim=True).clamp_min(torch.finfo(weight.dtype).tiny) / largest
    steps = weight / scale
    steps = steps.round() if random is None else (steps + torch.rand(steps.shape, generator=random)).floor()
    return steps.clamp(-largest, largest) * scale


@torch.no_grad()
def with_rounded_layers(model: nn.Module, bits: int, random: torch.Generator | None = None) -> nn.Module:
    """A copy whose layers have rounded matrices."""
    model = deepcopy(model)
    for parameter in model.layers.parameters():
        parameter.copy_(rounded(parameter, bits, random))
    return model


@torch.inference_mode()
def states(model: nn.Module, batch: Packed) -> list[Tensor]:
    """The output (T, d) of every layer application, in order."""
    outputs: list[Tensor] = []
    hooks = [layer.register_forward_hook(lambda _, __, out: outputs.append(out)) for layer in model.layers]
    try:
        model.eval()(batch, rows_only=False)
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def curves(model: nn.Module, exact: list[Tensor], batch: Packed, random=None, /, **facts: object) -> list[dict]:
    """The error after each application, for each bit width, against the `exact` states of the model."""
    rows = []
    for bits in BITS:
        approximate = states(with_rounded_layers(model, bits, random), batch)
        errors = [float((b - a).norm() / a.norm()) for a, b in zip(exact, approximate, strict=True)]
        rows.append(facts | {"bits": bits, "errors": errors})
    return rows


def random_pair(batch: Packed, seed: int) -> list[dict]:
    c, rows = config_of(LOOPED), []
    depths = {"shared": {}, "unshared": {"num_layers": c.num_layers * c.num_passes, "num_passes": 1}}
    for arm, depth in depths.items():
        model = build_model(LOOPED, seed=seed, residual_scale=0.0, **depth)
        rows += curves(model, states(model, batch), batch, comparison="random", arm=arm, seed=seed)
    return rows


def draws(model: nn.Module, batch: Packed, name: str, seed: int) -> list[dict]:
    exact, rows = states(model, batch), []
    for arm, layers in (("shared", model), ("unshared", untied(model))):
        random = torch.Generator().manual_seed(seed)
        rows += curves(layers, exact, batch, random, comparison="draws", arm=arm, model=name, seed=seed)
    return rows


def identity(study) -> dict:
    runs = {record["model"]: record["key"] for record in study.runs() if record["seed"] == study.seeds[0]}
    return {"name": "errors", "model": LOOPED, "seed": study.seeds[0], "runs": runs}


def of_study(study) -> tuple[dict, None]:
    """Random pairs, and the trained weights of the first seed."""
    runs = (record for record in study.runs() if record["seed"] == study.seeds[0])
    models = {record["model"]: study.trained(record).cpu() for record in runs}
    tokens, rows = study.task.parts["test"], []
    texts = [tokens.ids[a:b] for a, b in pairwise(tokens.offsets[: TEXTS + 1])]
    batch = Packed.from_sequences(texts)
    for seed in SEEDS:
        rows += random_pair(batch, seed)
    for name, model in models.items():
        exact, seed = states(model, batch), study.seeds[0]
        rows += curves(model, exact, batch, comparison="trained", arm=name, seed=seed)
        if model.config.num_passes > 1:
            for seed in SEEDS:
                rows += draws(model, batch, name, seed)
    return {"texts": len(batch), "tokens": len(batch.ids), "curves": rows}, None
