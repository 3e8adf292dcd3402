"""A whole run: the same record every time; found rather than made again; refused before it starts."""

import json
import linecache
import os
import re
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from committed import altered, put
from conftest import CPU, NO_AUTOCAST, refused
from safetensors.torch import save_file

import rtx_core as rtx
from rtx_core import data, records, report
from rtx_core.__main__ import main
from rtx_core.__main__ import results as print_results
from rtx_core.data import splits, tokens
from rtx_core.data.corpora import CORPORA
from rtx_core.data.sources import sha256_of
from rtx_core.errors import RtxError
from rtx_core.experiments import audit, cost, doctor, weights
from rtx_core.experiments import run as runner
from rtx_core.models import build_model, registry, save_model
from rtx_core.records import fingerprint
from rtx_core.settings import Settings
from study import paper

GIVEN = {"source": "embedded", "device": "cpu", "train_rows": 64}
GIVEN |= {"batch_size": 8, "epochs": 2, "eval_every": 3}
ASKED = GIVEN | {"source": "hub"}
NAME = "sst2-trainrows64-epochs2-batchsize8-evalevery3"
OTHER_CODE = {"code": {"commit": "c0ffee0123456789".ljust(40, "0"), "clean": True, "hashes": ["0" * 64]}}

pytestmark = pytest.mark.usefixtures("small_models")  # 8 steps an epoch


def make(model="recurrent", seed=0, **changes):
    return rtx.run("sst2", model, seed, **GIVEN | changes)


def forbid(patch):
    patch.setattr(runner, "train_and_record", lambda *_, **__: pytest.fail("nothing is to be made here"))


def real(record, **changes):
    """A synthetic record as if it were of real text."""
    return records.save(record.content | {"data": record["data"] | {"source": "hub"}} | changes, record.predictions)


def test_a_run_leaves_weights_that_reproduce_the_recorded_test(home):
    run = make()
    record, folder = run.record, weights.find_weights(run.record).parent
    assert record.path == home / "_build/results" / NAME / "recurrent-seed0.json"
    assert not (home / "results").exists()
    files = {path.name for path in folder.iterdir()}
    assert files >= {"model.safetensors", "tokenizer.json"} and "checkpoint.safetensors" not in files
    assert run.model.about["tokenizer"] == sha256_of([(folder / "tokenizer.json").read_bytes()])
    test, predictions = data.task(run.config.data, 8).test(run.model, CPU, NO_AUTOCAST)
    assert np.allclose(predictions["logits"], run.predictions["logits"], atol=1e-6)
    assert test["accuracy"] == record["test"]["accuracy"]
    records.verify(record)


def test_a_record_tells_what_was_run(home):
    record = make(seed=4).record
    named = [record[part] for part in ("experiment", "name", "model", "seed", "budget")]
    assert named == ["sst2", NAME, "recurrent", 4, "reduced"] and record.synthetic
    config, history = record["config"], record["history"]
    assert config["architecture"] == "recurrent" and config["model"]["hidden_size"] == 16
    assert config["train"]["epochs"] == 2 and config["data"]["train_rows"] == 64
    assert [row["step"] for row in history] == [3, 6, 8, 9, 12, 15, 16]
    assert record["selected"]["validation_loss"] == min(row["validation_loss"] for row in history)
    assert record["most_accurate"]["validation_accuracy"] == max(row["validation_accuracy"] for row in history)
    assert record["most_accurate"]["test"]["n"] == record["test"]["n"]
    assert record["code"]["hashes"] == [fingerprint.run_hash("recurrent", record["code"]["task"])]
    assert record["code"]["task"] == fingerprint.TEXTS and record.stale_reason() == ""
    assert [m["batch"] for m in record["latency"]["measured"]] == [1, 8]
    assert str(home) not in json.dumps(record.content)


def test_the_frame_has_a_row_a_run_with_every_setting():
    mine = {"base": "recurrent", "name": "rec-32", "hidden_size": 32, "num_passes": 3}
    runs = rtx.runs("sst2", models=["recurrent", mine], seeds=[0], **GIVEN | {"epochs": [1, 2]})
    frame = runs.frame
    assert list(frame["model"]) == 2 * ["recurrent", "rec-32"] == 2 * runs.models
    assert list(frame["num_passes"]) == [2, 3, 2, 3] and list(frame["epochs"]) == [1, 1, 2, 2]
    assert not frame["stale"].any() and len(rtx.results(source="embedded", hidden_size=range(16, 17))) == 2
    with refused("did you mean 'model'?"):
        rtx.results(source="embedded", modell="recurrent")


