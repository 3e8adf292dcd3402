"""Two processes asked for one run, and what the machine refuses to a run: one sentence, the checkpoint kept, and it can go on."""

import os
import signal
from functools import partial
from pathlib import Path

import papermill
import pytest
from factory import tiny
from mirror import one_sentence
from safetensors.torch import load_file
from survival import (
    COMMANDS, EVALUATIONS, GIVEN, at_step, born, checkpoints, command, full_disk, lived, no_memory, not_a_number, often, other_corpus, page, pause,
    read_only, records, result, run, small_plan, until, whole,
)  # fmt: skip

import rtx_core as rtx
import rtx_core.run as run_module
from rtx_core import paper
from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY

KINDS = pytest.mark.parametrize("kind", COMMANDS)
WAITING = "another process is training this; waiting until it is done"


# -- two processes -------------------------------------------------------------------------------------------------------


def paused(home: Path, kind: str):
    """A process in the middle of the run, until there is a file `go`."""
    life = born(home, run(kind), often, partial(at_step, 5, partial(pause, home)))
    until((home / "paused").exists)
    return life


@KINDS
def test_of_two_commands_one_trains_and_the_other_waits_for_its_record(kind, whole, tmp_path):
    first = paused(tmp_path, kind)
    second = born(tmp_path, run(kind))
    until(lambda: WAITING in second.said)
    (tmp_path / "go").touch()
    assert (first.ends(), second.ends()) == (0, 0) and result(tmp_path) == whole[kind]
    assert second.said.count(WAITING) == 1 and "recorded, test" in second.said and " step " not in second.said
    assert lived(tmp_path, run(kind)).said.count("test") == 1  # and a third finds it


def test_a_notebook_waits_and_shows_the_record(whole, tmp_path):
    first = paused(tmp_path, "classifier")
    second = born(tmp_path, partial(page, "sst2", GIVEN))
    until(lambda: WAITING in second.said)
    (tmp_path / "go").touch()
    assert (first.ends(), second.ends()) == (0, 0) and result(tmp_path) == whole["classifier"]
    assert f"shown: {whole['classifier']['test']['accuracy']:.4f}" in second.said and " step " not in second.said


@KINDS
def test_whoever_waits_goes_on_where_the_other_was_killed(kind, whole, tmp_path):
    first = paused(tmp_path, kind)
    second = born(tmp_path, run(kind))
    until(lambda: WAITING in second.said)
    os.kill(first.process.pid, signal.SIGKILL)
    assert (first.ends(), second.ends()) == (-signal.SIGKILL, 0) and "resumed at step 4" in second.said
    assert result(tmp_path) == whole[kind]


def test_a_command_of_several_runs_makes_first_what_nobody_makes(tmp_path):
    first = paused(tmp_path, "classifier")
    second = born(tmp_path, partial(command, *(word.replace('["recurrent"]', '["recurrent", "baseline"]') for word in COMMANDS["classifier"])))
    until(lambda: WAITING in second.said)
    assert [path.stem for path in records(tmp_path)] == ["baseline-seed0"]
    (tmp_path / "go").touch()
    assert (first.ends(), second.ends()) == (0, 0) and len(records(tmp_path)) == 2


def test_the_plan_steps_aside(tmp_path):
    first = paused(tmp_path, "classifier")
    second = lived(tmp_path, plan_of_one)
    assert second.ends() == 0 and second.said.count("missing") == 1 and WAITING not in second.said and " step " not in second.said
    (tmp_path / "go").touch()
    assert first.ends() == 0
    assert "recorded, test accuracy" in lived(tmp_path, plan_of_one).said


def plan_of_one() -> None:
    paper.PLAN = (paper.Study("sst2", GIVEN),)
    paper.main(["--run"])


