"""Experiments: folders named by what differs, recipes and budgets, sweeps, and the recorded runs under their names."""

import re
import shlex
from functools import cache
from random import Random

import hypothesis
import numpy as np
import pytest
import torch
from conftest import CPU, refused
from hypothesis import strategies

from rtx_core import records
from rtx_core.__main__ import parse_words
from rtx_core.data.config import DataConfig, SequenceTask
from rtx_core.errors import RtxError
from rtx_core.experiments import run as runner
from rtx_core.experiments import weights
from rtx_core.experiments.configure import configure, fits
from rtx_core.experiments.doctor import check_settings
from rtx_core.models import build_model, registry
from rtx_core.paths import REPOSITORY
from rtx_core.train import device
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import train
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
    found = configure(experiment, EXPERIMENTS[experiment].default_models[-1], **settings)
    assert (found.name, found.budget) == (name, budget)


SHAPE = re.compile(r"(\d)x(\d+)(?:-w?(\d+))?")
SHAPED = [(name, model) for name, e in EXPERIMENTS.items() for model in e.models if SHAPE.fullmatch(model)]


@pytest.mark.parametrize(("experiment", "model"), SHAPED)
def test_a_model_has_the_layers_passes_and_width_of_its_name(experiment, model):
    config = configure(experiment, model, 0)
    architecture = build_model(config.architecture, **config.overrides).config
    layers, passes, width = (int(n) if n else None for n in SHAPE.fullmatch(model).groups())
    assert (architecture.num_layers, architecture.num_passes) == (layers, passes)
    assert width in (None, architecture.hidden_size)


class Words(SequenceTask):
    vocab_size = 3
    word: str = "a"


@pytest.mark.parametrize("word", ["../../x", "a/b", "..", "a\0b", "\n", "$(id)", "[a]", "e\u0301", "é" * 90])
def test_a_setting_that_is_text_is_no_path(word):
    """Nor two folders on one system and one on another."""
    name = configure(Words(word=word), "looped").name
    assert re.fullmatch(r"own-words-word(\.\.|[0-9a-f]{12})", name)
    assert name != configure(Words(word=f"{word} "), "looped").name


def test_settings_reach_data_training_and_model():
    found = configure("sst2", "recurrent", 3, fraction=0.5, epochs=2, num_passes=3, device="cpu")
    assert (found.data.fraction, found.train.epochs, found.overrides) == (0.5, 2, {"num_passes": 3})
    assert (found.seed, found.device, found.architecture) == (3, "cpu", "recurrent")
    mine = configure("sst2", {"base": "recurrent", "name": "mine", "hidden_size": 128})
    assert (mine.name, mine.model, mine.overrides) == ("sst2", "mine", {"hidden_size": 128})
    assert configure("facts", "1x6-random").train.epochs == 80  # a third more than the experiment's
    assert configure("facts", "1x6-random", steps=300, eval_every=50).train.steps == 400


VALUES = [0, 1, 2, 3, 16, 0.1, 0.1000001, 0.07, 1e-4, 1.00000001e-4, 1 / 3, 1.0, True, False, None]
VALUES += ["all", "1e-3", "long", "short", "official", "constant", "Z6", "default", "real", "mirror"]
VALUES += ["full", "reduced", "report", "nanogpt"]
RUNS = strategies.sampled_from([(name, model) for name, e in EXPERIMENTS.items() for model in e.default_models])


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
        words, given = parse_words(shlex.split(runner.command_of(config))[4:])
        again = configure(words[0], *given.pop("models", words[1:]), *given.pop("seeds"), **given)
        for part in ("model", "seed", "data", "train", "architecture", "overrides"):
            assert getattr(again, part) == getattr(config, part), part


CHEAP = {"batch_size": 2, "eval_every": 50, "letters": 8, "block_size": 8, "hops": 2, "max_length": 8, "train_rows": 64}
CHEAP |= {"eval_texts": 16, "test_texts": 16, "facts": 16, "keys": 5, "eval_batches": 2, "hidden_size": 16}
CHEAP |= {"num_heads": 2, "intermediate_size": 16, "num_layers": 1, "num_passes": 2, "source": "embedded"}
DRAWN = {"int": [0, 1, 2, 3, 7, 16, 64], "float": [0, 1, 0.5, 1e-4, 1e-300, 1e30, 1e300, "1e-3"], "str": ["seeded"]}
DRAWN |= {"bool": [True, False], "odd": [-1, 10**18, True, None, "", float("nan"), [], "x"]}


@cache
def kinds_of(settings: type) -> dict:
    return settings.kinds()


