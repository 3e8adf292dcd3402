"""Records: checked when read, and replaced whole or not at all."""

import copy
import json
import os

import numpy as np
import pytest
from factory import SST2, content, predictions, saved

from rtx_core.errors import RtxError
from rtx_core.parameters import settings
from rtx_core.paths import PACKAGE
from rtx_core.results import record as record_module
from rtx_core.results import store
from rtx_core.results.record import check, read, read_json, run_key

SYNTHETIC = settings("sst2", {"source": "embedded"})
SCHEMA = json.loads((PACKAGE / "results" / "record.schema.json").read_text())


def one_sentence(error) -> str:
    text = str(error.value)
    assert "\n" not in text and text.endswith(".") and text.count(". ") == 0, text
    return text


# -- the schema -------------------------------------------------------------------------------------------------------


def required(schema: dict, path: tuple = ()) -> list[tuple]:
    """Path of every key that the schema demands, however deep."""
    found = [(*path, key) for key in schema.get("required", [])]
    for key, below in schema.get("properties", {}).items():
        found += required(below, (*path, key))
        found += required(below.get("items", {}), (*path, key, 0))
    return found


def at(tree, path: tuple):
    for step in path:
        tree = tree[step]
    return tree


@pytest.mark.parametrize("asked", [SST2, SYNTHETIC])
def test_valid_record_passes(asked):
    made = content(asked)
    assert check(copy.deepcopy(made), "x") == made


def test_required_keys_are_found_at_every_depth():
    assert {("schema",), ("test", "accuracy"), ("history", 0, "step"), ("latency", "measured", 0, "batch")} <= set(required(SCHEMA))


@pytest.mark.parametrize("path", required(SCHEMA), ids=lambda path: ".".join(map(str, path)))
def test_missing_key_is_named(path):
    made = copy.deepcopy(content(SST2))
    del at(made, path[:-1])[path[-1]]
    with pytest.raises(RtxError) as error:
        check(made, "sst2/a.json")
    said = one_sentence(error)
    where = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path[:-1])
    assert said.startswith("sst2/a.json ") and f"at {where}, '{path[-1]}' is a required property" in said


def test_extra_key_is_named():
    with pytest.raises(RtxError) as error:
        check(content(SST2) | {"surplus": 1}, "sst2/a.json")
    assert "'surplus' was unexpected" in one_sentence(error)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2), (("schema",), "1"), (("key",), "XYZ"), (("experiment",), ""), (("model",), None), (("seed",), "0"), (("seed",), -1),
        (("seed",), True), (("seed",), 0.5), (("protocol",), "quick"), (("config", "training"), []), (("data", "source"), "web"),
        (("data", "sha256"), "d" * 63), (("data", "n_test"), 0), (("parameters", "total"), 1.5), (("size_mb",), 0), (("history",), []),
        (("history", 0), 3), (("test", "accuracy"), 1.01), (("test", "f1"), "0.8"), (("test", "loss"), -0.1), (("test", "confusion", 0, 1), -1),
        (("latency", "measured"), {}), (("code", "fingerprints"), []), (("code", "fingerprints", 0), "g" * 64), (("seconds",), None),
        (("finished",), 20240102),
    ],
)  # fmt: skip
def test_wrong_value_is_refused_and_its_place_named(path, value):
    made = copy.deepcopy(content(SST2))
    at(made, path[:-1])[path[-1]] = value
    with pytest.raises(RtxError) as error:
        check(made, "sst2/a.json")
    where = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    assert f"at {where}, " in one_sentence(error)


@pytest.mark.parametrize("value", [[], None, "record", 1])
def test_what_is_no_object_is_no_record(value):
    with pytest.raises(RtxError, match=r"at \$, "):
        check(value, "sst2/a.json")


@pytest.mark.parametrize("altered", [{"seed": 1}, {"key": "0" * 24}, {"config": {"model": {}, "training": {}}}, {"data": {"sha256": "e" * 64}}])
def test_record_whose_key_does_not_follow_from_it_is_refused(altered):
    made = content(SST2)
    false = made | {k: made[k] | v if k == "data" else v for k, v in altered.items()}
    with pytest.raises(RtxError) as error:
        check(false, "sst2/a.json")
    assert one_sentence(error).startswith("sst2/a.json was altered: its key does not follow")


def test_record_that_selects_what_never_was_is_refused():
    with pytest.raises(RtxError) as error:
        check(content(SST2, selected={"step": 150, "validation_loss": 0.4}), "sst2/a.json")
    assert "selects step 150, which is not in its history" in one_sentence(error)


def test_schema_version_is_the_one_that_is_written():
    assert SCHEMA["properties"]["schema"] == {"const": record_module.VERSION}


def test_run_key_depends_on_configuration_data_and_seed_but_not_on_order():
    config = {"model": {"a": 1, "b": 2.0}, "training": {"c": "x"}}
    turned = {"training": {"c": "x"}, "model": {"b": 2.0, "a": 1}}
    key = run_key(config, "d" * 64, 0)
    assert key == run_key(turned, "d" * 64, 0) and len(key) == 24
    changed = {"model": {"a": 1, "b": 2.0}, "training": {"c": "y"}}
    assert len({key, run_key(changed, "d" * 64, 0), run_key(config, "e" * 64, 0), run_key(config, "d" * 64, 1)}) == 4


