"""Conclusions: every sentence follows from the records, changes with them, and says what is missing."""

import pytest
from factory import N, markdown, plain, saved

import rtx_core as rtx
from rtx_core.pages import conclusions
from rtx_core.tasks import TASKS, task

pytestmark = pytest.mark.usefixtures("figures")


def said(shown) -> str:
    return plain(markdown(shown))


def record(variant: str, model: str, wrong, seed: int = 0, **changes):
    return saved(task(variant), model, seed, wrong, **changes)


def row(name: str) -> list[str]:
    lines = said(conclusions.by_task(label="tab-a")).splitlines()
    return [cell.strip() for line in lines if line.startswith(f"| {name} |") for cell in line.strip("|").split("|")]


def test_without_records_nothing_is_concluded():
    assert said(conclusions.headline()) == f"None of the {len(TASKS)} tasks is measured with both models yet, so nothing is concluded here."
    assert "Measured with both models: nothing yet." in said(conclusions.state())
    assert "speed against the baseline's is not measured yet" in said(conclusions.cost())
    assert "at the baseline's width is recorded yet" in said(conclusions.width())
    assert said(conclusions.leak()).startswith("Not measured yet: SST-2, pooled split;")
    assert said(conclusions.companions()).count("not measured yet.") == 3
    assert row("Yelp")[1:] == ["–"] * 6 + ["not measured yet"]


def test_one_model_alone_is_no_comparison():
    record("sst2", "recurrent", range(10))
    assert "None of the" in said(conclusions.headline()) and row("SST-2, pooled split")[4:] == ["0.9500", "–", "–", "not measured yet"]
    assert "SST-2, pooled split: Recurrent 0.9500" in said(conclusions.leak()) and "Baseline" not in said(conclusions.leak())


@pytest.mark.parametrize(
    ("baseline", "recurrent", "ahead", "counts"),
    [(range(10), range(60), "Baseline ahead", (1, 0, 0)), (range(60), range(10), "Recurrent ahead", (0, 1, 0)),
     (range(40), range(38), "may well be chance", (0, 0, 1))],
)  # fmt: skip
def test_the_headline_counts_who_is_ahead(baseline, recurrent, ahead, counts):
    record("sst2", "baseline", baseline), record("sst2", "recurrent", recurrent)
    sentence = said(conclusions.headline())
    assert f"Of {len(TASKS)} tasks, 1 is measured with both models so far: the baseline is significantly ahead on {counts[0]}," in sentence
    assert f"the recurrent model on {counts[1]}, and on {counts[2]} the difference may well be chance" in sentence
    assert f"accuracy of {1 - len(baseline) / N:.4f}" in sentence and "42% of the parameters" in sentence and "one seed" in sentence
    assert "not how two architectures do" in sentence and "reduced" not in sentence
    assert row("SST-2, pooled split")[-1] == ahead


def test_several_seeds_and_a_reduced_budget_are_said():
    for seed in range(3):
        record("sst2", "baseline", range(40 + seed), seed), record("sst2", "recurrent", range(20, 45 + 2 * seed), seed)
    asked = task("yelp").but(train_rows=10_000, epochs=1)
    for model, wrong in (("baseline", range(20)), ("recurrent", range(24))):
        saved(asked, model, 0, wrong)
    sentence = said(conclusions.headline())
    assert "2 are measured" in sentence and "paired t-test over seeds" in sentence and "3 seeds" in sentence
    assert "1 of the comparisons rest" in sentence and "not how two architectures do" not in sentence
    assert row("SST-2, pooled split")[2] == "3" and row("Yelp")[-1] == "may well be chance, reduced protocol"
    assert "Yelp: Protocol reduced: epochs 1, train rows 10,000" in said(conclusions.by_task(label="tab-a"))


def test_cost_is_that_of_the_records():
    record("sst2", "baseline", range(40)), record("sst2", "recurrent", range(40))
    sentence = said(conclusions.cost())
    assert "10,972,162 parameters, 57.7% fewer than the baseline's 25,912,706" in sentence  # counted from the models
    assert "On Test CPU (2 threads), seed 0, it takes 1.06 times" in sentence


def test_equal_width_is_a_comparison_of_its_own():
    record("sst2", "baseline", range(10)), record("sst2", "recurrent-wide", range(60))
    assert "At equal width, Baseline minus Recurrent, wide: on SST-2, pooled split, +25.00 points" in said(conclusions.width())


def test_claims_are_tallied():
    tally = said(conclusions.judged())
    total = sum(len(entries) for entries in rtx.claims.claims().values())
    assert f"Of the {total} [claims](claims.md)" in tally and "not measured yet" in tally
