"""Verdicts of the predictions: each function is of a row, the paper's records decide it, and it can do without any."""

from random import Random

import pytest

from rtx_core import paths
from study import paper
from study.predictions import BROKEN, KEPT, MISSING, PARTLY, Prediction, page_of, read
from study.verdicts import FUNCTIONS
from study.verdicts.runs import RUNS

ROWS = read("predictions.yaml")
JUDGED = sorted(FUNCTIONS)
RECORDS = paper.records
NOT_RUN = {"yelp-full", "facts-wider", "pointers-wider"}  # runs are still to be made


def prediction(name: str) -> Prediction:
    return Prediction(ROWS[name])


def test_the_papers_records_decide_every_function(monkeypatch):
    monkeypatch.delenv("RTX_HOME")
    undecided = {name for name in JUDGED if prediction(name).verdict not in (KEPT, PARTLY, BROKEN)}
    assert len(JUDGED) > 40 and undecided <= NOT_RUN


def test_every_prediction_has_a_page():
    pages = {path.stem for path in paths.REPOSITORY.joinpath("notebooks").glob("*.ipynb")}
    assert {page_of(name) for name in ROWS} <= pages


def test_without_records_nothing_is_decided(home):
    assert {prediction(name).verdict for name in JUDGED} == {MISSING}


@pytest.mark.filterwarnings("ignore")  # means of nothing
@pytest.mark.parametrize("draw", range(3))
def test_runs_that_are_missing_end_no_page(draw, monkeypatch):
    monkeypatch.delenv("RTX_HOME")

    def some(*words, **named):
        return [
            run for run in RECORDS(*words, **named) if Random(f"{draw} {run['name']} {run['model']}").random() > 0.3
        ]

    monkeypatch.setattr(paper, "records", some)
    monkeypatch.setattr(RUNS, "records", some)
    assert MISSING in {prediction(name).verdict for name in JUDGED}