def test_a_record_of_the_name_made_on_other_data_is_not_overwritten(whole, tmp_path):
    first = paused(tmp_path, "classifier")
    second = born(tmp_path, run("classifier"), other_corpus)
    until(lambda: WAITING in second.said)
    (tmp_path / "go").touch()
    assert (first.ends(), second.ends()) == (0, 1) and result(tmp_path) == whole["classifier"]
    assert "was made by another process meanwhile, under other settings or on other data; move it away" in last(second)


# -- refusals ------------------------------------------------------------------------------------------------------------


def last(life) -> str:
    """The sentence that a command ended with."""
    said = life.said.splitlines()[-1]
    assert "Traceback" not in life.said and said.endswith("."), life.said
    return said


UNWRITABLE = "A file of this run cannot be read or written (", "; make room, or make its folder writable. The same command goes on from the last checkpoint."
REFUSALS = {  # kind: what happens, and the sentence's beginning and end
    "checkpoint": (full_disk, ("rtx_core.training.checkpoint", "save_file", 2), "The checkpoint checkpoint.safetensors cannot be written (",
                   "; the last one is whole, and the same command goes on from it."),
    "weights": (full_disk, ("rtx_core.models", "write_atomically"), *UNWRITABLE),
    "predictions": (full_disk, ("rtx_core.results.store", "save_predictions"), *UNWRITABLE),
    "record": (full_disk, ("rtx_core.results.store", "write_json"), *UNWRITABLE),
    "record-language": (full_disk, ("rtx_core.results.language", "write_json"), *UNWRITABLE),
    "read-only": (read_only, (), *UNWRITABLE),
    "memory": (at_step, (6, no_memory), "The GPU has too little memory for this run (CUDA out of memory); lower batch_size or use device='cpu'.",
               "The same command goes on from the last checkpoint."),
    "nan": (at_step, (5, not_a_number), "Training diverged: the validation loss is nan at step ", "; lower learning_rate."),
}  # fmt: skip


ELSEWHERE = {("language", "predictions"), ("language", "record"), ("classifier", "record-language")}  # what such a run does not write


@pytest.mark.parametrize("kind, refusal", sorted({(kind, refusal) for kind in COMMANDS for refusal in REFUSALS} - ELSEWHERE))
def test_refusal_is_one_sentence_and_the_run_goes_on_when_it_is_over(kind, refusal, whole, tmp_path):
    happen, arguments, begins, ends = REFUSALS[refusal]
    life = lived(tmp_path, run(kind), partial(happen, *arguments))
    said = last(life)
    assert life.ends() == 1 and said.startswith(begins) and said.endswith(ends), said
    assert records(tmp_path) == [] and not list(tmp_path.rglob("*.partial"))
    kept = checkpoints(tmp_path)[0]  # from before, and sound
    assert all(tensor.isfinite().all() for tensor in load_file(kept).values())
    again = lived(tmp_path, run(kind))
    assert again.ends() == 0 and "resumed at step" in again.said and result(tmp_path) == whole[kind]


@KINDS
def test_not_a_number_is_noticed_at_the_next_evaluation(kind, tmp_path):
    said = last(lived(tmp_path, run(kind), partial(at_step, 5, not_a_number)))
    assert f"nan at step {EVALUATIONS[kind][1]};" in said


@KINDS
def test_not_a_number_never_reaches_a_checkpoint(kind, whole, tmp_path):
    life = lived(tmp_path, run(kind), often, partial(at_step, 3, not_a_number))
    assert life.ends() == 1 and last(life).startswith("Training diverged: the weights are no longer finite; lower learning_rate")
    assert len(checkpoints(tmp_path)) == 2 and all(t.isfinite().all() for t in load_file(checkpoints(tmp_path)[0]).values())
    again = lived(tmp_path, run(kind))
    assert again.ends() == 0 and "resumed at step 2 " in again.said and result(tmp_path) == whole[kind]