def test_no_column_of_the_frame_takes_another_one_s_place(home):
    config = {
        "data": {"minutes": 3, "stale": "x"},
        "train": {"precision": "bf16"},
        "model": {"record": 1, "minutes": 9},
    }
    path = put(home, "sst2-10pct/recurrent-seed0", **{f"config__{part}": values for part, values in config.items()})
    content = json.loads(path.read_text())
    (row,) = records.frame([records.Record(content, path)]).to_dict("records")
    assert (row["data_minutes"], row["model_minutes"], row["data_stale"], row["model_record"]) == (3, 9, "x", 1)
    assert row["minutes"] == content["seconds"] / 60 and row["train_precision"] == "bf16"
    assert row["precision"] == content["test"]["precision"] and row["record"].path == path


def test_a_trial_reads_few_texts_in_every_part_and_times_few_batches():
    record = make(validation_rows=8, test_rows=9, timed=2).record
    assert [record["data"][f"n_{part}"] for part in ("train", "validation", "test")] == [64, 8, 9]
    assert record["name"].startswith("sst2-trainrows64-validationrows8-testrows9-") and record["budget"] == "reduced"
    assert [row["batches"] for row in record["latency"]["measured"]] == [2, 2]
    assert make(validation_rows=8, test_rows=9).record["finished"] == record["finished"]  # the same run
    for wrong in (0, 1000, True, "all"):
        with refused("timed is", "from 1 to 200"):
            make(timed=wrong)


def test_what_is_found_is_not_made_again_and_loses_only_an_older_checkpoint(monkeypatch):
    made = make().record
    left = weights.find_weights(made).with_name("checkpoint.safetensors")
    forbid(monkeypatch)
    for seconds, stays in ((2**32, True), (0, False)):  # the first is of a run that is being made again
        left.touch()
        os.utime(left, (seconds, seconds))
        assert make().record.content == made.content and left.exists() == stays
    left.touch()
    altered(made.path, finished="2999-01-01T00:00:00+00:00")  # by a clock that was wrong
    assert make().record["key"] == made["key"] and left.exists()
    with pytest.raises(pytest.fail.Exception):  # another seed is not there
        make(seed=1)


def test_other_texts_than_those_of_the_recorded_runs_are_said(monkeypatch, capsys):
    make(seed=0)
    assert "other texts" not in capsys.readouterr().out
    sst2 = CORPORA["sst2"]
    fewer = sst2.embedded_rows | {"train": sst2.embedded_rows["train"] - 1}
    monkeypatch.setitem(CORPORA, "sst2", replace(sst2, embedded_rows=fewer))
    make(seed=1)
    assert f"other texts than those of {NAME}/recurrent-seed0.json" in capsys.readouterr().out


def test_before_the_first_step_it_is_said_which_runs_follow_and_for_how_long(monkeypatch, capsys):
    make()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"1 run follows, of which no like run tells the time: {NAME} · recurrent · seed 0"
    words = [f"{name}={value}" for name, value in (GIVEN | {"epochs": 4}).items()]
    monkeypatch.setattr("sys.argv", ["rtx", "run", "sst2", "recurrent", "seeds=[0,1]", *words, "--dry"])
    main()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("2 runs follow, about ") and "seed 0; " in line and line.endswith("recurrent · seed 1")
    forbid(monkeypatch)
    words = [f"{name}={value}" for name, value in GIVEN.items()]
    monkeypatch.setattr("sys.argv", ["rtx", "run", "sst2", "recurrent", *words, "--dry"])
    main()
    assert capsys.readouterr().out.startswith("No run follows")
    assert len(rtx.runs("sst2", models=["recurrent"], seeds=[0, 1], only_recorded=True, **ASKED)) == 0


@pytest.mark.parametrize(("minutes", "said"), [(0.5, "30 s"), (99, "99 min"), (240, "4.0 hours")])
def test_a_duration_is_in_seconds_minutes_or_hours(minutes, said):
    assert cost.duration(minutes) == said


