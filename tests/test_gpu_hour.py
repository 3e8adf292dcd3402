"""The queue for one GPU: its order, runs side by side that are stopped in time, and what travels to the next piece."""

import io
import os
import subprocess
import tarfile
from dataclasses import replace
from queue import Queue

import gpu_hour
import pytest

from rtx_core import paths, records
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import configure

SMALL = {"letters": 6, "hops": 1, "eval_texts": 16, "test_texts": 64, "batch_size": 4, "hidden_size": 16}
SMALL |= {"intermediate_size": 16, "warmup_steps": 1, "eval_every": 1000}


def test_the_queue_has_every_model_at_a_seed_before_the_next(home):
    queue = list(gpu_hour.queue())
    assert (queue[0].experiment, queue[0].seed) == ("iso-depth-wide", 0)
    pointers = [config for config in queue if config.experiment == "khop-published"]
    assert [config.seed for config in pointers] == sorted(config.seed for config in pointers) and len(pointers) == 50
    assert len({(c.name, c.model, c.seed) for c in queue}) == len(queue)
    assert all(config.source == "generated" for config in gpu_hour.missing(queue)) or "RTX_DATA" in os.environ


def test_a_process_makes_many_runs_and_notes_what_stops_one(tmp_path, home):
    fine, wrong = (configure("khop", "1x1", seed, **SMALL, steps=2) for seed in (0, 1))
    todo = Queue()
    for item in (replace(wrong, device="cuda:99"), fine, None):
        todo.put(item)
    gpu_hour.train_all(todo, tmp_path / "0.log")
    assert gpu_hour.missing([fine, wrong]) == [wrong]
    assert "1x1 seed 1 stopped" in (tmp_path / "0.log").read_text()


@pytest.mark.skipif("RTX_LONG" not in os.environ, reason="trains in processes of their own; RTX_LONG=1 runs it")
def test_a_stopped_run_goes_on_in_the_next_piece(home, monkeypatch):
    short, long = (configure("khop", "1x1", seed, **SMALL, steps=steps) for seed, steps in ((0, 4), (1, 20_000)))
    monkeypatch.setattr(gpu_hour, "queue", lambda: [short, long])
    gpu_hour.main(["--minutes", "0.8", "--together", "2", "--out", str(home / "out")])
    archives = sorted(str(path) for path in (home / "out").glob("*.tar"))
    names = "".join(
        subprocess.run(["tar", "-tf", archive], capture_output=True, text=True, check=True).stdout
        for archive in archives
    )
    assert f"{short.name}/1x1-seed0.json" in names and f"{long.name}/1x1-seed1-" in names and "checkpoint" in names
    for path in (home / "results", paths.build()):
        path.rename(home / f"{path.name}-elsewhere")
    gpu_hour.main(["--minutes", "4", "--out", str(home / "out"), "--from", *archives])
    assert records.find(long.name, "1x1", 1, "generated")


@pytest.mark.parametrize(
    "name", ["rtx_core/x.py", "Makefile", "results/../rtx_core/x.json", "/results/a/b.json", "results/a"]
)
def test_an_archive_with_anything_but_runs_leaves_no_file(name, tmp_path, home):
    with tarfile.open(tmp_path / "runs.tar", "w") as tar:
        for each in ("results/khop/1x1-seed0.npz", name):
            (member := tarfile.TarInfo(each)).size = 4
            tar.addfile(member, io.BytesIO(b"1234"))
    before = sorted(home.rglob("*"))
    with pytest.raises(RtxError, match="which no run leaves"):
        gpu_hour.unpack(tmp_path / "runs.tar")
    assert sorted(home.rglob("*")) == before


def test_what_is_packed_is_unpacked(tmp_path, home, monkeypatch):
    config = configure("khop", "1x1", 0)
    files = [f"results/{config.name}/1x1-seed0.json", f"results/{config.name}/1x1-seed0.npz"]
    files += [f"results/weights/{config.name}/1x1-seed0.safetensors"]
    files += [f"_build/runs/{config.name}/1x1-seed0-0123abcd/checkpoint.safetensors"]
    for each in files:
        (home / each).parent.mkdir(parents=True, exist_ok=True)
        (home / each).write_text(each)
    monkeypatch.setattr(gpu_hour, "PART", 80)  # bytes, more than each name and less than two
    assert gpu_hour.pack([config], tmp_path) == 4
    archives = sorted(tmp_path.glob("*.tar"))
    assert [path.name for path in archives] == ["records.tar", "weights-0.tar", "weights-1.tar"]
    for each in files:
        (home / each).unlink()
    for archive in archives:
        gpu_hour.unpack(archive)
    assert [(home / each).read_text() for each in files] == files


def test_an_archive_that_is_none_is_one_sentence(tmp_path, home):
    (tmp_path / "runs.tar").write_text("no archive")
    with pytest.raises(RtxError, match="runs.tar"):
        gpu_hour.unpack(tmp_path / "runs.tar")
