"""Records: what is committed reads and verifies; what was altered, broken or misplaced is one sentence."""

import json
import os
from contextlib import nullcontext
from functools import partial
from zipfile import ZipFile

import committed
import numpy as np
import pytest
from conftest import refused

from rtx_core import paths, records
from rtx_core.errors import RtxError
from rtx_core.metrics import classification_metrics
from rtx_core.paths import REPOSITORY
from rtx_core.records import migrate

RESULTS = REPOSITORY / "results"
CLASSIFIER, LANGUAGE = "sst2-10pct/recurrent-seed0", "shakespeare-report-reduced/gpt-1-seed0"


def test_everything_committed_reads_and_verifies(monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    found = records.records()
    read = [records.read(path, measurement=True).path for path in records.paths_in(records.folder())]
    others = {path for folder in ("data", "benchmarks") for path in (RESULTS / folder).glob("*.json")}
    assert len(read) > 100 and {*read} | others == {*RESULTS.rglob("*.json")}
    assert all(path.with_suffix(".json").exists() for path in RESULTS.rglob("*.npz"))
    table = records.frame(found, experiment="sst2", model=["baseline", "recurrent"])
    of_sst2 = [r["model"] for r in found if r["experiment"] == "sst2"]
    assert len(table) == of_sst2.count("baseline") + of_sst2.count("recurrent")
    assert table["accuracy"].between(0.5, 1).all() and set(table["budget"]) == {"full", "reduced"}
    assert {"num_passes", "epochs", "split", "stale", "ms_per_text"} <= set(table)


@pytest.fixture
def put(home):
    return partial(committed.put, home)


def test_the_migration_has_nothing_left_to_do(monkeypatch, capsys):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    monkeypatch.setattr(migrate, "write_json", lambda path, content: pytest.fail(f"{path} would change"))
    migrate.main()
    assert capsys.readouterr().out.startswith("0 of ")


LIES = [
    ({"latency": None}, "at latency, Field required"),
    ({"latency__measured": []}, "at latency.measured"),
    ({"size_mb": 10**400}, "at size_mb"),
    ({"parameters__total": 10**400}, "at parameters.total"),
    ({"history": []}, "at history"),
    ({"code__hashes": []}, "at code.hashes"),
    ({"environment__threads": None}, "at environment.threads"),
    ({"config__model": 5}, "at config.model"),
    ({"finished": "yesterday"}, "at finished"),
    ({"finished": "2026-11-24T00:33:59"}, "at finished"),
    ({"data__sha256": "` {val}`1`"}, "at data.sha256"),
    ({"config__train__epochs": 6}, "its key does not follow from its configuration"),
    ({"data__sha256": "0" * 64}, "its key does not follow from its configuration"),
    ({"selected__step": 1}, "does not select the best step"),
    ({"test__accuracy": 0.99}, "says that its test accuracy is 0.99"),
    ({"test__f1": None}, "f1"),
    ({"test__f1": "high"}, "f1"),
    ({"test__loss": 0.1}, "says that its test loss is 0.1"),
    ({"test__n": 6822}, "6822"),
    ({"test__auc": 0.9}, "says that its test auc is 0.9"),
    ({"schema": 1}, "at schema"),
    ({"test__confusion": [[1, 2], [3, 4]]}, "says that its test"),
    ({"test__confusion": [[1, 2]] * 3}, "classes"),
    ({"model": "baseline"}, "it belongs to sst2-10pct/baseline-seed0"),
]
COUNTED = [{"test__loss": 1.0}, {"test__error": 1.0}, {"test__batch_sizes": [1, 2]}]  # again from a text's batches
LIES = [(CLASSIFIER, changes, said) for changes, said in LIES] + [(LANGUAGE, changes, "test") for changes in COUNTED]
LIES += [("khop/1x4-seed0", {"test__accuracy": 0.9}, "says that its test accuracy is 0.9")]  # by its parts
LIES += [("khop/1x4-seed0", {"test__by": "age"}, "does not say its age")]
LIES += [("growth/khop/1x4-seed5", changes, said) for changes, said in (({"run": "5"}, "run"), ({"data": []}, "data"))]


@pytest.mark.parametrize(("name", "changes", "said"), LIES)
def test_a_record_that_was_altered_or_misplaced_is_refused(name, changes, said, put):
    with refused(said):
        records.read(put(name, **changes), measurement=True)


def claim(file, shape: tuple) -> None:
    """Arrays of which the first says that it has this shape, and has not."""
    with ZipFile(file, "w") as archive, archive.open("logits.npy", "w") as array:
        np.lib.format.write_array_header_1_0(array, {"descr": "<f4", "fortran_order": False, "shape": shape})


PREDICTIONS = {
    "another label": lambda file, x, y: records.save_predictions(file, x, np.where(np.arange(len(y)), y, 1 - y)),
    "no number": lambda file, x, y: records.save_predictions(file, x * np.nan, y),
    "another class": lambda file, x, y: records.save_predictions(file, x, y - 1),
    "fewer": lambda file, x, y: records.save_predictions(file, x[1:], y[1:]),
    "another name": lambda file, x, y: np.savez(file, logit=x, labels=y),
    "objects": lambda file, x, y: np.savez(file, logits=x.astype(object), labels=y, allow_pickle=True),
    "a link": lambda file, x, y: file.rename(file.parent / "x.npz") and file.symlink_to("x.npz"),
    "huge": lambda file, x, y: claim(file, (2**50, 2)),
    "cut": lambda file, x, y: file.write_bytes(file.read_bytes()[:100]),
    "gone": lambda file, x, y: file.unlink(),
}


@pytest.mark.parametrize("change", PREDICTIONS)
def test_other_predictions_are_refused(change, put):
    path = put(CLASSIFIER)
    PREDICTIONS[change](path.with_suffix(".npz"), *records.read(path).predictions.values())
    with refused("what was predicted gives" if change == "another label" else "cannot be read"):
        records.read(path)


@pytest.mark.parametrize("loss", [0.0, 1e-12, 1e-8, 1e-3, 1.0, 40.0, 1e4])
def test_a_loss_may_differ_from_the_predictions_by_rounding_alone(loss, put):
    path = put(CLASSIFIER)
    content = json.loads(path.read_text())
    labels = np.zeros(10, dtype=int)
    margin = -np.log(np.expm1(loss)) if 0 < loss < 40 else -loss if loss else 1e3
    logits = np.stack([np.full(10, margin), np.zeros(10)], 1)  # loss = log(1 + e^-margin), as 0 is the true class
    records.save_predictions(path.with_suffix(".npz"), logits, labels)
    content["test"] |= classification_metrics(logits.astype(np.float32), labels)
    for factor, shift, stands in ((1, 0, True), (1 + 2e-6, 2e-8, True), (1 + 1e-3, 1e-3, False)):
        changed = content | {"test": content["test"] | {"loss": content["test"]["loss"] * factor + shift}}
        path.write_text(json.dumps(changed))
        with nullcontext() if stands else refused("says that its test loss is"):
            records.read(path)


def test_an_odd_record_is_left_out_and_named(put, monkeypatch):
    path = put(CLASSIFIER)
    path.with_stem("baseline-seed7").write_text(path.read_text().replace('"schema": 2', '"schema": 3', 1))
    path.with_stem("baseline-seed8").write_text("{")
    assert [record.path for record in records.records()] == [path]
    assert list(records.invalid_files()) == [f"{path.parent.name}/baseline-seed{seed}.json" for seed in (7, 8)]
    with pytest.raises(RtxError):
        records.find(path.parent.name, "baseline", 8)
    monkeypatch.setenv("RTX_BOOK", "1")
    assert records.find(path.parent.name, "baseline", 8) is None


def test_results_are_of_an_experiment_or_of_a_folder_and_suggest_what_is_misspelt(put, home):
    runs = put(CLASSIFIER).parent
    (home / "_build" / "results").mkdir(parents=True)
    assert len(records.results("sst2")) == len(records.results("sst2-10pct")) == len(records.results()) == 1
    for wrong, near in (({"epoch": 5}, "epochs"), ({"modl": "x"}, "model")):
        with refused(f"did you mean '{near}'?"):
            records.results(**wrong)
    for name in ("sst2-10pc", "/", "../..", "*", "[", ""):
        with refused("Unknown experiment or folder"):
            records.results(name)
    runs.rename(home / "_build" / "results" / "sst2-10pct")
    assert len(records.results("sst2-10pct")) == 1


BROKEN = ["", "{", "[1]", "null", "\x00", '{"seconds": NaN}', '{"seconds": 1e400}']
BROKEN += ['{"a": 1, "a": 1}', '{"a": [{"b": 1, "b": 1}]}', '{"a": "\\ud800"}', f'{{"seconds": 1{"0" * 5000}}}']
BROKEN += ["[" * 100_000, '{"a":' * 100_000]


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_one_sentence(content, put):
    path = put(CLASSIFIER)
    for written, said in ((content.encode(), path.name), (b"\xff\xfe" + content.encode(), "is no sound record")):
        path.write_bytes(written)
        with refused(said):
            records.read(path)


NO_FILES = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a link": lambda path: path.symlink_to(RESULTS / f"{CLASSIFIER}.json"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a circle": lambda path: path.symlink_to(path),
    "a hole": lambda path: path.touch() or os.truncate(path, 2**40),
}