def test_a_stale_synthetic_record_is_made_anew_with_the_same_numbers():
    fresh, other = make().record, make(seed=1).record
    predictions = fresh.path.with_suffix(".npz").read_bytes()
    fresh.path.write_text(json.dumps(fresh.content | OTHER_CODE))
    assert records.read(fresh.path).stale_reason()
    again = make().record
    parts = fresh.content.keys() - {"seconds", "peak_memory_mib", "finished", "latency", "history", "code"}
    assert {part for part in parts if again[part] != fresh[part]} == set() and again.stale_reason() == ""
    assert fresh.path.with_suffix(".npz").read_bytes() == predictions
    assert other["test"] != fresh["test"] and other["data"] == fresh["data"] and other["key"] != fresh["key"]


def test_a_stale_real_record_is_shown_with_a_note_and_in_the_book_nothing_is_trained(monkeypatch):
    old = real(make().record, **OTHER_CODE)
    forbid(monkeypatch)
    before = old.path.read_bytes()
    (row,) = rtx.runs("sst2", models=["recurrent"], **ASKED).frame.itertuples()
    assert "commit c0ffee012" in row.stale and old.path.read_bytes() == before
    monkeypatch.setenv("RTX_BOOK", "1")
    runs = rtx.runs("sst2", models=["baseline", "recurrent"], **ASKED)
    assert list(runs.frame["model"]) == ["recurrent"] and len(runs.configs) == 2
    with pytest.warns(FutureWarning, match="records_for"):
        assert [str(record) for record in runs.of("recurrent")] == [str(old)]
    old.path.unlink()
    assert rtx.runs("sst2", models=["recurrent"], **ASKED).frame.empty


class MeanConfig(Settings):
    vocab_size: int = 30_522
    hidden_size: int = 8
    num_labels: int = 2


class Mean(torch.nn.Module):
    """The first word's vector, and a linear map."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.word = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = torch.nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, batch):
        return self.head(self.word(batch.ids[batch.starts]))


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(registry, "MODELS", dict(registry.MODELS))
    rtx.register("mean", Mean, MeanConfig(), title="Mean")


def test_an_edited_model_marks_its_record_stale_at_once(registered, monkeypatch):
    record = make("mean").record
    assert record.stale_reason() == ""
    cell = "def forward(self, batch):\n    return -self.head(self.word(batch.ids[batch.starts]))\n"
    monkeypatch.setitem(linecache.cache, "<cell>", (len(cell), None, cell.splitlines(True), "<cell>"))
    exec(compile(cell, "<cell>", "exec"), here := {})
    monkeypatch.setattr(Mean, "forward", here["forward"])
    assert records.read(record.path).stale_reason()
    real(record)
    forbid(monkeypatch)
    for way in (lambda: weights.load_weights(record), lambda: rtx.run("sst2", "mean", 0, **ASKED)):
        with pytest.raises(
            RtxError, match="another version of mean, of anything else in its file, or of what trains it; replace"
        ):
            way()


def test_a_model_that_gives_something_else_is_refused_before_it_learns(registered, monkeypatch):
    monkeypatch.setattr(Mean, "forward", lambda mean, batch: mean.head(mean.word(batch.ids)))
    with pytest.raises(RtxError, match=r"expected shape \(9, 2\), a row a text"):
        make("mean")


class BigramConfig(Settings):
    vocab_size: int = 65
    widths: tuple[int, ...] = (8, 8)


class Bigram(torch.nn.Module):
    """The next character from this one alone, by one table for both, which writes no texts."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.read = torch.nn.Embedding(config.vocab_size, config.widths[0])
        self.write = torch.nn.Linear(config.widths[0], config.vocab_size, bias=False)
        self.write.weight = self.read.weight

    def forward(self, inputs, targets=None):
        logits = self.write(self.read(getattr(inputs, "ids", inputs)))
        if targets is None:
            return logits
        return torch.nn.functional.cross_entropy(logits.view(-1, self.config.vocab_size), targets.flatten())


