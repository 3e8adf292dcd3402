"""Conclusions: every sentence follows from the records, changes with them, and says what is missing."""

import pytest
from factory import N, content, markdown, plain, saved

from rtx_core.pages import claims, conclusions
from rtx_core.pages.verdicts import VERDICTS
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
    assert said(conclusions.leak()).startswith("Keeping the phrases of a sentence together is not measured yet with both models at a budget of the pooled split.")
    assert said(conclusions.companions()).count("not measured yet.") == 3
    assert row("Yelp")[1:] == ["–"] * 7 + ["not measured yet"]


def test_one_model_alone_is_no_comparison():
    record("sst2", "recurrent", range(10))
    assert "None of the" in said(conclusions.headline()) and row("SST-2, pooled split")[4:] == ["0.9500", "–", "–", "–", "not measured yet"]


def test_cuts_are_compared_at_one_budget():
    grouped, small = task("sst2-grouped").but(epochs=1), task("sst2").but(epochs=1)
    for model, wrong in (("baseline", 60), ("recurrent", 70)):
        record("sst2", model, range(10)), saved(grouped, model, wrong=range(wrong))
    assert "points" not in said(conclusions.leak())  # the full run and the small one do not go together
    saved(small, "baseline", wrong=range(20))
    assert "points" not in said(conclusions.leak())  # nor one model
    saved(small, "recurrent", wrong=range(30)), saved(small, "recurrent", 1, wrong=range(90))
    sentence = said(conclusions.leak())
    assert "accuracy (epochs 1) of Baseline by -20.00 points (0.9000 to 0.7000, seed 0) and of Recurrent by -20.00 points (0.8500 to 0.6500, seed 0)." in sentence
    assert "0.9500" not in sentence and "bag of words" not in sentence


def test_p_is_adjusted_over_the_tasks():
    record("sst2", "baseline", range(34)), record("sst2", "recurrent", range(40))  # McNemar's p is 2 / 2^6
    assert row("SST-2, pooled split")[-2:] == ["0.031", "Baseline ahead, one seed"]
    for variant in ("sst2-official", "yelp"):
        record(variant, "baseline", range(40)), record(variant, "recurrent", range(40))
    assert row("SST-2, pooled split")[-2:] == ["0.094", "may well be chance"]
    assert "significantly ahead on 0, the recurrent model on 0, and on 3" in said(conclusions.headline()) and "adjusted 0.094" in said(conclusions.headline())


def test_two_seeds_have_no_p():
    for seed, wrong in enumerate((range(5), range(10))):
        record("sst2", "baseline", range(40), seed), record("sst2", "recurrent", wrong, seed)
    assert row("SST-2, pooled split")[2] == "2" and row("SST-2, pooled split")[-2:] == ["–", "Recurrent ahead"]
    assert "2 seeds: -17.50 and -15.00" in said(conclusions.headline())


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
    assert "Every test so far compares one seed of each model, so it tells how two trained models differ" in sentence and "reduced" not in sentence
    assert ("(of the 1 decided: on one seed of each model 1" in sentence) == (not counts[2])
    assert row("SST-2, pooled split")[-1] == ahead + ", one seed" * (not counts[2])


def test_several_seeds_and_a_reduced_budget_are_said():
    for seed in range(3):
        record("sst2", "baseline", range(40 + seed), seed), record("sst2", "recurrent", range(20, 45 + 2 * seed), seed)
    asked = task("yelp").but(train_rows=10_000, epochs=1)
    for model, wrong in (("baseline", range(20)), ("recurrent", range(24))):
        saved(asked, model, 0, wrong)
    sentence = said(conclusions.headline())
    assert "2 are measured" in sentence and "paired t-test over seeds" in sentence and "3 seeds" in sentence
    assert "1 of the 2 comparisons rests on one seed of each model, so there the test tells" in sentence
    assert "At the full protocol 1 is measured: the baseline is significantly ahead on 0, the recurrent model on 1, and on 0" in sentence
    assert row("SST-2, pooled split")[2] == "3" and row("Yelp")[-1] == "may well be chance, reduced protocol"
    assert "Yelp: Protocol reduced: epochs 1, train rows 10,000" in said(conclusions.by_task(label="tab-a"))


