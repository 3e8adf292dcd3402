"""Experiments: folders named by what differs, recipes and budgets, sweeps, and the recorded runs under their names."""

import shlex

import hypothesis
import numpy as np
import pytest
from conftest import refused
from hypothesis import strategies

from rtx_core import records
from rtx_core.__main__ import settings_of
from rtx_core.errors import RtxError
from rtx_core.experiments import run as runner
from rtx_core.experiments import weights
from rtx_core.experiments.configure import configure
from rtx_core.experiments.doctor import check_settings
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY
from study import plan
from study.experiments import EXPERIMENTS

NAMES = [
    ("sst2", {}, "sst2", "full"),
    ("sst2", {"fraction": 0.1}, "sst2-10pct", "full"),
    ("sst2", {"split": "official", "epochs": 1}, "sst2-official-epochs1", "reduced"),
    ("sst2", {"length": "long", "length_fraction": 0.2}, "sst2-long20pct", "full"),
    ("sst2", {"num_passes": 1, "num_layers": 6, "fraction": 0.1}, "sst2-10pct-numlayers6-numpasses1", "full"),
    ("sst2", {"learning_rate": "1E-4", "source": "mirror"}, "sst2-learningrate0.0001", "full"),
    ("sst2", {"learning_rate": np.float64(1e-4), "epochs": np.int64(5)}, "sst2-learningrate0.0001", "full"),
    ("yelp", {"max_length": 512}, "yelp-maxlength512", "full"),
    ("yelp", {"max_length": 64}, "yelp-maxlength64", "reduced"),
    ("yelp", {"train_rows": 10_000, "epochs": 1}, "yelp-trainrows10000-epochs1", "reduced"),
    ("shakespeare", {}, "shakespeare-report-reduced", "reduced"),
    ("shakespeare", {"recipe": "nanogpt", "budget": "full"}, "shakespeare-nanogpt", "full"),
    ("tinystories", {"budget": "full", "block_size": 128}, "tinystories-report-blocksize128", "reduced"),
]


@pytest.mark.parametrize(("experiment", "settings", "name", "budget"), NAMES)
def test_a_run_is_named_by_what_differs_from_the_experiment(experiment, settings, name, budget):
    found = configure(experiment, EXPERIMENTS[experiment].shown[-1], **settings)
    assert (found.name, found.budget) == (name, budget)


def test_settings_reach_data_training_and_model():
    found = configure("sst2", "recurrent", 3, fraction=0.5, epochs=2, num_passes=3, device="cpu")
    assert (found.data.fraction, found.train.epochs, found.overrides) == (0.5, 2, {"num_passes": 3})
    assert (found.seed, found.device, found.architecture) == (3, "cpu", "recurrent")
    mine = configure("sst2", {"base": "recurrent", "name": "mine", "hidden_size": 128})
    assert (mine.name, mine.model, mine.overrides) == ("sst2", "mine", {"hidden_size": 128})
    longest = configure("shakespeare", {"base": "gpt-1", "name": "mine", "block_size": 512})
    assert (longest.data.block_size, longest.overrides["block_size"]) == (256, 512)  # the model's, not the data's
    assert configure("facts", "1x6-random").train.epochs == 80  # a third more than the experiment's
    assert configure("facts", "1x6-random", steps=300, eval_every=50).train.steps == 400


VALUES = [0, 1, 2, 3, 16, 0.1, 0.1000001, 0.07, 1e-4, 1.00000001e-4, 1 / 3, 1.0, True, False, None]
VALUES += ["all", "1e-3", "long", "short", "official", "constant", "Z6", "default", "real", "mirror"]
VALUES += ["full", "reduced", "report", "nanogpt"]
RUNS = strategies.sampled_from([(name, model) for name, e in EXPERIMENTS.items() for model in e.shown])


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(strategies.randoms(), RUNS)
def test_every_accepted_configuration_has_steps_and_a_name_of_its_own(random, run):
    usual, by_name = configure(*run), {}
    model = registry.config_of(usual.architecture)
    known = [*usual.data.names(), *usual.train.names(), *model.names(), "recipe", "budget", "compile"]
    keys = random.sample(known, 5)
    for _ in range(60):
        settings = {key: random.choice(VALUES) for key in random.sample(keys, random.choice((1, 1, 2)))}
        try:
            config = configure(*run, **settings)
        except RtxError:
            continue
        assert config.train.steps > 0 or (config.train.epochs > 0 and config.data.has_epochs)
        data = config.data.replace(source=usual.data.source)
        same = by_name.setdefault(config.name, (data, config.train, config.overrides))
        assert same == (data, config.train, config.overrides)


def test_a_run_is_made_again_by_its_command():
    mine = {"base": "1x4", "name": "gated", "gate": True}
    for model, more in (("1x6-random", {}), ("1x4", {"num_passes": 6}), (mine, {})):
        config = configure("khop", model, 2, hops=3, steps=300, **more)
        words, given = settings_of(shlex.split(runner.command_of(config))[4:])
        again = configure(words[0], *given.pop("models", words[1:]), *given.pop("seeds"), **given)
        for part in ("model", "seed", "data", "train", "architecture", "overrides"):
            assert getattr(again, part) == getattr(config, part), part


REFUSED = [
    ({"name": "sst"}, "Unknown experiment 'sst': did you mean 'sst2'?"),
    ({"model": "gpt-3"}, "Unknown model 'gpt-3'"),
    ({"recipe": "mine"}, "Unknown recipe 'mine'"),
    ({"budget": "half"}, "Unknown budget 'half'"),
    ({"seed": 1.0}, "The seed is 1.0"),
    ({"corpus": "yelp"}, "Unknown setting of a run of recurrent: 'corpus'"),
    ({"model": "gpt"}, "sst2 asks for labels"),
    ({"name": "khop"}, "khop asks for what comes next"),
    ({"model": {"base": "recurrent", "name": "../mine"}}, "cannot be called '../mine'"),
    ({"name": "khop", "model": "1x1", "source": "embeded"}, "source"),
    ({"name": "shakespeare", "model": "gpt-1", "epochs": 1, "steps": 0, "eval_every": 0}, "has no end"),
    ({"name": "khop", "model": "1x1", "letters": 8, "hops": 16}, "room for 6"),
]


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
def test_what_is_wrong_is_one_sentence(wrong, said):
    asked = {"name": "sst2", "model": "recurrent"} | wrong
    with refused(said):
        configure(asked.pop("name"), asked.pop("model"), **asked)


def test_recorded_runs_have_the_configuration_that_their_names_say(monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    by_name = {}
    for reduced in (False, True):
        planned = list(plan.planned(reduced))
        names = {(c.name, c.model, c.seed): c for c in planned}
        assert len(names) == len(planned) > 60
        by_name |= names
    found = records.records()
    planned = [(r, by_name[key]) for r in found if (key := (r["name"], r["model"], r["seed"])) in by_name]
    assert len(planned) > 800  # a reader's own runs are none of the paper's
    for record, config in planned:
        assert weights.differences(config, record) == [], record.path
        assert (config.budget, config.recipe) == (record["budget"], record["recipe"]), record.path
        check_settings(record)
        train = {name: value for name, value in record["config"]["train"].items() if name != "clip_norm"}
        older = record.content | {"config": record["config"] | {"train": train}}
        assert weights.differences(config, older) == [], record.path
