"""Every command of the README and of the table that lists all results.

Those that train say what would follow, and the rest runs, in the order printed.
"""

import ast
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from statistics import mean

import pytest
import yaml
from papermill import inspect_notebook

import rtx_core as rtx
from rtx_core import records
from rtx_core.__main__ import main, parse_words
from rtx_core.experiments.configure import configure
from rtx_core.experiments.measure import MeasuredRuns
from rtx_core.paths import REPOSITORY
from study import MEASUREMENTS, paper
from study.analysis.facts import stored_bits
from study.analysis.hops import wrong
from study.analysis.records import mean_loss, pass_share
from study.experiments import EXPERIMENTS
from study.folders import Folders

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PYTHON = re.search(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)[1]
TYPED = [
    line.partition("#")[0]
    for block in re.findall(r"^```bash\n(.*?)^```$", README, re.M | re.S)
    for line in block.splitlines()
]
TABLE = (REPOSITORY / "book" / "reproduce.md").read_text(encoding="utf-8").partition(":name: tab-commands")[2]
TYPED += re.findall(r"`([^`\n]+)`", README + TABLE)
COMMANDS = [shlex.split(line.removeprefix("python -m rtx_core ")) for line in TYPED if "…" not in line]
RUNS = [words for words in COMMANDS if words[0] == "run" and len(words) > 1]
MEASURES = [words for words in COMMANDS if words[0] == "measure" and len(words) > 1]
NOTEBOOKS = [words for words in COMMANDS if words[0] == "papermill"]


@pytest.fixture
def files(home, monkeypatch):
    """The files that the README calls one's own."""
    monkeypatch.chdir(home)
    rtx.data.sample("reviews.csv", rows=60)
    (home / "book.txt").write_text("To be, or not to be, that is the question. " * 200)
    return home


def parameters(notebook: str) -> dict[str, object]:
    found = inspect_notebook(str(REPOSITORY / notebook))
    return {name: ast.literal_eval(about["default"]) for name, about in found.items()}


def test_the_readme_has_the_commands_that_are_tried_here():
    assert len(RUNS) > 15 and len(MEASURES) > 8 and NOTEBOOKS


def test_every_training_command_says_what_follows(files, monkeypatch, capsys):
    for words in RUNS:
        monkeypatch.setattr(sys, "argv", ["rtx", *words, "--dry"])
        main()
        assert re.match(r"\d+ runs? follow", capsys.readouterr().out.splitlines()[-1]), words


def test_every_measurement_is_of_a_known_kind_and_experiment():
    for _, *words in MEASURES:
        (kind, experiment), settings = parse_words(words)
        assert kind in MEASUREMENTS and MeasuredRuns(experiment, **settings).name


def test_every_notebook_module_and_target_is_there():
    makefile = (REPOSITORY / "Makefile").read_text()
    for words in COMMANDS:
        if words[0] == "papermill":
            asked = [*yaml.safe_load(words[words.index("-y") + 1])] if "-y" in words else []
            assert set(asked) <= parameters(words[1]).keys()
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words
        elif words[:2] == ["python", "-m"]:
            assert find_spec(words[2]), words


def test_after_the_quick_start_the_readme_runs_as_it_is_printed(files, monkeypatch, small_models, capsys):
    used = {"train_rows", "epochs", "learning_rate", "eval_every", "source"}
    page = {name: value for name, value in parameters("notebooks/quickstart.ipynb").items() if name in used}
    quick = EXPERIMENTS["quickstart"]
    assert configure("quickstart", "recurrent", **page).name == "quickstart"
    small = replace(quick, data=quick.data.replace(train_rows=48), train=quick.train.replace(eval_every=0))
    monkeypatch.setitem(EXPERIMENTS, "quickstart", small)
    rtx.runs("quickstart", models=["recurrent"])
    for words in COMMANDS:
        if words[0] == "classify" and len(words) > 1:
            monkeypatch.setattr(sys, "argv", ["rtx", *words])
            main()
    assert len(capsys.readouterr().out.splitlines()[-2:]) == 2  # an answer a pass
    exec(PYTHON.replace("epochs=3", "epochs=1").replace("steps=500", "steps=2, eval_every=2"), {})
    assert {record["name"] for record in records.records()} >= {"own-reviews-epochs1"}


def test_the_readme_quotes_the_numbers_of_the_records(monkeypatch):
    monkeypatch.delenv("RTX_HOME", raising=False)
    runs = Folders(paper.records)

    def share(of: Callable[[str], list[float]]) -> str:
        """What a second pass of one layer gains of what a second layer gains."""
        return f"{100 * pass_share(lambda model: mean(of(model))):.0f} %"

    narrow_and_loop = runs.split("hops", True), runs.again("1x2"), runs.split("hops_wide", True), runs.wider_runs("1x2")
    quoted = [
        share(lambda model: [wrong(run, 4) for run in runs.again(model)]),
        share(lambda model: [wrong(run, 4) for run in runs.wider_runs(model)]),
        share(lambda model: [stored_bits(run) for run in runs.facts_again(model)]),
        share(runs.wide_facts),
        share(lambda model: [run["test"]["loss"] for run in runs.text_again(f"{model}-64")]),
        share(lambda model: [run["test"]["loss"] for run in runs.wide_text(model)]),
        *(f"{mean(wrong(run, 4) for run in each):.1%}".replace("%", " %") for each in narrow_and_loop),
        *(f"{mean_loss(each):.3f}" for each in (runs.split("text", True), runs.text_again("1x2-64"))),
    ]
    assert all(text in README for text in quoted), quoted
