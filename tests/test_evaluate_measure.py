"""Measurements are described, found, made and saved in one place."""

import numpy as np
import pytest
import torch
from conftest import CPU, NO_AUTOCAST, refused

import rtx_core as rtx
import study
from rtx_core import RtxError, data
from rtx_core.data.preprocess import clean
from rtx_core.experiments import configure as experiments
from rtx_core.experiments import weights
from rtx_core.experiments.measure import MeasuredRuns, measure
from rtx_core.models import registry
from rtx_core.models.packed import Packed
from study import measuring
from study.demo import measure as demo
from study.demo.export import export_demo
from study.measurements import initial, rounding

GIVEN = {"models": ["tiny"], "max_length": 16, "train_rows": 300}


@pytest.fixture(autouse=True)
def tiny(small_models, monkeypatch):
    config = registry.config_of("recurrent", hidden_size=32, num_heads=2, intermediate_size=64)
    monkeypatch.setitem(registry.MODELS, "tiny", registry.Model("rtx_core.models.encoder:Encoder", config, "", "", ""))


@pytest.fixture
def run():
    return rtx.run("quickstart", "tiny", max_length=16, train_rows=300).record


def test_a_bag_of_words_is_measured_once(capsys):
    (made,) = measure("yardstick", "quickstart", **GIVEN)
    assert made.synthetic and made.stale_reason() == ""
    assert "yardstick · quickstart-maxlength16" in capsys.readouterr().out
    right = made.predictions["logits"].argmax(1) == made.predictions["labels"]
    assert made["test"]["accuracy"] == right.mean()
    (found,) = measure("yardstick", "quickstart", **GIVEN)
    assert found.content == made.content and capsys.readouterr().out == ""
    for of in (made["code"]["hashes"][0], made["data"]["sha256"]):  # by other code, of other data: made again
        made.path.write_text(made.path.read_text().replace(of, "0" * 64))
        (again,) = measure("yardstick", "quickstart", **GIVEN)
        assert (again["code"], again["data"]) == (made["code"], made["data"])


def test_every_measurement_of_the_plan_can_be_asked_for(monkeypatch):
    ask, asked = "rtx_core.experiments.measure.measure", []
    monkeypatch.setattr(ask, lambda kind, *of, **settings: asked.append(MeasuredRuns(*of, **settings)))
    measuring.measure(reduced=True)
    assert len(asked) == len(measuring.MEASURES)


def test_a_measurement_that_does_not_fit_an_experiment_is_one_sentence():
    assert all(
        each["experiment"] in study.MEASURED_ON.get(kind, study.EXPERIMENTS) for kind, each, _ in measuring.MEASURES
    )
    for kind, fitting in study.MEASURED_ON.items():
        for experiment in study.EXPERIMENTS.keys() - {*fitting}:
            with refused(kind, repr(experiment), fitting[0]):
                measure(kind, experiment)
    with refused("transfer", "'khop'", "yelp"):
        measure("transfer", "sst2", to="khop")


def test_number_formats_are_of_the_trained_weights(run):
    made = measure("precision", "quickstart", **GIVEN)
    assert [m["name"] for m in made] == [f"tiny-seed0-{kind}" for kind in ("fp32", "bf16", "int8")]
    assert all(m["run"] == run["key"] for m in made) and made[0]["test"]["confusion"] == run["test"]["confusion"]
    np.testing.assert_allclose(made[0].predictions["logits"], run.predictions["logits"], atol=1e-6)
    assert len(measure("precision", "quickstart", **GIVEN)) == 3


def test_rounding_and_attention_are_recorded(run, monkeypatch):
    for name, value in {"BITS": (3, 8), "SEEDS": range(2), "LOOPED": "tiny", "TEXTS": 40}.items():
        monkeypatch.setattr(rounding, name, value)
    (made,) = measure("rounding", "quickstart", **GIVEN)
    assert made["runs"] == {"tiny": run["key"]} and made["texts"] == 40
    assert [c["comparison"] for c in made["curves"]] == ["random"] * 8 + ["trained"] * 2 + ["draws"] * 8
    (made,) = measure("attention", "quickstart", **GIVEN)
    assert made["tokens"][0] == "[CLS]" and np.shape(made["weights"]) == (6, 2, len(made["tokens"]))
    (made,) = measure("asked", "quickstart", **GIVEN)
    assert len({answer["text"] for answer in made["answers"]}) == 18 and made["answers"][2]["meant"] == "movie"


