"""Golden runs: today's code gives the recorded numbers, and what proves it finds a difference."""

import copy
import json

import pytest

from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.records import fingerprint, golden

EXPECTED = json.loads(golden.FILE.read_text())


@pytest.mark.parametrize("model", golden.built_in())
def test_the_recorded_numbers_hold(model):
    found = golden.golden_runs([model])
    assert golden.differing(found, {model: EXPECTED[model]}, golden.TOLERANCE) == []
    if "dropout" not in registry.config_of(model).names():  # else the two draw different masks
        fast, plain = ({model: {"fast": numbers}} for numbers in found[model].values())
        assert golden.differing(plain, fast, 1e-4) == []


def test_every_model_is_there_and_registered():
    assert set(EXPECTED) == set(golden.built_in())
    assert golden.unregistered() == []


def test_differences_are_found():
    changed = copy.deepcopy(EXPECTED)
    changed["gpt"]["fast"]["train_loss"][2] *= 1 + 1e-3
    del changed["kausik"]["plain"]["validation_loss"][-1]
    del changed["relaxed"]
    assert golden.differing(EXPECTED, EXPECTED) == []
    wrong = golden.differing(changed, EXPECTED)
    assert wrong[:2] == ["gpt, fast, train_loss", "kausik, plain, validation_loss"] and len(wrong) == 2 + 6
    assert "gpt, fast, train_loss" not in golden.differing(changed, EXPECTED, 2e-3)
    changed["gpt"]["fast"]["train_loss"][2] = float("nan")
    assert "gpt, fast, train_loss" in golden.differing(changed, EXPECTED, 1.0)


def test_only_equal_numbers_are_accepted_and_what_was_accepted_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "SAME_NUMBERS", tmp_path / "same_numbers.json")
    fingerprint.SAME_NUMBERS.write_text('{"commit": null, "hashes": {}, "same": {}}')
    pretended = {"FILE": tmp_path / "golden.json", "golden_runs": lambda: EXPECTED, "_runs_at": lambda commit: EXPECTED}
    for name, value in (pretended | {"measuring": lambda: ["study.measurements.ngrams"]}).items():
        monkeypatch.setattr(golden, name, value)
    fingerprint.registered.cache_clear()
    for today in ("first", "second", "third"):
        monkeypatch.setattr(fingerprint, "model_hash", lambda name, today=today: today)
        monkeypatch.setattr(fingerprint, "module_hash", lambda name, today=today: f"{today} way to measure")
        monkeypatch.setattr(golden, "changed_since", lambda *_, today=today: today == "third")
        golden.main(new=today == "first", accept=True)
        assert golden.unregistered() == []
        assert fingerprint.is_current(["first way to measure"], "second way to measure") == (today == "second")
    assert fingerprint.is_current(["first", "second"], "third") and not fingerprint.is_current(["third"], "first")
    assert not fingerprint.is_current(["second way to measure"], "third way to measure")
    monkeypatch.setattr(golden, "golden_runs", dict)
    with pytest.raises(RtxError, match="give other numbers than recorded: baseline, fast, gradient_norm"):
        golden.main(accept=True)
    fingerprint.registered.cache_clear()


def test_a_measuring_module_that_says_something_else_is_not_accepted(monkeypatch):
    module = "study.measurements.transfer"
    source = golden.REPOSITORY.joinpath(*module.split(".")).with_suffix(".py").read_text()

    def then(text):
        monkeypatch.setattr(fingerprint, "git", lambda *_: text)
        return golden.changed_since("0" * 40, module)

    assert not then(source + "# a remark\n")
    assert then(source + "MORE = 1\n") and then(None)
