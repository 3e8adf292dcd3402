"""The command line: what it offers, and how it refuses."""

import re
from math import inf
from pathlib import Path

import pytest
from conftest import refused

from rtx_core import __main__ as command
from rtx_core import paths
from rtx_core.experiments.configure import configure
from rtx_core.models import registry
from study.experiments import EXPERIMENTS

COMMANDS = ["list", "run", "settings", "results", "classify", "doctor", "audit", "golden", "export-demo", "measure"]


def run(monkeypatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["rtx", *words])
    command.main()


def test_help_lists_every_command_with_a_line(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, "-h")
    shown = capsys.readouterr().out
    assert end.value.code == 0 and all(f"\n    {name}" in shown for name in COMMANDS)


VALUES = {"1e-4": 1e-4, "-2.5": -2.5, "[0, 1]": [0, 1], "010": "010", "1:30": "1:30", "no": "no", "true": True}
VALUES |= {"": None, "null": None, "1e400": inf, "-.inf": -inf, "{base: a, gate: false}": {"base": "a", "gate": False}}


def test_settings_are_read_as_a_newcomer_to_yaml_reads_them():
    words = ["sst2", "a = b", *(f"x{i}={value}" for i, value in enumerate(VALUES))]
    assert command.parse_words(words) == (["sst2", "a = b"], {f"x{i}": x for i, x in enumerate(VALUES.values())})


@pytest.mark.parametrize("model", ["", *registry.MODELS])
def test_settings_are_listed_with_type_default_and_meaning(model, monkeypatch, capsys):
    name = "sst2" if "recurrent" in model or model == "baseline" else "khop"
    run(monkeypatch, "settings", *f"{name} {model}".split())
    rows = [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    named = {row[1]: row[2:] for row in rows}
    config = configure(name, model or EXPERIMENTS[name].default_models[0])
    assert named["learning_rate"][:2] == ["float > 0", str(config.train.learning_rate)]
    assert min(map(len, named.values())) >= 2 and "hidden_size" in named
    assert named.keys() >= {"seed", "device", "source", "batch_size"} and not named.keys() & {"corpus", "num_labels"}


@pytest.mark.parametrize("word", ["models=[", "models={a: b", "seeds=" + "[" * 1_100])
def test_a_value_that_cannot_be_read_is_one_sentence(word):
    with refused(word.partition("=")[0]):
        command.parse_words([word])


REFUSED = {
    "Nothing to run": "run",
    "Unknown experiment 'sst3'": "run sst3",
    "is '010'": "run sst2 seed=010",
    "is '1:30'": "run sst2 epochs=1:30",
    "finite": "run sst2 learning_rate=.nan",
    "give an experiment": "settings",
    "whole number from 0": "run sst2 seed=99999999999999999999",
    "comes after seeds=[1]": "run sst2 seed=1 seeds=[2]",
    "is no setting here": "run sst2 model=recurrent",
    "Give models as words": "run sst2 recurrent models=[baseline]",
    "Nothing to measure": "measure yardstick",
    "leave out to=yelp": "measure precision sst2 to=yelp",
    "'nope'": "results nope",
    "Unknown setting of a run of looped: 'name'": "settings khop 1x1 name=2",
    "Unknown setting 'name'": "check gpt name=2",
    "There is no record": "export-demo sst2/recurrent-seed77",
    "no record 'khop/1x4-seed99": "audit results/khop/1x4-seed99.json",
    "passes is 'x'": "check looped passes=x",
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_refusal_is_one_sentence_and_not_zero(said, monkeypatch):
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, *REFUSED[said].split())
    assert said in str(end.value.code) and "\n" not in str(end.value.code)


def test_a_seed_changes_no_setting(monkeypatch, capsys):
    run(monkeypatch, "settings", "khop", "1x4", "seed=3")
    assert "learning_rate" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_is_refused_is_one_sentence(monkeypatch):
    with open("/dev/full", "w") as full, pytest.raises(SystemExit, match="No space left"):
        monkeypatch.setattr("sys.stdout", full)
        run(monkeypatch, "settings", "khop")


def test_a_home_may_begin_with_a_tilde(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RTX_HOME", "~/records")
    assert paths.home() == home / "records"
    monkeypatch.setenv("RTX_HOME", "~nobody-of-this-name/records")
    with refused("no such user"):
        paths.home()
