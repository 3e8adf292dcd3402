"""What more or fewer passes do at test time: loss, change of the state, and when a token could have stopped.

    δ_r = ‖s_r − s_{r−1}‖ / ‖s_r‖          how far the state still moves (Geiping et al. 2025, §6)
    κ_r = KL(p_{r−1} ‖ p_r)                 how far the prediction still moves; a token may stop once it is small

All passes are read from one forward: what a model says after r passes does not depend on whether it is run further.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHUNK = 512  # tokens whose logits after all passes are held at once


@dataclass(frozen=True)
class Readings:
    """Of N tokens, after 1 … R passes."""

    losses: Tensor  # (R, N) nats
    divergence: Tensor  # (R, N) κ; infinite after the first pass, which has nothing before it
    change: Tensor  # (R,) mean δ over tokens; NaN after the first pass


@torch.inference_mode()
def readings(model: nn.Module, batches: Iterable[tuple], passes: int, device: torch.device) -> Readings:
    """One forward of `passes` passes over the batches, in evaluation mode; the model's mode is put back."""
    was_training = model.training
    model.eval()
    losses, divergence, change, seen = [], [], torch.zeros(passes, dtype=torch.float64), 0
    for inputs, targets in batches:
        inputs, targets, read, before = inputs.to(device), targets.to(device), [], None
        for r, state in enumerate(model.states(inputs, passes)):
            moved = torch.full((), torch.nan) if before is None else ((state - before).norm(dim=1) / state.norm(dim=1)).sum()
            change[r] += moved.double().cpu()
            read.append(model.read(state, inputs))
            before = state
        seen += len(targets)
        for start in range(0, len(targets), CHUNK):
            part = slice(start, start + CHUNK)
            log_p = torch.stack([F.log_softmax(F.linear(h[part], model.word.weight).float(), -1) for h in read])  # (R, n, V)
            losses.append(-log_p.gather(2, targets[part].expand(passes, -1)[..., None])[..., 0].cpu())
            kl = (log_p[:-1].exp() * (log_p[:-1] - log_p[1:])).sum(-1)
            divergence.append(F.pad(kl, (0, 0, 1, 0), value=torch.inf).cpu())
    model.train(was_training)
    return Readings(torch.cat(losses, 1), torch.cat(divergence, 1), change / seen)
