"""All measurements of the classification study by one command."""

from importlib import import_module

import pytest

from rtx_core import measure as module
from rtx_core import paper
from rtx_core.errors import RtxError
from rtx_core.parameters import settings
from rtx_core.tasks import TASKS


@pytest.fixture
def made(monkeypatch):
    """What is asked for, in order, with nothing measured."""
    asked = []
    for kind in module.KINDS:
        evaluation = import_module(f"rtx_core.evaluation.{kind}")
        monkeypatch.setattr(evaluation, kind, lambda *experiments, kind=kind: asked.append((kind, *experiments)))
    return asked


@pytest.mark.parametrize("reduced", [False, True])
def test_measurements_are_of_runs_in_the_plan(reduced, made):
    assert module.measure([], reduced) == []
    assert {kind for kind, *_ in made} == set(module.KINDS) and [entry[1] for entry in made if entry[0] == "bag_of_words"] == [e for _, e, _ in TASKS.values()]
    planned = {(run.variant, run.model, run.seed) for run in paper.runs(reduced)}
    for kind, experiment, *_, given in made:
        if kind != "bag_of_words":
            asked = settings(experiment, given)
            assert {(asked.variant, model, seed) for model in asked.models for seed in asked.seeds} <= planned, kind


def test_what_one_lacks_is_said_and_the_others_are_made(made, monkeypatch, capsys):
    def lacking(*experiments):
        raise RtxError("The trained weights are not here.")

    monkeypatch.setattr(import_module("rtx_core.evaluation.rounding"), "rounding", lacking)
    module.main(["rounding", "precision"])
    assert [kind for kind, *_ in made] == ["precision"]
    assert capsys.readouterr().out == "left out: rounding sst2: The trained weights are not here.\n"
    with pytest.raises(RtxError, match="heat"):
        module.measure(["heat"], False)


def test_where_nothing_was_trained_the_command_says_so(home, capsys, monkeypatch):
    monkeypatch.setenv("RTX_DATA", "")
    module.main(["attention"])
    assert capsys.readouterr().out.startswith("left out: attention sst2: ")
