"""More or fewer passes at test time, and early exit: a token stops looping once its prediction hardly changes.

    δ_r = ‖s_r − s_{r−1}‖ / ‖s_r‖          how far the state still moves (Geiping et al. 2025, §6)
    κ_r = KL(p_{r−1} ‖ p_r)                 how far the prediction still moves

Token t stops after the first pass r ≥ 2 with κ_r < θ, or after the trained number of passes.  All passes are read from
one forward.  Keys and values are computed of all tokens, so the saving is the most that a scheduler could reach.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.data.tasks import evaluation_mode

CHUNK = 512  # tokens whose logits after all passes are held at once
TOLERANCES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # nats of training loss that an exit may cost


@dataclass(frozen=True)
class Readings:
    """Of N tokens, after 1 … R passes."""

    losses: Tensor  # (R, N) nats
    divergence: Tensor  # (R, N) κ; infinite after the first pass, which has nothing before it
    change: Tensor  # (R,) mean δ over tokens; NaN after the first pass


def readings(model: nn.Module, batches: Iterable[tuple], passes: int, device: torch.device) -> Readings:
    """One forward of `passes` passes over the batches."""
    losses, divergence, change = [], [], torch.zeros(passes, dtype=torch.float64)
    change[0] = torch.nan
    with evaluation_mode(model):
        for inputs, targets in batches:
            inputs, targets = inputs.to(device), targets.to(device)
            states = list(model.states(inputs, passes))
            for r in range(1, passes):
                moved = (states[r] - states[r - 1]).norm(dim=1) / states[r].norm(dim=1)
                change[r] += moved.sum().double().cpu()
            outputs = [model.output_hidden(state, inputs) for state in states]
            for start in range(0, len(targets), CHUNK):
                part = slice(start, start + CHUNK)
                logits = (F.linear(h[part], model.head).float() for h in outputs)
                log_p = torch.stack([F.log_softmax(after, -1) for after in logits])  # (R, n, V)
                losses.append(-log_p.gather(2, targets[part].expand(passes, -1)[..., None])[..., 0].cpu())
                kl = (log_p[:-1].exp() * (log_p[:-1] - log_p[1:])).sum(-1)
                divergence.append(F.pad(kl, (0, 0, 1, 0), value=torch.inf).cpu())
        losses, divergence = torch.cat(losses, 1), torch.cat(divergence, 1)
        return Readings(losses, divergence, change / losses.shape[1])


def exit_at(readings: Readings, trained: int, threshold: float) -> tuple[float, float]:
    """(mean loss, mean number of passes) with this threshold."""
    small = readings.divergence[:trained] < threshold
    small[-1] = True
    stop = small.int().argmax(0)  # (N,) the index of the pass after which each token stops
    losses = readings.losses[:trained].gather(0, stop[None])
    return losses.double().mean().item(), stop.double().mean().item() + 1


def choose(training: Readings, trained: int, tolerance: float) -> float:
    """The largest threshold that costs at most `tolerance` in training loss, by bisection of its exponent."""
    limit = training.losses[trained - 1].double().mean().item() + tolerance
    low, high = -12.0, 3.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if exit_at(training, trained, 10**middle)[0] <= limit else (low, middle)
    return 10**low


def frontier(training: Readings, validation: Readings, trained: int) -> list[dict]:
    """For each allowed cost: the threshold chosen on training stories, and what it gives on both parts."""
    rows = []
    for tolerance in TOLERANCES:
        threshold = choose(training, trained, tolerance)
        row = {"allowed": tolerance, "threshold": threshold}
        for name, part in (("training", training), ("validation", validation)):
            row[f"{name}_loss"], row[f"{name}_passes"] = exit_at(part, trained, threshold)
        rows.append(row)
    return rows
