"""Building, saving and loading a model: its first weights, its file, and what is refused."""

import json
import math
from dataclasses import asdict

import pytest
import torch
import torch.nn.functional as F
from reference import SMALL, TINY, sentences_of
from safetensors import safe_open
from safetensors.torch import save_file

from rtx_core.errors import RtxError
from rtx_core.models import build_model, load_model, save_model
from rtx_core.models.encoder import EncoderConfig
from rtx_core.models.packed import Packed


# --- Initialisation ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("std", [0.02, 0.05])
def test_initialisation_is_bert_s(std):
    model = build_model("recurrent", seed=3, **SMALL | {"hidden_size": 96}, initializer_std=std)
    matrices = 0
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
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["word.weight"], other["word.weight"])
    with torch.random.fork_rng(devices=[]):
        assert not torch.equal(build_model("baseline", **TINY).word.weight, build_model("baseline", **TINY).word.weight)


@torch.inference_mode()
def test_a_fresh_model_is_undecided():
    model = build_model("recurrent", seed=0, **SMALL).eval()
    logits = model(Packed.from_sequences(sentences_of([9] * 50)))
    assert F.cross_entropy(logits, torch.arange(50) % 2).item() == pytest.approx(math.log(2), abs=0.02)


# --- Files ------------------------------------------------------------------------------------------------------------

@torch.inference_mode()
def test_a_saved_model_comes_back_equal(tmp_path):
    model = build_model("recurrent", seed=4, **TINY, num_labels=3, residual="paper", residual_scale=0.25)
    save_model(model, "recurrent", tmp_path / "deep" / "m.safetensors")
    loaded = load_model(tmp_path / "deep" / "m.safetensors")
    batch = Packed.from_sequences(sentences_of([4, 9]))
    assert loaded.config == model.config and not loaded.training
    assert torch.equal(loaded(batch), model.eval()(batch))


def test_the_header_carries_name_and_config_as_json(tmp_path):
    model = build_model("recurrent", **TINY)
    save_model(model, "recurrent", tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="pt") as file:
        header = file.metadata()
    assert header["model"] == "recurrent" and json.loads(header["config"]) == asdict(model.config)
    assert EncoderConfig(**json.loads(header["config"])) == model.config


def missing(path):
    pass


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(b"PK\x03\x04 this is another kind of file" * 20)


def cut_short(path):
    save_model(build_model("baseline", **TINY), "baseline", path)
    path.write_bytes(path.read_bytes()[:-100])


def foreign(path):
    save_file({"weight": torch.zeros(3)}, path)


def of_an_unknown_model(path):
    save_file({"weight": torch.zeros(3)}, path, metadata={"model": "perceptron", "config": "{}"})


def of_a_newer_config(path):
    save_file({"weight": torch.zeros(3)}, path, metadata={"model": "baseline", "config": '{"num_experts": 8}'})


def folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [missing, empty, garbage, cut_short, foreign, of_an_unknown_model, of_a_newer_config, folder])
def test_an_unreadable_model_file_is_one_sentence(make, tmp_path):
    path = tmp_path / "m.safetensors"
    make(path)
    with pytest.raises(RtxError) as error:
        load_model(path)
    assert "\n" not in str(error.value) and str(error.value).endswith(".")


@pytest.mark.parametrize("config", ["{", "[1]", '{"hidden_sise": 3}', '{"hidden_size": 24}'])
def test_a_foreign_header_is_one_sentence_and_moves_no_generator(tmp_path, config):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    save_file({"x": torch.ones(2)}, path, metadata={"model": "baseline", "config": config})
    before = torch.get_rng_state()
    with pytest.raises(RtxError, match="save it anew with save_model") as error:
        load_model(path)
    assert "\n" not in str(error.value) and torch.equal(torch.get_rng_state(), before)


# --- What build_model refuses -----------------------------------------------------------------------------------------

def test_an_unknown_model_gets_the_nearest_name():
    with pytest.raises(RtxError, match="Unknown model 'recurent': did you mean 'recurrent'\\?"):
        build_model("recurent")
    with pytest.raises(RtxError, match="Unknown model 'zzz': the choices are baseline, recurrent, recurrent-wide, "):
        build_model("zzz")


def test_an_unknown_setting_gets_the_nearest_name():
    with pytest.raises(RtxError, match="'num_layer': did you mean 'num_layers'\\?"):
        build_model("baseline", num_layer=3)


@pytest.mark.parametrize("overrides, said", [
    ({"hidden_size": 0}, "hidden_size is 0; it must be a whole number above 0"),
    ({"num_layers": -1}, "num_layers is -1"),
    ({"num_passes": 0}, "num_passes is 0"),
    ({"num_labels": 2.0}, "num_labels is 2.0"),
    ({"vocab_size": "97"}, "vocab_size is '97'"),
    ({"num_heads": 0}, "num_heads is 0"),
    ({"intermediate_size": None}, "intermediate_size is None"),
    ({"hidden_size": 50, "num_heads": 4}, "choose hidden_size as a multiple of 8"),
    ({"hidden_size": 12, "num_heads": 4}, "no even head size"),
    ({"dropout": 1.0}, "dropout is 1.0; it is a probability in"),
    ({"dropout": -0.1}, "dropout is -0.1"),
    ({"dropout": math.nan}, "dropout is nan"),
    ({"dropout": "0.1"}, "dropout is '0.1'; it must be a number at least 0"),
    ({"dropout": True}, "dropout is True"),
    ({"rope_base": 0.0}, "rope_base is 0.0; it must be a number above 0"),
    ({"norm_eps": -1e-6}, "norm_eps is -1e-06"),
    ({"residual_scale": math.inf}, "residual_scale is inf; it must be a number at least 0"),
    ({"residual": "cod"}, "Unknown residual 'cod': did you mean 'code'\\?"),
])
def test_bad_settings_are_refused(overrides, said):
    with pytest.raises(RtxError, match=said):
        build_model("recurrent", **overrides)