def test_cost_is_that_of_the_records():
    record("sst2", "baseline", range(40)), record("sst2", "recurrent", range(40))
    sentence = said(conclusions.cost())
    assert "10,972,162 parameters, 57.7% fewer than the baseline's 25,912,706" in sentence  # counted from the models
    assert "Its matrix products are 0.44 of the baseline's. Of its time it took 1.06 for a single text and 1.06 in batches, on the 1 task where" in sentence
    latency = content(task("yelp"), "recurrent")["latency"]
    latency["measured"][-1]["per_sentence_ms"] /= 2
    record("yelp", "baseline", range(40)), record("yelp", "recurrent", range(40), latency=latency)
    assert "1.06 for a single text and 0.53 to 1.06 in batches, on the 2 tasks" in said(conclusions.cost())
    elsewhere = latency | {"environment": latency["environment"] | {"threads": 4}}
    record("yelp", "recurrent", range(40), latency=elsewhere)
    assert "on the 1 task where both were timed on one device" in said(conclusions.cost())


def test_equal_width_is_a_comparison_of_its_own():
    record("sst2", "baseline", range(10)), record("sst2", "recurrent-wide", range(60))
    assert "Baseline minus Recurrent, wide: on SST-2, pooled split, +25.00 points" in said(conclusions.width())
    assert "is open" not in said(conclusions.width())
    record("sst2", "baseline", range(60)), record("sst2", "recurrent-wide", range(10))
    assert "(Recurrent, wide ahead, one seed)" in said(conclusions.width())
    record("sst2", "baseline", range(10))
    assert "So whether the loop costs accuracy by itself is open." in said(conclusions.width())


def test_a_model_that_never_answers_a_class_is_not_compared():
    record("sst2", "baseline", range(10)), record("sst2", "recurrent", range(60))
    assert "Not compared" not in said(conclusions.headline())
    early = content(task("sst2"), "recurrent", wrong=range(60))["test"] | {"confusion": [[100, 0], [100, 0]]}
    record("sst2", "recurrent", range(60), test=early)
    assert "None of the" in said(conclusions.headline())
    assert row("SST-2, pooled split")[-2:] == ["–", "not compared: Recurrent stopped before every class was known"]
    record("yelp", "baseline", range(10)), record("yelp", "recurrent", range(60))
    assert "Not compared is SST-2, pooled split: a model was stopped there" in said(conclusions.headline())


def test_areas_know_no_threshold():
    record("sst2", "baseline", range(0)), record("sst2", "recurrent", range(0, 40, 2))  # 20 of 100 negative texts above as many positive ones
    assert row("SST-2, pooled split")[5] == "1.000 / 0.900"


def test_a_record_of_other_code_is_said_beside_the_headline():
    other = {"commit": "abcdef0123456789", "clean": True, "fingerprints": ["0" * 64]}
    record("sst2", "baseline", range(10), code=other), record("sst2", "recurrent", range(60))
    assert "Of these runs, baseline, seed 0: made by another version of the code (commit abcdef012)" in said(conclusions.headline())


def test_claims_are_tallied_with_what_they_rest_on():
    asked = task("yelp").but(train_rows=10_000, epochs=1)
    saved(asked, "baseline"), saved(asked, "recurrent", wrong=range(5))
    record("sst2", "baseline", range(40)), record("sst2", "recurrent", range(40))
    table = said(claims.summary(label="tab-claims")).splitlines()
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("| ")]
    found = {name: dict(zip(heads[1:], map(int, counts))) for name, *counts in rows}
    every = {name: [claims.judge(claim) for claim in entries] for name, entries in claims.claims().items()}
    every["all"] = sum(every.values(), [])
    for name, verdicts in every.items():
        assert [found[name][word.capitalize()] for word in VERDICTS] == [sum(one.word == word for one in verdicts) for word in VERDICTS]
        assert found[name]["One seed"] == sum("one seed" in one.at for one in verdicts)
        assert found[name]["Reduced budget"] == sum("reduced budget" in one.at for one in verdicts)
    assert found["Yelp and change of domain"]["Reduced budget"] == found["Yelp and change of domain"]["One seed"] == 2  # accuracy and F1
    tally, counts = said(conclusions.judged()), found["all"]
    assert f"Of the {len(every['all'])} [claims](claims.md)" in tally and f"{counts['Not measured yet']} are not measured yet" in tally
    assert f"{counts['One seed']} rest on one seed of each model and {counts['Reduced budget']} on runs of a reduced budget." in tally
