"""The training loop: one function from (model, data, protocol, seeds) to the best weights and the history."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR, ReduceLROnPlateau

from rtx_core.corpora.dataset import Dataset
from rtx_core.errors import RtxError
from rtx_core.evaluation.metrics import logits_of, loss_and_accuracy
from rtx_core.models.masks import Masks
from rtx_core.results.code import fingerprint
from rtx_core.training import checkpoint
from rtx_core.training.batches import steps_per_epoch, training_batches
from rtx_core.training.devices import keep_heap
from rtx_core.training.graph import GraphStep
from rtx_core.training.protocol import Protocol, Seeds
from rtx_core.training.step import Step
from rtx_core.training.team import team
from rtx_core.training.words import Words

CHECKPOINT_SECONDS = 120  # a killed run loses at most this much work
REPORT_SECONDS = 20  # between two lines of progress


@dataclass
class Progress:
    """Everything of a run that is not a tensor: what a checkpoint keeps as JSON."""

    step: int = 0  # optimizer steps done
    seconds: float = 0.0  # spent training and validating, restarts included
    history: list[dict] = field(default_factory=list)  # one row an evaluation
    best_loss: float = float("inf")  # lowest validation loss seen, whose weights are kept
    best_step: int = 0
    decay: float = 1.0  # Π (1 − rate · weight decay) so far: what became of the rows in `Words` that nothing reads
    best_decay: float = 1.0
    stop_loss: float = float("inf")  # early stopping's reference: the last loss that improved by min_delta
    stale_epochs: int = 0
    train_loss: float = 0.0  # sums since the last evaluation
    train_right: float = 0.0
    train_seen: int = 0
    stopped: bool = False
    codes: list[str] = field(default_factory=list)  # fingerprints of the code that worked on this run, in turn


def train(
    model: nn.Module,
    data: Dataset,
    protocol: Protocol,
    seeds: Seeds,
    device: torch.device,
    checkpoint_path: Path,
    say: Callable[[str], None] = print,
) -> Progress:
    """Train `model`, which ends with its weights of lowest validation loss.

    Resumes from `checkpoint_path` if that file exists.  On a CPU with the same number of threads a
    resumed run and an uninterrupted one give the same numbers, bit for bit.
    """
    keep_heap()
    model.to(device).train()
    word, words = model.word, Words(model.word, (data.train, data.validation, data.test))
    model.word = words
    try:
        best, progress = _train(model, words, data, protocol, seeds, device, checkpoint_path, say)
    finally:
        model.word = word
    best["word.weight"] = words.whole(best["word.weight"], progress.best_decay)
    model.load_state_dict(best)
    return progress


def _train(model, words: Words, data: Dataset, protocol: Protocol, seeds: Seeds, device, checkpoint_path: Path, say):
    mine = team()
    step = (GraphStep if device.type == "cuda" and mine.size == 1 else Step)(model, words, protocol, device)
    schedule = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=protocol.learning_rate)  # only its rate is used
    warmup = LinearLR(schedule, 1 / max(1, protocol.warmup_steps), total_iters=max(0, protocol.warmup_steps - 1))
    plateau = ReduceLROnPlateau(schedule, factor=protocol.plateau_factor, patience=protocol.plateau_patience)
    rates = schedule.param_groups[0]
    per_epoch = steps_per_epoch(data.train, protocol.batch_size)
    total = per_epoch * protocol.epochs
    progress, best = Progress(), {}
    torch.manual_seed(mine.seed(seeds.dropout))  # for a GPU; on a CPU `Masks` are functions of the step

    def save() -> None:
        if not mine.first:
            return
        scheduler = {"warmup": warmup.state_dict(), "plateau": plateau.state_dict(), "lr": rates["lr"]}
        checkpoint.save(checkpoint_path, model, step.optimizer, best, {"progress": vars(progress), "scheduler": scheduler})

    if (found := checkpoint.load(checkpoint_path, model, step.optimizer, say)) is not None:
        best, state = found
        progress = Progress(**state["progress"])
        warmup.load_state_dict(state["scheduler"]["warmup"])
        plateau.load_state_dict(state["scheduler"]["plateau"])
        rates["lr"] = state["scheduler"]["lr"]
        say(f"resumed at step {progress.step:,} of {total:,}")
        if not mine.first:  # the checkpoint holds the first one's generator
            torch.manual_seed(mine.seed(seeds.dropout) + progress.step)

    if fingerprint() not in progress.codes:
        progress.codes.append(fingerprint())
    # Sums stay on the device and are read when a line is printed; in float64 they do not depend on when that is.
    sums = torch.zeros(2, device=device, dtype=torch.float64)
    clock = Clock(progress)

    def collect() -> None:
        losses, right = sums.tolist()
        progress.train_loss += losses
        progress.train_right += right
        sums.zero_()

    while progress.step < total and not progress.stopped:
        epoch, skip = divmod(progress.step, per_epoch)
        for batch, labels in training_batches(data.train, protocol.batch_size, seeds.order, epoch, skip, mine):
            of = min(protocol.batch_size, len(data.train) - (progress.step % per_epoch) * protocol.batch_size)
            step.rate(rates["lr"])
            sums += step(batch, labels, Masks(mine.seed(seeds.dropout), progress.step) if device.type == "cpu" else None, of)
            progress.decay *= 1 - rates["lr"] * protocol.weight_decay
            schedule.step()
            if progress.step + 1 < protocol.warmup_steps:
                warmup.step()
            progress.step += 1
            progress.train_seen += of
            clock.tick()
            end_of_epoch = progress.step % per_epoch == 0
            if end_of_epoch or (protocol.eval_every and progress.step % protocol.eval_every == 0):
                collect()
                row = mine.told(lambda: _evaluate(model, data, rates["lr"], step.autocast, device, progress, per_epoch))
                progress.history.append(row)
                progress.train_loss = progress.train_right = progress.train_seen = 0
                if row["validation_loss"] < progress.best_loss:
                    progress.best_loss, progress.best_step, progress.best_decay = row["validation_loss"], progress.step, progress.decay
                    best = {name: value.detach().clone() for name, value in model.state_dict().items()}
                if end_of_epoch:
                    plateau.step(row["validation_loss"])
                    _early_stopping(progress, row["validation_loss"], protocol)
                clock.tick()  # validation takes time too
                say(_line(progress, total, clock, protocol.batch_size) + f" · validation loss {row['validation_loss']:.4f}, accuracy {row['validation_accuracy']:.4f}")
                save()
                clock.saved()
            elif clock.time_to_report():
                collect()
                say(_line(progress, total, clock, protocol.batch_size))
                if clock.time_to_save():
                    save()
                    clock.saved()
            if progress.stopped:
                break
    return best, progress


def _evaluate(model, data: Dataset, rate: float, autocast, device, progress: Progress, per_epoch: int) -> dict:
    """Validate: a row of the history."""
    loss, accuracy = loss_and_accuracy(logits_of(model, data.validation, device, autocast), data.validation.labels)
    if not math.isfinite(loss):
        raise RtxError(f"Training diverged: the validation loss is {loss} at step {progress.step:,}; lower learning_rate.")
    return {
        "step": progress.step,
        "epoch": progress.step / per_epoch,
        "train_loss": progress.train_loss / progress.train_seen,
        "train_accuracy": progress.train_right / progress.train_seen,
        "validation_loss": loss,
        "validation_accuracy": accuracy,
        "learning_rate": rate,
    }


def _early_stopping(progress: Progress, loss: float, protocol: Protocol) -> None:
    if loss < progress.stop_loss - protocol.stop_min_delta:
        progress.stop_loss, progress.stale_epochs = loss, 0
    else:
        progress.stale_epochs += 1
        progress.stopped = progress.stale_epochs >= protocol.stop_patience


class Clock:
    """Wall time of a run across restarts, and when the next line and the next checkpoint are due."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.begin = self.reported = self.last_save = self.last = time.perf_counter()
        self.begin_step = progress.step

    def tick(self) -> None:
        now = time.perf_counter()
        self.progress.seconds += now - self.last
        self.last = now

    def time_to_report(self) -> bool:
        due = self.last - self.reported >= REPORT_SECONDS
        if due:
            self.reported = self.last
        return due

    def time_to_save(self) -> bool:
        return self.last - self.last_save >= CHECKPOINT_SECONDS

    def saved(self) -> None:
        self.last_save = time.perf_counter()

    def per_step(self) -> float:
        return (self.last - self.begin) / max(1, self.progress.step - self.begin_step)


def _line(progress: Progress, total: int, clock: Clock, batch_size: int) -> str:
    each = clock.per_step()
    loss = progress.train_loss / progress.train_seen if progress.train_seen else progress.history[-1]["train_loss"]
    return f"step {progress.step:,}/{total:,} · loss {loss:.4f} · {batch_size / each:.0f} examples/s · {(total - progress.step) * each / 60:.0f} min left"
