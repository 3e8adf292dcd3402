"""A whole run: the same record every time, killed or not; found rather than made again; refused before it starts."""

import json
import signal
import subprocess
import sys

import pytest
import torch
from factory import content, saved, tiny

import rtx_core as rtx
import rtx_core.run as run_module
from rtx_core.corpora.dataset import dataset
from rtx_core.errors import Busy, RtxError
from rtx_core.evaluation.metrics import logits_of, loss_and_accuracy
from rtx_core.models import load_model
from rtx_core.paths import REPOSITORY
from rtx_core.results import store
from rtx_core.results.code import fingerprint
from rtx_core.results.record import read, run_key
from rtx_core.training.step import autocast_of

GIVEN = {
    "models": ["recurrent"],
    "source": "embedded",
    "device": "cpu",
    "train_rows": 64,
    "batch_size": 8,
    "epochs": 2,
    "eval_every": 3,
}
ASKED = rtx.settings("sst2", GIVEN)  # 8 steps an epoch
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    tiny(monkeypatch)


def numbers(record) -> dict:
    """The record without what a clock, the machine's load or a commit decides."""
    kept = {
        k: v
        for k, v in record.content.items()
        if k not in ("seconds", "peak_memory_mib", "finished", "latency", "code")
    }
    return kept | {
        "fingerprints": record["code"]["fingerprints"],
        "batches": [m["batch"] for m in record["latency"]["measured"]],
    }


def folder_of(record):
    return run_module.work(ASKED, record["key"])


def forbid(patch, *names):
    def never(*_, **__):
        raise AssertionError("this must not be called here")

    for name in names:
        patch.setattr(run_module, name, never)


# -- the same record every time ---------------------------------------------------------------------------------------


def test_two_runs_give_the_same_record_and_predictions(home, monkeypatch):
    first = run_module.run(ASKED, "recurrent", 0)
    monkeypatch.setenv("RTX_HOME", str(home / "again"))
    again = run_module.run(ASKED, "recurrent", 0)
    other = run_module.run(ASKED, "recurrent", 1)
    assert again.path != first.path
    assert numbers(again) == numbers(first) == numbers(read(first.path))
    assert first.path.with_suffix(".npz").read_bytes() == again.path.with_suffix(".npz").read_bytes()
    assert (
        numbers(other)["test"] != numbers(first)["test"]
        and other["data"] == first["data"]
        and other["key"] != first["key"]
    )


KILLED = """
import os, signal, sys
import pytest
from factory import tiny
import rtx_core as rtx
from rtx_core.run import run
from rtx_core.training import loop

tiny(pytest.MonkeyPatch())
loop.REPORT_SECONDS = loop.CHECKPOINT_SECONDS = 0  # a checkpoint at every step
replace, written = os.replace, 0

def replace_or_die(source, target):
    global written
    checkpoint = str(target).endswith("checkpoint.safetensors")
    if checkpoint and written == 5:
        os.kill(os.getpid(), signal.SIGKILL)  # the sixth lies beside its place
    replace(source, target)
    written += checkpoint

os.replace = replace_or_die
run(rtx.settings("sst2", {given!r}), "recurrent", 0)
"""


def test_killed_process_is_resumed_to_the_same_record(home, monkeypatch, capsys):
    whole = run_module.run(ASKED, "recurrent", 0)
    monkeypatch.setenv("RTX_HOME", str(home / "killed"))
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY}:{REPOSITORY / 'tests'}")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED.replace("{given!r}", repr(GIVEN))],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert store.find("embedded", ASKED.variant, "recurrent", 0) is None
    assert (
        (folder_of(whole) / "checkpoint.previous.safetensors").exists()
        and "step 6/16" in killed.stdout
        and "step 7/16" not in killed.stdout
    )
    capsys.readouterr()
    resumed = run_module.run(ASKED, "recurrent", 0)
    assert "resumed at step 5 of 16" in capsys.readouterr().out
    assert resumed.path.is_relative_to(home / "killed") and numbers(resumed) == numbers(whole)
    assert resumed.path.with_suffix(".npz").read_bytes() == whole.path.with_suffix(".npz").read_bytes()


