"""The doctor: what it finds is there, what is broken is named with what to type, and it needs no torch to say so."""

import json
import shlex
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError

import numpy as np
import pandas as pd
import pytest
from factory import SST2, content, saved
from mirror import changed_label
from survival import COMMANDS, at_step, born, checkpoints, command, die, lived, mortal, often, pause, records, run, until

from rtx_core import doctor, paths
from rtx_core.results import measurement
from rtx_core.run import alone

WEIGHTS = {"kind": "yardstick", "of": "sst2", "name": "bag-of-words-seed0"}


def found(check, level: str = "") -> list[str]:
    return [str(finding) for finding in check() if finding.level.startswith(level)]


def one(check, level: str) -> str:
    (said,) = found(check, level)
    return said


@pytest.fixture
def at(monkeypatch):
    """Look at another home."""
    return lambda home: monkeypatch.setenv("RTX_HOME", str(home))


# -- what a run needs --------------------------------------------------------------------------------------------------


def test_packages_of_the_lock_are_compared(monkeypatch):
    locked = dict(line.split("==") for line in (paths.REPOSITORY / "requirements.lock").read_text().splitlines() if "==" in line)

    def version(name: str) -> str:
        if name == "scipy":
            raise PackageNotFoundError
        return "0.0.1" if name == "numpy" else locked[name]

    monkeypatch.setattr(doctor, "version", version)
    assert f"numpy 0.0.1 instead of {locked['numpy']}" in one(doctor.packages, "warning")
    assert one(doctor.packages, "wrong") == f"wrong    Not installed: scipy  →  {doctor.INSTALL}"
    monkeypatch.setattr(doctor, "version", lambda name: locked[name] + "+cpu")
    assert len(found(doctor.packages, "ok")) == 2 == len(found(doctor.packages))


def test_old_python_is_wrong(monkeypatch):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10))
    assert "3.11 or newer is needed  →  make PYTHON=" in one(doctor.packages, "wrong")


def test_compiler_is_looked_for(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "/bin/g++" if name == "g++" else None)
    assert any("torch.compile finds g++" in said for said in found(doctor.backends, "ok"))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert "no C++ compiler" in one(doctor.backends, "warning")


def test_everything_else_is_told_without_torch():
    source = "import sys; sys.modules['torch'] = None; from rtx_core.doctor import main; main([])"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and done.stderr == ""
    assert f"wrong    torch is not installed: no backends checked  →  {doctor.INSTALL}" in done.stdout
    assert "GiB free" in done.stdout and "RTX_DATA is not set" in done.stdout and done.stdout.count("wrong ") == 1


@pytest.mark.parametrize(("gib", "level"), [(0.5, "wrong"), (3, "warning"), (300, "ok")])
def test_disk_space_is_weighed(gib, level, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, int(gib * 2**30)))
    assert f"{gib:,.1f} GiB free" in one(doctor.disk, level)


def test_data_is_checked_by_its_hash(mirror):
    assert [said for said in found(doctor.data, "ok")] == [
        f"ok       RTX_DATA: {files} as expected, by hash"
        for files in ("sst2/train.parquet and sst2/validation.parquet", "sst2/pooled_splits.parquet", "bert-base-uncased/vocab.txt")
    ]
    assert len(found(doctor.data, "warning")) == 5 and found(doctor.data, "wrong") == []  # the tiny mirror has no more
    path = mirror / "sst2" / "train.parquet"
    changed_label(pd.read_parquet(path)).to_parquet(path)
    assert all("content hash" in said and "fetch it again" in said for said in found(doctor.data, "wrong"))
    assert found(doctor.data, "wrong") and "vocab.txt" in one(doctor.data, "ok")


def test_hub_is_asked_only_if_told(capsys):
    with pytest.raises(SystemExit):
        doctor.main([])
    assert "hub does not give" not in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:  # the tests are offline
        doctor.main(["--hub"])
    assert end.value.code == 1 and "The hub does not give stanfordnlp/sst2 (" in capsys.readouterr().out


# -- what runs left ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMMANDS)
def test_unfinished_run_is_named_with_the_line_that_finishes_it(kind, tmp_path, at):
    home = tmp_path / "home"
    lived(home, run(kind), often, partial(at_step, 8, die))
    at(home)
    said, _, line = one(doctor.unfinished, "warning").partition("  →  ")
    assert said.startswith("warning  Unfinished at step 7: ") and checkpoints(home)[0].parent.name in said
    python, m, *words = shlex.split(line)
    assert (python, m) == ("python", "-m") and lived(home, partial(command, *words)).ends() == 0
    assert len(records(home)) == 1 and found(doctor.unfinished) == []


def test_run_that_goes_on_is_not_called_unfinished(tmp_path, at):
    home = tmp_path / "home"
    life = born(home, run("classifier"), often, partial(at_step, 5, partial(pause, home)))
    until((home / "paused").exists)
    at(home)
    assert "Held by a process that trains it now: _build-results-sst2-" in one(doctor.unfinished, "")
    (home / "go").touch()
    assert life.ends() == 0 and found(doctor.unfinished) == []


def test_checkpoint_of_a_recorded_run_and_half_a_file_are_rubbish(tmp_path, at):
    home = tmp_path / "home"
    listed = [line for line in lived(tmp_path / "0", run("language"), mortal).said.splitlines() if line.startswith("moment: ")]
    lived(home, run("language"), partial(mortal, len(listed) - 3))  # the record half written
    at(home)
    half, unfinished = sorted(found(doctor.unfinished, "warning"))
    assert "A process was killed while it wrote .kausik-seed0.json." in half and "Unfinished at step 9" in unfinished
    kept = checkpoints(home)[0]
    content = kept.read_bytes()
    assert lived(home, run("language")).ends() == 0
    kept.write_bytes(content)  # as a kill between the record and the end of the process leaves it
    rubbish = found(doctor.unfinished, "warning")
    assert len(rubbish) == 2 and "is recorded and needs no checkpoint any more" in rubbish[0]
    for said in rubbish:
        subprocess.run(said.partition("  →  ")[2], shell=True, check=True)
    assert found(doctor.unfinished) == []


