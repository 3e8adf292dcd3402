"""Building, saving, loading and registering a model: its first weights, its file, and what is refused."""

import json

import pytest
import torch
from conftest import refused
from reference import SMALL, TINY, batch_of
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from rtx_core.models import build_model, count_parameters, load_model, registry, save_model
from rtx_core.models.configs import EncoderConfig
from rtx_core.models.gpt import GPT

COUNTS = [  # the published ones: of all, and of the table of the vocabulary
    ("baseline", {}, 25_912_706, 30_522 * 384),
    ("baseline", {"num_labels": 3}, 25_913_091, 30_522 * 384),
    ("recurrent", {}, 10_972_162, 30_522 * 256),
    ("recurrent", {"num_labels": 3}, 10_972_419, 30_522 * 256),
    ("recurrent-wide", {}, 18_817_538, 30_522 * 384),
    ("gpt", {"num_layers": 1}, 1_893_888, 65 * 384),
    ("gpt", {"num_layers": 2}, 3_664_128, 65 * 384),
    ("gpt", {}, 10_745_088, 65 * 384),
    ("kausik", {"positions": True}, 1_893_888, 65 * 384),
    ("control", {}, 4_212_992, 4096 * 256),
    ("frailt", {}, 4_214_016, 4096 * 256),
    ("three-part", {}, 4_344_320, 4096 * 256),
    ("relaxed", {}, 5_462_272, 4096 * 256),
    ("control", {"num_layers": 16}, 13_705_472, 4096 * 256),
]


@pytest.mark.parametrize(("name", "overrides", "total", "table"), COUNTS)
def test_parameter_counts_are_the_published_ones(name, overrides, total, table):
    with torch.device("meta"):
        model = build_model(name, **overrides)
    assert count_parameters(model) == {"total": total, "non_embedding": total - table}
    assert not hasattr(model, "components") or sum(model.components().values()) == total


def test_initialization_is_bert_s():
    model, matrices, std = build_model("recurrent", seed=3, **SMALL | {"hidden_size": 96}), 0, 0.02
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        elif parameter.numel() > 2000:
            matrices += 1
            values = parameter[1:] if name == "word.weight" else parameter
            assert values.std().item() == pytest.approx(std, rel=0.05), name
            assert abs(values.mean().item()) < 0.05 * std, name
            assert values.abs().max() > 3 * std, name  # a normal has tails, a uniform does not
    assert matrices == 1 + 2 * 4  # the vocabulary and four matrices a layer
    assert (model.word.weight[0] == 0).all() and (model.word.weight[1:] != 0).any(1).all()


def test_seed_fixes_the_weights_and_leaves_the_generator_alone():
    before = torch.get_rng_state()
    first, again, other = (build_model("baseline", seed=seed, **TINY).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    with torch.random.fork_rng(devices=[]):
        free, next_one = (build_model("baseline", **TINY).state_dict() for _ in range(2))
    assert len({weights["word.weight"].sum().item() for weights in (first, other, free, next_one)}) == 4


@torch.inference_mode()
def test_a_saved_model_comes_back_equal(tmp_path):
    model, path = build_model("recurrent", seed=4, **TINY, num_labels=3, residual="paper"), tmp_path / "deep" / "m.st"
    save_model(model, "recurrent", path, run_name="sst2")
    loaded, batch = load_model(path), batch_of([4, 9])
    assert loaded.config == model.config and not loaded.training and loaded.about == {"run_name": "sst2"}
    assert torch.equal(loaded(batch), model.eval()(batch))
    assert sum(t.numel() for t in load_file(path).values()) == count_parameters(model)["total"]
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    assert header["model"] == "recurrent" and EncoderConfig(**json.loads(header["config"])) == model.config


def cut_short(path):
    save_model(build_model("baseline", **TINY), "baseline", path)
    path.write_bytes(path.read_bytes()[:-100])


def headed(**metadata):
    return lambda path: save_file({"weight": torch.zeros(3)}, path, metadata=metadata or None)


UNREADABLE = {
    "missing": lambda path: None,
    "garbage": lambda path: path.write_bytes(b"PK\x03\x04 this is another kind of file" * 20),
    "a folder": lambda path: path.mkdir(),
    "cut short": cut_short,
    "no header": headed(),
    "unknown model": headed(model="perceptron", config="{}"),
    "wrong setting": headed(model="baseline", config='{"hidden_size": 50}'),
    "a list as header": headed(model="baseline", config="[1]"),
    "other weights": headed(model="baseline", config=json.dumps(TINY)),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_model_file_is_one_sentence_and_moves_no_generator(kind, tmp_path):
    UNREADABLE[kind](path := tmp_path / "m.safetensors")
    before = torch.get_rng_state()
    with refused("is not registered here" if kind == "unknown model" else "train or export it anew"):
        load_model(path)
    assert torch.equal(torch.get_rng_state(), before)


REFUSED = [
    ("recurent", {}, "did you mean 'recurrent'?"),
    ("zzz", {}, "baseline, recurrent, recurrent-wide, "),
    (["x"], {}, "['x']"),
    ("baseline", {"num_layer": 3}, "did you mean 'num_layers'?"),
    ("baseline", {"num_layers": 0}, "num_layers is 0"),
    ("baseline", {"residual": "cod"}, "'code' or 'paper'."),
    ("baseline", {"hidden_size": 50, "num_heads": 4}, "a multiple of 8."),
    ("three-part", {"num_core_layers": 5}, "num_core_layers is 5 of 4 layers"),
    ("relaxed", {"lora_rank": 300}, "lora_rank is 300"),
    ("looped", {"state_std": 0.1}, "injection"),
]


@pytest.mark.parametrize(("name", "overrides", "said"), REFUSED)
def test_bad_names_and_settings_are_one_sentence(name, overrides, said):
    with refused(said):
        build_model(name, **overrides)


def test_a_registered_model_is_built_by_its_name(monkeypatch):
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    config = registry.config_of("gpt", hidden_size=6)
    registry.register("mine", GPT, config)
    assert type(build_model("mine")) is GPT and build_model("mine").config == config
    before = registry.MODELS["mine"]
    registry.register("mine", config)(GPT)  # a cell that is run again
    assert registry.MODELS["mine"] == before
    with refused("'baseline' is a model of this package"):
        registry.register("baseline", GPT, config)
    with refused("cannot be called 5"):
        registry.register(5, GPT, config)
    for wrong in (type(config), {"size": 3}):
        with refused("expected an instance of a subclass of Settings"):
            registry.register("other", GPT, wrong)