def test_language_models_are_rounded_and_their_loss_is_said(capsys):
    settings = dict(seeds=[0], steps=2, batch_size=2, block_size=8, source="embedded")
    rtx.runs("iso-depth", models=["1x6-64"], **settings)
    made = measure("quantized", "iso-depth", models=["1x6-64"], **settings)
    assert [one["bits"] for one in made] == [
        8,
        6,
        5,
        4,
        3,
    ] and f"loss {made[0]['test']['loss']:.4f}" in capsys.readouterr().out


def test_the_model_of_the_page_is_measured_beside_the_trained_one(run):
    (made,) = measure("demo", "quickstart", **GIVEN)
    assert (made["name"], made["run"], made["trained_passes"]) == ("tiny-seed0-int8", run["key"], 2)
    assert made["fp32_accuracy"] == run["test"]["accuracy"]
    assert made["test"]["accuracy"] == made["accuracy_after"][1] and len(made["accuracy_after"]) == 6
    difference = np.abs(made.predictions["logits"] - run.predictions["logits"])
    assert made["logit_difference"] == pytest.approx(difference.mean(), rel=1e-5)
    example = made["examples"][0]
    assert np.shape([each["attention"] for each in example["passes"]]) == (6, len(example["tokens"]))
    task = data.task(experiments.configure("quickstart", "tiny", max_length=16, train_rows=300).data, 16)
    model = demo.reduced(weights.load_weights(run), np.unique(task.parts["train"].ids))
    ids = task.tokenizer().encode(clean(example["text"])).ids
    with torch.inference_mode():
        expected = model(Packed.from_sequences([ids])).softmax(-1)[0]
    np.testing.assert_allclose(example["passes"][1]["probabilities"], expected, atol=1e-6)
    each = demo.Unrolled(model, 5)(Packed.from_sequences([ids, ids[:3]]))
    model.config = model.config.replace(num_passes=5)
    torch.testing.assert_close(each[:, -2:], model(Packed.from_sequences([ids, ids[:3]])))


def test_the_files_of_the_page_are_written_from_a_run(run, tmp_path):
    address = f"{run['name']}/tiny-seed0"
    first, *more = (path.read_text() for path in export_demo(address, tmp_path / "models", "embedded"))
    assert len(more) == 2 and all(text.startswith("var rtxDemo") for text in (first, *more))
    assert address in first and run["key"] in first


def test_initial_losses_are_of_every_model(monkeypatch):
    monkeypatch.setattr(initial, "SEEDS", 2)
    given = {"models": ["gpt-1"], "source": "embedded", "block_size": 16, "batch_size": 4}
    (made,) = measure("initial", "shakespeare", **given)
    assert made["of"] == "shakespeare" and made["n"] == 2 * 4 * 16
    assert all(abs(loss - np.log(made["data"]["vocabulary"])) < 0.5 for loss in made["losses"]["gpt-1"])


def test_transfer_is_tested_on_the_other_texts(run, monkeypatch):
    class Real(MeasuredRuns):  # the texts are synthetic; what matters is the way
        def __init__(self, *given, **settings):
            super().__init__(*given, **settings)
            self.target.source = self.source = "hub"
            self.runs = lambda: iter([run])

    monkeypatch.setattr("rtx_core.experiments.measure.MeasuredRuns", Real)
    (made,) = measure("transfer", "quickstart", to="yelp", source="embedded", **GIVEN)
    assert made["of"] == "quickstart-maxlength16-trainrows300-to-yelp-maxlength16"
    assert made["run"] == run["key"]
    task = data.task(experiments.configure("yelp", "tiny", source="embedded", max_length=16).data, 16)
    assert made["test"] == task.test(weights.load_weights(run), CPU, NO_AUTOCAST)[0]
    with pytest.raises(RtxError, match="negative, positive and multi-domain.* transfer needs the same"):
        measure("transfer", "quickstart", to="multi-domain", source="embedded", **GIVEN)


WRONG = {
    "Unknown kind of measurement 'precison': did you mean 'precision'": ("precison", {}),
    "There is no record 'quickstart-trainrows48/tiny-seed0'": ("attention", {"models": ["tiny"], "train_rows": 48}),
    "vocabulary each": ("transfer", GIVEN | {"to": "yelp", "source": "embedded"}),
    "needs the experiment to test on": ("transfer", GIVEN),
    "are not here; copy them to _build/runs/": ("attention", GIVEN),
}


def test_what_cannot_be_measured_is_one_sentence(run):
    weights.find_weights(run).unlink()
    for said, (kind, given) in WRONG.items():
        with pytest.raises(RtxError, match=said):
            measure(kind, "quickstart", **given)
