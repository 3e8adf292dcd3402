"""Every run of the paper: the list, the graph over it, and what starts the graph on this machine or a cluster."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from factory import SST2, saved
from test_environment import pins
from test_notebooks import STARTUP

import rtx_core as rtx
from rtx_core import paper
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE
from rtx_core.pages.runs import STALE
from rtx_core.paths import REPOSITORY
from rtx_core.results.record import read

WORKFLOW = REPOSITORY / "workflow"
SNAKEMAKE = REPOSITORY / ".venv-workflow" / "bin" / "snakemake"
OLD = {"code": {"commit": "0ddc0de123456789", "clean": True, "fingerprints": ["0" * 64]}}


@pytest.fixture(scope="module")
def stages():
    spec = importlib.util.spec_from_file_location("stages", WORKFLOW / "stages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of(name: str, **asked) -> paper.Run:
    return next(run for run in paper.runs(**asked) if run.name == name)


# -- the list ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [{}, {"reduced": True}, {"source": "embedded"}, {"source": "mirror"}], ids=str
)
def test_every_run_is_named_once_by_parameters_that_its_notebook_has(asked, monkeypatch):
    monkeypatch.setenv("RTX_DATA", "/nowhere")
    runs = list(paper.runs(**asked))
    assert len(runs) == len({run.name for run in runs}) == len({run.record for run in runs})
    for run in runs:
        path = REPOSITORY / "notebooks" / f"{run.notebook}.ipynb"
        cell = next(
            c.source
            for c in nbformat.read(path, as_version=4).cells
            if "parameters" in c.metadata.get("tags", [])
        )
        known = {}
        exec(cell, known)
        assert run.given.keys() <= known.keys(), run.name
        assert {name: type(value) for name, value in run.given.items()} == {
            name: type(known[name]) for name in run.given
        }
        assert (run.given["models"], run.given["seeds"]) == ([run.model], [run.seed])
        assert (
            run.command[:2] == ["papermill", f"notebooks/{run.notebook}.ipynb"]
            and json.loads(run.command[-1]) == run.given
        )
    synthetic = asked.get("source") == "embedded"
    assert all(("_build" in run.record.parts) == synthetic for run in runs)


def test_the_list_has_all_of_both_language_studies_at_either_budget():
    for reduced, end in ((False, ""), (True, "-reduced")):
        listed = {
            (run.variant, run.model, run.seed)
            for run in paper.runs(reduced)
            if run.settings.experiment in LANGUAGE
        }
        assert listed == {
            (f"{name}-{recipe}{end}", model, seed)
            for name in ("shakespeare", "tinystories")
            for recipe in LANGUAGE[name].recipes
            for model in LANGUAGE[name].models
            for seed in LANGUAGE[name].seeds
        }


def test_a_run_is_missing_then_recorded_then_stale_and_says_why():
    run = of("sst2-baseline-seed0")
    assert (run.state, run.why, run.found) == ("missing", "missing", None)
    record = saved(SST2)
    assert (run.state, run.why, run.record) == ("recorded", "", record.path)
    saved(SST2, **OLD)
    assert run.state == "stale" and run.why.startswith(
        "made by another version of the code (commit 0ddc0de12)"
    )


def test_a_record_of_other_data_is_stale_where_todays_data_is_at_hand(mirror):
    saved(rtx.settings("sst2", {"source": "mirror"}))
    run = of("sst2-baseline-seed0", source="mirror")
    assert (
        run.state == "stale"
        and run.why.startswith("made on other data (")
        and "version of the code" not in run.why
    )
    assert of("sst2-baseline-seed0", source="hub").state == "recorded"  # nothing is fetched to find out


def test_stale_records_are_made_again_unless_only_missing_ones_are_asked_for(monkeypatch, capsys):
    import rtx_core.run as run_module

    made = []
    monkeypatch.setattr(paper, "PLAN", paper.PLAN[:1])
    monkeypatch.setattr(
        run_module,
        "run",
        lambda settings, model, seed, wait: made.append(model) or saved(settings, model, seed),
    )
    saved(SST2, **OLD)
    paper.main(["--run", "--missing"])
    assert made == ["recurrent"] and "stale: made by another version of the code" in capsys.readouterr().out
    paper.main(["--run"])
    assert made == ["recurrent", "baseline"] and "stale" not in capsys.readouterr().out


def test_a_notebook_makes_a_stale_run_again_only_where_it_is_told_to(monkeypatch):
    import rtx_core.run as run_module

    seen = []

    def run(settings, model, seed):
        seen.append(read(path)["code"]["commit"])  # the old record is there until the new one is finished
        return saved(settings, model, seed)

    monkeypatch.setattr(run_module, "run", run)
    path = saved(SST2, **OLD).path
    asked = rtx.settings("sst2", {"models": ["baseline"]})
    assert rtx.runs(asked).notes and seen == []
    monkeypatch.setenv(STALE, "rerun")
    assert (
        rtx.runs(asked).notes == []
        and seen == ["0ddc0de123456789"]
        and of("sst2-baseline-seed0").state == "recorded"
    )


# -- the graph ---------------------------------------------------------------------------------------------------------


def test_the_plan_of_the_graph_joins_runs_to_texts_and_pages(stages):
    saved(SST2)
    saved(SST2, "recurrent", **OLD)
    plan = stages.plan(reduced=True, source="real", keep_stale=False, only=[])
    state = {name: (run["needed"], run["stale"]) for name, run in plan["run"].items()}
    assert state["sst2-baseline-seed0"] == (False, False) and state["sst2-recurrent-seed0"] == (True, True)
    assert sum(needed for needed, _ in state.values()) == len(state) - 1 and not (
        plan["environment"].keys() - set(stages.ENVIRONMENT)
    )
    assert {tokens for run in plan["run"].values() if (tokens := run["tokens"])} == plan["tokens"].keys()
    assert {corpus for tokens in plan["tokens"].values() for corpus in tokens["corpora"]} == plan[
        "corpus"
    ].keys()
    assert plan["tokens"]["hub-multi-domain-seeded-128"]["corpora"] == ["hub-yelp", "hub-sst2", "hub-amazon"]
    assert "sst2-baseline-seed0" in plan["page"]["leakage"]["runs"] and "yelp" not in str(
        plan["page"]["sst2"]
    )
    assert (
        '"train_rows": 10000' in plan["page"]["yelp"]["command"]
        and "models" not in plan["page"]["yelp"]["command"]
    )
    kept = stages.plan(reduced=True, source="real", keep_stale=True, only=["sst2"])
    assert (
        kept["run"].keys() < plan["run"].keys()
        and not kept["run"]["sst2-recurrent-seed0"]["needed"]
        and list(kept["page"]) == ["sst2"]
    )
    with pytest.raises(RtxError, match="Unknown notebook 'sst3': did you mean 'sst2'"):
        stages.plan(reduced=True, source="real", keep_stale=True, only=["sst3"])


def test_a_record_that_cannot_be_read_is_a_reason_and_not_the_end_of_the_plan(stages):
    saved(SST2).path.write_text("{")
    run = stages.plan(reduced=True, source="real", keep_stale=False, only=["sst2"])["run"][
        "sst2-baseline-seed0"
    ]
    assert run["needed"] and run["stale"] and "baseline-seed0.json" in run["why"]


def test_texts_are_read_and_tokenised_once_for_all_runs(stages, home, capsys):
    plan = stages.plan(reduced=True, source="embedded", keep_stale=False, only=["length", "shakespeare"])
    assert list(plan["corpus"]) == ["embedded-sst2", "embedded-shakespeare"] and len(plan["tokens"]) == 3
    stages.corpus("shakespeare", "embedded")
    stages.tokens("sst2", '{"source": "embedded", "length": "short"}')
    assert len(list((home / "_build/cache").glob("tokens-*.npz"))) == 1
    with pytest.raises(SystemExit):
        stages.main(["corpus", "sst2"])


def test_the_lock_of_the_workflow_is_exact():
    lines = (REPOSITORY / "requirements-workflow.lock").read_text().splitlines()
    names = pins(line for line in lines if not line.startswith("#"))
    assert {
        "snakemake",
        "snakemake-executor-plugin-slurm",
        "snakemake-executor-plugin-cluster-generic",
    } <= names.keys()


# -- what starts it ------------------------------------------------------------------------------------------------------


def test_runs_at_once_have_gpu_slots_of_their_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    script, done = WORKFLOW / "on_gpu.sh", tmp_path / "done"
    hold = f'echo $CUDA_VISIBLE_DEVICES; while [ ! -e "{done}" ]; do sleep 0.05; done'
    first = []
    for _ in range(3):
        first.append(
            subprocess.Popen(
                [script, "3", "2", "bash", "-c", hold], cwd=tmp_path, stdout=subprocess.PIPE, text=True
            )
        )
        first[-1].device = first[-1].stdout.readline().strip()
    refused = subprocess.run([script, "3", "2", "true"], cwd=tmp_path, capture_output=True, text=True)
    done.touch()
    assert [process.wait() for process in first] == [0, 0, 0]
    [process.stdout.close() for process in first]
    assert [process.device for process in first] == ["0", "1", "0"]
    assert refused.returncode == 1 and refused.stderr.startswith("All 3 GPU slots of this machine are taken")
    assert subprocess.run([script, "3", "2", "true"], cwd=tmp_path).returncode == 0
    for given, device in (("5", "5"), ("GPU-a,3", "GPU-a"), ("", "")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert (
            subprocess.check_output(
                [script, "3", "2", "printenv", "CUDA_VISIBLE_DEVICES"], cwd=tmp_path, text=True
            )
            == f"{device}\n"
        )


def test_a_pod_is_asked_for_what_the_run_needs(tmp_path, monkeypatch):
    kubectl, script = tmp_path / "kubectl", WORKFLOW / "kubernetes.sh"
    kubectl.write_text(
        '#!/bin/sh\ncase $1 in create) cat > manifest; echo job.batch/rtx-1;; get) cat status;; *) echo "$@";; esac\n'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def says(*words: str) -> str:
        return subprocess.run(
            [script, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert says("submit", "2", "4000", "1", "job.sh") == "job.batch/rtx-1"
    pod = yaml.safe_load((tmp_path / "manifest").read_text())["spec"]["template"]["spec"]["containers"][0]
    assert pod["command"] == ["bash", str(tmp_path / "job.sh")] and pod["volumeMounts"] == [
        {"name": "paper", "mountPath": "/paper"}
    ]
    assert pod["resources"] == {
        "requests": {"cpu": 2, "memory": "4000Mi"},
        "limits": {"memory": "4000Mi", "nvidia.com/gpu": 1},
    }
    says("submit", "1", "4000", "0", "job.sh")
    assert "nvidia" not in (tmp_path / "manifest").read_text()
    for status, word in (("/0 /0\n", "running"), ("1/0 /0\n", "success"), ("/0 1/0\n", "failed")):
        (tmp_path / "status").write_text(status)
        assert says("status", "job.batch/rtx-1") == word


needs_snakemake = pytest.mark.skipif(
    not SNAKEMAKE.exists(), reason="snakemake is not installed; `make paper DRY=1` does it"
)


def make_paper(home: Path, *variables: str) -> str:
    """`make paper` on the embedded corpus, with what it prints; the environment is the one that tests run in."""
    startup = home / "ipython" / "profile_default" / "startup" / "00-small.py"
    startup.parent.mkdir(parents=True, exist_ok=True)
    startup.write_text(STARTUP)
    environment = os.environ | {
        "RTX_HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    line = ["make", "-o", ".venv/.installed", "paper", "SOURCE=embedded", "ONLY=length", *variables]
    done = subprocess.run(line, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_snakemake
def test_a_dry_run_shows_what_would_run_and_why_and_runs_nothing(home):
    said = make_paper(home, "DRY=1")
    assert (
        said.count("-seed0: missing") == 4
        and "Tokens embedded-sst2-seeded-short-128" in said
        and "Page length" in said
    )
    assert not (home / "_build/runs").exists() and not (home / "_build/results").exists()


@needs_snakemake
@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_the_workflow_from_text_to_page(profile, home, tmp_path, request):
    """Minutes, and for SLURM root and Debian's packages: RTX_TRY_WORKFLOW=local,slurm asks for it."""
    if profile not in os.environ.get("RTX_TRY_WORKFLOW", "").split(","):
        pytest.skip(f"opt-in, as it takes minutes: RTX_TRY_WORKFLOW={profile}")
    options, cluster = [f"PROFILE={profile}"], tmp_path / "slurm"
    if profile == "slurm":
        if shutil.which("slurmd") is None:
            pytest.skip("Debian's packages slurmctld, slurmd, slurm-client and munge are not installed")
        subprocess.run([WORKFLOW / "slurm.sh", "start", cluster], check=True)
        request.addfinalizer(lambda: subprocess.run([WORKFLOW / "slurm.sh", "stop", cluster], check=True))
        options += [
            "OPTIONS=--slurm-status-command squeue --slurm-init-seconds-before-status-checks 5 --latency-wait 10"
        ]
    said = make_paper(home, *options)
    records = sorted((home / "_build/results").glob("sst2-*/*.json"))
    assert [f"{path.parent.name}-{path.stem}" for path in records] == sorted(
        run.name for run in paper.runs(source="embedded") if run.notebook == "length"
    )
    assert all(read(path).synthetic and read(path)["data"]["n_train"] == 64 for path in records)
    shown = (home / "_build/paper/pages/length.ipynb").read_text()
    assert (
        all(f"{read(path)['test']['accuracy']:.4f}" in shown for path in records)
        and not (home / "results").exists()
    )
    if profile == "slurm":  # two tokenisations, four runs and a page, each through sbatch
        jobs = (cluster / "jobs.log").read_text().splitlines()
        assert len(jobs) == said.count("has been submitted with SLURM jobid") == 7 and all(
            "JobState=COMPLETED" in job for job in jobs
        )
    before = {path: path.stat().st_mtime_ns for path in records}
    assert "Nothing to be done" in make_paper(home, *options)
    content = json.loads(records[0].read_text())
    records[0].write_text(json.dumps(content | OLD))
    said = make_paper(home, *options, "DRY=1")
    assert (
        said.count("made by another version of the code (commit 0ddc0de12)") == 1
        and "-seed0: missing" not in said
    )
    assert {path for path in records if path.stat().st_mtime_ns != before[path]} == {records[0]}
