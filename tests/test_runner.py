"""A whole run: the same record every time; found rather than made again; refused before it starts."""

import json

import numpy as np
import pytest
import torch

import rtx_core as rtx
from rtx_core import audit, code, data, experiments, records, runner, schema
from rtx_core.errors import Busy, RtxError
from rtx_core.models import registry
from rtx_core.settings import Settings

GIVEN = {
    "source": "embedded",
    "device": "cpu",
    "train_rows": 64,
    "batch_size": 8,
    "epochs": 2,
    "eval_every": 3,
}
NAME = "sst2-trainrows64-epochs2-batchsize8-evalevery3"


@pytest.fixture(autouse=True)
def small(small_models):
    """8 steps an epoch of small models."""


def make(model="recurrent", seed=0, **changes):
    return rtx.run("sst2", model, seed, **GIVEN | changes)


def numbers(record) -> dict:
    """The record without what a clock, the machine's load or a commit decides."""
    left_out = ("seconds", "peak_memory_mib", "finished", "latency", "code", "history")
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in record["history"]]
    return {k: v for k, v in record.content.items() if k not in left_out} | {
        "rows": rows,
        "hashes": record["code"]["hashes"],
    }


def forbid(patch, name="make"):
    def never(*_, **__):
        raise AssertionError("this must not be called here")

    patch.setattr(runner, name, never)


def altered(record, **changes):
    """The record's file with some entries replaced and a key that follows from them."""
    content = record.content | changes
    content["key"] = schema.run_key(content["config"], content["data"]["sha256"], content["seed"])
    record.path.write_text(json.dumps(content))
    return content


# -- the same record every time ----------------------------------------------------------------------------------------


def test_two_runs_give_the_same_record_and_predictions(home, monkeypatch):
    first = make().record
    monkeypatch.setenv("RTX_HOME", str(home / "again"))
    again, other = make().record, make(seed=1).record
    assert again.path != first.path and numbers(again) == numbers(first)
    assert first.path.with_suffix(".npz").read_bytes() == again.path.with_suffix(".npz").read_bytes()
    assert other["test"] != first["test"] and other["data"] == first["data"] and other["key"] != first["key"]


