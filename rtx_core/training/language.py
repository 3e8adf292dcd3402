"""The training loop of language models: one function from (model, data, recipe, seeds) to the best weights and the history.

It knows neither text nor architecture.  A model maps a batch to its loss, `model(inputs, targets)` -> mean nats a target,
where `inputs` is a tensor or anything else with `.to(device)`; the data gives batches of (inputs, targets).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.results.code import fingerprint
from rtx_core.training import checkpoint
from rtx_core.training.devices import keep_heap
from rtx_core.training.loop import Clock
from rtx_core.training.step import autocast_of
from rtx_core.training.protocol import Seeds
from rtx_core.training.recipes import Recipe
from rtx_core.training.team import Team, team

Batch = tuple[Any, Tensor]  # (inputs, targets): targets hold one token id for every prediction that counts


class LanguageData(Protocol):
    """What the loop and a run ask of text.  `rtx_core.corpora.characters` is one; packed stories are another."""

    vocab_size: int
    one_shape: bool  # whether the inputs of every training batch are a tensor, and all are of one shape
    facts: dict  # what the record says of the data: name, source, sha256, n_train, n_validation, n_test (tokens)

    def step(self, seed: int, step: int) -> Iterable[Batch]:
        """The micro-batches of one optimizer step: a function of (seed, step), so that a resumed run reads on where it was."""

    def evaluation(self) -> Mapping[str, Sequence[Batch]]:
        """Fixed batches by the name of their part.  The part "validation" selects the weights; others are only recorded."""

    def test(self) -> Sequence[Batch]:
        """The whole test part, each prediction once."""


@dataclass
class Progress:
    """Everything of a run that is not a tensor: what a checkpoint keeps as JSON."""

    step: int = 0  # optimizer steps done
    tokens: int = 0  # targets predicted in them
    seconds: float = 0.0  # spent training and validating, restarts included
    history: list[dict] = field(default_factory=list)  # one row an evaluation
    best_loss: float = float("inf")  # lowest validation loss seen, whose weights are kept
    best_step: int = 0
    train_loss: float = 0.0  # sum over targets since the last evaluation, with dropout
    train_seen: int = 0
    codes: list[str] = field(default_factory=list)  # fingerprints of the code that worked on this run, in turn


def optimizer_of(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW that decays matrices and tables only."""
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(recipe.beta1, recipe.beta2), fused=True)


@torch.inference_mode()
def losses_of(model: nn.Module, batches: Iterable[Batch], device: torch.device, autocast: torch.autocast) -> tuple[Tensor, Tensor]:
    """(mean loss, number of targets) of each batch, float64 on the CPU, in evaluation mode; the model's mode is put back."""
    was_training = model.training
    model.eval()
    losses, sizes = [], []
    for inputs, targets in batches:
        with autocast:
            losses.append(model(inputs.to(device), targets.to(device)).double())
        sizes.append(targets.numel())
    model.train(was_training)
    return torch.stack(losses).cpu(), torch.tensor(sizes, dtype=torch.float64)


def mean_and_error(losses: Tensor, sizes: Tensor) -> tuple[float, float]:
    """Mean over targets, and its standard error over B batches: s / √B for batches of one size.

    The batch is the unit drawn, so the spread of batch means is divided by √B alone; dividing by √(B · batch size), as the
    public code of the recurrent transformer does, makes the error too small by √(batch size).
    """
    share = sizes / sizes.sum()
    mean = (share * losses).sum()
    error = ((share * (losses - mean)) ** 2).sum() * len(losses) / (len(losses) - 1) if len(losses) > 1 else torch.tensor(math.nan)
    return mean.item(), error.sqrt().item()


def _evaluate(model: nn.Module, evaluation: Mapping[str, Sequence[Batch]], device, autocast) -> dict[str, float]:
    row = {}
    for part, batches in evaluation.items():
        row[f"{part}_loss"], row[f"{part}_error"] = mean_and_error(*losses_of(model, batches, device, autocast))
    return row


def _divides(mine: Team, recipe: Recipe) -> None:
    if recipe.micro_batches % mine.size:
        raise RtxError(
            f"{mine.size} processes were asked to share a step of {recipe.micro_batches} micro-batches; "
            f"set micro_batches to a multiple of {mine.size}."
        )


