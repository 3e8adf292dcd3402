"""What the trainer asks of data, and the two kinds of it: texts to classify, and running text to predict.

A step's batches are a pure function of (seed, step), so that a resumed run reads on where it was.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx_core.data.tokens import Tokens
from rtx_core.errors import RtxError
from rtx_core.metrics import classification_metrics
from rtx_core.models.packed import Packed, pad_to_multiple
from rtx_core.models.protocols import Model

Batch = tuple[Any, Tensor]  # (inputs, targets)
Autocast = AbstractContextManager[Any]  # what a model is called in
Loss = tuple[Tensor, Tensor]  # (what to backpropagate, float64 sums for `summary`)
EVALUATION_TOKENS = 8192  # per batch: large enough to fill the machine, small enough for its cache
EVALUATION_SEED = 5  # of the running text that every evaluation of every run reads
PAD_MULTIPLE = 8  # oneDNN keeps a kernel for every number of tokens: 1.8 GiB after 400 steps; with this 1.1


def _shape(value: object) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


class Task:
    """Data as the trainer sees it; `DataConfig.task` gives one.  What a run reads and calls:

    facts, unit, classes, steps_per_epoch   see below
    model_settings                          settings of the model that the data decides, such as `vocab_size`
    step(seed, i)                           the micro-batches (inputs, targets) of optimizer step `i`, of both alone
    examples(i)                             texts or tokens of the whole step `i`
    loss(model, inputs, targets, step_examples)  of a micro-batch of a step of so many: the objective, and sums
    summary(sums, examples)                 a history row's training entries, from the sums since the last row
    evaluate(model, device, autocast)       its validation entries, of which `validation_loss` selects the weights
    test(model, device, autocast)           the record's test entry, at least that of `test_entry`, and None

    For the time of a token also `block_size`.  With `classes` also `validation_accuracy`; for None the predictions by
    name, `logits` and `labels`; the texts to time, `parts["test"]`; and `tokenizer()`, which answers are read with.
    """

    unit: str  # what `examples` counts: "texts" or "tokens"
    facts: dict[str, Any]  # what the record says of the data: name, source, sha256, n_train, n_test
    model_settings: dict[str, int]  # settings of the model that the data decides
    classes: tuple[str, ...] | None = None  # in label order
    parts: Any  # with `classes` the texts by part
    tokenizer: Any  # and what gives the tokenizer
    steps_per_epoch: int | None = None  # None: steps are counted by the training settings alone

    def __init__(self, batch_size: int, micro_batches: int):
        self.batch_size, self.micro_batches = batch_size, micro_batches

    def step(self, seed: int, i: int) -> Sequence[Batch]:
        raise NotImplementedError

    def examples(self, i: int) -> int:
        raise NotImplementedError

    def loss(self, model: nn.Module, inputs: Any, targets: Tensor, step_examples: int) -> Loss:
        raise NotImplementedError

    def evaluate(self, model: nn.Module, device: torch.device, autocast: Autocast) -> dict[str, float]:
        raise NotImplementedError

    def test(self, model: nn.Module, device: torch.device, autocast: Autocast) -> tuple[dict, dict | None]:
        raise NotImplementedError

    def summary(self, sums: Sequence[float], examples: int) -> dict[str, float]:
        """A history row's training entries, from the sums over `examples`."""
        return {name: total / examples for name, total in zip(("train_loss", "train_accuracy"), sums)}


