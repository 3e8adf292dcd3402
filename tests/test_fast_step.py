"""Speed changes no result: the fast training step against a plain loop that does everything the simple way."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import CPU, small_task
from reference import TINY, batch_of, small, with_gradients
from scipy.stats import chisquare

from rtx_core.fast import FAST_PATHS, accelerate, onednn
from rtx_core.fast.encoder import LEVELS, DropoutMasks, EncoderPath
from rtx_core.models import build_model, registry
from rtx_core.models.encoder import Encoder
from rtx_core.models.packed import Packed
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import train

SMALL = {"vocab_size": 97, "hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 48}
CONFIG = TrainConfig(epochs=2, learning_rate=3e-3, batch_size=8, warmup_steps=5)
CONFIG = CONFIG.replace(weight_decay=0.1, clip_norm=0.5, eval_every=1)
SHAPES = [{}, {"num_passes": 2}, {"num_passes": 2, "residual": "paper"}, {"num_layers": 1}, {"dropout": 0.0}]


def fused_and_plain(model, batch):
    """[logits and gradients] of both, under the same masks."""
    results = []
    for fused in (True, False):
        path = EncoderPath(model)
        path.begin(1, 5)
        if not fused:
            del model.block
        names = ("logits", *dict(model.named_parameters()))
        results.append(dict(zip(names, with_gradients(model, batch), strict=True)))
    return results


@pytest.mark.parametrize("lengths", [[3, 9, 1, 6], [4], [2, 2, 2]], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_fused_block_is_the_plain_block(shape, lengths):
    fused, plain = fused_and_plain(small(**shape).train(), batch_of(lengths))
    torch.testing.assert_close(fused, plain, rtol=1e-10, atol=1e-11)


def test_the_fused_block_in_float32():  # oneDNN's kernels run here, F.linear above
    fused, plain = fused_and_plain(small().float().train(), batch_of([3, 9, 1, 6]))
    for name, expected in plain.items():
        scale = 1e-4 * expected.abs().max().item()
        torch.testing.assert_close(fused[name], expected, rtol=1e-4, atol=scale, msg=name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_fused_block_with_16_bit_products(shape):
    """Each tensor within 3 % of float64's by its norm (1.9 % were seen at most), and about as far as under autocast."""
    model, batch = small(**shape).train(), batch_of([3, 9, 1, 6])
    _, exact = fused_and_plain(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        fused, plain = fused_and_plain(model.float(), batch)
    for name, expected in exact.items():
        off, usual = ((found[name] - expected).norm() / expected.norm() for found in (fused, plain))
        assert 0 < off < 0.03 and off < 2 * usual, name


def trained(name, task, path, device=CPU, fast=True, **overrides):
    model = build_model(name, seed=0, **SMALL | overrides)
    progress, _ = train(model, task, CONFIG, 0, device, path / "c", "", lambda line: None, fast)
    return model, [row["train_loss"] for row in progress.history]


def plain_losses(name, task):
    """The simple way: the whole vocabulary, autograd's gradients, clip_grad_norm_, an AdamW that loops over tensors."""
    model, losses = build_model(name, seed=0, **SMALL).train(), []
    ways = {"weight_decay": CONFIG.weight_decay, "foreach": False, "fused": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, **ways)
    for step in range(CONFIG.epochs * task.steps_per_epoch):
        ((batch, labels),) = task.step(10_000, step)
        optimizer.param_groups[0]["lr"] = CONFIG.learning_rate * min(1.0, (step + 1) / CONFIG.warmup_steps)
        optimizer.zero_grad()
        model.step_dropout = DropoutMasks(20_000, step)
        loss = F.cross_entropy(model(batch)[: len(labels)], labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CONFIG.clip_norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", ["baseline", "recurrent"])
def test_losses_agree_with_a_plain_loop_step_by_step(name, tiny_task, tmp_path):
    (_, losses), expected = trained(name, tiny_task, tmp_path), plain_losses(name, tiny_task)
    assert len(losses) == len(expected) > 30
    np.testing.assert_allclose(losses[:10], expected[:10], atol=1e-4)
    np.testing.assert_allclose(losses, expected, atol=1e-3)
    assert expected[-1] < expected[0] - 0.1  # it did learn, so agreement is not that of two models at rest


def test_the_parts_of_a_batch_add_up_to_it(tmp_path):
    given = ((small_task(60, 8, parts), tmp_path / str(parts)) for parts in (1, 2))
    whole, parts = (trained("recurrent", *each, dropout=0.0)[0].state_dict() for each in given)
    torch.testing.assert_close(whole, parts, rtol=1e-3, atol=1e-4)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_fast_and_plain_training_agree_on_a_gpu(tiny_task, tmp_path):
    ways = ((tmp_path / str(fast), torch.device("cuda"), fast) for fast in (True, False))
    (_, fast), (_, plain) = (trained("recurrent", tiny_task, *way, dropout=0.0) for way in ways)
    np.testing.assert_allclose(fast, plain, rtol=1e-3, atol=1e-3)


def test_fast_paths_are_for_the_very_classes_they_were_written_for():
    built_in = {model.kind for model in registry.MODELS.values() if isinstance(model.kind, str)}
    assert set(FAST_PATHS) == built_in - {"rtx_core.models.gpt:GPT"}

    class Mine(Encoder):
        """May mean something else by the same methods."""

    mine = Mine(registry.config_of("baseline", **SMALL))
    before = set(vars(mine))
    assert accelerate(mine) is None and set(vars(mine)) == before


@pytest.mark.parametrize("changed", ["linear", "linear_times", "packed"])
def test_changed_operators_of_torch_are_not_used(changed, monkeypatch):
    """Whether they take other arguments now, or give other values."""
    if not onednn.usable():
        pytest.skip("oneDNN's products are not offered here")
    original = getattr(onednn, changed)
    for other in (lambda: None, lambda *given: original(*given) * 1.01, None):
        monkeypatch.setattr(onednn, changed, other)
        assert not onednn.usable()


def test_a_copy_of_a_prepared_decoder_reads_its_own_head():
    model = build_model("looped", seed=0, **SMALL)
    accelerate(model)
    twin = deepcopy(model)
    with torch.no_grad():
        model.word.weight.fill_(torch.nan)
    assert torch.isfinite(twin(torch.arange(9).view(1, 9), torch.ones(1, 9, dtype=torch.int64)))


@pytest.mark.parametrize("p", [0.1, 0.19, 0.5, 0.9])
def test_masks_drop_the_right_share_and_keep_the_mean(p):
    mask = DropoutMasks(0, 0).draw(p, (1000, 1000))
    kept, cut = int((mask > 0).sum()), round(p * LEVELS) / LEVELS
    assert set(mask.unique().tolist()) == {0.0, np.float32(1 / (1 - cut)).item()}
    assert chisquare([kept, 10**6 - kept], [10**6 * (1 - cut), 10**6 * cut]).pvalue > 1e-4
    neighbours = (mask[:, 1:] > 0) & (mask[:, :-1] > 0)  # independent of one another
    assert neighbours.float().mean().item() == pytest.approx((1 - cut) ** 2, abs=3e-3)


@pytest.mark.parametrize("fused", [True, False])
def test_every_dropout_has_the_configured_probability(fused):
    drawn = []

    class Noted(DropoutMasks):
        def draw(self, p, shape, dtype):
            drawn.append((round(p, 4), math.prod(shape)))
            return super().draw(p, shape, dtype)

    model = build_model("baseline", seed=0, **TINY, dropout=0.25).train()
    if fused:
        EncoderPath(model).begin(0, 0)
    model.step_dropout = Noted(0, 0)
    model(Packed.from_sequences([[1, 2, 3], [4]]))
    embedding, head = (0.25, 4 * 16), (0.25, 2 * 16)  # of each layer: attention, mixed, inner, out; at last of [CLS]
    first = [(0.25, 2 * 2 * 3 * 3), (0.4375, 4 * 16), (0.25, 4 * 32), (0.25, 4 * 16)]
    last = [(0.25, 2 * 2 * 3), (0.4375, 2 * 16), (0.25, 2 * 32), (0.25, 2 * 16)]
    assert drawn == [embedding, *first, *last, head]
