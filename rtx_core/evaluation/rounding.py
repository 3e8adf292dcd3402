"""Does weight sharing amplify the error of rounded weights?  `python -m rtx_core.evaluation.rounding sst2 [name=value …]`.

The matrices of the layers are rounded to b bits, symmetrically, with one scale s an output row:

    ŵ = s · round(w / s),   s = max|w| / (2^(b−1) − 1)

and the hidden states h_k after each layer application k are compared with those of the exact weights:

    e_k = ‖ĥ_k − h_k‖ / ‖h_k‖       over all tokens of the sample.

Embeddings, norms, biases and the head stay exact, so that e_k is of the layers alone.  Three comparisons, each at one width and
one effective depth:

`random`   freshly initialised models: n layers twice (shared) against 2n layers once (unshared), without the scaled residual,
           so that sharing is all they differ in; one pair a seed.
`trained`  the trained models, each with its own weights.
`draws`    one trained looped model, rounded at random, round(w / s) ∈ {⌊w/s⌋, ⌈w/s⌉} with mean w / s: the same draw in every
           pass (shared) against a new draw a pass (unshared).  The model is the same; only the errors repeat or do not.
"""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from rtx_core.corpora.dataset import Dataset, dataset
from rtx_core.evaluation.command import command, say, trained
from rtx_core.evaluation.identities import untied
from rtx_core.models import MODELS, model_config
from rtx_core.models.packed import Packed
from rtx_core.parameters import settings
from rtx_core.results import measurement
from rtx_core.training.devices import environment

BITS = (2, 3, 4, 5, 6, 7, 8)
TEXTS = 128  # the first of the test part
SEEDS = range(5)  # of random pairs, and of draws
LOOPED = "recurrent-wide"  # the baseline's width


def rounded(weight: Tensor, bits: int, random: torch.Generator | None = None) -> Tensor:
    """(rows, columns) -> the same, each row on its own grid of 2^bits − 1 values; with `random`, rounded up or down by chance."""
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
    found: list[Tensor] = []
    hooks = [layer.register_forward_hook(lambda _, __, out: found.append(out)) for layer in model.layers]
    try:
        model.eval()(batch, rows_only=False)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def errors(exact: list[Tensor], approximate: list[Tensor]) -> list[float]:
    return [float((b - a).norm() / a.norm()) for a, b in zip(exact, approximate, strict=True)]


def curves(model: nn.Module, batch: Packed, **facts: object) -> list[dict]:
    """Rounded to nearest: the error after each application, for each bit width."""
    exact = states(model, batch)
    return [facts | {"bits": b, "errors": errors(exact, states(with_rounded_layers(model, b), batch))} for b in BITS]


def random_pair(batch: Packed, seed: int) -> list[dict]:
    shared = replace(model_config(LOOPED), residual_scale=0.0)
    unshared = replace(shared, num_layers=shared.num_layers * shared.num_passes, num_passes=1)
    found = []
    for arm, config in (("shared", shared), ("unshared", unshared)):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            model = MODELS[LOOPED][0](config)
        found += curves(model, batch, comparison="random", arm=arm, seed=seed)
    return found


def draws(model: nn.Module, batch: Packed, name: str, seed: int) -> list[dict]:
    exact, found = states(model, batch), []
    for arm, layers in (("shared", model), ("unshared", untied(model))):
        chance = torch.Generator().manual_seed(seed)
        for bits in BITS:
            error = errors(exact, states(with_rounded_layers(layers, bits, chance), batch))
            found.append({"comparison": "draws", "arm": arm, "model": name, "seed": seed, "bits": bits, "errors": error})
    return found


def sample(data: Dataset) -> Packed:
    texts = [data.test.ids[a:b] for a, b in zip(data.test.offsets, data.test.offsets[1 : TEXTS + 1])]
    return Packed.from_sequences(texts)


def rounding(experiment: str, given: dict[str, object]) -> None:
    """Measure random pairs, and of the models that the parameters name the first seed's trained weights."""
    chosen = settings(experiment, given)
    data = dataset(**chosen.data)
    made_by, batch, found, runs = measurement.made_by("rounding"), sample(data), [], {}
    models = {name: trained(chosen, name, chosen.seeds[0]) for name in chosen.models}  # first, as one may not be here
    for seed in SEEDS:
        found += random_pair(batch, seed)
        say(chosen.variant, f"random pair {seed}")
    for name, (run, model) in models.items():
        runs[name] = run["key"]
        found += curves(model, batch, comparison="trained", arm=name, seed=chosen.seeds[0])
        if model.config.num_passes > 1:
            for seed in SEEDS:
                found += draws(model, batch, name, seed)
        say(chosen.variant, f"trained {name}")
    measurement.save({
        "kind": "rounding", "of": chosen.variant, "name": "errors", "model": LOOPED, "seed": chosen.seeds[0],
        "protocol": run["protocol"], "runs": runs, "data": data.facts, "texts": len(batch), "tokens": len(batch.ids), "curves": found,
        "environment": environment(torch.device("cpu")), "code": made_by,
    })  # fmt: skip


if __name__ == "__main__":
    command(rounding, "EXPERIMENT")
