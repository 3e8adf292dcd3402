"""What the trainer asks of a classification task; and metrics against scikit-learn."""

import hashlib
from itertools import islice

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import CPU, NO_AUTOCAST, gradient, random_tokens, small_task
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
from torch import nn

from rtx_core import data
from rtx_core.data.tasks import evaluation_batches, logits_of, pad_to_multiple
from rtx_core.experiments.configure import configure
from rtx_core.metrics import classification_metrics
from rtx_core.models.packed import Packed


class MeanOfWords(nn.Module):
    """A classifier that knows no order: the mean of its words' vectors."""

    def __init__(self, classes: int = 2):
        super().__init__()
        torch.manual_seed(0)
        self.word, self.out = nn.Embedding(97, 8), nn.Linear(8, classes)

    def forward(self, batch: Packed) -> torch.Tensor:
        lengths = (batch.cu_seqlens[1:] - batch.cu_seqlens[:-1]).long()
        text = torch.repeat_interleave(torch.arange(len(batch)), lengths)
        total = torch.zeros(len(batch), 8).index_add(0, text, self.word(batch.ids))
        return self.out(total / lengths[:, None])


def texts_of(batches) -> list[tuple]:
    """The labelled texts of a step's micro-batches."""
    found = []
    for batch, labels in batches:
        texts = [tuple(ids.tolist()) for ids in batch.ids.tensor_split(batch.cu_seqlens[1:-1].long())]
        found += list(zip(texts[: len(labels)], labels.tolist(), strict=True))
    return found


def test_an_epoch_reads_every_text_once_in_an_order_of_its_own():
    task = small_task(50, 16)
    assert task.steps_per_epoch == 4 and task.unit == "texts" and task.model_settings == {"num_labels": 2}
    train = task.train
    texts = [tuple(ids.tolist()) for ids in np.split(train.ids, train.offsets[1:-1])]
    whole = sorted(zip(texts, train.labels.tolist(), strict=True))
    read = [(seed, range(4 * epoch, 4 * epoch + 4)) for seed in (0, 1) for epoch in (0, 1)]
    epochs = [[text for i in steps for text in texts_of(task.step(seed, i))] for seed, steps in read]
    assert all(sorted(epoch) == whole for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert [label for _, label in epochs[3]] == train.labels[np.random.RandomState([1, 1]).permutation(50)].tolist()


def test_micro_batches_give_the_texts_and_the_gradient_of_the_step():
    model, whole, pieces = MeanOfWords(), small_task(50, 16), small_task(50, 16, 3)
    for i in (0, 3, 4, 7):
        assert texts_of(pieces.step(0, i)) == texts_of(whole.step(0, i))
        assert len(texts_of(whole.step(0, i))) == whole.examples(i) == (2 if i % 4 == 3 else 16)
        assert [len(batch.ids) % 8 for batch, _ in pieces.step(0, i)] == [0] * (2 if i % 4 == 3 else 3)
    expected, sums = gradient(whole, model, 3)
    torch.testing.assert_close(gradient(pieces, model, 3), (expected, sums))
    assert sums.dtype == torch.float64 and not sums.requires_grad
    summary = whole.summary(sums.tolist(), 2)
    assert summary["train_loss"] == sums[0] / 2 and summary["train_accuracy"] in (0, 0.5, 1)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(0, 5), st.sampled_from([1, 8, 64]))
def test_filling_changes_no_text(n, seed, multiple):
    ids, lengths, _ = random_tokens(n, seed).take(np.arange(n))
    batch = Packed.from_flat(ids, lengths)
    full = pad_to_multiple(batch, multiple, (64, 128))
    assert len(full.ids) % multiple == 0 and len(full) == n + 1 and full.max_seqlen in (64, 128)
    for a, b in ((full.ids, batch.ids), (full.positions, batch.positions), (full.cu_seqlens, batch.cu_seqlens)):
        assert torch.equal(a[: len(b)], b)
    assert full.cu_seqlens[-1] == len(full.ids) == len(full.positions)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(0, 5), st.integers(12, 200))
