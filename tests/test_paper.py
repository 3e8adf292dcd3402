"""One command for every run of the classification study."""

import pytest

from rtx_core import paper
from rtx_core.errors import Busy
from rtx_core.parameters import EXPERIMENTS


def test_the_plan_names_every_experiment_of_the_report_once():
    runs = [(asked.variant, model, seed) for asked, model, seed in paper.plan()]
    assert len(runs) == len(set(runs))
    folders = {variant for variant, _, _ in runs}
    assert {"sst2", "sst2-official", "sst2-10pct", "sst2-50pct", "sst2-short", "sst2-long", "sst2-grouped", "yelp", "multi-domain"} <= folders
    assert {asked.experiment for asked, _, _ in paper.plan()} == set(EXPERIMENTS) - {"quickstart"}
    assert not any(asked.reduced for asked, _, _ in paper.plan())
    assert ("sst2", "recurrent-wide", 0) in runs and ("sst2-10pct", "baseline", 2) in runs


def test_the_reduced_budget_is_for_long_texts_alone_and_says_so():
    for (full, *_), (small, *_) in zip(paper.plan(), paper.plan(reduced=True), strict=True):
        assert bool(small.reduced) == (full.experiment != "sst2")


def test_it_lists_what_is_missing_and_trains_nothing(capsys, monkeypatch):
    monkeypatch.setattr("rtx_core.run.run", lambda *arguments: pytest.fail("it trained"))
    paper.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(list(paper.plan())) and all(line.endswith("missing") or "recorded, test accuracy 0." in line for line in lines)


def test_side_by_side_a_run_that_another_process_makes_is_left_to_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    asked = []

    def busy(settings, model, seed):
        asked.append((settings.variant, model, seed))
        raise Busy("Another process is training it now.")

    monkeypatch.setattr("rtx_core.run.run", busy)
    paper.main(["--run"])
    assert len(asked) == len(list(paper.plan())) and capsys.readouterr().out.count("missing") == len(asked)
