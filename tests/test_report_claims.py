"""The outcomes of claims: each test of a claim, each outcome."""

import numpy as np
import pytest
from report_records import record

from rtx_core.errors import RtxError
from rtx_core.report.evidence import Badge
from rtx_core.report.values import Task, Value
from study import claims
from study.analysis.outcomes import bound, count, direction, printed, untested


def task(first: list, second: list, **changes) -> Task:
    """A task on which the models are wrong on so many texts, a number a seed."""
    of = {"baseline": first, "recurrent": second}
    return Task([record(m, seed, range(n), **changes) for m in of for seed, n in enumerate(of[m])])


AHEAD, BEHIND, EVEN = task([10, 11, 12], [30, 31, 33]), task([30], [10]), task([20, 25, 30], [21, 24, 30])
SMALL, STEADY = task([10, 11, 12], [30, 31, 33], budget="reduced"), task([20, 21, 19], [20, 20, 20])
NARROW, LONE = (Value(0.96, 0.955, 0.965, Badge(seeds, 0)) for seeds in (3, 1))
PARAMETERS = 25_912_706

OUTCOMES = [
    (lambda: direction(AHEAD.difference), "reproduced"),
    (lambda: direction(BEHIND.difference), "of the opposite sign"),  # one seed
    (lambda: direction(AHEAD.difference, expect="below"), "contradicted"),
    (lambda: direction(SMALL.difference), "of the same sign"),  # a reduced budget
    (lambda: direction(AHEAD.difference, EVEN.difference), "undecided"),
    (lambda: direction(AHEAD.difference, EVEN.difference, BEHIND.difference), "of the opposite sign"),
    (lambda: direction(AHEAD.difference, SMALL.difference), "of the same sign"),
    (lambda: direction(EVEN.minus("recurrent", "baseline", "f1")), "undecided"),
    (lambda: printed(STEADY.baseline, 0.902, n=200), "reproduced"),
    (lambda: printed(STEADY.baseline, 0.8, n=2000), "contradicted"),
    (lambda: printed(STEADY.baseline, 0.87, n=200), "undecided"),
    (lambda: printed(STEADY.baseline, 0.87, n=200, same_texts=True), "contradicted"),
    (lambda: printed(EVEN.baseline, 0.9, n=200), "undecided"),  # chance, but beyond a point
    (lambda: printed(BEHIND.baseline, 0.85, n=200), "undecided"),  # one seed
    (lambda: bound(NARROW, at_least=0.95), "reproduced"),
    (lambda: bound(LONE, at_least=0.95), "undecided"),  # one seed
    (lambda: bound(NARROW, at_least=0.97), "contradicted"),
    (lambda: bound(NARROW, at_most=0.96), "undecided"),
    (lambda: bound(EVEN.difference, within=3), "reproduced"),
    (lambda: bound(AHEAD.difference, within=3), "contradicted"),
    (lambda: count(PARAMETERS, equals=9_800_000), "contradicted"),
    (lambda: count(PARAMETERS / 1e6, at_most=26), "reproduced"),
    (lambda: untested("No run goes without."), "not measured"),
]


@pytest.mark.parametrize(("test", "word"), OUTCOMES)
def test_outcomes(test, word):
    assert test().word == word


def test_an_outcome_has_a_line_and_the_weakest_badge():
    both = direction(AHEAD.difference, SMALL.difference)
    assert str(both.badge) == "○○○ reduced"
    assert both.line.count("+10.2 (") == 2
    contradicted = direction(AHEAD.difference, BEHIND.difference)
    assert str(contradicted.badge) == "● full"  # of the one that contradicts
    assert count(PARAMETERS, equals=1).line == "25,912,706"
    line = printed(STEADY.baseline, 0.902, n=200).line
    assert line.startswith("90.0\u202f% against 90.2\u202f%")


def sources(runs: list) -> claims.Sources:
    return claims.Sources({"sst2": runs}, [], {}, {}, {})


def test_claims_are_judged_by_section_from_records_or_are_not_measured(monkeypatch):
    ahead = claims.Claim("Ahead.", "slides", lambda s: direction(*claims.gaps(s, "sst2")))
    longer = claims.Claim("Longer.", "report", lambda s: count(s.parts("sst2-seeded-128")["test"]["n"], equals=1))
    monkeypatch.setattr(claims, "CLAIMS", {"SST-2": {"SST-2": [ahead]}, "Data": {"Data": [longer]}})
    runs = [run for model in ("baseline", "recurrent") for run in getattr(AHEAD, model)]
    frame = claims.judged(sources(runs))
    assert frame[["page", "outcome", "badge"]].values.tolist() == [
        ["SST-2", "reproduced", "●●● full"],
        ["Data", "not measured", ""],
    ]
    assert claims.judged(sources([]), ["SST-2"])["outcome"].tolist() == ["not measured"]
    with pytest.raises(RtxError, match="'SST2': did you mean 'SST-2'"):
        claims.judged(sources(runs), ["SST2"])


def test_values_of_a_task():
    sst2 = AHEAD
    assert sst2.difference == pytest.approx(100 * np.mean([20, 20, 21]) / 200) and sst2.difference.sign == 1
    assert sst2.difference.low < sst2.difference < sst2.difference.high
    assert sst2.parameter_ratio == 0.4 and str(sst2.badge) == "●●● full"
    assert sst2.baseline.accuracy == pytest.approx(0.945)
    assert sst2.recurrent.f1 == pytest.approx(np.mean([one["test"]["f1"] for one in sst2.recurrent.records]))
    with pytest.raises(RtxError, match="no record of this task, recurrent_wide"):
        sst2.recurrent_wide  # noqa: B018
