"""Speed changes no result: the fast training step against a plain loop that does everything the simple way."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from reference import sentences_of, small
from scipy.stats import chisquare

from rtx_core.models import build_model, fused
from rtx_core.models.masks import LEVELS, Masks
from rtx_core.models.packed import Packed
from rtx_core.models.serving import serving
from rtx_core.training.batches import filled, training_batches
from rtx_core.training.loop import train
from rtx_core.training.protocol import Protocol, Seeds
from rtx_core.training.step import FILL, Step
from rtx_core.training.words import Words

CPU = torch.device("cpu")
SMALL = {"vocab_size": 97, "hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 48}
PROTOCOL = Protocol(epochs=2, learning_rate=3e-3, weight_decay=0.1, batch_size=8, warmup_steps=5, clip_norm=0.5)
SHAPES = [{}, {"num_passes": 2}, {"num_passes": 2, "residual": "paper"}, {"dropout": 0.0}, {"num_layers": 1}]


def plainly(monkeypatch):
    monkeypatch.setattr(fused, "usable", lambda x: False)


def value_and_gradients(model, batch, masks=None):
    model.zero_grad()
    logits = model(batch, masks=masks or Masks(1, 5))
    (logits**2).sum().backward()
    return logits.detach(), {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("lengths", [[3, 9, 1, 6], [4], [2, 2, 2]])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_fused_block_is_the_plain_block(shape, lengths, monkeypatch):
    model, batch = small(**shape).train(), Packed.from_sequences(sentences_of(lengths))
    logits, gradients = value_and_gradients(model, batch)
    plainly(monkeypatch)
    plain_logits, plain_gradients = value_and_gradients(model, batch)
    torch.testing.assert_close(logits, plain_logits, rtol=1e-12, atol=1e-12)
    for name, gradient in plain_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-10, atol=1e-11, msg=name)


def test_the_fused_block_in_float32(monkeypatch):  # oneDNN's kernels run here, F.linear above
    model, batch = small().float().train(), Packed.from_sequences(sentences_of([3, 9, 1, 6]))
    logits, gradients = value_and_gradients(model, batch)
    plainly(monkeypatch)
    plain_logits, plain_gradients = value_and_gradients(model, batch)
    torch.testing.assert_close(logits, plain_logits, rtol=1e-5, atol=1e-5)
    for name, gradient in plain_gradients.items():
        torch.testing.assert_close(gradients[name], gradient, rtol=1e-4, atol=1e-4 * gradient.abs().max().item(), msg=name)


def plain_losses(model, data, protocol, seeds):
    """The simple way: the whole vocabulary, autograd's gradients, clip_grad_norm_, the AdamW that loops over tensors."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=protocol.weight_decay, foreach=False, fused=False)
    losses, step = [], 0
    for epoch in range(protocol.epochs):
        for batch, labels in training_batches(data.train, protocol.batch_size, seeds.order, epoch):
            optimizer.param_groups[0]["lr"] = protocol.learning_rate * min(1.0, (step + 1) / protocol.warmup_steps)
            optimizer.zero_grad()
            batch = filled(batch, FILL)  # or the masks would not be the same: more tokens draw more numbers
            loss = F.cross_entropy(model(batch, masks=Masks(seeds.dropout, step))[: len(labels)], labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), protocol.clip_norm)
            optimizer.step()
            losses.append(loss.item())
            step += 1
    return losses


@pytest.mark.parametrize("name", ["baseline", "recurrent"])
def test_losses_agree_with_a_plain_loop_step_by_step(name, tiny_data, tmp_path, monkeypatch):
    """Within 10⁻³ of each other after 38 steps at a rate that moves every weight; the first ten within 10⁻⁴."""
    seeds, losses = Seeds.of(0), []
    model = build_model(name, seed=0, **SMALL)
    call = Step.__call__

    def noted(self, batch, labels, masks, of):
        sums = call(self, batch, labels, masks, of)
        losses.append(sums[0].item() / len(labels))
        return sums

    monkeypatch.setattr(Step, "__call__", noted)
    train(model, tiny_data, replace(PROTOCOL, eval_every=10_000), seeds, CPU, tmp_path / "c", lambda line: None)
    plainly(monkeypatch)
    plain = build_model(name, seed=0, **SMALL)
    expected = plain_losses(plain.train(), tiny_data, PROTOCOL, seeds)
    assert len(losses) == len(expected) > 30
    np.testing.assert_allclose(losses[:10], expected[:10], atol=1e-4)
    np.testing.assert_allclose(losses, expected, atol=1e-3)
    assert expected[-1] < expected[0] - 0.1  # it did learn, so agreement is not that of two models at rest


