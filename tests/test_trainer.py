"""The trainer: the same numbers whether or not it is killed, the best weights kept, rates and stopping."""

import math

import numpy as np
import pytest
import torch
from conftest import CPU, refused, small_task
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from torch.optim.lr_scheduler import LinearLR, ReduceLROnPlateau

from rtx_core.errors import RtxError
from rtx_core.models import build_model
from rtx_core.train import trainer
from rtx_core.train.config import TrainConfig, learning_rate, plateaus, stops_early
from rtx_core.train.device import environment
from rtx_core.train.trainer import train

SMALL = {"vocab_size": 97, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 32}
QUICK = TrainConfig(epochs=3, learning_rate=3e-3, batch_size=8, warmup_steps=5)


class Killed(Exception):
    pass


def trained(task, path, config=QUICK, say=lambda line: None, name="baseline", fast=True, code="h"):
    """The model as training leaves it, what it was told on the way, and the best weights."""
    model = build_model(name, seed=0, **SMALL)
    return model, *train(model, task, config, 0, CPU, path / "checkpoint.safetensors", code, say, fast)


def numbers(progress):
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in progress.history]
    return {k: v for k, v in vars(progress).items() if k not in ("seconds", "history")} | {"history": rows}


def test_a_checkpoint_that_lacks_a_part_is_one_sentence_and_stays(tiny_task, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0)
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)

    def kill(line):
        if "validation" in line:
            raise Killed

    with pytest.raises(Killed):
        trained(tiny_task, tmp_path, say=kill)
    path = tmp_path / "checkpoint.safetensors"
    with safe_open(path, framework="pt") as file:
        whole, state = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()["state"]
    without = {key: value for key, value in whole.items() if key != "random/cpu"}
    short = whole | {"random/cpu": torch.zeros(3, dtype=torch.uint8)}
    no_best = {key: value for key, value in whole.items() if not key.startswith("best/")}
    named = {key.replace("best/validation_loss/", "best/"): value for key, value in whole.items()}
    told = [(without, state), (short, state), (no_best, state), (named, state), (whole, "{}"), (whole, "[]")]
    for tensors, said in told:
        save_file(tensors, path, metadata={"state": said})
        with refused("checkpoint.safetensors", "delete it"):
            trained(tiny_task, tmp_path)
        assert path.exists()


@pytest.mark.parametrize("name, fast", [("baseline", True), ("recurrent", True), ("baseline", False)])
def test_killed_three_times_and_resumed_equals_uninterrupted(tiny_task, tmp_path, monkeypatch, name, fast):
    given = {"name": name, "fast": fast}
    whole, whole_progress, whole_best = trained(tiny_task, tmp_path / "whole", **given)
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0)
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)  # a line and a checkpoint at every step
    lines = []

    def kill(line):
        lines.append(line)
        if len(lines) in (2, 23, 40):
            raise Killed

    for code in "abb":
        with pytest.raises(Killed):
            trained(tiny_task, tmp_path / "parts", say=kill, code=code, **given)
    parts, parts_progress, parts_best = trained(tiny_task, tmp_path / "parts", say=lines.append, **given)
    assert parts_progress.codes == ["a", "b", "h"]  # of each code that worked on it
    parts_progress.codes = whole_progress.codes
    assert sum("resumed at step" in line for line in lines) == 3
    assert numbers(parts_progress) == numbers(whole_progress)
    ends = [model.state_dict() | {"best": best} for model, best in ((whole, whole_best), (parts, parts_best))]
    torch.testing.assert_close(*ends, rtol=0, atol=0)
    assert "block" not in vars(whole) and getattr(whole, "step_dropout", None) is None  # as before but for its weights


