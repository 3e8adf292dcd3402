"""The doctor says in plain words what is not in order, and what to type."""

import fcntl
import os
import shutil

import pytest
from committed import altered, put

from rtx_core.__main__ import main
from rtx_core.experiments import doctor


def test_data_is_read_and_what_is_not_there_is_said(tmp_path, monkeypatch):
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text("To be")
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    found = list(doctor.data())
    assert [said for level, said, _ in found if level == "wrong"][0].count("SHA-256") == 1
    assert sum("name the mirror's folder" in said for _, said, _ in found) == len(found) - 1


def test_an_unfinished_run_comes_with_the_line_that_finishes_it(home):
    run, lock = "runs/sst2/baseline-seed0-abc", home / "_build" / "locks" / "sst2-baseline-seed0"
    for path in (home / "_build" / run / "checkpoint.safetensors", lock):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{run}\npython -m rtx_core run sst2 baseline\n")
    told = ("warning", f"{run} is not finished", "python -m rtx_core run sst2 baseline")
    assert list(doctor.unfinished()) == [told]
    lock.with_name("a").write_bytes(b"\xff")
    os.mkfifo(lock.with_name("b"))
    assert list(doctor.unfinished()) == [told]  # whatever else lies there
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [level for level, said, _ in doctor.unfinished() if run in said] == ["ok"]


def test_links_that_a_zip_lost_are_told(tmp_path, monkeypatch):
    assert list(doctor.links()) == []
    monkeypatch.setattr(doctor, "REPOSITORY", tmp_path)
    (tmp_path / "book").mkdir()
    (tmp_path / "book/notebooks").write_text("../notebooks")
    ((level, said, advice),) = doctor.links()
    assert (level, advice) == ("wrong", "make whole") and said.startswith("book/notebooks has to be a link")


@pytest.mark.parametrize("place", ["/proc", "/proc/1/results"])
def test_a_home_that_cannot_be_written_is_wrong(place, monkeypatch):
    monkeypatch.setenv("RTX_HOME", place)
    assert [said for level, said, _ in doctor.machine() if level == "wrong" and "cannot be written" in said]


def test_a_folder_that_is_a_link_is_wrong(home):
    (home / "results").mkdir()
    (home / "results" / "self").symlink_to(home / "results")
    assert ["symbolic link" in said for level, said, _ in doctor.records() if level == "wrong"] == [True]


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


RUN = "sst2-10pct/baseline-seed0"
INT8 = "precision/sst2-10pct/baseline-seed0-int8"
WORDS = "yardstick/sst2-10pct/bag-of-words-seed0"
ASKED = "khop/1x6-random-add-seed5"  # of these 4,000 steps, a third more than those of the others
TAKEN = [RUN, INT8, WORDS, ASKED, "khop/1x1-seed5", "sst2-10pct/recurrent-seed0", "sst2-10pct/baseline-seed1"]
TAKEN += ["tinystories-report-reduced/frailt-seed0", "tinystories-report-reduced/control-long-seed0"]
TAKEN += ["shakespeare-small-learningrate0.003/gpt-6-time-seed0", "shakespeare-report-reduced/gpt-2-seed0"]
LIES = [  # (record, what is changed, what is said of it)
    (RUN, {"test__f1": 0.9}, "f1"),
    (RUN, {"finished": "2999-01-01T00:00:00+00:00"}, "in the future"),
    (ASKED, {"asked__settings": {"seed": 3, "model": []}}, ASKED),
    (RUN, {"selected__validation_loss": 0.01}, "does not select the best step"),
    (ASKED, {"budget": "reduced"}, "budget reduced instead of full"),
    (ASKED, {"config__data__letters": 16}, "letters 16 instead of 32"),
    (ASKED, {"asked__settings": {"steps": 9000}}, "name khop instead of khop-steps9000"),
    (INT8, {"run": "0" * 24}, "of the run 0000"),
    (INT8, {"data__source": "embedded"}, "generated text"),
    (WORDS, {"data__sha256": "0" * 64}, "do not mix them"),
]


def test_records_are_counted_again_and_one_that_lies_is_told(home):
    for name in TAKEN:
        put(home, name)
    own = shutil.copytree(home / "results" / "sst2-10pct", home / "results" / "own-mine")
    for path in own.glob("*.json"):  # of own data: the study does not know what it is called
        altered(path, experiment="own-data", name="own-mine")
    copy = home / "results" / RUN.replace("/", "/.ipynb_checkpoints/")  # as an editor leaves it
    copy.parent.mkdir()
    copy.with_name(f"{copy.name}-checkpoint.json").write_text("{}")
    assert [said for level, said, _ in doctor.records() if level == "wrong"] == []
    for name, changes, said in LIES:
        put(home, name, **changes)
        told = [(found, do) for level, found, do in doctor.records() if level == "wrong"]
        assert len(told) >= 1 and said in told[0][0] and (not told[0][1] or told[0][1].startswith("git checkout -- "))
        put(home, name)