def test_a_run_interrupted_between_training_and_record_goes_on_from_its_checkpoint(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("rtx_core.evaluate.beside_the_test", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make()
    make()
    assert "resumed at step 16 of 16" in capsys.readouterr().out


# -- what a run leaves -------------------------------------------------------------------------------------------------


def test_a_run_leaves_weights_that_reproduce_the_recorded_test(home):
    run = make()
    record, folder = run.record, runner.weights_of(run.record).parent
    assert record.path == home / "_build/results" / NAME / "recurrent-seed0.json"
    assert not (home / "results").exists()
    assert {path.name for path in folder.iterdir()} >= {"model.safetensors", "tokenizer.json"}
    assert not (folder / "checkpoint.safetensors").exists()
    task = data.task(run.config.data, 8)
    cpu = torch.device("cpu")
    test, predictions = task.test(run.model, cpu, torch.autocast("cpu", enabled=False))
    assert np.allclose(predictions["logits"], run.predictions["logits"], atol=1e-6)
    assert test["accuracy"] == record["test"]["accuracy"]
    records.verify(record)


def test_a_record_tells_what_was_run(home):
    record = make(seed=4).record
    assert (record["experiment"], record["name"], record["model"], record["seed"]) == (
        "sst2",
        NAME,
        "recurrent",
        4,
    )
    assert record["budget"] == "reduced" and record.synthetic and record["data"]["n_train"] == 64
    assert record["config"]["architecture"] == "recurrent" and record["config"]["model"]["hidden_size"] == 16
    assert record["config"]["train"]["epochs"] == 2 and record["config"]["data"]["train_rows"] == 64
    assert [row["step"] for row in record["history"]] == [3, 6, 8, 9, 12, 15, 16]
    assert record["selected"]["validation_loss"] == min(row["validation_loss"] for row in record["history"])
    assert record["code"]["hashes"] == [code.model_hash("recurrent")] and record.note() == ""
    assert [m["batch"] for m in record["latency"]["measured"]] == [1, 8]
    assert str(home) not in json.dumps(record.content)


def test_the_frame_has_a_row_a_run_with_every_setting():
    frame = rtx.runs("sst2", models=["baseline", "recurrent"], seeds=[0], **GIVEN).frame
    assert list(frame["model"]) == ["baseline", "recurrent"] and set(frame["hidden_size"]) == {16}
    assert list(frame["num_passes"]) == [1, 2] and set(frame["epochs"]) == {2} and not frame["stale"].any()
    assert len(rtx.results(source="embedded", model="recurrent")) == 1
    with pytest.raises(RtxError, match="no column 'modell'"):
        rtx.results(source="embedded", modell="recurrent")


def test_a_variant_stands_beside_its_original():
    mine = {"base": "recurrent", "name": "rec-32", "hidden_size": 32, "num_passes": 3}
    runs = rtx.runs("sst2", models=["recurrent", mine], seeds=[0], **GIVEN)
    assert runs.models == ["recurrent", "rec-32"]
    assert list(runs.frame["hidden_size"]) == [16, 32] and list(runs.frame["num_passes"]) == [2, 3]
    with pytest.raises(RtxError, match="made under other settings .num_passes 3 instead of 1"):
        rtx.runs("sst2", models=[mine | {"num_passes": 1}], seeds=[0], **GIVEN)


def test_a_setting_given_as_a_list_is_swept():
    runs = rtx.runs("sst2", models=["recurrent"], seeds=[0], **GIVEN | {"epochs": [1, 2]})
    assert list(runs.frame["epochs"]) == [1, 2]


# -- found or made -----------------------------------------------------------------------------------------------------


def test_what_is_found_is_not_made_again(monkeypatch):
    made = make()
    forbid(monkeypatch)
    assert make().record.content == made.record.content
    with pytest.raises(AssertionError):  # another seed is not there
        make(seed=1)


def test_another_process_has_a_run_to_itself(monkeypatch):
    record = make().record
    with (
        runner.alone(record.path, "", False, print),
        pytest.raises(Busy, match="Another process is training"),
    ):
        runner.make(experiments.configure("sst2", "recurrent", 0, **GIVEN), wait=False)


def test_a_stale_synthetic_record_is_made_anew():
    fresh = make().record
    altered(fresh, code={"commit": None, "clean": True, "hashes": ["0" * 64]})
    assert records.read(fresh.path).note()
    assert numbers(make().record) == numbers(fresh)


def real(record, **changes):
    """A synthetic record as if it were of real text."""
    content = record.content | {"data": record["data"] | {"source": "hub"}} | changes
    content["key"] = schema.run_key(content["config"], content["data"]["sha256"], content["seed"])
    return records.save(content, record.predictions)


ASKED = GIVEN | {"source": "hub"}


def test_a_stale_real_record_is_shown_with_a_note(monkeypatch):
    old = real(make().record, code={"commit": "c0ffee0123456789", "clean": True, "hashes": ["0" * 64]})
    forbid(monkeypatch)
    before = old.path.read_bytes()
    (row,) = rtx.runs("sst2", models=["recurrent"], **ASKED).frame.itertuples()
    assert "commit c0ffee012" in row.stale and old.path.read_bytes() == before


def test_a_recorded_run_is_overwritten_only_when_asked():
    record = make().record
    kept = real(record)
    with pytest.raises(RtxError, match="recorded already; give replace=True"):
        real(record)
    assert records.save(kept.content, record.predictions, replace=True).content == kept.content


def test_a_record_of_the_name_under_another_configuration_is_refused(monkeypatch):
    record = real(make().record)
    config = record["config"] | {"model": record["config"]["model"] | {"hidden_size": 32}}
    altered(record, config=config)
    forbid(monkeypatch)
    before = record.path.read_bytes()
    with pytest.raises(RtxError, match="made under other settings .hidden_size 32 instead of 16"):
        rtx.run("sst2", "recurrent", 0, **ASKED)
    assert record.path.read_bytes() == before


def test_while_the_book_is_built_nothing_is_trained_on_real_text(monkeypatch):
    forbid(monkeypatch)
    monkeypatch.setenv("RTX_BOOK", "1")
    runs = rtx.runs("sst2", models=["baseline", "recurrent"], **ASKED)
    assert len(runs) == 0 and len(runs.missing) == 2 and runs.frame.empty


# -- a model of one's own ----------------------------------------------------------------------------------------------


class MeanConfig(Settings):
    vocab_size: int = 30_522
    hidden_size: int = 8
    num_labels: int = 2


class Mean(torch.nn.Module):
    """The mean of the words' vectors, and a linear map."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = torch.nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, batch):
        sums = torch.zeros(len(batch), self.config.hidden_size)
        rows = torch.repeat_interleave(torch.arange(len(batch)), torch.diff(batch.offsets))
        return self.head(sums.index_add(0, rows, self.word(batch.ids)))


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    rtx.register("mean", Mean, MeanConfig(), title="Mean")


def test_a_registered_model_trains_records_and_stands_in_the_frame(registered):
    frame = rtx.runs("sst2", models=["recurrent", "mean"], seeds=[0], **GIVEN).frame
    assert list(frame["model"]) == ["recurrent", "mean"] and not frame["stale"].any()
    assert registry.MODELS["mean"].colour != registry.MODELS["recurrent"].colour


def test_an_edited_model_marks_its_record_stale_at_once(registered, monkeypatch):
    record = make("mean").record
    assert record.note() == ""

    def forward(self, batch):
        sums = torch.ones(len(batch), self.config.hidden_size)
        rows = torch.repeat_interleave(torch.arange(len(batch)), torch.diff(batch.offsets))
        return self.head(sums.index_add(0, rows, self.word(batch.ids)))

    monkeypatch.setattr(Mean, "forward", forward)
    assert records.read(record.path).note()


def test_a_width_changed_in_the_registry_never_shows_the_old_record(monkeypatch):
    real(make().record)
    forbid(monkeypatch)
    rtx.run("sst2", "recurrent", 0, **ASKED)
    changed = registry.MODELS["recurrent"]
    monkeypatch.setitem(
        registry.MODELS,
        "recurrent",
        type(changed)(**vars(changed) | {"config": changed.config.but(hidden_size=24)}),
    )
    with pytest.raises(RtxError, match="made under other settings"):
        rtx.run("sst2", "recurrent", 0, **ASKED)


# -- data of one's own -------------------------------------------------------------------------------------------------


def test_files_of_ones_own_train_in_the_same_way(home, monkeypatch):
    rows = [
        f"{'a lovely' if i % 2 else 'a dreadful'} film number {i},{'good' if i % 2 else 'bad'}"
        for i in range(60)
    ]
    (home / "My Reviews.csv").write_text("\n".join(["review,stars", *rows]))
    files = rtx.data.from_files(train=str(home / "My Reviews.csv"), text="review", label="stars")
    runs = rtx.runs(files, models=["recurrent"], seeds=[0], epochs=1, batch_size=8)
    (record,) = runs.records
    assert (record["experiment"], record["name"]) == ("own-data", "own-my-reviews-epochs1-batchsize8")
    assert record["data"]["source"] == "files" and record.path.is_relative_to(home / "results")
    forbid(monkeypatch)
    assert (
        rtx.runs(files, models=["recurrent"], seeds=[0], epochs=1, batch_size=8).records[0].content
        == record.content
    )
    assert set(rtx.load("own-my-reviews-epochs1-batchsize8/recurrent-seed0").classes) == {"good", "bad"}


# -- refused before it starts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"models": ["recurent"]}, "Unknown model 'recurent': did you mean 'recurrent'?"),
        ({"models": "recurrent"}, "expected a list"),
        ({"models": []}, "expected a list"),
        ({"models": ["recurrent", "recurrent"]}, "may stand there once"),
        ({"models": [{"name": "x"}]}, "base and name"),
        ({"models": [{"base": "recurrent", "name": "x", "passes": 3}]}, "did you mean 'num_passes'?"),
        ({"models": [{"base": "recurrent", "name": "baseline"}]}, "that of another model"),
        ({"seeds": [-1]}, "whole number from 0"),
        ({"seeds": [10**20]}, "whole number from 0"),
        ({"device": "gpu"}, "'gpu'"),
        ({"split": "seedd"}, "did you mean 'seeded'?"),
        ({"split": "published"}, "published"),
        ({"source": "embeded"}, "'embedded'"),
        ({"residual": "codes"}, "'code'"),
        ({"max_length": 2}, "max_length is 2"),
        ({"train_rows": 10**6}, "train_rows is 1,000,000"),
        ({"train_rows": -1}, "train_rows is -1"),
        ({"epoch": 1}, "did you mean 'epochs'?"),
        ({"window": 3}, "Unknown setting of a run of recurrent: 'window'"),
        ({"epochs": []}, "Setting epochs is []"),
    ],
)
def test_a_wrong_setting_is_one_sentence_before_any_training(wrong, said, home, monkeypatch):
    monkeypatch.setattr("rtx_core.train.trainer.train", lambda *_: 1 / 0)
    with pytest.raises(RtxError) as error:
        rtx.runs("sst2", **{"models": ["recurrent"]} | GIVEN | wrong)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (home / "_build/results").exists() and not (home / "_build/runs").exists()


def test_real_data_that_is_not_at_hand_is_never_replaced(home, monkeypatch):
    with pytest.raises(RtxError, match="RTX_DATA"):
        make(source="mirror")
    monkeypatch.setenv("RTX_DATA", str(home))
    with pytest.raises(RtxError, match="sst2/train.parquet|RTX_DATA"):
        make(source="real")


# -- asking a trained model --------------------------------------------------------------------------------------------


def test_a_trained_model_answers_as_its_record_says():
    run = make()
    predictor = rtx.load(f"{NAME}/recurrent-seed0", source="embedded")
    task = data.task(run.config.data, 8)
    found = predictor.classify(["a lovely film", "dull and slow"])
    assert list(found.columns) == ["text", "label", *task.classes]
    assert np.allclose(found[list(task.classes)].sum(axis=1), 1, atol=1e-5)
    passes = predictor.classify(["a lovely film"], passes=True)
    assert list(passes["passes"]) == [1, 2]
    assert np.allclose(
        passes.iloc[-1][list(task.classes)].astype(float), found.iloc[0][list(task.classes)].astype(float)
    )
    assert predictor.classify("a lovely film").iloc[0]["label"] == found.iloc[0]["label"]
    with pytest.raises(RtxError, match="There is no record"):
        rtx.load("sst2/recurrent-seed9", source="embedded")


def test_an_audit_repeats_a_run_bit_for_bit_and_tells_a_forged_one(home):
    record = make().record
    found = audit.audit(str(record.path))
    assert found.exact and found.predictions_equal and found.rows == len(record["history"])
    prefix = audit.audit(str(record.path), steps=6, keep=True)
    assert prefix.exact and (prefix.steps, prefix.predictions_equal) == (6, None)
    (kept,) = records.measurements("audits", source="embedded")
    assert kept["run"] == record["key"] and kept["outcome"]["exact"] and kept["outcome"]["steps"] == 6
    rows = [row | {"validation_loss": row["validation_loss"] * 0.9} for row in record["history"]]
    selected = {"step": rows[-1]["step"], "validation_loss": rows[-1]["validation_loss"]}
    altered(record, history=rows, selected=selected)
    with pytest.raises(RtxError, match="does not come from this code"):
        audit.audit(str(record.path))
