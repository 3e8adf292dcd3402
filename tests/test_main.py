"""The command line: what it offers, and how it refuses."""

import pytest
from conftest import refused

from rtx_core import __main__ as command

COMMANDS = ["list", "run", "results", "classify", "doctor", "audit", "golden", "export-demo", "measure"]


def run(monkeypatch, *words: str) -> None:
    monkeypatch.setattr("sys.argv", ["rtx", *words])
    command.main()


def test_help_lists_every_command_with_a_line(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, "-h")
    shown = capsys.readouterr().out
    assert end.value.code == 0 and all(f"\n    {name}" in shown for name in COMMANDS)


def test_settings_are_read_as_yaml_reads_them():
    words = ["sst2", "recurrent", "learning_rate=1e-4", "seeds=[0,1]", "split=seeded", "a = b"]
    given = {"learning_rate": "1e-4", "seeds": [0, 1], "split": "seeded"}
    assert command.settings_of(words) == (["sst2", "recurrent", "a = b"], given)


@pytest.mark.parametrize("word", ["models=[", "models={a: b", "seeds=" + "[" * 2_000])
def test_a_value_that_cannot_be_read_is_one_sentence(word):
    with refused(word.partition("=")[0]):
        command.settings_of([word])


REFUSED = {
    "Nothing to run": "run",
    "Unknown experiment 'sst3'": "run sst3",
    "whole number from 0": "run sst2 seed=99999999999999999999",
    "comes after seeds=[1]": "run sst2 seed=1 seeds=[2]",
    "is no setting here": "run sst2 model=recurrent",
    "Give models as words": "run sst2 recurrent models=[baseline]",
    "Nothing to measure": "measure yardstick",
    "leave out to=yelp": "measure precision sst2 to=yelp",
    "Unknown experiment 'nope'": "results nope",
    "There is no record": "export-demo sst2/recurrent-seed77",
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_refusal_is_one_sentence_and_not_zero(said, monkeypatch):
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, *REFUSED[said].split())
    assert said in str(end.value.code) and "\n" not in str(end.value.code)
