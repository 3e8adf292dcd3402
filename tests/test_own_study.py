"""The library away from this paper: alone with the study of *Make it yours*, it trains, records,
classifies and builds a book."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rtx_core.paths import PACKAGE, REPOSITORY

PAGE = (REPOSITORY / "book" / "make-it-yours.md").read_text(encoding="utf-8")
BLOCK = r"^(`{3,4})\{code-block\} \w+\n:caption: `(mine/\S+)`\n(.*?)^\1$"
COMMANDS = re.search(r"^```\{code-block\} bash\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)[1]
USE = """
import sys
from pathlib import Path
import rtx_core as rtx

assert Path(rtx.__file__).parent.parent == Path.cwd(), rtx.__file__
assert set(rtx.results(source="embedded")["experiment"]) == {"few", "many"}
answers = rtx.load("few/twice-seed0", source="embedded").classify(["a fine film"], passes=True)
assert len(answers) == 2 and not [name for name in sys.modules if name.partition(".")[0] == "study"]
try:
    rtx.run("sst2")
except rtx.RtxError as error:
    print(error)
"""


def test_the_library_works_alone_with_a_study_of_one_s_own(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "rtx_core", ignore=ignore)
    shutil.copytree(REPOSITORY / "book" / "_ext", tmp_path / "book" / "_ext", ignore=ignore)
    files = {name: text for _, name, text in re.findall(BLOCK, PAGE, flags=re.MULTILINE | re.DOTALL)}
    assert sum(len([line for line in text.splitlines() if line]) for text in files.values()) <= 40
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PATH": path, "OMP_NUM_THREADS": "1", "RTX_STUDY": "mine"}
    environment.pop("RTX_HOME", None)

    def do(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    do("bash", "-ec", COMMANDS)
    assert do(sys.executable, "-W", "error::UserWarning", "-c", USE).splitlines()[-1] == (
        "Unknown experiment 'sst2': the choices are few, many."
    )
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("_build/results/*/*.json"))
    assert made == [
        f"_build/results/{name}/{model}-seed0.json" for name in ("few", "many") for model in ("once", "twice")
    ]
    page = (tmp_path / "mine/book/_build/html/index.html").read_text()
    assert "tab-many" in page and not (tmp_path / "mine/book/_build/sentences.txt").exists()
    values = tmp_path / "mine/book/index.md"
    values.write_text(values.read_text().replace("accuracy > few", "accuracy < few"))
    do("jupyter-book", "build", "mine/book")
    assert "many_texts.twice.accuracy" in (tmp_path / "mine/book/_build/sentences.txt").read_text()