def test_run_interrupted_between_training_and_record_goes_on_from_its_checkpoint(home, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        forbid(patch, "measure_latency")
        with pytest.raises(AssertionError):
            run_module.run(ASKED, "recurrent", 0)
    record = run_module.run(ASKED, "recurrent", 0)
    assert "resumed at step 16 of 16" in capsys.readouterr().out
    monkeypatch.setenv("RTX_HOME", str(home / "whole"))
    assert numbers(record) == numbers(run_module.run(ASKED, "recurrent", 0))


# -- what a run leaves ------------------------------------------------------------------------------------------------


def test_run_leaves_weights_that_reproduce_the_recorded_test(home):
    record = run_module.run(ASKED, "recurrent", 0)
    assert (
        record.path == home / "_build/results" / ASKED.variant / "recurrent-seed0.json"
        and not (home / "results").exists()
    )
    assert [path.name for path in folder_of(record).iterdir()] == ["model.safetensors"]
    model = load_model(folder_of(record) / "model.safetensors")
    test = dataset("sst2", "embedded", "seeded", 128, 64).test
    logits = logits_of(model, test, CPU, autocast_of("fp32", CPU))
    assert logits == pytest.approx(record.predictions["logits"], abs=1e-6)
    assert loss_and_accuracy(logits, test.labels) == pytest.approx(
        (record["test"]["loss"], record["test"]["accuracy"]), abs=1e-6
    )


def test_weights_tested_and_kept_are_those_of_lowest_validation_loss():
    asked = rtx.settings(
        "sst2",
        GIVEN | {"learning_rate": 0.02, "train_rows": 16, "eval_every": 0, "epochs": 20, "warmup_steps": 0},
    )
    record = run_module.run(asked, "recurrent", 0)
    losses = {row["step"]: row["validation_loss"] for row in record["history"]}
    assert record["selected"]["step"] == min(losses, key=losses.get) < max(losses)  # learnt by heart since
    model, data = (
        load_model(run_module.work(asked, record["key"]) / "model.safetensors"),
        dataset("sst2", "embedded", "seeded", 128, 16),
    )
    for part, loss in (
        (data.validation, record["selected"]["validation_loss"]),
        (data.test, record["test"]["loss"]),
    ):
        assert loss_and_accuracy(logits_of(model, part, CPU, autocast_of("fp32", CPU)), part.labels)[
            0
        ] == pytest.approx(loss, abs=1e-5)


def test_record_tells_what_was_run(home):
    record = run_module.run(ASKED, "recurrent", 4)
    assert (record["experiment"], record["model"], record["seed"], record["protocol"]) == (
        ASKED.variant,
        "recurrent",
        4,
        "reduced",
    )
    assert (
        record.synthetic
        and record["data"]["n_train"] == 64
        and record["data"]["name"] == "embedded movie phrases"
    )
    assert record["config"]["model"]["num_passes"] == 2 and record["config"]["model"]["hidden_size"] == 16
    assert record["config"]["training"]["seeds"] == {"initialization": 4, "order": 10_004, "dropout": 20_004}
    assert [row["step"] for row in record["history"]] == [3, 6, 8, 9, 12, 15, 16]
    assert record["selected"]["validation_loss"] == min(row["validation_loss"] for row in record["history"])
    assert record["code"]["fingerprints"] == [fingerprint()] and record.note(record["data"]["sha256"]) == ""
    assert [m["batch"] for m in record["latency"]["measured"]] == [1, 8]
    assert str(home) not in json.dumps(record.content)


def test_settings_of_the_model_and_the_data_arrive():
    paper = run_module.run(
        rtx.settings("sst2", GIVEN | {"residual": "paper", "max_length": 8, "split": "official"}),
        "recurrent",
        0,
    )
    assert paper["config"]["model"]["residual"] == "paper"
    assert (paper["data"]["max_length"], paper["data"]["split"], paper["data"]["n_test"]) == (
        8,
        "official",
        60,
    )


def test_two_processes_cannot_share_a_run(monkeypatch):
    record = run_module.run(ASKED, "recurrent", 0)
    forbid(monkeypatch, "train")
    with run_module.alone(record.path), pytest.raises(Busy, match="Another process is training"):
        run_module.run(ASKED, "recurrent", 0, wait=False)
    assert (
        run_module.run(ASKED, "recurrent", 0) == record
    )  # free again, and finished by another: not trained twice
    record.path.unlink()
    with pytest.raises(AssertionError):
        run_module.run(ASKED, "recurrent", 0)


# -- found or made ----------------------------------------------------------------------------------------------------


def test_what_is_found_is_not_made_again(monkeypatch):
    made = rtx.runs(ASKED)
    forbid(monkeypatch, "run")
    found = rtx.runs(ASKED)
    assert found == made and found.records[0].content == made.records[0].content
    assert found.data_sha256 == found.records[0]["data"]["sha256"]
    with pytest.raises(AssertionError):  # another seed is not there
        rtx.runs(rtx.settings("sst2", GIVEN | {"seeds": [0, 1]}))


def test_only_what_is_missing_is_made_in_the_order_of_models_and_seeds():
    rtx.runs(ASKED)
    before = store.path_of("embedded", ASKED.variant, "recurrent", 0).read_bytes()
    runs = rtx.runs(rtx.settings("sst2", GIVEN | {"models": ["baseline", "recurrent"], "seeds": [1, 0]}))
    assert [(r["model"], r["seed"]) for r in runs] == [
        ("baseline", 1),
        ("baseline", 0),
        ("recurrent", 1),
        ("recurrent", 0),
    ]
    assert store.path_of("embedded", ASKED.variant, "recurrent", 0).read_bytes() == before
    assert runs.first["baseline"]["seed"] == 1


@pytest.mark.parametrize(
    "stale",
    [{"code": {"commit": None, "clean": True, "fingerprints": ["0" * 64]}}, {"data": {"sha256": "0" * 64}}],
)
def test_stale_synthetic_record_is_made_anew(stale):
    (fresh,) = rtx.runs(ASKED).records
    old = {k: fresh[k] | v for k, v in stale.items()}
    old["key"] = run_key(fresh["config"], old.get("data", fresh["data"])["sha256"], 0)
    fresh.path.write_text(json.dumps(fresh.content | old))
    assert read(fresh.path).note(fresh["data"]["sha256"]) != ""
    runs = rtx.runs(ASKED)
    assert (
        numbers(runs.records[0]) == numbers(fresh) == numbers(read(fresh.path)) and len(runs.notes) == 2
    )  # synthetic, reduced


def test_stale_real_record_is_only_noted(monkeypatch):
    forbid(monkeypatch, "run")
    asked = rtx.settings("sst2", {"models": ["recurrent"]})
    old = saved(
        asked, "recurrent", code={"commit": "c0ffee0123456789", "clean": True, "fingerprints": ["0" * 64]}
    )
    before = old.path.read_bytes()
    runs = rtx.runs(asked)
    assert runs.records == [old] and old.path.read_bytes() == before
    assert runs.notes == ["recurrent, seed 0: made by another version of the code (commit c0ffee012)."]


def test_a_broken_mirror_hides_no_record_but_is_named_to_whoever_asks_for_it(tmp_path, monkeypatch):
    forbid(monkeypatch, "run")
    old = saved(rtx.settings("sst2", {"models": ["recurrent"]}), "recurrent")
    monkeypatch.setenv("RTX_DATA", str(tmp_path / "nowhere"))
    runs = rtx.runs(rtx.settings("sst2", {"models": ["recurrent"]}))
    assert runs.records == [old] and runs.data_sha256 is None
    with pytest.raises(RtxError, match="The mirror has no file sst2/train.parquet"):
        rtx.runs(rtx.settings("sst2", {"models": ["recurrent"], "source": "mirror"}))


@pytest.mark.parametrize(
    "other",
    [
        ("training", "clip_norm", 2.0),
        ("training", "seeds", {}),
        ("model", "hidden_size", 32),
        ("model", "residual", "paper"),
    ],
)
@pytest.mark.parametrize("source", ["real", "embedded"])
def test_record_made_under_other_settings_is_refused(source, other, monkeypatch):
    forbid(monkeypatch, "run")
    asked = rtx.settings("sst2", {"models": ["recurrent"], "source": source})
    made = content(asked, "recurrent")
    if source == "embedded":
        made["data"]["sha256"] = dataset("sst2", "embedded", "seeded", 128).facts["sha256"]
    part, name, value = other
    old = saved(
        asked,
        "recurrent",
        data=made["data"],
        config=made["config"] | {part: made["config"][part] | {name: value}},
    )
    before = old.path.read_bytes()
    with pytest.raises(
        RtxError, match=r"^sst2/recurrent-seed0.json was made under other settings .*; move it away"
    ):
        rtx.runs(asked)
    assert old.path.read_bytes() == before
    saved(asked, "recurrent", data=made["data"])
    assert len(rtx.runs(asked).records) == 1


# -- refused before it starts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"precision": "bf16"}, "precision='bf16' was asked for on the CPU"),
        ({"models": ["recurent"]}, "Unknown model 'recurent': did you mean 'recurrent'?"),
        ({"models": ["recurrent", "reccurent"]}, "Unknown model 'reccurent': did you mean 'recurrent'?"),
        ({"device": "gpu"}, "Unknown device 'gpu': the choices are auto, cpu, cuda"),
        ({"split": "seedd"}, "Unknown split of sst2 'seedd': did you mean 'seeded'?"),
        ({"split": "published"}, "needs the mirror's assignment file"),
        ({"source": "embeded"}, "Unknown source 'embeded': did you mean 'embedded'?"),
        ({"residual": "codes"}, "Unknown residual 'codes': did you mean 'code'?"),
        ({"max_length": 2}, "max_length is 2; "),
        ({"train_rows": 289}, "train_rows is 289; the training part has 288 rows"),
        ({"train_rows": -1}, "train_rows is -1; "),
    ],
)
def test_wrong_setting_is_one_sentence_before_any_training(wrong, said, home, monkeypatch):
    forbid(monkeypatch, "train")
    with pytest.raises(RtxError) as error:
        rtx.runs(rtx.settings("sst2", GIVEN | wrong))
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (home / "_build/results").exists() and not (home / "_build/runs").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_gpu_that_is_not_there_is_one_sentence(monkeypatch):
    forbid(monkeypatch, "train")
    with pytest.raises(
        RtxError, match="'cuda' was asked for, but torch finds no CUDA GPU here; use device='cpu' or 'auto'"
    ):
        rtx.runs(rtx.settings("sst2", GIVEN | {"device": "cuda"}))


def test_real_data_that_is_not_at_hand_is_never_replaced(home, monkeypatch):
    forbid(monkeypatch, "train")
    with pytest.raises(RtxError, match="RTX_DATA, which is not set"):
        rtx.runs(rtx.settings("sst2", GIVEN | {"source": "mirror"}))
    monkeypatch.setenv("RTX_DATA", str(home))
    with pytest.raises(RtxError, match="The mirror has no file sst2/train.parquet"):
        rtx.runs(rtx.settings("sst2", GIVEN | {"source": "real"}))
