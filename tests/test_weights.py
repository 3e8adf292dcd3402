"""Weights: those of the clone are their records', what is altered does not load, and equal models have equal hashes."""

import itertools
import json
import os
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from committed import put
from conftest import CPU, NO_AUTOCAST, refused
from reference import TINY
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

import rtx_core as rtx
from rtx_core import data, records
from rtx_core.data.sources import sha256_of
from rtx_core.data.tasks import losses_of
from rtx_core.experiments import doctor, weights
from rtx_core.foreign import InvalidFile
from rtx_core.models import build_model, save_model
from rtx_core.paths import REPOSITORY
from rtx_core.records import migrate, released
from study.demo import explorer
from study.experiments import EXPERIMENTS

WEIGHTS = sorted((REPOSITORY / "results/weights").glob("*/*.safetensors"))
ADDRESSES = [f"{path.parent.name}/{path.stem}" for path in WEIGHTS]
ONE = "khop/1x4-seed6"


@cache  # several records are of one set
def task_of(experiment: str, fields: str, batch_size: int):
    return data.task(data.config_of(json.loads(fields), type(EXPERIMENTS[experiment].data)), batch_size)


@pytest.mark.parametrize("address", ADDRESSES)
def test_weights_in_the_clone_give_the_first_batch_of_their_records_test(address, home, request):
    """The hash, and the mean loss of the test's first batch at the trained number of passes."""
    (home / "results").symlink_to(REPOSITORY / "results")
    record = records.load(address)
    if record["data"]["source"] != "generated":
        request.getfixturevalue("real_mirror")
    assert record["tensors_sha256"] and released.matches_record(record, released.released_weights(record.path))
    config, model = record["config"], rtx.load(record).model
    task = task_of(record["experiment"], json.dumps(config["data"]), config["train"]["batch_size"])
    batches = list(itertools.islice(task.test_batches(), 1))
    if hasattr(task, "evaluate_batches"):
        losses, sizes, _ = task.evaluate_batches(model, batches, CPU, NO_AUTOCAST)
    else:
        losses, sizes = losses_of(model, batches, CPU, NO_AUTOCAST)
    near = 1e-3 if getattr(model.config, "num_passes", 1) > 12 else 1e-4  # rounding adds up in deep loops
    assert losses.tolist() == pytest.approx(record["test"]["batch_losses"][:1], rel=near, abs=1e-6)
    assert int(sizes.sum()) == record["test"]["batch_sizes"][0]


def test_every_looped_model_of_the_explorer_can_be_exported_from_a_clone():
    exported = explorer.exported(REPOSITORY / "book/demo/models")
    assert set(exported) - {"sst2/recurrent-seed0"} <= set(ADDRESSES)  # which has 11 million


def test_a_model_saved_twice_has_one_hash_and_another_model_another(tmp_path):
    path, found = tmp_path / "m.safetensors", set()
    for _ in range(12):
        save_model(build_model("looped", seed=1, **TINY), "looped", path, run="a", classes=["no", "yes"])
        found.add(released.tensors_sha256(path.read_bytes()))
    (same,) = found
    tensors = load_file(path)
    name = next(iter(tensors))
    header = {"model": "looped", "config": "{}", "about": "{}"}
    others = [
        (tensors, header | {"about": '{"run": "b"}'}),
        ({**tensors, name: tensors[name] + 1e-6}, header),
        ({**tensors, name: tensors[name].half()}, header),
        ({**tensors, name: tensors[name][None]}, header),
        ({**tensors, "more": torch.zeros(1)}, header),
        (tensors, header),
    ]
    hashes = [released.tensors_sha256(save(changed, about)) for changed, about in others]
    assert len({*hashes, same}) == len(others) + 1
    for junk in (b"", b"\xff" * 99, b"\2" + b"\0" * 7 + b"[]", save({})[:9]):
        with pytest.raises(InvalidFile):
            released.tensors_sha256(junk)


def rewritten(path, edit) -> None:
    """The file with other tensors and the same header."""
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    save_file(edit(load_file(path)), path, metadata=header)


NORM = "norm.weight"
MISFITS = {  # what no model is loaded from, whoever vouches for it
    "not finite": lambda tensors: tensors | {NORM: tensors[NORM].log() - torch.inf},
    "holds a number": lambda tensors: tensors | {NORM: tensors[NORM] * torch.nan},
    "torch.float16": lambda tensors: {name: tensor.half() for name, tensor in tensors.items()},
    "torch.int8": lambda tensors: tensors | {NORM: tensors[NORM].to(torch.int8)},
    "shape (1, 64)": lambda tensors: tensors | {NORM: tensors[NORM][None]},
    "'norm.weight' is missing": lambda tensors: {name: tensor for name, tensor in tensors.items() if name != NORM},
    "'more' is no weight": lambda tensors: tensors | {"more": tensors[NORM].clone()},
}


