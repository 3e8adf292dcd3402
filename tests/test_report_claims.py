"""The claims engine: each test of a claim, each outcome."""

from functools import cache

import numpy as np
import pytest
from report_records import record

from rtx_core.errors import RtxError
from rtx_core.report import values
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Names, Task, Value
from study import claims


def task(first: list, second: list, **changes) -> Task:
    """A task on which the models are wrong on so many texts, a number a seed."""
    of = {"baseline": first, "recurrent": second}
    return Task([record(m, seed, range(n), **changes) for m in of for seed, n in enumerate(of[m])])


GIVEN = {
    "ahead": task([10, 11, 12], [30, 31, 33]),
    "behind": task([30], [10]),
    "even": task([20, 25, 30], [21, 24, 30]),
    "small": task([10, 11, 12], [30, 31, 33], budget="reduced"),
    "nothing": task([], []),
    "steady": task([20, 21, 19], [20, 20, 20]),
    "narrow": Value(0.96, 0.955, 0.965, Badge(3, 0)),
    "lone": Value(0.96, 0.955, 0.965, Badge(1, 0)),
    "count": 25_912_706,
}


@pytest.fixture(autouse=True)
def given(monkeypatch):
    monkeypatch.setattr(values, "names", cache(lambda: Names(GIVEN)))


OUTCOMES = [
    ({"direction": "ahead.difference"}, "reproduced"),
    ({"direction": "behind.difference"}, "of the opposite sign"),  # one seed
    ({"direction": "ahead.difference", "expect": "below"}, "contradicted"),
    ({"direction": "small.difference"}, "of the same sign"),  # a reduced budget
    ({"direction": ["ahead.difference", "even.difference"]}, "undecided"),
    ({"direction": ["ahead.difference", "even.difference", "behind.difference"]}, "of the opposite sign"),
    ({"direction": ["ahead.difference", "small.difference"]}, "of the same sign"),
    ({"direction": "nothing.difference"}, "not measured"),
    ({"direction": "even.minus('recurrent', 'baseline', 'f1')"}, "undecided"),
    ({"value": "steady.baseline", "published": 0.902, "n": 200}, "reproduced"),
    ({"value": "steady.baseline", "published": 0.8, "n": 2000}, "contradicted"),
    ({"value": "steady.baseline", "published": 0.87, "n": 200}, "undecided"),
    ({"value": "steady.baseline", "published": 0.87, "n": 200, "same_texts": True}, "contradicted"),
    ({"value": "even.baseline", "published": 0.9, "n": 200}, "undecided"),  # chance, but beyond a point
    ({"value": "behind.baseline", "published": 0.85, "n": 200}, "undecided"),  # one seed
    ({"bound": "narrow", "at_least": 0.95}, "reproduced"),
    ({"bound": "lone", "at_least": 0.95}, "undecided"),  # one seed
    ({"bound": "narrow", "at_least": 0.97}, "contradicted"),
    ({"bound": "narrow", "at_most": 0.96}, "undecided"),
    ({"bound": "even.difference", "within": 3}, "reproduced"),
    ({"bound": "ahead.difference", "within": 3}, "contradicted"),
    ({"count": "count", "equals": 9_800_000}, "contradicted"),
    ({"count": "count / 1e6", "at_most": 26}, "reproduced"),
    ({"untested": "No run goes without."}, "not measured"),
]


@pytest.mark.parametrize(("test", "word"), OUTCOMES)
def test_outcomes(test, word):
    assert claims.judge(test).word == word


def test_an_outcome_has_a_line_and_the_weakest_badge():
    found = claims.judge({"direction": ["ahead.difference", "small.difference"]})
    assert str(found.badge) == "○○○ reduced"
    assert found.line.count("+10.2 (") == 2
    contradicted = claims.judge({"direction": ["ahead.difference", "behind.difference"]})
    assert str(contradicted.badge) == "● full"  # of the one that contradicts
    assert claims.judge({"count": "count", "equals": 1}).line == "25,912,706"
    line = claims.judge({"value": "steady.baseline", "published": 0.902, "n": 200}).line
    assert line.startswith("90.0\u202f% against 90.2\u202f%")


def test_a_bad_name_is_no_missing_measurement():
    with pytest.raises(RtxError, match="Unknown value 'evn': did you mean 'even'"):
        claims.judge({"direction": "evn.difference"})


YAML = """
SST-2:
  sst2:
    - {says: Ahead., source: slides, test: {direction: ahead.difference}}
    - {says: Nothing., source: report, test: {direction: nothing.difference}}
Counts:
  sizes:
    - {says: Many., source: report, test: {count: count, equals: 25912706}}
"""


def test_claims_are_read_and_judged(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(YAML)
    found = claims.judged(path)[["page", "outcome", "badge"]].values.tolist()
    assert found == [["sst2", "reproduced", "●●● full"], ["sst2", "not measured", ""], ["sizes", "reproduced", ""]]
    with pytest.raises(RtxError, match="'directon'"):
        claims.judge({"directon": "even.difference"})


def test_values_of_a_task():
    sst2 = GIVEN["ahead"]
    assert sst2.difference == pytest.approx(100 * np.mean([20, 20, 21]) / 200) and sst2.difference.sign == 1
    assert sst2.difference.low < sst2.difference < sst2.difference.high
    assert sst2.parameter_ratio == sst2.saving == 0.4 and str(sst2.badge) == "●●● full"
    assert sst2.baseline.accuracy == pytest.approx(0.945)
    assert sst2.recurrent.f1 == pytest.approx(np.mean([one["test"]["f1"] for one in sst2.recurrent.records]))
    with pytest.raises(RtxError, match="no record of this task, recurrent_wide"):
        sst2.recurrent_wide  # noqa: B018
