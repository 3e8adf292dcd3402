"""The library away from this paper: alone with a study of one module, it trains, records, loads and classifies."""

import os
import shutil
import subprocess
import sys

from rtx_core.paths import PACKAGE

STUDY = """
from rtx_core.data import ClassificationData
from rtx_core.experiments import Entry, Experiment
from rtx_core.train.config import TrainConfig

small = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32, "num_layers": 1, "num_passes": 2}
EXPERIMENTS = {
    "mine": Experiment(
        ClassificationData(corpus="sst2", source="embedded", train_rows=64, max_length=16),
        TrainConfig(epochs=1, learning_rate=1e-3, warmup_steps=2),
        models={"twice": Entry("recurrent", small)},
        shown=("twice",),
    )
}
"""
USE = """
import sys
from pathlib import Path
import rtx_core as rtx

assert Path(rtx.__file__).parent.parent == Path.cwd(), rtx.__file__
made = rtx.run("mine", "twice")
assert rtx.run("mine", "twice").record["key"] == made.record["key"]
assert list(rtx.results(source="embedded")["experiment"]) == ["mine"]
answers = rtx.load("mine/twice-seed0", source="embedded").classify(["a fine film"], passes=True)
assert len(answers) == 2 and not [name for name in sys.modules if name.partition(".")[0] == "study"]
try:
    rtx.run("sst2")
except rtx.RtxError as error:
    print(error)
"""


def test_the_library_works_alone_with_a_study_of_one_s_own(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "rtx_core", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "own_study.py").write_text(STUDY)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "RTX_STUDY": "own_study", "OMP_NUM_THREADS": "1"}
    environment.pop("RTX_HOME", None)
    command = [sys.executable, "-W", "error::UserWarning", "-c", USE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Unknown experiment 'sst2': the choices are mine."
    assert [p.name for p in tmp_path.glob("_build/results/*/*.json")] == ["twice-seed0.json"]
