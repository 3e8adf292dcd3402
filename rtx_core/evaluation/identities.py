"""Two identities of the theory page, checked on the models' own code: the gradient of shared layers, and what a rotation leaves alone."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.models import build_model
from rtx_core.models.layers import rotary_table, rotate
from rtx_core.models.packed import Packed

LENGTHS = (5, 12, 30)  # tokens of the sequences that the gradient is checked on


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
    other = deepcopy(model)
    other.layers = nn.ModuleList(PerPass(layer, model.config.num_passes) for layer in model.layers)
    return other


def shared_gradient(name: str, num_passes: int, seed: int = 0) -> dict:
    """dL/dθ = Σ_r ∂L/∂θ_r at θ_1 = … = θ_R = θ: autograd on the shared layers against autograd on one copy a pass.

    The model is freshly initialised, in float64 and without dropout; tokens are drawn at random, since an identity
    holds for any of them.  `error` is the largest relative difference of any parameter tensor (largest entry over
    largest entry); `layers` holds, for each stored layer, the norm of each pass's gradient, of their sum, and the
    cosines between consecutive passes.
    """
    model = build_model(name, seed=seed, num_passes=num_passes).double().eval()
    apart = untied(model)
    c, random = model.config, np.random.default_rng(seed)
    batch = Packed.from_sequences([random.integers(1, c.vocab_size, size=length) for length in LENGTHS])
    labels = torch.arange(len(LENGTHS)) % c.num_labels
    losses = [F.cross_entropy(m(batch), labels) for m in (model, apart)]
    for loss in losses:
        loss.backward()
    error, layers = 0.0, []
    for layer, copies in zip(model.layers, apart.layers):
        parts = [{n: p.grad for n, p in copy.named_parameters()} for copy in copies.copies]
        for n, p in layer.named_parameters():
            difference = (p.grad - sum(part[n] for part in parts)).abs().max() / p.grad.abs().max()
            error = max(error, difference.item())
        flat = [torch.cat([g.flatten() for g in part.values()]) for part in parts]
        layers.append({
            "passes": [g.norm().item() for g in flat],
            "sum": sum(flat).norm().item(),
            "cosines": [F.cosine_similarity(a, b, dim=0).item() for a, b in zip(flat, flat[1:])],
        })  # fmt: skip
    return {"error": error, "loss_difference": (losses[0] - losses[1]).abs().item(), "parameters": sum(p.numel() for p in model.layers.parameters()),
            "layers": layers}  # fmt: skip


def relative_offset(head_size: int, base: float, furthest: int, seed: int = 0) -> dict:
    """⟨R_m q, R_n k⟩ over all shifts of one pair (m, n) up to `furthest`, with `rotate` as the models use it.

    In units of |q||k|: `shifted` is the largest change of the score when both positions move together, `moved` the
    largest when one of them stays; `length` is the largest relative change of |q|.
    """
    random = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 1, head_size, generator=random)
    shifts = torch.arange(furthest)

    def rotated(x: Tensor, positions: Tensor) -> Tensor:  # (1, 1, D) -> (T, D)
        return rotate(x.expand(len(positions), 1, head_size), rotary_table(positions, head_size, base))[:, 0]

    unit = q.norm() * k.norm()
    keys = rotated(k, shifts + 7)
    together = (rotated(q, shifts) * keys).sum(-1) / unit
    apart = (rotated(q, torch.zeros_like(shifts)) * keys).sum(-1) / unit
    lengths = rotated(q, shifts).norm(dim=-1) / q.norm()
    return {
        "shifted": (together - together[0]).abs().max().item(),
        "moved": (apart - apart[0]).abs().max().item(),
        "length": (lengths - 1).abs().max().item(),
    }