def test_a_resumed_run_keeps_its_number_of_threads(tiny_task, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0)
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)

    def kill(line):
        raise Killed

    try:
        torch.set_num_threads(2)
        with pytest.raises(Killed):
            trained(tiny_task, tmp_path, say=kill)
        torch.set_num_threads(1)
        trained(tiny_task, tmp_path, say=lambda line: None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_the_weights_of_lowest_loss_and_of_highest_accuracy_are_kept_beside_the_last(tiny_task, tmp_path):
    config = QUICK.replace(epochs=8, eval_every=7, learning_rate=5e-2, stop_patience=0)
    model, progress, best = trained(tiny_task, tmp_path, config)
    lowest = min(progress.history, key=lambda row: row["validation_loss"])
    highest = max(progress.history, key=lambda row: row["validation_accuracy"])
    assert len({row["step"] for row in (lowest, highest, progress.history[-1])}) == 3
    for key, row in {"": progress.history[-1], "validation_loss": lowest, "validation_accuracy": highest}.items():
        if key:
            assert progress.selected(key) == {"step": row["step"], key: row[key]}
            model.load_state_dict(best[key])
        found = tiny_task.evaluate(model, CPU, trainer.autocast_of("fp32", CPU))
        assert found == pytest.approx({part: row[part] for part in found}, abs=1e-6), key


def test_half_precision_products_train_on_a_cpu_too(tiny_task, tmp_path):
    _, progress, _ = trained(tiny_task, tmp_path, QUICK.replace(epochs=6, precision="bf16"))
    assert progress.history[-1]["validation_accuracy"] > 0.8


def test_where_the_processor_has_no_16_bit_products_it_says_so_and_trains_in_fp32(tiny_task, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_f": True})
    assert environment(CPU)["bf16"] is False
    said, losses = [], {}
    for precision in ("fp32", "bf16"):
        config = QUICK.replace(epochs=1, precision=precision)
        _, progress, _ = trained(tiny_task, tmp_path / precision, config, said.append, "recurrent")
        losses[precision] = [row["train_loss"] for row in progress.history]
    assert losses["bf16"] == losses["fp32"] and sum("fp32" in line for line in said) == 1


def test_divergence_is_one_sentence(tiny_task, tmp_path):
    with pytest.raises(RtxError, match="lower learning_rate"):
        trained(tiny_task, tmp_path, QUICK.replace(learning_rate=1e30, clip_norm=1e30))


@pytest.mark.parametrize("warmup", [0, 1, 2, 7, 100])
def test_the_warm_up_is_pytorchs_to_the_last_bit(warmup):
    schedule = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=3e-5)
    linear = LinearLR(schedule, 1 / max(1, warmup), total_iters=max(0, warmup - 1))
    config = TrainConfig(warmup_steps=warmup)
    for step in range(130):
        assert learning_rate(config, step) == schedule.param_groups[0]["lr"]
        schedule.step()
        if step + 1 < warmup:
            linear.step()


LOSSES = [
    [1.0, 0.9, 0.95, 0.94, 0.93, 0.91, 0.92, 0.5, 0.6, 0.6, 0.6],
    [0.5] * 12,
    [1.0, 0.99995, 0.9999, 0.99985, 0.9],
]


@pytest.mark.parametrize("losses", LOSSES)
@pytest.mark.parametrize("patience", [0, 1, 2])
def test_plateaus_are_pytorchs(losses, patience):
    schedule = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    plateau = ReduceLROnPlateau(schedule, factor=0.5, patience=patience)
    config, history = TrainConfig(plateau_patience=patience), []
    for epoch, loss in enumerate(losses, start=1):
        plateau.step(loss)
        history += [{"epoch": epoch - 0.5, "validation_loss": 0.0}, {"epoch": float(epoch), "validation_loss": loss}]
        assert 0.5 ** plateaus(config, history) == schedule.param_groups[0]["lr"]


def test_stopping_counts_epochs_without_enough_improvement():
    config = TrainConfig(stop_min_delta=0.1, stop_patience=2)
    losses = enumerate([1.0, 0.95, 0.85, 0.8, 0.79], start=1)
    rows = [{"epoch": float(i), "validation_loss": loss} for i, loss in losses]
    assert [stops_early(config, rows[:n]) for n in range(6)] == [False, False, False, False, False, True]
    assert not stops_early(config.replace(stop_patience=0), rows)


def test_cosine_goes_from_the_rate_to_the_least_one_and_constant_stays():
    def rates_of(schedule: str) -> list[float]:
        rates = {"learning_rate": 1.0, "min_learning_rate": 0.1, "warmup_steps": 10}
        config = TrainConfig(schedule=schedule, epochs=0, steps=100, eval_every=10, **rates)
        return [learning_rate(config, step, total=100) for step in range(101)]

    rates, linear = rates_of("cosine"), rates_of("linear")
    assert rates[0] == 0.1 and rates[9] == 1.0 and rates[10] == 1.0 and rates[100] == pytest.approx(0.1)
    assert rates[55] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 2)) / 2)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert linear[10:] == pytest.approx(np.linspace(rates[10], rates[100], 91))
    assert set(rates_of("constant")[10:]) == {1.0}