@pytest.mark.parametrize("said", MISFITS)
def test_tensors_that_are_not_the_model_s_are_refused_without_any_hash(said, home):
    record = records.read(put(home, ONE, tensors_sha256=None))
    assert rtx.load(record).model.about["run"] == record["key"]
    rewritten(released.released_weights(record.path), MISFITS[said])
    with refused(said, released.released_weights(record.path)):
        rtx.load(record)


def found(level: str) -> list[tuple[str, str]]:
    """What the doctor says of weights at a level, and what to type."""
    return [(said, command) for of, said, command in doctor.weights() if of == level]


def test_weights_larger_than_what_is_read_are_not_kept(home, monkeypatch):
    """As of a small model with a large mask; they stay where the run was made."""
    monkeypatch.setattr(released, "MAX_BYTES", 1000)
    record = rtx.run("khop", "1x1", steps=2, batch_size=8, eval_every=2, eval_texts=16, test_texts=16, timed=1).record
    assert "tensors_sha256" not in record.content and not released.released_weights(record.path).exists()
    assert rtx.load(record) and not found("wrong")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_weights_and_a_tokenizer_that_are_no_files_are_not_waited_for(make, home):
    record = records.read(put(home, ONE))
    released.released_weights(record.path).unlink()
    make(released.released_weights(record.path))
    with refused("are not here"):
        rtx.load(record)
    (home / "mine").mkdir()
    make(home / "mine" / "tokenizer.json")
    with refused("tokenizer.json"):
        _ = weights.Predictor(SimpleNamespace(about={}), home / "mine").tokenizer
    make(home / "mine" / "model.safetensors")
    with refused("no file"):
        rtx.load(home / "mine")


def test_altered_weights_are_refused_and_told(home):
    record = records.read(put(home, ONE))
    path = released.released_weights(record.path)
    assert found("wrong") == found("warning") == [] and rtx.load(record)
    rewritten(path, lambda tensors: tensors | {NORM: tensors[NORM].nextafter(torch.tensor(9.0))})
    with refused(path.name, "altered"):
        rtx.load(record)
    ((said, command),) = found("wrong")
    assert str(record) in said and str(path) in command
    path.write_bytes(path.read_bytes()[:999])
    with refused(path.name):
        rtx.load(record)
    assert len(found("wrong")) == 1
    path.unlink()
    ((said, command),) = found("warning")
    assert str(record) in said and "git checkout" in command and found("wrong") == []
    weights.local_weights(record).parent.mkdir(parents=True)
    weights.local_weights(record).write_bytes(WEIGHTS[ADDRESSES.index(ONE)].read_bytes())
    assert found("warning")[0][1].startswith("cp ") and rtx.load(record)
    put(home, ONE).unlink()
    assert [said for said, _ in found("wrong")] and found("warning") == []


def test_a_record_of_the_older_form_is_read_and_brought_to_today_s(home, capsys):
    """It has the hash of the file, or none; what does not agree with that stays as it is."""
    path = put(home, ONE, tensors_sha256=None)
    today, file = json.loads(put(home, ONE).read_text()), released.released_weights(path)
    assert migrate.migrate(today) == today
    for hashed in (None, sha256_of([file.read_bytes()])):
        older = {key: value for key, value in today.items() if key != "tensors_sha256"}
        older |= {"weights": hashed} if hashed else {}
        path.write_text(json.dumps(older))
        assert rtx.load(ONE).model and len(found("wrong")) == (hashed is None)
        assert released.name_tensors(older) == today
        rewritten(file, lambda tensors: tensors | {NORM: tensors[NORM] + 1})
        assert (released.name_tensors(older) == older) == bool(hashed)
        put(home, ONE)
    migrate.main()
    assert records.read(path).content["tensors_sha256"] == today["tensors_sha256"]
    other = today | {"key": "0" * 24, "tensors_sha256": None}
    del other["tensors_sha256"]
    assert released.name_tensors(other) == other  # of another run
    file.write_bytes(b"no weights")
    del today["tensors_sha256"]
    assert released.name_tensors(today) == today