def test_checkpoint_of_an_old_record_that_is_made_anew_is_wanted(tmp_path, at):
    home = tmp_path / "home"
    lived(home, run("classifier"))
    (path,) = records(home)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"code": {"commit": None, "clean": False, "fingerprints": ["0" * 64]}}))
    lived(home, run("classifier"), often, partial(at_step, 8, die))
    at(home)
    assert "Unfinished at step 7" in one(doctor.unfinished, "warning")


def test_damaged_checkpoint_is_named(tmp_path, at):
    home = tmp_path / "home"
    lived(home, run("language"), often, partial(at_step, 8, die))
    checkpoints(home)[0].write_bytes(b"")
    at(home)
    damaged, unfinished = sorted(found(doctor.unfinished, "warning"), key=lambda said: "Unfinished" in said)
    assert "/checkpoint.safetensors is damaged" in damaged and "Unfinished at step 6" in unfinished
    checkpoints(home)[1].write_bytes(b"")
    assert any("Unfinished without a sound checkpoint" in said for said in found(doctor.unfinished))


def test_lock_without_words_is_no_trouble(home):
    with alone(home / "results" / "sst2" / "baseline-seed0.json"):
        assert one(doctor.unfinished, "ok") == "ok       Held by a process that trains it now: results-sst2-baseline-seed0"
    assert found(doctor.unfinished) == []


def yardstick():
    entries = {name: content(SST2)[name] for name in ("model", "seed", "protocol", "data", "environment", "test")}
    return measurement.save({**entries, **WEIGHTS, "code": measurement.made_by("yardstick")})


def test_sound_records_are_counted():
    for seed in (0, 1):
        saved(SST2, seed=seed)
    yardstick()
    assert sorted(found(doctor.records)) == ["ok       results/ has 1 measurements", "ok       results/ has 2 classifiers"]
    saved(SST2, seed=2, code={"commit": "c0ffee", "clean": True, "fingerprints": ["0" * 64]})
    assert one(doctor.records, "warning") == "warning  results/ has 3 classifiers, 1 made by other code than today's  →  python -m rtx_core.paper"


def broken_json(path):
    path.write_text(path.read_text()[:-20])


def other_predictions(path):
    saved(SST2, seed=1, wrong=range(10)).path.with_suffix(".npz").replace(path.with_suffix(".npz"))
    path.with_stem("baseline-seed1").unlink()


def other_name(path):
    for suffix in (".json", ".npz"):
        path.with_suffix(suffix).rename(path.with_name(f"baseline-seed5{suffix}"))


def no_predictions(path):
    path.with_suffix(".npz").unlink()


def no_record(path):
    np.savez(path.with_name("orphan.npz"), logits=np.zeros(1))


def altered(path):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": 3}))


@pytest.mark.parametrize(("damage", "said"), [
    (broken_json, "sst2/baseline-seed0.json is not readable as JSON"), (altered, "its key does not follow from its configuration"),
    (other_predictions, "sst2/baseline-seed0.json has predictions that do not give its accuracy  →  git checkout "),
    (other_name, "sst2/baseline-seed5.json holds the record of another run  →  mv "),
    (no_predictions, "baseline-seed0.npz beside its record cannot be read"),
    (no_record, "sst2/orphan.npz holds predictions without a record  →  rm "),
])  # fmt: skip
def test_unsound_record_is_wrong(damage, said, capsys):
    damage(saved(SST2).path)
    assert said in one(doctor.records, "wrong")
    with pytest.raises(SystemExit) as end:
        doctor.main([])
    printed = capsys.readouterr().out.splitlines()
    assert end.value.code == 1 and any(said in line for line in printed) and printed[-1].endswith("1 wrong")
    assert all(line.startswith(("ok  ", "warning  ", "wrong  ")) for line in printed[:-1])


def test_git_is_told(monkeypatch):
    monkeypatch.setattr("rtx_core.results.code.code", lambda: {"commit": "c0ffee0123456789", "clean": True})
    monkeypatch.setattr("rtx_core.results.code._git", lambda *words: "?? results/a\n?? results/b")
    assert one(doctor.git, "ok") == "ok       Commit c0ffee012" and "not committed: 2" in one(doctor.git, "warning")
    monkeypatch.setattr("rtx_core.results.code.code", lambda: {"commit": None, "clean": False})
    assert "No git repository" in one(doctor.git, "warning")


def test_warnings_alone_do_not_fail(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CHECKS", [lambda: iter([doctor.warning("so so"), doctor.ok("fine")])])
    with pytest.raises(SystemExit) as end:
        doctor.main([])
    assert end.value.code == 0 and capsys.readouterr().out.endswith("1 ok, 1 warning, 0 wrong\n")


def test_a_check_that_dies_is_a_finding():
    def check():
        yield doctor.ok("fine")
        raise OSError("no such thing")

    assert [finding.level for finding in doctor.survived(check)] == ["ok", "wrong"]


def test_it_is_a_command_of_the_project():
    words = [sys.executable, "-m", "rtx_core", "doctor", "--hub=now"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=paths.REPOSITORY)
    assert done.returncode == 2 and "python -m rtx_core doctor [-h] [--hub]" in done.stderr
