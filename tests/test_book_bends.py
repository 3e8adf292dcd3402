"""A copy of the repository, used as a reader would: the book is built all the same, and marks what no longer holds."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from committed import altered

from rtx_core.paths import REPOSITORY
from rtx_core.records.schema import run_key

pytestmark = pytest.mark.skipif(not os.environ.get("RTX_LONG"), reason="ten minutes: RTX_LONG=1")


@pytest.fixture
def copy(tmp_path) -> Path:
    """The committed files and changes to them, in a folder of their own."""
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    root = tmp_path / "copy"
    for name in files.split("\n")[:-1]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name, follow_symlinks=False)
    return root


def command(root: Path, *words: str) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RTX_")}
    environment |= {"PYTHONPATH": str(root), "JUPYTER_PREFER_ENV_PATH": "1"}
    environment |= {"IPYTHONDIR": str(root / "ipython"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run([sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True)


def build(root: Path) -> list[str]:
    """Build the book as `make book` does; the places and conditions that are marked."""
    options = ("book", "-W", "-n", "--keep-going")
    done = command(root, "-c", "from jupyter_book.cli.main import main; main()", "build", *options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    checked = command(root, "tests/check_html.py", "_build/html")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = root / "_build" / "sentences.txt"
    return listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []


def test_whatever_is_run_the_book_is_built_and_marks_what_no_longer_holds(copy):
    khop, page = copy / "results" / "khop", copy / "notebooks" / "looping.ipynb"
    own = copy / "results" / "own-mine" / "bag-of-vectors-seed0"
    own.parent.mkdir()  # own texts and an encoder that is registered nowhere
    for kind in (".json", ".npz"):
        shutil.copy(copy / f"results/sst2-10pct/recurrent-seed0{kind}", own.with_suffix(kind))
    altered(own.with_suffix(".json"), experiment="own-data", name="own-mine", model="bag-of-vectors")
    other = khop / "2x1-seed8.json"  # another seed on another processor
    shutil.copy(khop / "2x1-seed0.json", other)
    record = json.loads(other.read_text(encoding="utf-8"))
    environment = record["environment"] | {"device": "another processor"}
    key = run_key(record["config"], record["data"]["sha256"], 8)
    altered(other, seed=8, key=key, environment=environment)
    before = page.read_text(encoding="utf-8")
    page.write_text(before.replace('"seeds = list(range(10, 30))', '"seeds = [10, 11]', 1), encoding="utf-8")
    assert page.read_text(encoding="utf-8") != before
    few = [line for line in build(copy) if line.startswith(("notebooks/", "book/", "index"))]
    assert few and all("looping" in line or ".md" in line for line in few), few  # two seeds bear out less
    listed = (copy / "_build/html/notebooks/runs.html").read_text(encoding="utf-8")
    assert "own-mine/bag-of-vectors" in listed and "khop/2x1-seed8" in listed

    for path in copy.glob("results/khop-again/2x1-*.json"):  # as if it had been run again and learned the task
        test = json.loads(path.read_text(encoding="utf-8"))["test"]
        for part in test["parts"]:
            part["error"] = 0.0
        altered(path, test=test | {"accuracy": 1.0})
    marked = build(copy)
    conditions = [line.strip() for line in marked if line.startswith("    - ")]
    assert sum("2x1" in line for line in conditions) > 3, conditions
    assert any(line.startswith("notebooks/looping.ipynb, cell") for line in marked)
    assert "unborne" in (copy / "_build/html/notebooks/looping.html").read_text(encoding="utf-8")

    broken = khop / "1x1-seed0.json"
    broken.write_text(broken.read_text(encoding="utf-8")[:1000])
    build(copy)  # the other seeds are left, which bear most sentences or do not
    assert "khop/1x1-seed0.json" in (copy / "_build/html/notebooks/runs.html").read_text(encoding="utf-8")
    assert "khop/1x1-seed0.json" in command(copy, "-m", "rtx_core", "doctor").stdout