def test_rows_outside_the_data_are_decayed_as_adamw_would(tiny_data, tmp_path):
    protocol, seeds = replace(PROTOCOL, epochs=1, weight_decay=0.5), Seeds.of(0)
    fast, plain = (build_model("baseline", seed=0, **SMALL | {"vocab_size": 150}) for _ in range(2))
    initial = plain.word.weight.detach().clone()
    progress = train(fast, tiny_data, protocol, seeds, CPU, tmp_path / "c", lambda line: None)
    plain_losses(plain.train(), tiny_data, protocol, seeds)
    assert progress.best_step == progress.step  # one epoch, one evaluation: the best weights are the last
    used = np.unique(np.concatenate([part.ids for part in (tiny_data.train, tiny_data.validation, tiny_data.test)]))
    unused = np.setdiff1d(np.arange(150), used)
    assert len(unused) > 50
    torch.testing.assert_close(fast.word.weight[unused], plain.word.weight[unused], rtol=1e-5, atol=0)
    assert (plain.word.weight[unused].norm() / initial[unused].norm()).item() == pytest.approx(progress.decay, rel=1e-5)
    torch.testing.assert_close(fast.word.weight, plain.word.weight, rtol=0, atol=2e-4)


def test_words_read_the_same_rows_as_the_embedding(tiny_data):
    embedding = torch.nn.Embedding(97, 4)
    words, ids = Words(embedding, (tiny_data.train,)), torch.from_numpy(tiny_data.train.ids[:50].astype(np.int64))
    assert torch.equal(words(ids), embedding(ids)) and torch.equal(words.whole(words.weight.detach(), 1.0)[words.used], embedding.weight[words.used])
    with torch.no_grad():
        assert torch.equal(words(ids), embedding(ids))


def test_masks_depend_on_seed_and_step_alone():
    draw = lambda seed, step: Masks(seed, step).draw(0.3, (40, 50))  # noqa: E731
    assert torch.equal(draw(1, 2), draw(1, 2))
    assert not torch.equal(draw(1, 2), draw(1, 3)) and not torch.equal(draw(1, 2), draw(2, 2))
    masks = Masks(1, 2)
    assert not torch.equal(masks.draw(0.3, (40, 50)), masks.draw(0.3, (40, 50)))


@pytest.mark.parametrize("p", [0.1, 0.19, 0.5, 0.9])
def test_masks_drop_the_right_share_and_keep_the_mean(p):
    mask = Masks(0, 0).draw(p, (1000, 1000))
    kept, cut = int((mask > 0).sum()), round(p * LEVELS) / LEVELS
    assert set(mask.unique().tolist()) == {0.0, np.float32(1 / (1 - cut)).item()}
    assert chisquare([kept, 10**6 - kept], [10**6 * (1 - cut), 10**6 * cut]).pvalue > 1e-4
    neighbours = (mask[:, 1:] > 0) & (mask[:, :-1] > 0)  # independent of one another
    assert neighbours.float().mean().item() == pytest.approx((1 - cut) ** 2, abs=3e-3)


@pytest.mark.parametrize("multiple, longest", [(8, ()), (64, (64, 128))])
@pytest.mark.parametrize("lengths", [[3, 9, 1, 6], [64], [20] * 16])
def test_a_filled_batch_gives_the_same_logits(lengths, multiple, longest):
    model, batch = small(), Packed.from_sequences(sentences_of(lengths))
    full = filled(batch, multiple, longest)
    assert len(full.ids) % multiple == 0 and len(full) == len(batch) + 1 and full.longest in (longest or (max(batch.longest, 8), batch.longest))
    assert 1 <= len(full.ids) - len(batch.ids) <= min(multiple, full.longest)
    torch.testing.assert_close(model(full)[: len(batch)], model(batch), rtol=1e-10, atol=1e-10)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_graph_and_eager_steps_agree_on_a_gpu(tiny_data):
    from rtx_core.training.graph import GraphStep

    protocol, where, losses = replace(PROTOCOL, clip_norm=0.1), torch.device("cuda"), []
    for kind in (Step, GraphStep):
        model = build_model("recurrent", seed=0, **SMALL, dropout=0.0).to(where).train()
        model.word = Words(model.word, (tiny_data.train,)).to(where)
        step = kind(model, model.word, protocol, where)
        batches = [pair for epoch in range(3) for pair in training_batches(tiny_data.train, 8, 1, epoch)]
        losses.append([step(batch, labels, None, len(labels))[0].item() for batch, labels in batches])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [{}, {"num_passes": 2}, {"num_passes": 2, "residual": "paper"}, {"num_layers": 1}], ids=str)
@pytest.mark.parametrize("lengths", [[7], [1], [5, 1, 9, 2]])
def test_a_model_prepared_for_serving_gives_its_logits(shape, lengths):
    model, batch = small(**shape).float(), Packed.from_sequences(sentences_of(lengths))
    with torch.no_grad():
        torch.testing.assert_close(serving(model)(batch), model(batch), rtol=1e-4, atol=1e-4)


def test_serving_falls_back_to_the_model_itself():
    model, batch = small(), Packed.from_sequences(sentences_of([3, 2]))  # float64, which oneDNN does not pack
    with torch.no_grad():
        assert torch.equal(serving(model)(batch), model(batch))
