"""Each judge of a claim: reproduced, contradicted, undecided or not measured yet, by what the records say."""

import shutil

import pytest
from factory import SST2, content, predictions, saved
from test_claims import BOTH, pair

from rtx_core.pages import counted, judges
from rtx_core.pages.verdicts import CONTRADICTED, ONE_SEED, REPRODUCED, UNDECIDED, Missing
from rtx_core.paths import REPOSITORY
from rtx_core.results import measurement
from rtx_core.results.statistics import difference
from rtx_core.tasks import task

# -- two models on one task --------------------------------------------------------------------------------------------


def test_a_direction_that_the_test_cannot_tell_is_undecided():
    pair(range(40), range(1, 41))
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert verdict.word == UNDECIDED and "McNemar's exact test, p = 1; n = 200 texts, one seed" in verdict.statistic
    assert verdict.at == "" and verdict.called == "Undecided"


def test_two_seeds_have_to_agree():
    pair(range(40), range(5), seed=0), pair(range(40), range(42), seed=1)
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert verdict.word == UNDECIDED and "2 seeds: +17.50 and -1.00" in verdict.statistic
    pair(range(40), range(35), seed=1)
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert (verdict.word, verdict.at) == (REPRODUCED, "") and "+10.00 points" in verdict.statistic


def test_three_seeds_are_tested_over_seeds():
    for seed, more in enumerate((10, 11, 12)):
        pair(range(40 + more), range(40), seed=seed)
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert verdict.word == REPRODUCED and "+5.50 points" in verdict.statistic and "paired t-test over seeds" in verdict.statistic
    assert "3 seeds" in verdict.statistic and verdict.at == ""
    assert judges.more("sst2", "baseline", "recurrent").word == CONTRADICTED


def test_seeds_of_which_none_is_common_are_not_compared():
    saved(SST2, "baseline", 0), saved(SST2, "recurrent", 1)
    for judge in (judges.more, judges.starts_lower, judges.overfits_more):
        with pytest.raises(Missing, match="a common seed on SST-2, pooled split"):
            judge("sst2", "recurrent", "baseline")


def test_comparable_needs_every_task():
    pair(range(40), range(40))
    assert judges.comparable(["sst2"], "recurrent", "baseline").called == "Reproduced (one seed)"
    some = judges.comparable(["sst2", "yelp"], "recurrent", "baseline")
    assert some.word == UNDECIDED and "Not measured yet: 1 of the 2 tasks." in some.statistic
    pair(range(90), range(10))
    assert judges.comparable(["sst2", "yelp"], "recurrent", "baseline").word == CONTRADICTED


def test_overall_is_ahead_somewhere_and_behind_nowhere():
    pair(range(90), range(10))
    assert judges.overall(["sst2"], "recurrent", "baseline").called == "Reproduced (one seed)"
    assert judges.overall(["sst2"], "baseline", "recurrent").word == CONTRADICTED
    assert judges.overall(["sst2", "yelp"], "recurrent", "baseline").word == UNDECIDED
    pair(range(10), range(90), "yelp")
    assert judges.overall(["sst2", "yelp"], "recurrent", "baseline").word == UNDECIDED


def test_overall_adjusts_over_the_tasks():
    six = pair(range(40), range(34))  # McNemar's p is 2 / 2^6
    assert difference(*([record] for record in six)).sign == -1 and judges.overall(["sst2"], "recurrent", "baseline").word == REPRODUCED
    for variant in ("sst2-official", "yelp"):
        pair(range(40), range(40), variant)
    three = ["sst2", "sst2-official", "yelp"]
    assert judges.overall(three, "recurrent", "baseline").word == UNDECIDED  # three times that is not below 0.05
    for variant in three:
        pair(range(40), range(34), variant)
    assert judges.overall(three, "recurrent", "baseline").word == REPRODUCED


def test_at_least_a_share_of_the_accuracy():
    for recurrent, word in ((range(10), REPRODUCED), (range(25), UNDECIDED), (range(80), CONTRADICTED)):
        pair(range(20), recurrent)
        verdict = judges.at_least("sst2", "recurrent", "baseline", 0.97)
        assert verdict.word == word and f"the ratio is {(200 - len(recurrent)) / 180:.4f}" in verdict.statistic and "one seed" in verdict.statistic
    for seed in range(3):
        pair(range(20), range(21 + seed), seed=seed)
    verdict = judges.at_least("sst2", "recurrent", "baseline", 0.97)
    assert (verdict.word, verdict.at) == (REPRODUCED, "") and "the ratio is 0.9889 (95 % interval over 3 seeds 0.9751 to 1.0027" in verdict.statistic