def drawn(random: Random) -> tuple[str, str, dict]:
    """An experiment, a model and settings of a cheap run, a few of them drawn by their type, one in ten of another."""
    name = random.choice(["sst2", *(name for name, e in EXPERIMENTS.items() if not e.data.labeled)])
    entries = EXPERIMENTS[name].models
    fitting = [*entries, *(model for model in registry.MODELS if fits(model, EXPERIMENTS[name].data))]
    model = random.choice(fitting if random.random() < 0.9 else list(registry.MODELS))
    data, config = EXPERIMENTS[name].data, registry.find(entries[model].base if model in entries else model).config
    kinds = kinds_of(type(data)) | kinds_of(TrainConfig) | kinds_of(type(config))
    settings = {key: value for key, value in CHEAP.items() if key in kinds}
    for key in random.sample([key for key in kinds if key != "source"], random.choice((0, 1, 1, 2, 3))):
        kind = "odd" if random.random() < 0.1 else kinds[key].partition(" ")[0]
        values = DRAWN.get(kind) or kinds[key].split(" | ")
        settings[key] = random.choice([*values, 10**9] if kind == "int" and key in config.names() else values)
    return name, model, settings


def test_what_is_accepted_trains_or_is_refused_in_a_sentence(small_models, tmp_path, monkeypatch):
    """500 random runs, one optimizer step each."""
    monkeypatch.setattr(device, "memory", lambda where: 2**28)
    monkeypatch.setattr("rtx_core.data.stories.EMBEDDED", {"train": 60, "validation": 20})
    monkeypatch.setattr(DataConfig, "task", cache(DataConfig.task))
    random, trained = Random(0), 0
    for i in range(500):
        name, model, settings = drawn(random)
        try:
            with runner.as_rtx_error():
                config = configure(name, model, **settings)
                task, fresh = runner.prepare(config, CPU)
                train(fresh, task, config.train, 0, CPU, tmp_path / f"{i}", say=lambda line: None, max_steps=1)
            trained += 1
        except RtxError as error:
            assert "\n" not in str(error), error
        except Exception as error:
            raise AssertionError(f"{name}, {model}, {settings}") from error
    assert trained > 200


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(2**31 - 1, 2**29),
        lambda: torch.empty(2**31 - 1, 2**31 - 1, 2**10),
        lambda: np.empty((10**9, 32 * 10**3)),
        lambda: np.empty((2**31 - 1, 2**31 - 1)),
        lambda: np.random.RandomState(0).permutation((2**31 - 1) ** 2),
    ],
)
def test_what_is_too_large_for_the_memory_is_one_sentence(allocate):
    with refused("too little memory", "lower batch_size"), runner.as_rtx_error():
        allocate()


def test_a_step_that_no_graph_captures_is_one_sentence():
    with refused("cannot be captured", "leave out compile"), runner.as_rtx_error():
        raise torch.AcceleratorError("CUDA error: operation failed due to a previous error during capture")
    with pytest.raises(torch.AcceleratorError), runner.as_rtx_error():  # another fault of the device stays itself
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")


def test_a_compiler_that_fails_is_one_sentence():
    failed = type("InductorError", (RuntimeError,), {"__module__": "torch._inductor.exc"})
    with refused("torch.compile", "No working C++ compiler", "leave out compile"), runner.as_rtx_error():
        raise failed("InvalidCxxCompiler: No working C++ compiler found in: (None, 'g++')\n\nSet TORCHDYNAMO_VERBOSE=1")


REFUSED = [
    ({"name": "sst"}, "Unknown experiment 'sst': did you mean 'sst2'?"),
    ({"model": "gpt-3"}, "Unknown model 'gpt-3'"),
    ({"recipe": "mine"}, "Unknown recipe 'mine'"),
    ({"budget": "half"}, "Unknown budget 'half'"),
    ({"seed": 1.0}, "The seed is 1.0"),
    ({"corpus": "yelp"}, "corpus tells this experiment from others"),
    ({"model": "gpt"}, "'gpt' does not fit the data of sst2"),
    ({"name": "khop"}, "'recurrent' does not fit the data of khop"),
    ({"name": "tinystories", "model": "kausik"}, "'kausik' does not fit"),
    ({"name": "state-tracking-scan", "model": "gpt"}, "'gpt' does not fit"),
    ({"num_labels": 3}, "num_labels of a model follows from the data"),
    ({"name": "khop", "model": "1x1", "vocab_size": 3}, "vocab_size of a model follows from the data"),
    ({"name": "shakespeare", "model": {"base": "gpt", "name": "mine", "block_size": 9}}, "block_size of a model"),
    ({"name": "khop", "model": "gpt", "num_heads": 5}, "need a multiple of 5"),
    ({"pad_id": 40_000}, "below vocab_size"),
    ({"norm_eps": True}, "norm_eps is True"),
    ({"learning_rate": float("nan")}, "finite"),
    ({"learning_rate": "1e400"}, "finite"),
    ({"num_layers": 10**6}, "num_layers"),
    ({"epochs": 2**31}, "epochs"),
    ({"device": "tpu"}, "Unknown device 'tpu'"),
    ({"model": {"base": "recurrent", "name": "../mine"}}, "cannot be called '../mine'"),
    ({"model": {"base": "recurrent", "name": "m" * 61}}, "at most 60 letters"),
    (
        {name: 0.123456789 for name in ("dropout", "fraction", "beta1", "beta2", "min_learning_rate", "weight_decay")}
        | {"clip_norm": 1.23456789, "plateau_factor": 0.123456789, "stop_min_delta": 0.123456789},
        "more than 180",
    ),
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
