"""Every run of the paper: the plan, the graph over it, and what starts the graph on this machine or a cluster."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import stages
from committed import altered, put

import study
from rtx_core import records
from rtx_core.__main__ import main, parse_words
from rtx_core.errors import RtxError
from rtx_core.experiments import cost
from rtx_core.experiments.configure import configure
from rtx_core.models import registry
from rtx_core.paths import REPOSITORY
from rtx_core.records import fingerprint
from study import plan

WORKFLOW = REPOSITORY / "workflow"
SNAKEMAKE = REPOSITORY / ".venv-workflow" / "bin" / "snakemake"
needs_snakemake = pytest.mark.skipif(not SNAKEMAKE.exists(), reason="make paper DRY=1 installs snakemake")
OTHER_CODE = "0" * 64


def made_by(code: str) -> dict:
    return {
        "code": {
            "commit": "0ddc0de123456789".ljust(40, "0"),
            "clean": True,
            "hashes": [code],
            "task": fingerprint.TEXTS,
        }
    }


def planned(**asked) -> dict:
    return stages.make_plan(**{"source": "real", "reduced": True, "keep_stale": False, "only": []} | asked)


@pytest.mark.parametrize("source", ["real", "embedded", "mirror"])
def test_every_run_of_the_plan_is_a_command_that_makes_just_that_run(source):
    made = planned(source=source)
    for name, run in made["run"].items():
        words, settings = parse_words(shlex.split(run["command"])[4:])
        config = configure(*words, *settings.pop("models", []), *settings.pop("seeds"), **settings)
        assert name == f"{config.name}-{config.model}-seed{config.seed}"
        assert config.data.source in (source, "generated") and run["why"] == "missing"
    if source != "embedded":  # where short trials of several runs are one
        assert len(made["run"]) == len(list(plan.everything(reduced=True)))
    assert {run["data"] for run in made["run"].values()} == made["data"].keys()


def test_runs_are_needed_that_are_missing_or_made_by_other_code(home):
    current = put(home, "sst2/baseline-seed0", **made_by(fingerprint.run_hash("baseline", fingerprint.TEXTS)))
    put(home, "sst2/recurrent-seed0", **made_by(OTHER_CODE))
    runs = planned(only=["sst2"])["run"]
    recurrent = runs["sst2-recurrent-seed0"]
    assert recurrent["needed"] and recurrent["command"].endswith(" --replace") and "0ddc0de12" in recurrent["why"]
    assert [name for name, run in runs.items() if not run["needed"]] == ["sst2-baseline-seed0"]
    assert all(name.startswith("sst2") for name in runs)
    kept = planned(only=["sst2"], keep_stale=True)["run"]
    assert not kept["sst2-recurrent-seed0"]["needed"] and kept["sst2-recurrent-seed1"]["needed"]
    current.write_text("{")  # cannot be read, which is a reason and not the end of the plan
    broken = planned(only=["sst2"])["run"]["sst2-baseline-seed0"]
    assert broken["needed"] and "baseline-seed0.json" in broken["why"]


def test_missing_runs_of_declared_recurrences_are_planned_and_their_command_makes_them(home, monkeypatch, capsys):
    shutil.copytree(REPOSITORY / "runs/bench-facts-quick", home / "runs/bench-facts-quick")
    (home / "runs/bench-facts-quick/Hyper-seed0.json").unlink()
    runs = planned(only=["bench-facts"])["run"]
    assert {name.split("-")[3] for name in runs if "-quick-" in name} == study.RECURRENCES.keys()
    assert runs["bench-facts-quick-Hyper-seed0"]["needed"] and not runs["bench-facts-quick-Huginn-seed0"]["needed"]
    stages.prepare("bench-facts", '{"budget": "quick", "source": "embedded"}')
    trials = planned(only=["bench-facts"], source="embedded")["run"]
    (command,) = [run["command"] for run in trials.values() if "Hyper seed=0" in run["command"]]
    del registry.MODELS["Hyper"]  # as in a process of its own
    monkeypatch.setattr("sys.argv", shlex.split(command)[2:])
    main()
    assert "Hyper · seed 0" in capsys.readouterr().out.splitlines()[-1]


def test_a_plan_tells_its_total(home):
    put(home, "sst2/baseline-seed0", **made_by(fingerprint.run_hash("baseline", fingerprint.TEXTS)), seconds=7200)
    runs = planned(only=["sst2"])["run"]
    assert runs["sst2-baseline-seed0"]["minutes"] == 0 and runs["sst2-baseline-seed1"]["minutes"] > 0
    costs = [run["minutes"] for run in runs.values() if run["needed"]]
    assert stages.total(runs).startswith(f"{len(costs)} of {len(runs)} runs") and " hours" in stages.total(runs)
    assert f"({costs.count(None)} are" in stages.total(runs)


def test_unknown_experiments_are_refused_and_the_environment_travels(monkeypatch):
    monkeypatch.setenv("RTX_DATA", "/somewhere")
    with pytest.raises(RtxError, match="Unknown experiment 'sst3': did you mean 'sst2'"):
        planned(only=["sst3"])
    assert planned(only=["yelp"])["environment"].keys() == {"PATH", "RTX_DATA", "RTX_HOME"}


def test_texts_are_tokenized_once_for_all_runs(home):
    made = planned(source="embedded", only=["sst2"])
    assert len(made["data"]) < len(made["run"])
    for _ in range(2):
        stages.prepare("sst2", '{"source": "embedded", "length": "short"}')
    assert len(list((home / "_build/cache").glob("tokens-*.npz"))) == 1


def test_runs_at_once_have_gpu_slots_of_their_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    line, done = [WORKFLOW / "on_gpu.sh", "3", "2"], tmp_path / "done"
    hold = f'echo $CUDA_VISIBLE_DEVICES; while [ ! -e "{done}" ]; do sleep 0.05; done'
    held, run = [], {"cwd": tmp_path, "text": True}
    for device in ("0", "1", "0"):
        held.append(subprocess.Popen([*line, "bash", "-c", hold], stdout=subprocess.PIPE, **run))
        assert held[-1].stdout.readline().strip() == device
    refused = subprocess.run([*line, "true"], capture_output=True, **run)
    done.touch()
    for process in held:
        process.communicate()
    assert [process.returncode for process in held] == [0, 0, 0]
    assert refused.returncode == 1 and refused.stderr.startswith("All 3 GPU slots of this machine are taken")
    for given, device in (("5", "5"), ("GPU-a,3", "GPU-a"), ("", "")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert subprocess.check_output([*line, "printenv", "CUDA_VISIBLE_DEVICES"], **run) == f"{device}\n"


def make_paper(*variables: str) -> str:
    """`make paper` on generated text, with what it prints."""
    installed = ["-o", ".venv/.installed", "-o", ".venv-workflow/.installed"]
    line = ["make", *installed, "paper", "SOURCE=embedded", "ONLY=multi-domain", *variables]
    done = subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_snakemake
@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_a_dry_run_shows_what_would_run_and_why_and_runs_nothing(profile, home):
    said = make_paper(f"PROFILE={profile}", "DRY=1")
    assert said.count("-seed0: missing") == 2 and "Data multi-domain-" in said
    assert not (home / "_build/runs").exists() and not (home / "_build/results").exists()


takes_minutes = pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="minutes: RTX_LONG=1")


@pytest.fixture
def cluster(tmp_path):
    """The folder of a SLURM of one node, this machine."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("slurmctld", "slurmd", "sbatch", "munged"))):
        pytest.skip("needs root and Debian's packages slurmctld, slurmd, slurm-client and munge")
    subprocess.run([WORKFLOW / "slurm.sh", "start", tmp_path / "slurm"], check=True)
    yield tmp_path / "slurm"
    subprocess.run([WORKFLOW / "slurm.sh", "stop", tmp_path / "slurm"], check=True)