def test_precision_and_recall_are_balanced_or_not():
    pair(range(20), range(0, 80, 2))  # the second is wrong on texts of label 0 only
    assert judges.balanced(["sst2"], ["baseline"], 0.2).called == "Reproduced (one seed)"
    assert judges.balanced(["sst2"], ["baseline"], 0.01).word == UNDECIDED
    assert judges.balanced(["sst2"], ["baseline", "recurrent"], 0.01).word == CONTRADICTED
    weighted = judges.balanced(["sst2"], ["recurrent"], 0.2, weighted=True)  # of 140 called positive 100 are, of 60 called negative all
    assert weighted.word == REPRODUCED and "weighted averages: Recurrent on SST-2, pooled split +0.0571" in weighted.statistic


def test_the_threshold_is_told_where_it_has_a_part():
    pair(range(40), range(0, 40, 2))  # 20 negative texts more are called positive than are
    leaning = judges.more("sst2", "recurrent", "baseline").statistic
    assert "one seed). Recurrent calls 60 % of the texts positive and Baseline 50 %, while 50 % are." in leaning and "Recurrent has 0.9000" in leaning
    pair(range(40), range(20))
    assert "ROC" not in judges.more("sst2", "recurrent", "baseline").statistic


def test_a_model_that_never_answers_a_class_is_no_evidence():
    pair(range(40), range(20)), pair(range(40), range(20), "yelp")
    assert judges.comparable(["sst2", "yelp"], "recurrent", "baseline").word == CONTRADICTED
    early = content(SST2, "recurrent", wrong=range(20))["test"] | {"confusion": [[100, 0], [100, 0]]}
    saved(SST2, "recurrent", wrong=range(20), test=early)
    for judge, terms in ((judges.more, ("sst2", "recurrent", "baseline")), (judges.harder, ("yelp", "sst2", "recurrent"))):
        with pytest.raises(Missing, match="SST-2, pooled split: Recurrent trained far enough to answer every class"):
            judge(*terms)
    assert "1 of the 2 tasks" in judges.comparable(["sst2", "yelp"], "recurrent", "baseline").statistic


# -- values in print ---------------------------------------------------------------------------------------------------


def test_a_published_value_is_one_more_run():
    for seed in range(3):
        pair(range(40 + seed), range(40 + seed), seed=seed)  # 0.8, 0.795 and 0.79
    near = judges.published("sst2", n=872, baseline=0.8, recurrent=0.79)
    assert (near.word, near.at) == (REPRODUCED, "") and "Baseline 0.7950 (3 seeds) against 0.8000 of 872 (as one more run p = 0.88" in near.statistic
    assert judges.published("sst2", n=872, baseline=0.8, recurrent=0.95).word == CONTRADICTED
    assert judges.published("sst2", n=872, baseline=0.8, recurrent=0.815).word == UNDECIDED  # further than a point, within the error
    for seed, wrong in enumerate((20, 40, 60)):
        pair(range(wrong), range(wrong), seed=seed)
    assert judges.published("sst2", n=872, baseline=0.8, recurrent=0.95).word == UNDECIDED  # our seeds differ as much


def test_where_the_spread_over_seeds_is_not_known_a_value_is_undecided():
    pair(range(40), range(40), "sst2-official")
    for seed in range(3):
        pair(range(40 + seed), range(40 + seed), seed=seed)  # of another task
    verdict = judges.published("sst2-official", n=872, baseline=0.8, recurrent=0.95)
    assert verdict.word == UNDECIDED and verdict.statistic.count("how far seeds spread here is not measured") == 2


def test_on_the_same_texts_the_texts_make_no_error():
    for seed in range(3):
        pair(range(40 + seed), range(40 + seed), "sst2-official", seed)  # 0.8, 0.795 and 0.79
    terms = {"variant": "sst2-official", "n": 872, "baseline": 0.83}
    assert judges.published(**terms).word == UNDECIDED and judges.published(**terms, same_texts=True).word == CONTRADICTED


def test_a_published_value_is_not_judged_by_a_reduced_run():
    for seed in range(3):
        pair(range(40 + seed), range(40 + seed), seed=seed, budget={"epochs": 1})
    for value in (0.795, 0.95):
        verdict = judges.published("sst2", n=872, baseline=value, recurrent=value)
        assert (verdict.word, verdict.at) == (UNDECIDED, "") and "but the published run had the full budget" in verdict.statistic