def test_a_decoder_of_tied_weights_that_writes_no_texts_is_recorded_and_found(registered):
    rtx.register("bigram", Bigram, BigramConfig())
    text = {"source": "embedded", "block_size": 16, "eval_batches": 2}
    for name, more in {"shakespeare": text, "tinystories": text, "khop": {"letters": 8, "test_texts": 20}}.items():
        asked = {"steps": 2, "batch_size": 4, "eval_every": 1} | more
        made = rtx.run(name, "bigram", **asked)
        assert made.model.read.weight is made.model.write.weight and made.record["latency"]["measured"]
        assert rtx.run(name, "bigram", **asked).record["finished"] == made.record["finished"]


def test_runs_of_one_s_own_models_lie_apart_from_the_study_s_and_are_shown_with_them(registered, home):
    study_run = real(make(seed=3).record)
    own = [real(make(model).record) for model in ("mean", {"base": "recurrent", "name": "deep", "num_passes": 3})]
    places = [record.path.relative_to(home).parts[0] for record in (study_run, *own)]
    assert places == ["results", "runs", "runs"]
    before = home / "results" / own[0].path.relative_to(home / "runs")  # where earlier versions recorded it
    for suffix in (".json", ".npz"):
        shutil.copy(own[0].path.with_suffix(suffix), before.with_suffix(suffix))
    assert [record.path for record in records.records()] == [own[1].path, own[0].path, study_run.path]
    own[0].path.unlink()
    assert len(rtx.results("sst2")) == 3 and records.load(f"{NAME}/mean-seed0").path == before
    assert records.find(NAME, "mean", 0).path == before and paper.records("sst2") == []
    assert [said for level, said, _ in doctor.records() if level == "wrong"] == []
    own[1].path.write_text("{")
    (wrong,) = [finding for finding in doctor.records() if finding[0] == "wrong"]
    assert "deep-seed0.json" in wrong[1] and "git" not in wrong[2]


def test_a_width_changed_in_the_registry_never_shows_the_old_record_nor_replaces_it(monkeypatch):
    record = real(make().record)
    forbid(monkeypatch)
    rtx.run("sst2", "recurrent", 0, **ASKED)
    before, model = record.path.read_bytes(), registry.MODELS["recurrent"]
    monkeypatch.setitem(registry.MODELS, "recurrent", replace(model, config=model.config.replace(hidden_size=24)))
    with pytest.raises(RtxError, match="made under other settings .hidden_size 16 instead of 24"):
        rtx.run("sst2", "recurrent", 0, **ASKED)
    assert record.path.read_bytes() == before


WRONG_SETTINGS = {
    "did you mean 'recurrent'?": {"models": ["recurent"]},
    "expected a list": {"models": "recurrent"},
    "a list of different values": {"models": ["recurrent", "recurrent"]},
    "base and name": {"models": [{"name": "x"}]},
    "did you mean 'num_passes'?": {"models": [{"base": "recurrent", "name": "x", "passes": 3}]},
    "that of another model": {"models": [{"base": "recurrent", "name": "baseline"}]},
    "'gpu'": {"device": "gpu"},
    "published": {"split": "published"},
    "train_rows is 1,000,000": {"train_rows": 10**6},
    "epochs is []": {"epochs": []},
}


@pytest.mark.parametrize("said", WRONG_SETTINGS)
def test_a_wrong_setting_is_one_sentence_before_any_training(said, home, monkeypatch):
    monkeypatch.setattr("rtx_core.train.trainer.train", lambda *_: 1 / 0)
    with refused(said):
        rtx.runs("sst2", **{"models": ["recurrent"]} | GIVEN | WRONG_SETTINGS[said])
    assert not (home / "_build/results").exists() and not (home / "_build/runs").exists()


