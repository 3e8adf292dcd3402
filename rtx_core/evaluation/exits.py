"""Early exit: a token stops looping once its prediction hardly changes from pass to pass.

Token t stops after the first pass r ≥ 2 with κ_r < θ, or after the trained number of passes.  What is measured is the loss
of the predictions taken where each token stops, against the passes done; keys and values of the tokens that go on are
computed from all tokens, stopped or not, so the saving is what a scheduler could reach at best.
"""

from torch import Tensor

from rtx_core.evaluation.passes import Readings

ALLOWED = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # nats of training loss that an exit may cost: one threshold for each


def stops(divergence: Tensor, threshold: float) -> Tensor:
    """(N,) the index of the pass after which each token stops; divergence (R, N)."""
    small = divergence < threshold
    small[-1] = True
    return small.int().argmax(0)


def at(readings: Readings, trained: int, threshold: float) -> tuple[float, float]:
    """(mean loss, mean number of passes) with this threshold."""
    stop = stops(readings.divergence[:trained], threshold)
    return readings.losses[:trained].gather(0, stop[None]).double().mean().item(), stop.double().mean().item() + 1


def choose(training: Readings, trained: int, allowed: float) -> float:
    """The largest threshold whose training loss is at most `allowed` above that of all passes, by bisection of the exponent."""
    limit = training.losses[trained - 1].double().mean().item() + allowed
    low, high = -12.0, 3.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if at(training, trained, 10**middle)[0] <= limit else (low, middle)
    return 10**low


def frontier(training: Readings, validation: Readings, trained: int) -> list[dict]:
    """For each allowed cost: the threshold chosen on training stories, and what it gives on both parts."""
    rows = []
    for allowed in ALLOWED:
        threshold = choose(training, trained, allowed)
        row = {"allowed": allowed, "threshold": threshold}
        for name, readings in (("training", training), ("validation", validation)):
            row[f"{name}_loss"], row[f"{name}_passes"] = at(readings, trained, threshold)
        rows.append(row)
    return rows