def test_a_reduced_protocol_is_marked():
    pair(range(5), range(40), "yelp", budget={"epochs": 1})
    verdict = judges.more("yelp", "recurrent", "baseline")
    assert verdict.called == "Contradicted (one seed, reduced budget)" and "Protocol reduced: epochs 1" in verdict.statistic
    pair(range(5), range(5))
    several = judges.comparable(["sst2", "yelp"], "recurrent", "baseline")
    assert several.at == BOTH and several.statistic.endswith("Protocol reduced: Yelp (epochs 1).")
    pair(range(5), range(40))
    assert judges.comparable(["sst2", "yelp"], "recurrent", "baseline").at == ONE_SEED  # the full one is enough


# -- one task against another ------------------------------------------------------------------------------------------

ACROSS = [
    (judges.subset_beats_full, ("sst2-50pct", "sst2", ["baseline", "recurrent"])),
    (judges.gap_shrinks, ("sst2", "sst2-50pct", "baseline", "recurrent")),
    (judges.harder, ("sst2", "sst2-50pct", "baseline")),
]


@pytest.mark.parametrize(("judge", "terms"), ACROSS, ids=[judge.__name__ for judge, _ in ACROSS])
def test_one_task_against_another(judge, terms):
    """Reproduced where the half is better and closer, contradicted where it is worse and further apart, undecided where nothing differs."""
    apart, close = (range(60), range(20)), (range(5), range(6))
    for whole, half, word in ((apart, close, REPRODUCED), (close, apart, CONTRADICTED), (close, close, UNDECIDED)):
        pair(*whole), pair(*half, "sst2-50pct")
        verdict = judge(*terms)
        assert (verdict.word, verdict.at) == (word, "" if word == UNDECIDED else ONE_SEED)


@pytest.mark.parametrize(("judge", "terms"), ACROSS, ids=[judge.__name__ for judge, _ in ACROSS])
def test_tasks_are_compared_at_one_budget_only(judge, terms):
    apart, close, small = (range(60), range(20)), (range(5), range(6)), {"epochs": 1}
    pair(*apart), pair(*close, "sst2-50pct", budget=small)
    with pytest.raises(Missing, match="SST-2, .* and SST-2, .* at one budget"):
        judge(*terms)
    pair(*close, budget={"epochs": 2})
    with pytest.raises(Missing, match="at one budget"):
        judge(*terms)
    pair(*close, budget=small), pair(*apart, "sst2-50pct", budget=small)
    verdict = judge(*terms)
    assert (verdict.word, verdict.at) == (CONTRADICTED, BOTH) and verdict.statistic.count("Protocol reduced: epochs 1") == 1
    pair(*close, "sst2-50pct")
    verdict = judge(*terms)
    assert (verdict.word, verdict.at) == (REPRODUCED, ONE_SEED) and "Protocol" not in verdict.statistic


def test_a_gap_over_three_seeds():
    for seed in range(3):
        pair(range(60 + seed), range(20), seed=seed), pair(range(5), range(6), "sst2-50pct", seed)
    verdict = judges.gap_shrinks("sst2", "sst2-50pct", "baseline", "recurrent")
    assert (verdict.word, verdict.at) == (REPRODUCED, "") and "falls by +20.00 points" in verdict.statistic
    assert "95 % interval over 3 seeds +18.76 to +21.24" in verdict.statistic


def test_a_gap_that_is_none_is_not_made_one_by_resampling():
    pair(range(40), range(40, 80)), pair(range(40), range(40, 80), "sst2-50pct")  # no difference, much disagreement
    assert "falls by +0.00 points" in (alike := judges.gap_shrinks("sst2", "sst2-50pct", "baseline", "recurrent")).statistic and alike.word == UNDECIDED
    pair(range(60), range(40, 80)), pair(range(40), range(60), "sst2-50pct")  # 10 points each, the other way round
    assert "falls by +0.00 points" in judges.gap_shrinks("sst2", "sst2-50pct", "baseline", "recurrent").statistic