def test_a_trained_model_answers_as_its_record_says(home, monkeypatch):
    run = make()
    predictor = rtx.load(f"{NAME}/recurrent-seed0", source="embedded")
    classes = list(data.task(run.config.data, 8).classes)
    found = predictor.classify(splits.parts(run.config.data)["test"]["text"])
    logits = torch.from_numpy(run.predictions["logits"])
    assert list(found.columns) == ["text", "label", *classes]
    assert np.allclose(found[classes], logits.softmax(1), atol=1e-5)
    assert list(found["label"]) == [classes[i] for i in logits.argmax(1)]
    text = found["text"].iloc[0]
    passes = predictor.classify([text], passes=True)
    assert list(passes["passes"]) == [1, 2]
    assert np.allclose(passes[classes].iloc[-1], found[classes].iloc[0])
    assert predictor.classify(text).iloc[0]["label"] == found.iloc[0]["label"]
    usual = predictor.model.config
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("rtx_core.data.tasks.logits_of", lambda *_: 1 / 0)
        predictor.classify([text], passes=True)
    assert predictor.model.config == usual  # whatever comes between
    elsewhere = rtx.load(shutil.copytree(predictor.folder, home / "elsewhere"))  # a folder works anywhere
    assert elsewhere.classify([text], passes=True).equals(passes)
    for wrong in ([3], b"a", found, []):
        with pytest.raises(RtxError, match="expected strings"):
            predictor.classify(wrong)
    with refused("There is no record 'sst2/recurrent-seed9' of source 'embedded'", "rtx.results()"):
        rtx.load("sst2/recurrent-seed9", source="embedded")
    with refused("is of source 'embedded'", "'hub' was requested; give source='embedded'"):
        rtx.load(f"{NAME}/recurrent-seed0")
    (weights.local_weights(run.record)).unlink()
    with refused(
        "copy them to _build/runs/", "or train it again: python -m rtx_core run sst2 recurrent seed=0", "--replace."
    ):
        rtx.load(run)


ABOUT = {"classes": ["no", "yes"], "max_length": 16}
WRONG_ABOUT = {  # what is said -> what the weights of a model of two classes say of themselves
    "about ['x']": ["x"],
    "continues texts": {},
    "continues": ABOUT | {"classes": None},
    "name ['no']": ABOUT | {"classes": ["no"]},
    "classes 'no'": ABOUT | {"classes": "no"},
    "classes [1, 2]": ABOUT | {"classes": [1, 2]},
    "max_length '16'": ABOUT | {"max_length": "16"},
    "max_length None": ABOUT | {"max_length": None},
    "max_length 2": ABOUT | {"max_length": 2},
    "max_length 1180": ABOUT | {"max_length": 2**70},
    "trained with": ABOUT | {"tokenizer": "0" * 64},
}


@pytest.mark.parametrize("said", WRONG_ABOUT)
def test_weights_that_say_something_wrong_of_themselves_are_one_sentence(said, tmp_path):
    model, path = build_model("recurrent", seed=0, vocab_size=60), tmp_path / "mine" / "model.safetensors"
    tokens.trained_vocabulary(["a good film"]).save(str(tmp_path / "tokenizer.json"))
    path.parent.mkdir()
    shutil.copy(tmp_path / "tokenizer.json", path.parent)
    save_model(model, "recurrent", path, **ABOUT)
    assert len(rtx.load(path.parent).classify("good")) == 1
    header = {"model": "recurrent", "config": model.config.model_dump_json(), "about": json.dumps(WRONG_ABOUT[said])}
    save_file(model.state_dict(), path, metadata=header)
    with refused(said):
        rtx.load(path.parent).classify("good")


@pytest.mark.parametrize("vocabulary", [{"[UNK]": 1, "[CLS]": 70, "[SEP]": 71}, {"a": 0, "[CLS]": 1, "[SEP]": 2}])
def test_a_tokenizer_of_another_model_is_one_sentence(vocabulary, tmp_path):
    """Of which weights without its hash say nothing."""
    model = build_model("recurrent", seed=0, vocab_size=60)
    save_model(model, "recurrent", tmp_path / "model.safetensors", **ABOUT | {"tokenizer": None})
    tokens.BertWordPieceTokenizer(vocabulary).save(str(tmp_path / "tokenizer.json"))
    with refused("tokenizer", "does not fit"):
        rtx.load(tmp_path).classify("good")