class Classification(Task):
    """Tokenised texts with labels, by part (train, validation, test); `tokenizer()` gives what made them."""

    unit = "texts"

    def __init__(self, parts: dict[str, Tokens], classes, facts: dict, batch_size, micro_batches=1, tokenizer=None):
        super().__init__(batch_size, micro_batches)
        self.train, self.validation, self.test_part = parts["train"], parts["validation"], parts["test"]
        self.parts, self.classes, self.facts, self.tokenizer = parts, classes, facts, tokenizer
        self.steps_per_epoch = self.epoch_steps = -(-len(self.train) // batch_size)
        self.model_settings = {"num_labels": len(classes)}

    def step(self, seed: int, i: int) -> list[tuple[Packed, Tensor]]:
        epoch, k = divmod(i, self.epoch_steps)
        rows = _order(seed, epoch, len(self.train))[k * self.batch_size : (k + 1) * self.batch_size]
        return [self._batch(part) for part in np.array_split(rows, min(self.micro_batches, len(rows)))]

    def _batch(self, rows: np.ndarray) -> tuple[Packed, Tensor]:
        ids, lengths, labels = self.train.take(rows)
        return pad_to_multiple(Packed.from_flat(ids, lengths), PAD_MULTIPLE), torch.from_numpy(labels)

    def examples(self, i: int) -> int:
        return min(self.batch_size, len(self.train) - i % self.epoch_steps * self.batch_size)

    def loss(self, model: nn.Module, inputs: Packed, targets: Tensor, step_examples: int) -> Loss:
        """Cross-entropy; sums are [losses, right answers]."""
        logits = model(inputs)
        if (got := _shape(logits)) != (expected := f"shape {(len(inputs), self.model_settings['num_labels'])}"):
            got = f"The model gave {got}; expected {expected}, a row a text"
            raise RtxError(f"{got}, one of them filler, as head(h[batch.starts]) gives.")
        logits = logits[: len(targets)].to(next(model.parameters()).dtype)
        loss = F.cross_entropy(logits, targets, reduction="sum")
        right = (logits.argmax(1) == targets).sum()
        return loss / step_examples, torch.stack((loss.detach().double(), right.double()))

    def evaluate(self, model: nn.Module, device: torch.device, autocast: Autocast) -> dict:
        logits = logits_of(model, self.validation, device, autocast)
        loss, accuracy = loss_and_accuracy(logits, self.validation.labels)
        return {"validation_loss": loss, "validation_accuracy": accuracy}

    def test(self, model: nn.Module, device: torch.device, autocast: Autocast) -> tuple[dict, dict]:
        labels = self.test_part.labels
        logits = logits_of(model, self.test_part, device, autocast)
        loss, _ = loss_and_accuracy(logits, labels)
        return classification_metrics(logits, labels) | {"loss": loss}, {"logits": logits, "labels": labels}


@lru_cache(maxsize=4)  # drawn once an epoch
def _order(seed: int, epoch: int, n: int) -> np.ndarray:
    return np.random.RandomState([seed, epoch]).permutation(n)


@contextmanager
def evaluation_mode(model: nn.Module | Model) -> Iterator[None]:
    """In evaluation mode, without gradients; the model's mode is put back."""
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        yield
    model.train(was_training)


def evaluation_batches(tokens: Tokens, budget: int = EVALUATION_TOKENS) -> Iterator[tuple]:
    """(batch, its rows) over all texts, longest first, about `budget` tokens each."""
    order = np.argsort(-tokens.lengths, kind="stable")
    group = (np.cumsum(tokens.lengths[order]) - 1) // budget
    for rows in np.split(order, np.flatnonzero(np.diff(group)) + 1):
        ids, lengths, _ = tokens.take(rows)
        yield Packed.from_flat(ids, lengths), rows


def logits_of(model: nn.Module, tokens: Tokens, device: torch.device, autocast: Autocast) -> np.ndarray:
    """(N, C) float32 logits in the order of `tokens`."""
    outputs, order = [], []
    with evaluation_mode(model):
        for batch, rows in evaluation_batches(tokens):
            with autocast:
                outputs.append(model(batch.to(device)).float().cpu().numpy())
            order.append(rows)
    return np.concatenate(outputs)[np.argsort(np.concatenate(order))]


def loss_and_accuracy(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy in nats, in float32 as training computes it, and the share of right answers."""
    loss = F.cross_entropy(torch.tensor(logits), torch.tensor(labels)).item()
    return loss, float((logits.argmax(1) == labels).mean())


class Language(Task):
    """Running text; a step reads `batch_size · block_size` tokens, in `micro_batches` parts.

    What a corpus gives: `facts`, `vocab_size` and

    micro_batch(seed, i, piece)  part `piece` of optimizer step `i`
    evaluation_batches(part)     fixed batches of "train" or "validation", the same for every model and step
    test_batches()               the whole validation part, each prediction once: there is no third part
    """

    unit = "tokens"
    vocab_size: int

    def __init__(self, batch_size: int, micro_batches: int, block_size: int, eval_batches: int):
        super().__init__(batch_size, micro_batches)
        self.block_size, self.eval_batches = block_size, eval_batches

    @property
    def model_settings(self) -> dict[str, int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return {"vocab_size": self.vocab_size, "block_size": self.block_size}

    def micro_batch(self, seed: int, i: int, piece: int) -> Batch:
        raise NotImplementedError

    def evaluation_batches(self, part: str) -> Sequence[Batch]:
        raise NotImplementedError

    def test_batches(self) -> Sequence[Batch]:
        raise NotImplementedError

    def step(self, seed: int, i: int) -> list[Batch]:
        return [self.micro_batch(seed, i, piece) for piece in range(self.micro_batches)]

    def examples(self, i: int) -> int:
        return self.batch_size * self.block_size

    def loss(self, model: Any, inputs: Any, targets: Tensor, step_examples: int) -> Loss:
        """Mean loss of a target, weighted by the micro-batch's share of the step; sums are [losses]."""
        mean = model(inputs, targets)
        if (got := _shape(mean)) != "shape ()":
            raise RtxError(f"The model gave {got}; expected the mean loss of its targets, a scalar.")
        objective = mean if targets.numel() == step_examples else mean * (targets.numel() / step_examples)
        return objective, (mean.detach() * targets.numel()).double().reshape(1)

    @cached_property
    def evaluation(self) -> Mapping[str, Sequence[Batch]]:
        """Batches by name; the training sample shows how much of a gap is over-fitting, without dropout."""
        parts = {"validation": "validation", "training_sample": "train"}
        return {name: self.evaluation_batches(part) for name, part in parts.items()}

    def evaluate(self, model: nn.Module, device: torch.device, autocast: Autocast) -> dict:
        row = {}
        for name, batches in self.evaluation.items():
            mean, error = mean_and_error(*losses_of(model, batches, device, autocast))
            row |= {f"{name}_loss": mean, f"{name}_error": error}
        return row

    def test(self, model: nn.Module, device: torch.device, autocast: Autocast) -> tuple[dict, None]:
        return test_entry(*losses_of(model, self.test_batches(), device, autocast)), None


def losses_of(
    model: nn.Module, batches: Iterable[Batch], device: torch.device, autocast: Autocast
) -> tuple[Tensor, Tensor]:
    """(mean loss, number of targets) of each batch, float64 on the CPU."""
    losses, sizes = [], []
    with evaluation_mode(model):
        for inputs, targets in batches:
            with autocast:
                losses.append(model(inputs.to(device), targets.to(device)).double())
            sizes.append(targets.numel())
        return torch.stack(losses).cpu(), torch.tensor(sizes, dtype=torch.float64)


def test_entry(losses: Tensor, sizes: Tensor) -> dict:
    """A record's: the mean loss of a target and its standard error, and the batches that both come from."""
    loss, error = mean_and_error(losses, sizes)
    result = {"n": int(sizes.sum()), "loss": loss, "error": error}
    return result | {"batch_losses": losses.tolist(), "batch_sizes": sizes.long().tolist()}


def mean_and_error(losses: Tensor, sizes: Tensor) -> tuple[float, float]:
    """Mean over targets, and its standard error over B batches, the unit drawn: s / √B for batches of one size, not
    s / √(B · batch size) as in the public code of the recurrent transformer."""
    share = sizes / sizes.sum()
    mean = (share * losses).sum()
    if len(losses) == 1:
        return mean.item(), math.nan
    variance = ((share * (losses - mean)) ** 2).sum() * len(losses) / (len(losses) - 1)
    return mean.item(), variance.sqrt().item()