def test_transfer_is_paired_on_the_target():
    def transferred(of: str, baseline, recurrent, protocol: str = "report"):
        for model, wrong in (("baseline", baseline), ("recurrent", recurrent)):
            logits, labels = predictions(wrong)
            measurement.save({"kind": "transfer", "of": of, "name": f"{model}-seed0", "model": model, "seed": 0, "protocol": protocol,
                              "data": {"source": "hub", "sha256": "a" * 64}, "environment": {}, "test": content(SST2, wrong=wrong)["test"], "code": measurement.made_by("transfer")},
                             logits, labels)  # fmt: skip
        return judges.transfers_better(["sst2", "sst2-10pct"], "yelp", "recurrent", "baseline")

    pair(range(40), range(40)), pair(range(40), range(40), budget={"epochs": 1})
    with pytest.raises(Missing, match="transfer from SST-2, pooled split or SST-2, 10 % of the training part to Yelp"):
        judges.transfers_better(["sst2", "sst2-10pct"], "yelp", "recurrent", "baseline")
    small = transferred("sst2-epochs1-to-yelp", range(10), range(60), "reduced")
    assert (small.word, small.at) == (CONTRADICTED, BOTH) and "one seed" in small.statistic
    assert transferred("sst2-to-yelp", range(60), range(10)).called == "Reproduced (one seed)"
    assert transferred("sst2-to-yelp", range(10), range(60)).called == "Contradicted (one seed)"
    assert transferred("sst2-to-yelp", range(10), range(10)).word == UNDECIDED


# -- counts ------------------------------------------------------------------------------------------------------------


def test_counts_are_of_the_models():
    assert counted.totals(baseline=25.9, recurrent=11.0).word == REPRODUCED
    assert counted.totals(baseline=9.8, recurrent=3.4).word == CONTRADICTED
    assert counted.saves(0.58).word == REPRODUCED and counted.saves(0.65).word == CONTRADICTED
    assert counted.same_setting(["effective_depth"]).word == REPRODUCED
    assert counted.same_setting(["hidden_size"]).word == CONTRADICTED


def test_data_claims_read_the_profiles(home):
    with pytest.raises(Missing):
        counted.part_size("sst2-seeded-128", "test", 6823)
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    assert counted.part_size("sst2-seeded-128", "test", 6823).word == REPRODUCED
    table = {"train": [44.11, 55.89], "validation": [44.91, 55.09], "test": [45.04, 54.96]}
    assert counted.label_shares("sst2-published-128", 0.005, **table).word == REPRODUCED
    assert counted.label_shares("sst2-seeded-128", 0.005, **table).word == CONTRADICTED
    assert counted.mostly("sst2-seeded-128", "words", 1, 60).word == REPRODUCED
    words = {"3": 8, "30": 2}
    assert counted._between(words, 20, 40) == 0.2 and counted._between(words, 20, 40, longest=0.2) == 1.0 and counted._between(words, 20, 40, longest=0.4) == 0.5
    assert "of the longest 10% of the test texts have 20 to 50 words" in counted.mostly("sst2-seeded-128", "words", 20, 50, longest=0.1).statistic


def test_depth_is_judged_step_by_step():
    tenth = task("sst2-10pct").but(models=["recurrent"])
    with pytest.raises(Missing, match="Recurrent with 1 and 2 and 3 passes"):
        judges.deeper("sst2-10pct", "recurrent", [1, 2, 3])
    for n, wrong in ((1, 60), (2, 30), (3, 5)):
        saved(tenth.but(num_passes=n * (n != 2)), "recurrent", wrong=range(wrong))
    better = judges.deeper("sst2-10pct", "recurrent", [1, 2, 3])
    assert better.called == "Reproduced (one seed)" and "2 minus 1 passes: +15.00 points" in better.statistic and "3 minus 2 passes: +12.50 points" in better.statistic
    saved(tenth.but(num_passes=3), "recurrent", wrong=range(31))
    assert judges.deeper("sst2-10pct", "recurrent", [1, 2, 3]).word == UNDECIDED
    saved(tenth.but(num_passes=3), "recurrent", wrong=range(60))
    assert judges.deeper("sst2-10pct", "recurrent", [1, 2, 3]).word == CONTRADICTED


def test_values_of_another_share_of_long_texts_are_not_compared():
    for seed in range(3):
        pair(range(40), range(40), "sst2-long", seed)
    terms = {"variant": "sst2-long", "n": 682, "baseline": 0.5}
    assert judges.published(**terms).word == CONTRADICTED
    verdict = judges.published(**terms, length_fraction=0.1)
    assert verdict.word == UNDECIDED and "but the published texts were the longest 10%, ours the longest 30%" in verdict.statistic
