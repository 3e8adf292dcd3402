"""What the other machine's processes do: stopped and continued, out of time, past errors; what they made is packed."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from test_travel import small, unpacked  # noqa: F401  (the first for every test here)

from rtx_core import run
from rtx_core.corpora import characters, stories
from rtx_core.errors import RtxError
from rtx_core.training import checkpoint, language, loop, packed_graph
from rtx_core.travel import away, bundle


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    """This process as one of the other machine, in an unpacked bundle of two runs."""
    root = unpacked(tmp_path, "--only", "sst2-trainrows64-epochs1")
    monkeypatch.setattr(away, "REPOSITORY", root)
    monkeypatch.chdir(tmp_path)
    for module, name in ((run, "dataset"), (run, "code"), (stories, "tokenised"), (characters, "text"), (checkpoint, "save")):
        monkeypatch.setattr(module, name, getattr(module, name))
    for name in ("REPORT_SECONDS", "CHECKPOINT_SECONDS"):
        monkeypatch.setattr(loop, name, getattr(loop, name))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}
    yield root
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_stopped_run_writes_a_checkpoint_and_goes_on_from_it(bundled, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        train = run.train

        def hurried(*arguments):
            os.kill(os.getpid(), signal.SIGTERM)  # the time is up while a run goes on
            return train(*arguments)

        patch.setattr(run, "train", hurried)
        for module, name in ((checkpoint, "save"), (loop, "REPORT_SECONDS"), (loop, "CHECKPOINT_SECONDS")):
            patch.setattr(module, name, getattr(module, name))
        assert away.work(0)
    said = capsys.readouterr().out
    assert "sst2-trainrows64-epochs1-baseline-seed0 stopped at a checkpoint." in said and "step 1/4" in said
    assert "step 2/4" not in said and "recurrent" not in said
    assert not any(away.current(one) for one in away.pending_runs())
    assert away.work(0)
    said = capsys.readouterr().out
    assert "baseline · seed 0 · resumed at step 1 of 4" in said
    assert all(away.current(one) for one in away.pending_runs())
    away.work(0)
    assert capsys.readouterr().out == ""  # all is recorded: nothing is made again


def test_time_limit_asks_to_stop(bundled, monkeypatch):
    stopped = away.Stop()
    monkeypatch.setattr(away, "Stop", lambda: stopped)
    monkeypatch.setattr(run, "run", lambda *_, **__: signal.pause())
    assert away.work(0.05 / 60) and stopped.asked


def test_stopping_the_command_stops_its_processes(monkeypatch):
    begun, start = [], subprocess.Popen

    def waiting(command, **options):
        begun.append(start([sys.executable, "-c", "import time; time.sleep(300)"]))
        if len(begun) == 2:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return begun[-1]

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(away.subprocess, "Popen", waiting)
    assert away.side_by_side(2, 0, lambda: None) is False
    assert [process.returncode for process in begun] == [-signal.SIGTERM] * 2 and signal.getsignal(signal.SIGTERM) is before


def test_run_that_fails_does_not_keep_the_others_from_being_packed(bundled, monkeypatch, capsys):
    real = run.run

    def failing(settings, model, seed, wait):
        if model == "baseline":
            raise RtxError("Training diverged.")
        return real(settings, model, seed, wait)

    monkeypatch.setattr(run, "run", failing)
    monkeypatch.setattr(away, "side_by_side", lambda jobs, minutes, meanwhile: not away.work(minutes))
    with pytest.raises(RtxError, match=r"^A run ended with an error \(see above\); the same command goes on with what is not recorded\.$"):
        away.away(["--jobs", "9"])
    said = capsys.readouterr().out
    assert "baseline-seed0 ended: Training diverged." in said and "1 of 2 runs are recorded: records.tar" in said
    _, files = bundle.read(away.Path("records.tar"), bundle.RECORDS)
    assert [name.rpartition("/")[2] for name in files] == ["recurrent-seed0.json", "recurrent-seed0.npz"]


def test_an_error_of_a_library_begins_the_process_anew_without_graphs_then_without_the_run(bundled, monkeypatch, capsys):
    begun = []

    def broken(settings, model, seed, wait):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def anew(program, words):
        begun.append(words[1:])
        raise SystemExit

    monkeypatch.setattr(run, "run", broken)
    monkeypatch.setattr(away.os, "execv", anew)
    monkeypatch.setattr(loop, "GraphStep", loop.GraphStep)
    monkeypatch.setattr(language, "graphed", language.graphed)
    monkeypatch.setattr(packed_graph, "install", packed_graph.install)
    with pytest.raises(SystemExit):
        away.work(5)
    with pytest.raises(SystemExit):
        away.work(0, eager=True)
    assert packed_graph.install("a model", 64) is None and loop.GraphStep is loop.Step and language.graphed("a model", "data") == "a model"
    first, second = begun
    assert first[:2] == second[:2] == ["-m", "rtx_core.travel.away"] and 4.9 < float(first[2]) <= 5 and first[3:] == ["eager"]
    assert second[2:] == ["0", "eager", "sst2-trainrows64-epochs1-baseline-seed0"]
    said = capsys.readouterr()
    assert "going on without CUDA graphs." in said.out and "going on without it." in said.out and "illegal memory access" in said.err
    with pytest.raises(SystemExit):
        away.work(0, eager=True, skipped=("sst2-trainrows64-epochs1-baseline-seed0",))
    assert begun[-1][-2:] == ["sst2-trainrows64-epochs1-baseline-seed0", "sst2-trainrows64-epochs1-recurrent-seed0"]
    assert away.work(0, eager=True, skipped=tuple(begun[-1][-2:])) is False  # nothing is left to try, and it is not said to be well


def test_what_is_recorded_is_packed_while_others_go_on(bundled, monkeypatch):
    seen = []

    def working(jobs, minutes, meanwhile):
        for model in ("baseline", "recurrent"):
            one = next(one for one in away.pending_runs() if one.model == model)
            monkeypatch.setattr(away, "current", lambda one, done=(*seen, one.name): one.name in done)
            seen.append(one.name)
            meanwhile(), meanwhile()
            packed.append(len(written))
        return False

    written, packed = [], []
    monkeypatch.setattr(away, "side_by_side", working)
    monkeypatch.setattr(away, "files_of", lambda one: [])
    monkeypatch.setattr(away.bundle, "write", lambda *arguments: written.append(arguments) or 0)
    away.away([])
    assert packed == [1, 2] and len(written) == 2

@pytest.mark.parametrize("words", [["--jobs", "0"], ["--minutes", "-1"], ["--minutes", "nan"]])
def test_senseless_request_is_one_sentence(words):
    with pytest.raises(RtxError, match=r"^--jobs is .* and --minutes is .*; expected at least one job, and 0 minutes or more\.$"):
        away.away(words)


@pytest.mark.parametrize(("wheels", "advice"), [(False, "install them there, or"), (True, "python -m pip install --no-index --find-links wheels PyYAML")])
def test_missing_package_is_named(bundled, monkeypatch, wheels, advice):
    if wheels:
        (bundled / "wheels").mkdir()
    monkeypatch.setattr(away, "find_spec", lambda name: None if name == "yaml" else name)
    with pytest.raises(RtxError) as error:
        away.away([])
    assert str(error.value).startswith("The runs need PyYAML, which Python at ") and advice in str(error.value)