def graphed(model: nn.Module, data: LanguageData, autocast: torch.autocast, device: torch.device) -> nn.Module:
    """The model with forward and backward pass as one CUDA graph each while it trains: its loop is launched once, not kernel by kernel.

    No GPU was at hand when this was written, so it has not been run yet.
    """
    inputs, targets = next(iter(data.step(0, 0)))
    with torch.random.fork_rng(devices=[device]), autocast:  # warming up draws dropout masks
        return torch.cuda.make_graphed_callables(model, (inputs.to(device), targets.to(device)))


def train(
    model: nn.Module,
    data: LanguageData,
    recipe: Recipe,
    seeds: Seeds,
    device: torch.device,
    checkpoint_path: Path,
    files: tuple[str, ...],
    say: Callable[[str], None] = print,
) -> tuple[dict[str, Tensor], Progress]:
    """Train `model` in place, which ends with the last weights; returns those of lowest validation loss, and the progress.

    Resumes from `checkpoint_path` if that file exists.  On a CPU with the same number of threads a resumed run and an
    uninterrupted one give the same numbers, bit for bit.  `files` are the sources whose fingerprint the record carries.
    """
    keep_heap()
    mine = team()
    _divides(mine, recipe)
    model.to(device).train()
    optimizer, autocast = optimizer_of(model, recipe), autocast_of(recipe.precision, device)
    evaluation = data.evaluation()
    progress, best = Progress(), {}
    torch.manual_seed(mine.seed(seeds.dropout))

    if (found := checkpoint.load(checkpoint_path, model, optimizer, say)) is not None:
        best, state = found
        progress = Progress(**state["progress"])
        say(f"resumed at step {progress.step:,} of {recipe.steps:,}")
        if not mine.first:  # the checkpoint holds the first one's generator
            torch.manual_seed(mine.seed(seeds.dropout) + progress.step)
    worker = graphed(model, data, autocast, device) if device.type == "cuda" and data.one_shape and mine.size == 1 else mine.wrapped(model)
    if fingerprint(files) not in progress.codes:
        progress.codes.append(fingerprint(files))

    # The sum stays on the device and is read when a line is printed; in float64 it does not depend on when that is.
    total = torch.zeros((), device=device, dtype=torch.float64)
    clock = Clock(progress)
    start = progress.tokens

    def collect() -> None:
        progress.train_loss += total.item()
        total.zero_()

    def line() -> str:
        speed = (progress.tokens - start) / max(1e-9, clock.last - clock.begin)
        left = (recipe.steps - progress.step) * clock.per_step() / 60
        seen = f" · loss {progress.train_loss / progress.train_seen:.4f}" if progress.train_seen else ""
        return f"step {progress.step:,}/{recipe.steps:,}{seen} · {speed:,.0f} tokens/s · {left:.0f} min left"

    while progress.step < recipe.steps:
        rate = recipe.learning_rate_at(progress.step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        parts = list(data.step(seeds.order, progress.step))
        size = sum(targets.numel() for _, targets in parts)
        seen = torch.zeros_like(total)
        for i, (inputs, targets) in enumerate(own := mine.share(parts)):
            with autocast, nullcontext() if i == len(own) - 1 or mine.size == 1 else worker.no_sync():
                loss = worker(inputs.to(device), targets.to(device))
            (loss if len(parts) == 1 else loss * (mine.size * targets.numel() / size)).backward()
            seen += loss.detach() * targets.numel()
        total += mine.total(seen)
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        progress.step += 1
        progress.tokens += size
        progress.train_seen += size
        clock.tick()

        if progress.step % recipe.eval_every == 0 or progress.step == recipe.steps:
            collect()
            row = {"step": progress.step, "tokens": progress.tokens, "seconds": progress.seconds, "learning_rate": rate}
            row["train_loss"] = progress.train_loss / progress.train_seen
            row |= mine.told(lambda: _evaluate(model, evaluation, device, autocast))
            if not math.isfinite(row["validation_loss"]):
                raise RtxError(f"Training diverged: the validation loss is {row['validation_loss']} at step {progress.step:,}; lower learning_rate.")
            if row["validation_loss"] < progress.best_loss:
                progress.best_loss, progress.best_step = row["validation_loss"], progress.step
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
            clock.tick()  # validation takes time too
            say(line() + f" · validation loss {row['validation_loss']:.4f} ± {row['validation_error']:.4f}")
            progress.history.append(row)
            progress.train_loss, progress.train_seen = 0.0, 0
            due = True
        elif due := clock.time_to_report():
            collect()
            say(line())
            due = clock.time_to_save()
        if due and mine.first:
            checkpoint.save(checkpoint_path, model, optimizer, best, {"progress": vars(progress)})
            clock.saved()
    return best, progress