def test_evaluation_batches_hold_every_row_once_and_alike_lengths(n, seed, budget):
    tokens = random_tokens(n, seed)
    batches = list(evaluation_batches(tokens, budget))
    rows = np.concatenate([rows for _, rows in batches])
    assert sorted(rows) == list(range(n)) and (np.diff(tokens.lengths[rows]) <= 0).all()
    for batch, rows in batches:
        assert torch.equal(batch.ids, torch.from_numpy(tokens.take(rows)[0]).long())
        assert len(batch.ids) < budget + batch.max_seqlen


def test_evaluation_is_what_one_text_at_a_time_gives():
    task, model = small_task(), MeanOfWords().train()
    texts = [task.test_part.keep(np.array([i])) for i in range(41)]
    one_by_one = [logits_of(model, text, CPU, NO_AUTOCAST)[0] for text in texts]
    metrics, predictions = task.test(model, CPU, NO_AUTOCAST)
    np.testing.assert_allclose(predictions["logits"], one_by_one, rtol=1e-5, atol=1e-6)
    assert model.training and predictions["labels"].tolist() == task.test_part.labels.tolist()
    loss = F.cross_entropy(torch.tensor(predictions["logits"]), torch.tensor(predictions["labels"])).item()
    assert metrics == classification_metrics(**predictions) | {"loss": loss}
    row = task.evaluate(model, CPU, NO_AUTOCAST)
    assert set(row) == {"validation_loss", "validation_accuracy"} and 0 < row["validation_accuracy"] < 1


def by_scikit_learn(logits, labels) -> dict:
    guesses, classes = logits.argmax(1), list(range(logits.shape[1]))
    average, more = ("binary", {}) if len(classes) == 2 else ("macro", {"weighted": "_weighted"})
    found = {"n": len(labels), "accuracy": float(accuracy_score(labels, guesses)), "average": average}
    for way, suffix in ({average: ""} | more).items():
        of = {"average": way, "labels": None if way == "binary" else classes, "zero_division": 0.0}
        scores = precision_recall_fscore_support(labels, guesses, **of)
        found |= {f"{name}{suffix}": float(score) for name, score in zip(("precision", "recall", "f1"), scores)}
    return found | {"confusion": confusion_matrix(labels, guesses, labels=classes).tolist()}


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(1, 60), st.integers(0, 1000), st.booleans())
def test_metrics_are_scikit_learn_s_and_the_loss_is_torch_s(classes, n, seed, one_sided):
    random = np.random.RandomState(seed)
    logits = random.randn(n, classes).astype(np.float32) * 4
    logits[:, 0] += 20 * one_sided  # some classes are never guessed
    labels = random.randint(0, classes, size=n)
    found = classification_metrics(logits, labels)
    loss = F.cross_entropy(torch.tensor(logits, dtype=torch.float64), torch.tensor(labels)).item()
    assert found.pop("loss") == pytest.approx(loss, rel=1e-6, abs=1e-7)
    assert found == by_scikit_learn(logits, labels)


EARLY, LATE = (0, 5), (0, 5, 700, 20_000)  # of later epochs and stages
READ = [("sst2", "recurrent", EARLY, "38cadf3e54f8"), ("khop", "1x1", EARLY, "6fb378636363")]
READ += [("state-tracking", "1x1", EARLY, "8453e27618b2"), ("tinystories", "control", EARLY, "67646591ff74")]
READ += [("shakespeare", "gpt-1", EARLY, "5476750ad699"), ("facts", "1x1", LATE, "9506b158b980")]
READ += [("state-tracking-curriculum", "8x1", LATE, "aab940f551c6"), ("khop-published", "4x1", LATE, "2ecea890def8")]
READ += [("state-tracking-scan", "6x1", LATE, "cf606e60f44c")]


@pytest.mark.parametrize(("name", "model", "steps", "expected"), READ)
def test_what_training_reads_never_changes(name, model, steps, expected):
    """Another order or text would not give the numbers of the records."""
    task, digest = data.task(configure(name, model, source="embedded").data, 4), hashlib.sha256()
    for step in steps:
        for inputs, targets in task.step(10_000, step):
            passes = islice(task.scan(inputs), 6) if hasattr(task, "scan") else ()
            for read in (getattr(inputs, "ids", inputs), targets, *passes):
                digest.update(read.long().numpy().tobytes())
    assert digest.hexdigest()[:12] == expected