def waited_for(text: str, log: Path, seconds: int = 300) -> str:
    """What a job has said, once it has said this."""
    end = time.monotonic() + seconds
    while text not in (said := log.read_text() if log.exists() else ""):
        assert time.monotonic() < end, said
        time.sleep(1)
    return said


@pytest.mark.long
@takes_minutes
def test_a_job_whose_time_is_over_saves_waits_again_and_goes_on_and_a_cancelled_one_ends(cluster, home, kernel):
    """`--time` and `--signal`: SIGTERM comes within the first minutes."""
    small = "hidden_size=64 num_heads=4 intermediate_size=128 train_rows=400 batch_size=4 epochs=200 stop_patience=0"
    words = ["sst2", "recurrent", "source=embedded", "eval_every=100", *small.split()]
    log, command = (
        home / "job.log",
        ["sbatch", "--parsable", "--time=2", "--signal=TERM@90", f"--output={home}/job.log"],
    )
    done = subprocess.run([*command, "workflow/run.sbatch", *words], cwd=REPOSITORY, capture_output=True, text=True)
    job = done.stdout.strip()
    said = waited_for("which is saved; to go on: python -m rtx_core run sst2 recurrent", log)
    (step,) = re.findall("stopped at step ([0-9,]+) of 20,000", said)
    soon = ["scontrol", "update", f"JobId={job}", "StartTime=now"]
    while subprocess.run(soon, capture_output=True).returncode:  # until it is back in the queue, which makes it wait
        time.sleep(1)
    waited_for(f"resumed at step {step} of 20,000", log)
    subprocess.run(["scancel", job], check=True)
    waited_for("JobState=CANCELLED", cluster / "jobs.log")
    end = time.monotonic() + 60
    while subprocess.check_output(["squeue", "--noheader"]) and time.monotonic() < end:  # its last processes end
        time.sleep(1)
    assert not subprocess.check_output(["squeue", "--noheader"])


@needs_snakemake
@pytest.mark.long
@takes_minutes
@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_the_workflow_from_text_to_record(profile, home, request):
    options = [f"PROFILE={profile}"]
    if profile == "slurm":
        cluster = request.getfixturevalue("cluster")
        quickly = "--slurm-init-seconds-before-status-checks 5 --latency-wait 10"
        options += [f"OPTIONS=--slurm-status-command squeue {quickly}"]
    said = make_paper(*options)
    found = sorted((home / "_build/results").glob("multi-domain-*/*.json"))
    assert [path.stem for path in found] == ["baseline-seed0", "recurrent-seed0"]
    assert all(json.loads(path.read_text())["data"]["n_train"] == 64 for path in found)
    if profile == "slurm":  # both runs through sbatch
        jobs = (cluster / "jobs.log").read_text().splitlines()
        assert len(jobs) == said.count("has been submitted with SLURM jobid") == 2
        assert all("JobState=COMPLETED" in job for job in jobs)
    assert "Run multi-domain" not in make_paper(*options)
    altered(found[0], **made_by(OTHER_CODE))
    said = make_paper(*options, "DRY=1")
    assert said.count("0ddc0de12") == 1 and "-seed0: missing" not in said


def test_a_run_costs_what_its_steps_do():
    known = [records.read(REPOSITORY / f"results/khop/{model}-seed0.json") for model in ("2x2", "1x4")]
    steps = known[0]["config"]["train"]["steps"]
    assert cost.minutes(configure("khop", "2x2", steps=2 * steps), known) == pytest.approx(known[0]["seconds"] / 30)
