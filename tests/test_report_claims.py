"""The claims engine: five tests, four outcomes."""

import numpy as np
import pytest
from report_records import record

from rtx_core.errors import RtxError
from rtx_core.report import claims
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Model, Names, Task, Value, look_up


def task(first: list, second: list, **changes) -> Task:
    """A task on which the models are wrong on so many texts, a number a seed."""
    of = {"baseline": first, "recurrent": second}
    return Task([record(m, seed, range(n), **changes) for m in of for seed, n in enumerate(of[m])])


def slow(ms: float, device: str = "A") -> Model:
    times = {"p10_ms": 14 * ms, "p90_ms": 18 * ms, "per_sentence_ms": ms, "batch": 16}
    latency = {"measured": [times], "environment": {"device": device, "threads": 2}}
    return Model([record(latency=latency)], "a model")


GIVEN = {
    "ahead": task([10, 11, 12], [30, 31, 33]),
    "behind": task([30], [10]),
    "even": task([20, 25, 30], [21, 24, 30]),
    "small": task([10, 11, 12], [30, 31, 33], budget="reduced"),
    "nothing": task([], []),
    "steady": task([20, 21, 19], [20, 20, 20]),
    "narrow": Value(0.96, 0.955, 0.965, Badge(1, 0)),
    "count": 25_912_706,
    "fast": lambda: slow(1.0),
    "slow": lambda: slow(2.0),
    "close": lambda: slow(1.2),
    "elsewhere": lambda: slow(5.0, "B"),
}


def judge(**test) -> claims.Outcome:
    known = Names(GIVEN)
    return claims.judge({"test": test}, lambda name: look_up(name, known))


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ({"direction": "ahead.difference"}, "reproduced"),
        ({"direction": "ahead.difference", "expect": "below"}, "contradicted"),
        ({"direction": "behind.difference"}, "contradicted"),
        ({"direction": "even.difference"}, "undecided"),
        ({"direction": ["ahead.difference", "even.difference"]}, "undecided"),
        ({"direction": ["ahead.difference", "even.difference", "behind.difference"]}, "contradicted"),
        ({"direction": ["ahead.difference", "small.difference"]}, "reproduced"),
        ({"direction": "nothing.difference"}, "not measured"),
        ({"direction": "even.minus('recurrent', 'baseline', 'f1')"}, "undecided"),
        ({"value": "steady.baseline", "published": 0.902, "n": 200}, "reproduced"),
        ({"value": "steady.baseline", "published": 0.8, "n": 2000}, "contradicted"),
        ({"value": "even.baseline", "published": 0.9, "n": 200}, "undecided"),  # chance, but beyond a point
        ({"value": "small.baseline", "published": 0.945, "n": 200}, "undecided"),
        ({"value": "behind.baseline", "published": 0.85, "n": 200}, "undecided"),  # one seed
        ({"bound": "narrow", "at_least": 0.95}, "reproduced"),
        ({"bound": "narrow", "at_least": 0.97}, "contradicted"),
        ({"bound": "narrow", "at_most": 0.96}, "undecided"),
        ({"bound": "even.difference", "within": 3}, "reproduced"),
        ({"bound": "ahead.difference", "within": 3}, "contradicted"),
        ({"count": "count", "equals": 25_912_706}, "reproduced"),
        ({"count": "count", "equals": 9_800_000}, "contradicted"),
        ({"count": "count / 1e6", "at_most": 26}, "reproduced"),
        ({"time": "fast", "less_than": "slow"}, "reproduced"),
        ({"time": "slow", "less_than": "fast"}, "contradicted"),
        ({"time": "fast", "less_than": "close"}, "undecided"),
        ({"time": "fast", "less_than": "elsewhere"}, "undecided"),  # another machine
    ],
)
def test_outcomes(test, word):
    assert judge(**test).word == word


def test_an_outcome_has_a_line_and_the_weakest_badge():
    found = judge(direction=["ahead.difference", "small.difference"])
    assert str(found.badge) == "○○○ reduced"
    assert found.line.count("+10.2 (") == 2
    contradicted = judge(direction=["ahead.difference", "behind.difference"])
    assert str(contradicted.badge) == "● full"  # of the one that contradicts
    assert judge(count="count", equals=1).line == "25,912,706"
    line = judge(value="steady.baseline", published=0.902, n=200).line
    assert line.startswith("90.0\u202f% against 90.2\u202f%")


def test_a_bad_name_is_no_missing_measurement():
    with pytest.raises(RtxError, match="Unknown value 'evn': did you mean 'even'"):
        judge(direction="evn.difference")


YAML = """
SST-2:
  - says: Ahead.
    source: slides
    page: sst2
    test: {direction: ahead.difference}
  - {says: Nothing., source: report, test: {direction: nothing.difference}}
Counts:
  - {says: Many., source: report, test: {count: count, equals: 25912706}}
"""


def test_claims_are_read_and_judged(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(YAML)
    rows = claims.read(path)
    known = Names(GIVEN)
    frame = claims.judged(rows, lambda name: look_up(name, known))
    assert frame["outcome"].tolist() == ["reproduced", "not measured", "reproduced"]
    assert frame["badge"].tolist() == ["●●● full", "", ""] and frame["page"].tolist() == ["sst2", "", ""]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{says: a, source: b, test: {directon: x}}", "Unknown test in claims.yaml, claim 1: 'directon'"),
        ("{says: a, test: {count: x}}", "lacks source"),
        ("{says: a, source: b, tests: {count: x}}", "Unknown field in claims.yaml, claim 1: 'tests'"),
    ],
)
def test_bad_rows_are_refused(tmp_path, row, complaint):
    path = tmp_path / "claims.yaml"
    path.write_text(f"- {row}\n")
    with pytest.raises(RtxError, match=complaint):
        claims.read(path)


def test_values_of_a_task():
    sst2 = GIVEN["ahead"]
    assert sst2.difference == pytest.approx(100 * np.mean([20, 20, 21]) / 200) and sst2.difference.sign == 1
    assert sst2.difference.low < sst2.difference < sst2.difference.high
    assert sst2.saving == 0.4 and sst2.n == 200 and str(sst2.badge) == "●●● full"
    assert sst2.baseline.accuracy == pytest.approx(0.945)
    assert sst2.recurrent.f1 == pytest.approx(np.mean([one["test"]["f1"] for one in sst2.recurrent.records]))
    with pytest.raises(RtxError, match="no record of this task, recurrent_wide"):
        sst2.recurrent_wide  # noqa: B018
