"""The evidence badge and the frames it reads."""

import pandas as pd
import pytest
from report_records import record

from rtx_core.report.evidence import as_records, badge, by_model


def runs(models=("baseline", "recurrent"), seeds=(0, 1, 2), **changes) -> list:
    return [record(model, seed, **changes) for model in models for seed in seeds]


@pytest.mark.parametrize(
    ("found", "circles", "words"),
    [
        (runs(), "●●●", "three seeds, full budget"),
        (runs(seeds=[4], budget="reduced"), "○", "one seed, reduced budget"),
        (runs(seeds=range(7)), "●●●●●+", "seven seeds, full budget"),
        (runs(seeds=[0, 1]) + runs(seeds=[2], budget="reduced"), "●●○", "three seeds, mixed budget"),
        (runs(["baseline"], [0, 1, 2]) + runs(["recurrent"], [1]), "●", "one seed, full budget"),  # in common
        (runs(["baseline"], [0]) + runs(["recurrent"], [1]), "●", "one seed, full budget"),  # none in common
        (runs(name="a") + runs(seeds=[0], name="b"), "●", "one seed, full budget"),  # of every setting
        (runs(["baseline"], [0]) + runs(["recurrent"], [0], budget="reduced"), "○", "one seed, reduced budget"),
        ([], "", "not measured"),
    ],
)
def test_badge(found, circles, words):
    made = badge(found)
    assert (made.circles, made.words) == (circles, words)


def test_records_come_out_of_everything_that_holds_them():
    found = runs(seeds=[1, 0])
    frame = pd.DataFrame({"model": [one["model"] for one in found], "record": found})
    assert as_records(frame) == as_records(found) == as_records({"a": found[:2], "b": found[2:]}) == found
    groups = by_model(frame)
    assert list(groups) == ["baseline", "recurrent"]
    assert [one["seed"] for one in groups["baseline"]] == [0, 1]
    with pytest.raises(TypeError, match="expected records"):
        as_records(3)