WRONG = [{"learning_rate": 0.0}, {"epochs": -1}, {"clip_norm": float("nan")}, {"precision": "fp8"}, {"steps": 10}]
WRONG += [{"steps": 10, "epochs": 0}, {"micro_batches": 4, "batch_size": 6}, {"learning_rate": "fast"}]
WRONG += [{"epoch": 3}, {"epochs": True}]


@pytest.mark.parametrize("wrong", WRONG)
def test_bad_settings_are_one_sentence(wrong):
    with refused(next(iter(wrong))):
        TrainConfig(**wrong)


@pytest.mark.filterwarnings("ignore")  # the compiler's own, of caches and gradients
def test_a_compiled_step_gives_the_numbers_of_the_plain_one(tmp_path, monkeypatch):
    compiled, losses, torch_compile = [], [], torch.compile

    def traced(model, mode):
        compiled.append(mode)
        return torch_compile(model, backend="eager")  # the graph is traced, and no C compiler is asked for

    monkeypatch.setattr(torch, "compile", traced)
    for mode in ("", "default"):
        model = build_model("recurrent", seed=0, **SMALL, dropout=0.0)
        config = QUICK.replace(epochs=1, warmup_steps=0)  # two steps: to trace a step takes long
        progress, _ = train(model, small_task(16, 8), config, 0, CPU, tmp_path / f"{mode}c", "", compile=mode)
        losses.append(progress.history[-1]["validation_loss"])
    assert losses[1] == pytest.approx(losses[0], abs=1e-4) and compiled == ["default"]


def test_batches_are_made_one_step_ahead_and_sent_from_pinned_memory(tmp_path, monkeypatch):
    """As to a GPU, of which the processor plays the part; graphs share their memory, so gradients lie outside them."""
    said, sums = [], set()

    def ahead(model, *given):
        loop = Loop(model, *given)
        loop.ahead, batches, step = True, loop.batches, loop.step
        loop.batches = lambda i: said.append(i) or batches(i)
        loop.step = lambda rate: said.append("step") or step(rate)
        monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: sums.add(marked(model)))
        return loop

    def marked(model):
        said.append("mark")
        return all(p.grad is not None for p in model.parameters())

    config, losses, Loop = QUICK.replace(epochs=1, micro_batches=2), [], trainer.Loop
    for pretended in (False, True):
        if pretended:
            monkeypatch.setattr(trainer, "Loop", ahead)
            monkeypatch.setattr(torch, "compile", lambda model, mode: model)
            monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: said.append("pinned") or self)
        model = build_model("recurrent", seed=0, **SMALL, dropout=0.0)
        given = small_task(24, 8, 2), config, 0, CPU, tmp_path / str(pretended), "", said.append
        progress, _ = train(model, *given, compile="reduce-overhead" if pretended else "")
        losses.append([row["train_loss"] for row in progress.history])
    assert [what for what in said if what in ("step", 0, 1, 2)] == ["step", 0, 1, "step", 2, "step"]
    assert said.count("pinned") == 3 * 2 * 4 and said.count("mark") == 3 * 2 and sums == {True}
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_the_optimizer_is_the_configured_adamw():
    model = build_model("gpt", seed=0, **SMALL)
    config = QUICK.replace(beta1=0.8, beta2=0.95, weight_decay=0.3, decay="matrices")
    tables, gains = trainer.optimizer_of(model, config).param_groups
    assert tables["betas"] == gains["betas"] == (0.8, 0.95)
    assert (tables["weight_decay"], gains["weight_decay"]) == (0.3, 0.0)
    assert {p.dim() for p in tables["params"]} == {2} and {p.dim() for p in gains["params"]} == {1}
    (whole,) = trainer.optimizer_of(model, config.replace(decay="all")).param_groups
    assert len(whole["params"]) == len(list(model.parameters())) and whole["weight_decay"] == 0.3