def test_weights_that_claim_a_large_model_take_no_memory(tmp_path):
    config = {"vocab_size": 2**22, "hidden_size": 2**12, "num_heads": 8}
    header = {"model": "recurrent", "config": json.dumps(config), "about": "{}"}
    save_file({"word.weight": torch.zeros(1)}, tmp_path / "model.safetensors", metadata=header)
    with refused("claims a larger model"):
        rtx.load(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_a_tokenizer_that_cannot_be_read_is_one_sentence(content, tmp_path):
    save_model(build_model("recurrent", seed=0), "recurrent", tmp_path / "model.safetensors", **ABOUT)
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with refused("tokenizer.json"):
        rtx.load(tmp_path).classify("good")


def test_a_mode_of_compile_stands_in_the_record_and_its_key(monkeypatch):
    """But not in its name: it says how a run is made, as the device does, and not which."""
    asked = []
    monkeypatch.setattr(torch, "compile", lambda model, mode: asked.append(mode) or model)
    compiled = make(compile="default").record
    assert asked == ["default"] and compiled["config"]["compile"] == "default"
    plain = make(replace=True).record
    assert "compile" not in plain["config"] and compiled["name"] == plain["name"]
    assert compiled["key"] != plain["key"] == make(compile="default").record["key"]


def test_the_results_of_an_experiment_are_found_where_its_texts_are_of(home):
    made = rtx.run("quickstart", train_rows=40, max_length=8, batch_size=8).record
    assert [found["key"] for found in rtx.results("quickstart").record] == [made["key"]]
    with pytest.warns(UserWarning, match=re.escape(str(home))):  # which says where it looked
        assert rtx.results().empty


def test_records_that_are_left_out_are_counted(home, capsys):
    put(home, "khop/1x4-seed0")
    put(home, "khop/1x4-seed1", key="0")
    with pytest.warns(UserWarning, match="1 files .*khop/1x4-seed1.json"):
        assert len(rtx.results("khop")) == 1
    print_results([])
    said = capsys.readouterr()
    assert "khop/1x4-seed1.json" in said.err and "1x4" in said.out


def test_a_folder_that_is_a_link_is_refused_before_training(home, monkeypatch):
    (home / "elsewhere").mkdir()
    (home / "_build/results").mkdir(parents=True)
    (home / "_build/results" / NAME).symlink_to(home / "elsewhere")
    with refused("symbolic link"):
        make()
    assert not [*(home / "elsewhere").iterdir()]


def test_a_folder_of_an_editor_beside_a_checkpoint_stays(home):
    folder = weights.local_weights(make().record).parent
    for name in (".ipynb_checkpoints", "checkpoint-of-mine"):
        (folder / name).mkdir()
    assert make(replace=True).record["name"] == NAME
    assert (folder / ".ipynb_checkpoints").is_dir()


def test_an_audit_repeats_a_run_bit_for_bit_and_tells_a_forged_one(home):
    record = make().record
    found = audit.audit(str(record.path))
    assert found["exact"] and found["predictions_equal"] and found["rows"] == len(record["history"])
    prefix = audit.audit(str(record.path), steps=6, keep=True)
    assert prefix["exact"] and (prefix["steps"], prefix["predictions_equal"]) == (6, None)
    (kept,) = records.measurements("audits", source="embedded")
    assert kept["run"] == record["key"] and kept["outcome"] == prefix
    with pytest.raises(RtxError, match="first evaluation of .* is at step 3"):
        audit.audit(str(record.path), steps=2)
    content = json.loads(record.path.read_text())
    for row in (*content["history"], content["selected"]):
        row["validation_loss"] *= 0.9
    record.path.write_text(json.dumps(content))
    with pytest.raises(RtxError, match="does not come from this code"):
        audit.audit(str(record.path))


def test_what_is_no_name_no_switch_and_no_classifier_is_one_sentence(home, small_models):
    for wrong in (["khop"], 5, {"a": 1}):
        with refused("The experiment is"):
            rtx.results(wrong)
    small = {"source": "embedded", "steps": 2, "eval_every": 2, "batch_size": 4, "eval_texts": 16, "test_texts": 16}
    with refused("replace is 'no'"):
        rtx.run("khop", "1x4", replace="no", **small)
    with refused("hops is 0 1"):
        rtx.run("khop", "1x4", hops=pd.Series([1, 2]), **small)
    found = rtx.runs("khop", models=["1x1"], seeds=[0], **small)
    for show in (report.bubble, partial(report.benchmark, label="tab-x", caption="x")):
        with refused("1x1-seed0", "of a decoder"):
            show(found)
