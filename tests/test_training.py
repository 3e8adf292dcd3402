"""The training loop: the same numbers whether or not it is killed, the best weights kept, the protocol obeyed."""

from dataclasses import replace

import pytest
import torch

from rtx_core.errors import RtxError
from rtx_core.evaluation.metrics import logits_of, loss_and_accuracy
from rtx_core.models import build_model
from rtx_core.training import loop
from rtx_core.training.loop import train
from rtx_core.training.protocol import Protocol, Seeds
from rtx_core.training.step import autocast_of

SMALL = {"vocab_size": 97, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32}
QUICK = Protocol(epochs=3, learning_rate=3e-3, batch_size=8, warmup_steps=5)
CPU = torch.device("cpu")


class Killed(Exception):
    pass


def trained(data, path, protocol=QUICK, seed=0, say=lambda line: None):
    model = build_model("baseline", seed=seed, **SMALL)
    progress = train(model, data, protocol, Seeds.of(seed), CPU, path / "checkpoint.safetensors", say)
    return model.state_dict(), progress


def numbers(progress):
    return {k: v for k, v in vars(progress).items() if k != "seconds"}


@pytest.mark.parametrize("lines_until_killed", [2, 17, 23, 40])
def test_killed_and_resumed_equals_uninterrupted(tiny_data, tmp_path, monkeypatch, lines_until_killed):
    whole, whole_progress = trained(tiny_data, tmp_path / "whole")
    monkeypatch.setattr(loop, "REPORT_SECONDS", 0)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)  # a line and a checkpoint at every step
    lines = []

    def kill(line):
        lines.append(line)
        if len(lines) == lines_until_killed:
            raise Killed

    with pytest.raises(Killed):
        trained(tiny_data, tmp_path / "parts", say=kill)
    parts, parts_progress = trained(tiny_data, tmp_path / "parts", say=lines.append)
    assert any("resumed at step" in line for line in lines)
    assert numbers(parts_progress) == numbers(whole_progress)
    for name in whole:
        assert torch.equal(whole[name], parts[name]), name


def test_returns_the_weights_of_lowest_validation_loss(tiny_data, tmp_path):
    protocol = replace(QUICK, epochs=4, eval_every=7, learning_rate=2e-2)
    best, progress = trained(tiny_data, tmp_path, protocol)
    losses = {row["step"]: row["validation_loss"] for row in progress.history}
    assert progress.best_step == min(losses, key=losses.get) and progress.best_loss == min(losses.values())
    model = build_model("baseline", **SMALL)
    model.load_state_dict(best)
    loss, _ = loss_and_accuracy(logits_of(model, tiny_data.validation, CPU, autocast_of("fp32", CPU)), tiny_data.validation.labels)
    assert loss == pytest.approx(progress.best_loss, abs=1e-6)


def test_it_learns(tiny_data, tmp_path):
    _, progress = trained(tiny_data, tmp_path, replace(QUICK, epochs=6))
    assert progress.history[-1]["validation_accuracy"] > 0.9


def test_history_says_when_and_with_which_learning_rate(tiny_data, tmp_path):
    _, progress = trained(tiny_data, tmp_path, replace(QUICK, eval_every=10, warmup_steps=30))
    steps = [row["step"] for row in progress.history]
    assert steps == [10, 19, 20, 30, 38, 40, 50, 57]  # every ten steps and at the end of each 19-step epoch
    rates = {row["step"]: row["learning_rate"] for row in progress.history}
    assert rates[10] == pytest.approx(3e-3 * 11 / 30) and rates[40] == pytest.approx(3e-3)


def test_early_stopping_counts_epochs_without_enough_improvement(tiny_data, tmp_path):
    _, progress = trained(tiny_data, tmp_path, replace(QUICK, epochs=9, stop_min_delta=10.0, stop_patience=3))
    assert progress.stopped and len(progress.history) == 4  # the first improves on infinity, then three do not


def test_plateau_halves_the_learning_rate(tiny_data, tmp_path):
    protocol = replace(QUICK, epochs=8, learning_rate=0.5, plateau_patience=1, stop_patience=50)
    _, progress = trained(tiny_data, tmp_path, protocol)
    assert progress.history[-1]["learning_rate"] < 0.5 * 0.51


def test_runs_repeat_bit_for_bit_and_seeds_differ(tiny_data, tmp_path):
    first, _ = trained(tiny_data, tmp_path / "a")
    again, _ = trained(tiny_data, tmp_path / "b")
    other, _ = trained(tiny_data, tmp_path / "c", seed=1)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_damaged_checkpoint_is_one_sentence(tiny_data, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(RtxError, match="delete them to start the run anew"):
        trained(tiny_data, tmp_path)
    assert path.read_bytes() == b"not a checkpoint"


@pytest.mark.parametrize("wrong", [{"learning_rate": 0.0}, {"epochs": -1}, {"clip_norm": float("nan")}, {"precision": "fp8"}])
def test_bad_protocols_are_refused(wrong):
    with pytest.raises(RtxError):
        Protocol(**wrong)


def test_divergence_is_one_sentence(tiny_data, tmp_path):
    with pytest.raises(RtxError, match="lower learning_rate"):
        trained(tiny_data, tmp_path, replace(QUICK, learning_rate=1e30, clip_norm=1e30))