# -- files ------------------------------------------------------------------------------------------------------------


def versioned(number):
    return lambda text: json.dumps(json.loads(text) | {"schema": number})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "is not readable as JSON"),
        (lambda text: "", "is not readable as JSON"),
        (lambda text: "\xff\xfe", "is not readable as JSON"),
        (versioned(0), r"no record of schema 1: at \$\.schema"),
        (versioned(2), r"no record of schema 1: at \$\.schema"),
    ],
)
def test_damaged_file_is_one_sentence_and_left_as_it_is(damage, said):
    path = saved(SST2).path
    path.write_bytes(damage(path.read_text()).encode("latin-1"))
    before = path.read_bytes()
    for reading in (lambda: read(path), lambda: store.find("hub", "sst2", "baseline", 0)):
        with pytest.raises(RtxError, match=said) as error:
            reading()
        assert one_sentence(error).startswith("sst2/baseline-seed0.json ")
    assert path.read_bytes() == before


def test_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RtxError, match="not readable as JSON"):
        read_json(tmp_path / "none.json")


def test_record_without_its_predictions_says_so():
    made = saved(SST2)
    made.path.with_suffix(".npz").unlink()
    before = made.path.read_bytes()
    with pytest.raises(RtxError, match="^baseline-seed0.npz beside its record cannot be read"):
        read(made.path).predictions
    assert made.path.read_bytes() == before


@pytest.mark.parametrize("damage", [lambda good: b"", lambda good: good[: len(good) // 2], lambda good: b"junk" * 9])
def test_damaged_predictions_are_one_sentence(damage):
    made = saved(SST2)
    path = made.path.with_suffix(".npz")
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(RtxError, match="cannot be read .*; restore it from git"):
        made.predictions
    assert path.read_bytes() == before


def test_predictions_without_labels_are_one_sentence():
    made = saved(SST2)
    np.savez(made.path.with_suffix(".npz"), logits=np.zeros((2, 2)))
    with pytest.raises(RtxError, match="cannot be read .*labels"):
        made.predictions


def test_predictions_are_never_unpickled():
    made = saved(SST2)
    np.savez(made.path.with_suffix(".npz"), logits=np.array([print], dtype=object), labels=np.zeros(1))
    with pytest.raises(RtxError, match="cannot be read"):
        made.predictions


def test_no_number_is_no_record():
    made = saved(SST2)
    made.path.write_text(made.path.read_text().replace('"accuracy": 0.8,', '"accuracy": NaN,'))
    with pytest.raises(RtxError, match="NaN is no number of JSON"):
        read(made.path)


# -- the store --------------------------------------------------------------------------------------------------------


def test_what_is_saved_is_found_again():
    logits, labels = predictions(range(7))
    made = store.save(content(SST2, "recurrent", 3, range(7)), logits, labels)
    found = store.find("hub", "sst2", "recurrent", 3)
    assert found == made and found.content == content(SST2, "recurrent", 3, range(7))
    assert np.array_equal(found.predictions["logits"], logits) and np.array_equal(found.predictions["labels"], labels)
    assert store.find("hub", "sst2", "recurrent", 4) is None and store.find("embedded", "sst2", "recurrent", 3) is None


@pytest.mark.parametrize(("experiment", "model", "seed"), [("sst2", "baseline", 1), ("sst2", "recurrent", 0), ("sst2-epochs1", "baseline", 0)])
def test_record_under_the_name_of_another_run_is_refused(experiment, model, seed):
    path = store.path_of("hub", experiment, model, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    saved(SST2).path.rename(path)
    with pytest.raises(RtxError, match="holds the record of sst2, baseline, seed 0; move it to where it belongs"):
        store.find("hub", experiment, model, seed)
    assert path.exists()


def test_synthetic_records_lie_apart_from_real_ones(home):
    assert saved(SYNTHETIC).path == home / "_build/results/sst2/baseline-seed0.json" and saved(SYNTHETIC).synthetic
    assert not (home / "results").exists()
    for source in ("hub", "mirror"):
        made = saved(settings("sst2", {"source": source}))
        assert made.path == home / "results/sst2/baseline-seed0.json" and not made.synthetic


def test_nothing_is_written_of_what_is_no_record(home):
    with pytest.raises(RtxError):
        saved(SST2, seconds=-1)
    assert list(home.rglob("*.*")) == []


def test_crash_while_replacing_leaves_the_old_record_and_no_rubbish(monkeypatch):
    made = saved(SST2)
    folder = made.path.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"baseline-seed0.json", "baseline-seed0.npz"}

    def crash(source, target):
        assert os.path.getsize(source) > 0
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        saved(SST2, wrong=range(5))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_crash_before_the_first_record_leaves_none(home, monkeypatch):
    def crash(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="disk full"):
        saved(SST2)
    assert store.find("hub", "sst2", "baseline", 0) is None and [p for p in home.rglob("*") if p.is_file()] == []


def test_predictions_of_another_run_are_refused():
    made = saved(SST2, wrong=range(40))
    other = saved(SST2, seed=1, wrong=range(30))
    made.path.with_suffix(".npz").write_bytes(other.path.with_suffix(".npz").read_bytes())
    with pytest.raises(RtxError, match="baseline-seed0.npz holds the predictions of another run than its record"):
        made.predictions