@pytest.mark.parametrize("ending", [".json", ".npz"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_regular_file_is_odd_and_never_waited_for(kind, ending, put):
    path = put(CLASSIFIER)
    path.with_suffix(ending).unlink()
    NO_FILES[kind](path.with_suffix(ending))
    assert records.records() == [] and list(records.invalid_files()) == [f"{CLASSIFIER}.json"]
    with refused("is no sound record"):
        records.read(path)


def test_a_folder_that_is_a_link_is_not_entered(put, home):
    path = put(CLASSIFIER)
    (home / "results" / "self").symlink_to(home / "results")
    elsewhere = path.parent.rename(home / "elsewhere")
    path.parent.symlink_to(elsewhere)
    assert records.paths_in(home / "results") == [] == records.records()
    with refused("in a folder that is a symbolic link"):
        records.read(path)


def test_as_many_classes_as_a_task_has_are_kept(tmp_path):
    for classes in (2, 200):
        labels = np.arange(classes)
        records.save_predictions(tmp_path / "p.npz", np.eye(classes), labels)
        assert np.array_equal(np.load(tmp_path / "p.npz")["labels"], labels)


def test_a_file_has_the_old_content_or_the_new(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "a.json"
    paths.write_json(path, {"a": 1})
    for name in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                paths.write_json(path, {"a": 2})
        assert json.loads(path.read_text()) == {"a": 1} and os.listdir(path.parent) == ["a.json"]