def test_a_run_stops_early_and_its_rates_are_the_schedule_s(tiny_task, tmp_path):
    hopeless = QUICK.replace(epochs=9, stop_patience=2, stop_min_delta=100.0)
    assert trained(tiny_task, tmp_path / "a", hopeless)[1].step == 3 * tiny_task.steps_per_epoch
    cosine = QUICK.replace(epochs=0, steps=20, schedule="cosine", eval_every=4)
    plateau = QUICK.replace(epochs=5, plateau_patience=0, learning_rate=0.3, stop_patience=0)
    for config in (cosine, plateau):
        rows = trained(tiny_task, tmp_path / config.schedule, config)[1].history
        total = config.total_steps(tiny_task.steps_per_epoch)
        rates = [learning_rate(config, row["step"] - 1, rows[:i], total) for i, row in enumerate(rows)]
        assert [row["learning_rate"] for row in rows] == rates and rates[-1] < config.learning_rate


def test_the_minutes_left_are_those_of_steps_and_evaluations_to_come(tiny_task, tmp_path):
    model = build_model("baseline", seed=0, **SMALL)
    loop = trainer.Loop(model, tiny_task, QUICK.replace(epochs=4, eval_every=10), 0, trainer.OptimizerStep(), [].append)
    loop.progress.step, clock = 30, loop.clock  # of 76, at 2 minutes a step and 60 an evaluation
    clock.last, clock.evaluating, clock.evaluations = clock.begin + 60 * (30 * 2 + 3 * 60), 3 * 60 * 60, 3
    assert loop.total == 76 and loop.line(1.0).endswith(f"{46 * 2 + 5 * 60} min left")


def test_muon_updates_the_matrices_of_the_layers_and_adamw_the_rest(tiny_task, tmp_path):
    """Each is torch's own on its parameters; and a run that was stopped goes on bit for bit."""
    config = QUICK.replace(optimizer="muon", learning_rate=1e-3, epochs=2, eval_every=5)
    model = build_model("gpt", seed=0, **SMALL)
    both, before = trainer.optimizer_of(model, config), {k: v.clone() for k, v in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    settings = {torch.optim.Muon: {"adjust_lr_fn": "match_rms_adamw"}}
    settings[torch.optim.AdamW] = {"betas": (config.beta1, config.beta2)}
    both.step()
    for kind, more in settings.items():
        names = [
            k for k, p in before.items() if (k.startswith("layers.") and p.dim() == 2) == (kind is torch.optim.Muon)
        ]
        copies, ours = [nn.Parameter(before[k].clone()) for k in names], [model.get_parameter(k) for k in names]
        for copy, parameter in zip(copies, ours):
            copy.grad = parameter.grad.clone()
        kind(copies, lr=1e-3, weight_decay=config.weight_decay, **more).step()
        torch.testing.assert_close(ours, copies)
    whole, stopped = (build_model("recurrent", seed=0, **SMALL) for _ in range(2))
    given = tiny_task, config, 0, CPU
    train(whole, *given, tmp_path / "whole", fast=False)
    for steps in (5, None):
        train(stopped, *given, tmp_path / "stopped", fast=False, max_steps=steps)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), stopped.parameters(), strict=True))


def test_muon_refuses_models_that_it_does_not_fit(tiny_task, tmp_path):
    config = QUICK.replace(optimizer="muon")
    with refused("'muon'", "AdamW's"):
        train(build_model("baseline", seed=0, **SMALL), tiny_task, config, 0, CPU, tmp_path / "fast")
    with refused("'muon'", "Linear", "layers"):
        trainer.optimizer_of(nn.Linear(2, 2), config)
