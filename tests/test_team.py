"""Several processes that share each batch take the steps that one takes alone."""

import json
import subprocess
import sys

import pytest

import rtx_core as rtx
from rtx_core.errors import RtxError
from rtx_core.paths import REPOSITORY
from rtx_core.results import language as language_store
from rtx_core.results import store
from rtx_core.training import language
from rtx_core.training.recipes import Recipe
from rtx_core.training.team import Team, team

# 61 rows in batches of 8: the last batch has 5, so the shares of two and of three processes are not equal.
CLASSIFIER = {"source": "embedded", "train_rows": 61, "batch_size": 8, "epochs": 2, "eval_every": 3, "learning_rate": 0.01, "device": "cpu"}
LANGUAGE = {"source": "embedded", "steps": 6, "batch_size": 6, "micro_batches": 2, "block_size": 16, "eval_every": 2, "eval_batches": 2,
            "dropout": 0.0, "models": ["kausik"], "seeds": [0], "device": "cpu"}  # fmt: skip
SHARED = """
import sys
import pytest
from factory import tiny
from rtx_core.corpora import characters

characters.EMBEDDED_CHARACTERS = 3000
tiny(pytest.MonkeyPatch(), dropout=0.0)
{call}
"""
CALLS = {
    "classifier": f"from rtx_core.run import runs; runs('sst2', {CLASSIFIER | {'models': ['recurrent']}!r})",
    "language": "from rtx_core.training.team import together\nwith together():\n"
    f"    from rtx_core.run_language import every, run\n    [run(*each) for each in every('shakespeare', {LANGUAGE | {'recipe': 'nanogpt'}!r})]",
}


def record_of(kind: str):
    if kind == "classifier":
        return store.find("embedded", rtx.settings("sst2", CLASSIFIER).variant, "recurrent", 0)
    from rtx_core.language import settings

    return language_store.find("embedded", settings("shakespeare", LANGUAGE | {"recipe": "nanogpt"}).variant, "kausik", 0)


def made(kind: str, folder, processes: int, monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY}:{REPOSITORY / 'tests'}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder.mkdir()
    script = folder / "shared.py"
    script.write_text(SHARED.replace("{call}", CALLS[kind]))
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    done = subprocess.run([sys.executable, *launcher, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return record_of(kind), done.stdout


@pytest.mark.parametrize("kind, processes", [("classifier", 3), ("language", 2)])
def test_processes_that_share_batches_give_the_losses_of_one(kind, processes, tmp_path, monkeypatch):
    alone, _ = made(kind, tmp_path / "one", 1, monkeypatch)
    shared, said = made(kind, tmp_path / "many", processes, monkeypatch)
    assert (alone["environment"]["processes"], shared["environment"]["processes"]) == (1, processes)
    assert alone["key"] == shared["key"] and said.count("· test ") == 1  # one of them speaks
    assert len(alone["history"]) == len(shared["history"]) >= 3
    for a, b in zip(alone["history"], shared["history"]):
        for name in ("train_loss", "validation_loss"):
            assert a[name] == pytest.approx(b[name], abs=2e-5), json.dumps([a, b])
    losses = [r["train_loss"] for r in alone["history"]]
    assert min(losses) < losses[0] - 1e-3  # something was learnt, so agreement is not that of weights at rest
    assert alone["test"]["loss"] == pytest.approx(shared["test"]["loss"], abs=2e-5)


def test_alone_nothing_is_shared():
    mine = team()
    assert mine == Team() and mine.first and mine.seed(7) == 7 and mine.share([1, 2, 3]) == [1, 2, 3] and mine.told(lambda: 5) == 5


def test_shares_are_a_partition_and_streams_differ():
    rows, all_of_them = list(range(7)), [Team(rank, 3) for rank in range(3)]
    shares = [mine.share(rows) for mine in all_of_them]
    assert sorted(sum(shares, [])) == rows and max(map(len, shares)) - min(map(len, shares)) <= 1
    assert len({mine.seed(0) for mine in all_of_them}) == 3


def test_a_step_that_cannot_be_shared_is_one_sentence():
    with pytest.raises(RtxError, match="2 processes were asked to share a step of 3 micro-batches; set micro_batches to a multiple of 2"):
        language._divides(Team(0, 2), Recipe(batch_size=6, micro_batches=3))
