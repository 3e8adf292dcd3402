"""The doctor says in plain words what is not in order, and what to type."""

import fcntl
import json
import shutil
from types import SimpleNamespace

import pytest

from rtx_core.__main__ import main
from rtx_core.experiments import doctor
from rtx_core.paths import REPOSITORY


def test_packages_are_compared_with_the_lock(monkeypatch):
    lock = (REPOSITORY / "requirements.lock").read_text().splitlines()
    locked = (line.split("==") for line in lock if "==" in line)
    here = [SimpleNamespace(name=name, version=version) for name, version in locked]
    monkeypatch.setattr(doctor, "distributions", lambda: here)
    assert [level for level, *_ in doctor.packages()] == ["ok"]
    here[0].version, here[1].version = "0.0.1", f"{here[1].version}+cpu"
    del here[2:4]
    (missing, said, do), (other, *_) = doctor.packages()
    assert (missing, other) == ("wrong", "warning")
    assert "2 packages are not installed" in said and "requirements.lock" in do


@pytest.mark.parametrize("kind", ["a file", "missing", "an empty folder"])
def test_data_that_is_none_is_said_and_fails(kind, tmp_path, monkeypatch, capsys):
    place = tmp_path / "data"
    if kind != "missing":
        place.touch() if kind == "a file" else place.mkdir()
    monkeypatch.setenv("RTX_DATA", str(place))
    assert doctor.main() == 1 and "none of the data lies  →  export RTX_DATA" in capsys.readouterr().out


def test_data_is_read_and_what_is_not_there_is_said(tmp_path, monkeypatch):
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text("To be")
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    found = list(doctor.data())
    assert [said for level, said, _ in found if level == "wrong"][0].count("SHA-256") == 1
    assert sum("so what needs it cannot run here" in said for _, said, _ in found) == len(found) - 1


def test_records_are_counted_again_from_their_predictions(home):
    for name in ("sst2-10pct", "yardstick/sst2-10pct", "tinystories-report-reduced"):
        shutil.copytree(REPOSITORY / "results" / name, home / "results" / name)
    own = shutil.copytree(home / "results" / "sst2-10pct", home / "results" / "own-mine")
    for path in own.glob("*.json"):  # of own data: the catalogue does not know what it is called
        content = json.loads(path.read_text()) | {"experiment": "own-data", "name": "own-mine"}
        path.write_text(json.dumps(content))
    assert [level for level, *_ in doctor.records() if level == "wrong"] == []
    path = home / "results" / "sst2-10pct" / "baseline-seed0.json"
    content = json.loads(path.read_text())
    content["test"]["f1"] += 0.01
    path.write_text(json.dumps(content))
    wrong = [(said, do) for level, said, do in doctor.records() if level == "wrong"]
    assert len(wrong) == 1 and "f1" in wrong[0][0] and wrong[0][1].startswith("git checkout -- ")


def test_an_unfinished_run_comes_with_the_line_that_finishes_it(home):
    run, lock = "runs/sst2/baseline-seed0-abc", home / "_build" / "locks" / "sst2-baseline-seed0"
    half = home / "results" / "sst2" / ".x.json.abc"
    for path in (home / "_build" / run / "checkpoint.safetensors", lock, half):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{run}\npython -m rtx_core run sst2 baseline\n")
    found = list(doctor.unfinished())
    assert ("warning", f"{run} is not finished", "python -m rtx_core run sst2 baseline") in found
    assert found[-1][2].startswith("rm ") and len(found) == 2
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [level for level, said, _ in doctor.unfinished() if run in said] == ["ok"]


def test_a_check_that_dies_is_a_finding(monkeypatch, capsys):
    def dies():
        yield "ok", "one", ""
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(doctor, "machine", dies)
    assert doctor.main() == 1
    assert "The check of dies ended early: No module named 'torch'" in capsys.readouterr().out


def test_warnings_alone_do_not_fail(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["rtx", "doctor"])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr().out
    assert "RTX_DATA is not set" in out and end.value.code == ("0 wrong" not in out)