def test_full_disk_before_the_first_checkpoint_is_one_sentence(whole, tmp_path):
    life = lived(tmp_path, run("classifier"), partial(full_disk, "rtx_core.corpora.tokens", "write_atomically"))
    assert life.ends() == 1 and last(life).startswith(UNWRITABLE[0])
    life = lived(tmp_path, run("classifier"), partial(full_disk, "rtx_core.training.checkpoint", "save_file"))
    assert life.ends() == 1 and last(life).endswith("; make room or make its folder writable.")
    assert lived(tmp_path, run("classifier")).ends() == 0 and result(tmp_path) == whole["classifier"]


def test_results_that_are_no_folder_are_one_sentence(whole, tmp_path):
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/results").touch()
    life = lived(tmp_path, run("classifier"))
    assert life.ends() == 1 and last(life).startswith(UNWRITABLE[0])
    (tmp_path / "_build/results").unlink()
    assert lived(tmp_path, run("classifier")).ends() == 0 and result(tmp_path) == whole["classifier"]


def test_the_plan_ends_with_the_sentence(tmp_path):
    life = lived(tmp_path, partial(command, "rtx_core.paper", "--run"), small_plan, partial(at_step, 6, no_memory))
    assert life.ends() == 1 and last(life).startswith(REFUSALS["memory"][2])


STARTUP = """
import pytest as _pytest
import survival as _survival
_survival.shrink()
_survival.at_step(6, _survival.no_memory)
"""


def test_a_notebook_ends_with_the_sentence(home, monkeypatch):
    startup = home / "ipython" / "profile_default" / "startup" / "00-small.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(STARTUP)
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests"))))
    with pytest.raises(papermill.PapermillExecutionError) as error:
        papermill.execute_notebook(str(REPOSITORY / "notebooks/sst2.ipynb"), str(home / "out.ipynb"), {**GIVEN}, kernel_name="python3",
                                   progress_bar=False)  # fmt: skip
    assert error.value.ename == "RtxError" and error.value.evalue.startswith(REFUSALS["memory"][2]) and "\n" not in error.value.evalue
    assert checkpoints(home) != []


# -- the mirror ----------------------------------------------------------------------------------------------------------

ON_MIRROR = rtx.settings("sst2", GIVEN | {"source": "mirror", "train_rows": 24, "eval_every": 2})


@pytest.fixture
def undisturbed(mirror, home, monkeypatch) -> dict:
    """What such a run leaves; the next one is in another home."""
    tiny(monkeypatch)
    monkeypatch.setenv("RTX_HOME", str(home / "undisturbed"))
    run_module.run(ON_MIRROR, "recurrent", 0)
    monkeypatch.setenv("RTX_HOME", str(home / "again"))
    return result(home / "undisturbed")


class Killed(Exception):
    pass


def at_line(n: int, act, patch) -> None:
    """Do something after the n-th line of progress."""
    lines = iter(range(1, 1000))
    patch.setattr(run_module, "progress_line", lambda *_: lambda line: act() if next(lines) == n else None)


def test_a_mirror_that_vanishes_in_mid_run_is_not_missed(undisturbed, mirror, home, monkeypatch):
    at_line(2, lambda: mirror.rename(home / "gone"), monkeypatch)
    run_module.run(ON_MIRROR, "recurrent", 0)
    assert not mirror.exists() and result(home / "again") == undisturbed


def test_a_mirror_that_is_gone_when_a_run_goes_on_is_one_sentence(undisturbed, mirror, home, monkeypatch):
    def kill():
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        at_line(3, kill, patch)
        run_module.run(ON_MIRROR, "recurrent", 0)
    before = [path.read_bytes() for path in checkpoints(home / "again")]
    mirror.rename(home / "gone")
    with pytest.raises(RtxError) as error:
        run_module.run(ON_MIRROR, "recurrent", 0)
    one_sentence(error, "The mirror has no file sst2/train.parquet; RTX_DATA must name a folder that holds it")
    assert [path.read_bytes() for path in checkpoints(home / "again")] == before and records(home / "again") == []
    (home / "gone").rename(mirror)
    run_module.run(ON_MIRROR, "recurrent", 0)
    assert result(home / "again") == undisturbed
