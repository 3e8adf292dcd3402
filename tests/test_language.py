"""The training loop of language models, its recipes, and the settings and records of its runs."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

import rtx_core as rtx
from rtx_core import run_language
from rtx_core.corpora import characters, stories
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE
from rtx_core.models import build_model, load_model
from rtx_core.results import language as store
from rtx_core.run import work
from rtx_core.training import language
from rtx_core.training.protocol import Seeds
from rtx_core.training.recipes import Recipe

CPU = torch.device("cpu")
SMALL = {"hidden_size": 12, "num_heads": 2, "intermediate_size": 16, "block_size": 16}
QUICK = Recipe(steps=9, batch_size=4, block_size=16, eval_every=4, eval_batches=3, warmup_steps=2, learning_rate=1e-2)
FILES = LANGUAGE["shakespeare"].files


class Killed(Exception):
    pass


@pytest.fixture(autouse=True)
def short_play(monkeypatch):
    monkeypatch.setattr(characters, "EMBEDDED_CHARACTERS", 3000)


def trained(path, recipe=QUICK, name="kausik", say=lambda line: None):
    if name == "three-part":  # whose training draws noise
        data = stories.data("embedded", replace(recipe, dropout=0.0))
        model = build_model(name, seed=0, vocab_size=data.vocab_size, hidden_size=12, num_heads=2, intermediate_size=16)
    else:
        data = characters.data("embedded", recipe)
        model = build_model(name, seed=0, vocab_size=data.vocab_size, dropout=recipe.dropout, num_layers=1, **SMALL)
    best, progress = language.train(model, data, recipe, Seeds.of(0), CPU, path / "checkpoint.safetensors", FILES, say)
    return best, model.state_dict(), progress


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


# -- the loop -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", LANGUAGE)
def test_every_corpus_has_what_the_loop_asks_for(experiment, monkeypatch):
    monkeypatch.setattr(stories, "EMBEDDED", {"train": 12, "validation": 6})
    data = import_module(f"rtx_core.corpora.{LANGUAGE[experiment].corpus}").data("embedded", replace(QUICK, dropout=0.0))
    members = [*language.LanguageData.__annotations__, *(name for name in vars(language.LanguageData) if name in ("step", "evaluation", "test"))]
    assert len(members) == 6 and all(hasattr(data, name) for name in members)
    shapes = {tuple(inputs.shape) if torch.is_tensor(inputs) else inputs for step in range(3) for inputs, _ in data.step(0, step)}
    assert data.one_shape == (len(shapes) == 1)


@pytest.mark.parametrize(("name", "lines_until_killed"), [("kausik", 1), ("kausik", 4), ("kausik", 8), ("three-part", 5)])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, monkeypatch, name, lines_until_killed):
    monkeypatch.setattr(stories, "EMBEDDED", {"train": 12, "validation": 6})
    best, last, progress = trained(tmp_path / "whole", name=name)
    monkeypatch.setattr("rtx_core.training.loop.REPORT_SECONDS", 0)
    monkeypatch.setattr("rtx_core.training.loop.CHECKPOINT_SECONDS", 0)  # a line and a checkpoint at every step
    lines = []

    def kill(line):
        lines.append(line)
        if len(lines) == lines_until_killed:
            raise Killed

    with pytest.raises(Killed):
        trained(tmp_path / "parts", name=name, say=kill)
    again_best, again_last, again = trained(tmp_path / "parts", name=name, say=lines.append)
    assert lines_until_killed == 1 or any(line.startswith("resumed at step") for line in lines)
    assert equal(best, again_best) and equal(last, again_last)
    for row in (*progress.history, *again.history):
        del row["seconds"]
    assert progress.history == again.history and (again.step, again.tokens) == (9, 9 * 64)


def test_best_weights_are_those_of_the_lowest_validation_loss(tmp_path):
    for steps in range(12, 18):  # the rate is so high that the loss goes up and down; where the last step is the best, go on
        recipe = replace(QUICK, schedule="constant", learning_rate=1.0, steps=steps, eval_every=1)
        best, last, progress = trained(tmp_path / str(steps), recipe, name="gpt")
        losses = [row["validation_loss"] for row in progress.history]
        if np.argmin(losses) < steps - 1:
            break
    assert progress.best_loss == min(losses) and progress.best_step == 1 + int(np.argmin(losses)) < steps
    data = characters.data("embedded", recipe)
    model = build_model("gpt", vocab_size=data.vocab_size, dropout=0.0, num_layers=1, **SMALL)
    for weights, loss in ((best, min(losses)), (last, losses[-1])):
        model.load_state_dict(weights)
        again = language.losses_of(model, data.evaluation()["validation"], CPU, torch.autocast("cpu", enabled=False))
        assert language.mean_and_error(*again)[0] == pytest.approx(loss, rel=1e-6)


def test_rows_count_tokens_and_hold_every_loss(tmp_path):
    _, _, progress = trained(tmp_path)
    assert [row["step"] for row in progress.history] == [4, 8, 9] and [row["tokens"] for row in progress.history] == [256, 512, 576]
    for row in progress.history:
        assert row["validation_error"] > 0 and row["training_sample_error"] > 0 and row["train_loss"] > 0
        assert row["learning_rate"] == QUICK.learning_rate_at(row["step"] - 1)


def test_micro_batches_give_the_same_weights(tmp_path):
    whole, parts = (trained(tmp_path / str(n), replace(QUICK, dropout=0.0, steps=3, micro_batches=n))[1] for n in (1, 4))
    for name in whole:
        assert torch.allclose(whole[name], parts[name], atol=2e-5), name


def test_only_matrices_and_tables_are_decayed():
    model = build_model("gpt", num_layers=1, **SMALL)
    decayed, others = language.optimizer_of(model, QUICK).param_groups
    assert decayed["weight_decay"] == 0.1 and others["weight_decay"] == 0 and decayed["betas"] == (0.9, 0.99)
    assert {p.dim() for p in decayed["params"]} == {2} and {p.dim() for p in others["params"]} == {1}
    assert len(decayed["params"]) + len(others["params"]) == len(list(model.parameters()))


def test_standard_error_is_over_batches():
    losses = torch.tensor([1.0, 2.0, 4.0, 5.0], dtype=torch.float64)
    mean, error = language.mean_and_error(losses, torch.full((4,), 7.0, dtype=torch.float64))
    assert mean == 3 and error == pytest.approx(np.std([1, 2, 4, 5], ddof=1) / 2)
    mean, _ = language.mean_and_error(losses, torch.tensor([3.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    assert mean == 1.25  # over targets


def test_standard_error_covers_the_truth_as_often_as_it_should():
    random = np.random.RandomState(0)
    inside = 0
    for _ in range(500):
        sequences = random.randn(30, 16)  # 30 batches of 16: what one more draw of batches would change is 1 / √480
        mean, error = language.mean_and_error(torch.tensor(sequences.mean(1)), torch.full((30,), 16.0, dtype=torch.float64))
        inside += abs(mean) < 2 * error
    assert 0.92 < inside / 500 < 0.97


def test_diverged_training_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(language, "mean_and_error", lambda losses, sizes: (float("nan"), 0.0))
    with pytest.raises(RtxError, match=r"^Training diverged: the validation loss is nan at step 4; lower learning_rate\.$"):
        trained(tmp_path)


# -- recipes --------------------------------------------------------------------------------------------------------------


def test_learning_rate_follows_the_schedule():
    nanogpt, report = (LANGUAGE["shakespeare"].recipes[name] for name in ("nanogpt", "report"))
    assert [report.learning_rate_at(step) for step in (0, 1, 9999)] == [1e-3] * 3
    assert nanogpt.learning_rate_at(0) == pytest.approx(1e-5) and nanogpt.learning_rate_at(99) == pytest.approx(1e-3)
    assert nanogpt.learning_rate_at(2550) == pytest.approx(5.5e-4) and nanogpt.learning_rate_at(5000) == pytest.approx(1e-4)
    rates = [nanogpt.learning_rate_at(step) for step in range(100, 5000)]
    assert rates == sorted(rates, reverse=True) and rates[0] == 1e-3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schedule": "cosin"}, "Unknown schedule 'cosin': did you mean 'cosine'? the choices are constant, cosine."),
        ({"steps": 0}, "steps is 0; it must be above 0."),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be above 0."),
        ({"micro_batches": 3}, "micro_batches is 3; it must divide the batch size, which is 64."),
        ({"eval_batches": 1}, "eval_batches is 1; a standard error needs at least 2."),
    ],
)
def test_bad_recipe_is_one_sentence(wrong, said):
    with pytest.raises(RtxError) as error:
        Recipe(**wrong)
    assert str(error.value) == said


# -- settings -------------------------------------------------------------------------------------------------------------


def test_settings_name_recipe_budget_and_what_was_changed():
    default = rtx.settings("shakespeare", {})
    assert (default.variant, default.models[-1], default.seeds) == ("shakespeare-report-reduced", "kausik", [0, 1])
    full = rtx.settings("shakespeare", {"budget": "full"})
    assert full.variant == "shakespeare-report" and full.reduced == {} and full.training.tokens == 327_680_000
    other = rtx.settings("shakespeare", {"recipe": "nanogpt", "steps": 20, "batch_size": 0, "learning_rate": 5e-4})
    assert other.variant == "shakespeare-nanogpt-reduced-steps20-learningrate0.0005" and other.training.batch_size == 8
    assert set(other.reduced) == {"steps", "batch_size", "eval_every", "eval_batches", "learning_rate"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"recipe": "nanogtp"}, "Unknown recipe 'nanogtp': did you mean 'nanogpt'?"),
        ({"budget": "small"}, "Unknown budget 'small': "),
        ({"models": ["gpt-3"]}, "Unknown model 'gpt-3': did you mean 'gpt-6'?"),
        ({"seeds": [0, 0]}, "Parameter seeds is [0, 0]; expected a list of distinct int values."),
        ({"step": 5}, "Unknown parameter 'step': did you mean 'steps'?"),
        ({"steps": "5"}, "Parameter steps is '5' of type str; expected int."),
    ],
)
def test_bad_settings_are_one_sentence(given, said):
    with pytest.raises(RtxError) as error:
        rtx.settings("shakespeare", given)
    assert str(error.value).startswith(said)


# -- runs and records -------------------------------------------------------------------------------------------------------


GIVEN = {"source": "embedded", "steps": 4, "batch_size": 4, "block_size": 16, "eval_every": 2, "eval_batches": 2, "device": "cpu"}


@pytest.fixture
def small(monkeypatch):
    fixed = LANGUAGE["shakespeare"]
    models = {name: (model, overrides | {k: v for k, v in SMALL.items() if k != "block_size"}) for name, (model, overrides) in fixed.models.items()}
    monkeypatch.setitem(LANGUAGE, "shakespeare", replace(fixed, models=models))


def test_run_is_recorded_found_and_proven(small, home):
    asked = rtx.settings("shakespeare", GIVEN)
    made = run_language.run(asked, "kausik", 1)
    assert made.content == store.find("embedded", asked.variant, "kausik", 1).content
    assert made.path == home / "_build/results/language" / asked.variant / "kausik-seed1.json"
    assert made["protocol"] == "reduced" and made["data"]["n_test"] == 300 and made["test"]["n"] == 299 and made.note() == ""
    assert made["parameters"]["total"] > 0 and made["samples"][0]["text"] and made["latency"]["measured"][-1]["length"] == 16
    folder = work(asked, made["key"])
    assert not (folder / "checkpoint.safetensors").exists()
    data = characters.data("embedded", asked.training)
    for file, key in (("model", "loss"), ("last", "last_loss")):
        model = load_model(folder / f"{file}.safetensors")
        losses = language.losses_of(model, data.test(), CPU, torch.autocast("cpu", enabled=False))
        assert language.mean_and_error(*losses)[0] == pytest.approx(made["test"][key], rel=1e-6)


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"seed": 3}, "its key does not follow"),
        ({"test": {"loss": 1.0}}, "has a test loss that its test batches do not give"),
        ({"selected": {"step": 2, "validation_loss": 0.5}}, "which is not the best of its history"),
        ({"history": []}, "is no record of schema 1"),
    ],
)
def test_altered_record_is_refused(small, lie, said):
    made = run_language.run(rtx.settings("shakespeare", GIVEN), "gpt-1", 0)
    made.path.write_text(json.dumps(made.content | {k: made[k] | v if isinstance(v, dict) else v for k, v in lie.items()}))
    with pytest.raises(RtxError, match=said):
        store.read(made.path)


def test_command_says_what_is_missing_and_runs_only_that(small, capsys):
    line = ["shakespeare", *(f"{k}={v}" for k, v in GIVEN.items()), "models=[gpt-1, kausik]", "recipe=nanogpt", "seeds=[0]"]
    run_language.main(line)
    assert capsys.readouterr().out.count("not measured yet") == 2
    run_language.main([*line, "--run"])
    assert capsys.readouterr().out.count("test loss") == 2
    run_language.main([*line, "--run"])
    said = capsys.readouterr().out
    assert "step" not in said.replace("-steps4", "") and said.count("test loss") == 2


def test_every_run_of_the_pages_is_planned_seed_by_seed():
    planned = [(settings.recipe, model, seed) for settings, model, seed in run_language.every("shakespeare", {})]
    models = list(LANGUAGE["shakespeare"].models)
    assert planned == [(recipe, model, seed) for seed in (0, 1) for recipe in ("report", "nanogpt") for model in models]
