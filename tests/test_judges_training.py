"""Judges of claims about training and time: what they read in the history and the latency of a record."""

import copy

import pytest
from factory import SST2, content, saved
from test_claims import pair

from rtx_core.pages import judges
from rtx_core.pages.verdicts import CONTRADICTED, REPRODUCED, UNDECIDED, Missing


def history(accuracy: float, rise: float) -> list[dict]:
    rows = [{"step": 100, "epoch": 1.0, "validation_loss": 0.4321, "validation_accuracy": accuracy},
            {"step": 200, "epoch": 2.0, "validation_loss": 0.4321 + rise, "validation_accuracy": accuracy}]  # fmt: skip
    return [row | {"train_loss": 0.3, "train_accuracy": 0.7, "learning_rate": 1e-3} for row in rows]


def test_training_claims_read_the_history():
    pair(range(40), range(40))
    alike = judges.starts_lower("sst2", "recurrent", "baseline")
    assert alike.word == UNDECIDED and "Recurrent 0.8000, Baseline 0.8000 (Fisher's exact test, p = 1; n = 200, one seed)" in alike.statistic
    saved(SST2, "baseline", history=history(0.5, 0.1))
    assert judges.starts_lower("sst2", "baseline", "recurrent").called == "Reproduced (one seed)"
    assert judges.starts_lower("sst2", "recurrent", "baseline").called == "Contradicted (one seed)"
    few = judges.overfits_more("sst2", "baseline", "recurrent")
    assert few.word == UNDECIDED and few.statistic.endswith("A test needs three seeds.")


def test_training_claims_are_tested_over_three_seeds():
    for seed in range(3):
        saved(SST2, "baseline", seed, history=history(0.5 + seed / 100, 0.3 + seed / 100)), saved(SST2, "recurrent", seed, history=history(0.6, 0.1))
    lower = judges.starts_lower("sst2", "baseline", "recurrent")
    assert (lower.word, lower.at) == (REPRODUCED, "") and "paired t-test over seeds" in lower.statistic and "3 seeds" in lower.statistic
    assert judges.starts_lower("sst2", "recurrent", "baseline").word == CONTRADICTED
    more = judges.overfits_more("sst2", "baseline", "recurrent")
    assert (more.word, more.at) == (REPRODUCED, "") and "Difference of the rises +0.210" in more.statistic and "3 seeds" in more.statistic
    assert judges.overfits_more("sst2", "recurrent", "baseline").word == CONTRADICTED
    saved(SST2, "baseline", 0, history=history(0.9, 0.0))  # seeds that differ more than the models
    assert judges.starts_lower("sst2", "baseline", "recurrent").word == UNDECIDED
    assert judges.overfits_more("sst2", "baseline", "recurrent").word == UNDECIDED


def test_best_epoch_and_rise_of_the_loss_read_the_history():
    early, late = {"step": 100, "validation_loss": 0.4321}, {"step": 200, "validation_loss": 0.4321}
    for seed in range(3):
        if seed == 2:
            assert judges.best_later("sst2", "recurrent", "baseline").word == UNDECIDED
            assert judges.stays("sst2", "baseline").statistic.endswith("A test needs three seeds.")
        saved(SST2, "baseline", seed, history=history(0.6, 0.1 + seed / 100), selected=early)
        saved(SST2, "recurrent", seed, history=history(0.6, -0.1), selected=late)
    later = judges.best_later("sst2", "recurrent", "baseline")
    assert (later.word, later.at) == (REPRODUCED, "") and "seed 2: 2 and 1" in later.statistic
    assert judges.best_later("sst2", "baseline", "recurrent").word == CONTRADICTED
    assert judges.stays("sst2", "recurrent").word == REPRODUCED
    rising = judges.stays("sst2", "baseline")
    assert (rising.word, rising.at) == (CONTRADICTED, "") and "+0.100, +0.110, +0.120; mean +0.110" in rising.statistic
    saved(SST2, "recurrent", 0, history=history(0.6, -0.1), selected=early)
    assert judges.best_later("sst2", "recurrent", "baseline").word == UNDECIDED


def test_times_are_compared_on_one_machine_where_they_do_not_overlap():
    pair(range(40), range(40))
    assert judges.faster(["sst2"], "recurrent", "baseline").word == UNDECIDED  # the middle 80 % overlap
    assert ", which overlap" in judges.faster(["sst2"], "recurrent", "baseline").statistic
    usual = content(SST2)["latency"]
    slow, other = copy.deepcopy(usual), copy.deepcopy(usual)
    slow["measured"][-1] |= {name: 10 * usual["measured"][-1][name] for name in ("median_ms", "p10_ms", "p90_ms", "per_sentence_ms")}
    other["environment"]["threads"] = 4
    saved(SST2, "baseline", latency=slow)
    assert judges.faster(["sst2"], "recurrent", "baseline").called == "Reproduced (one seed)"
    assert judges.faster(["sst2"], "baseline", "recurrent").called == "Contradicted (one seed)"
    assert judges.faster(["sst2", "yelp"], "recurrent", "baseline").word == UNDECIDED
    elsewhere = judges.faster(["sst2"], "baseline", "recurrent", on="cuda")
    assert elsewhere.word == UNDECIDED and ", not on cuda" in elsewhere.statistic
    saved(SST2, "recurrent", latency=other)
    with pytest.raises(Missing, match="latency of both models on one device with as many threads"):
        judges.faster(["sst2"], "recurrent", "baseline")


def test_a_published_first_epoch_is_judged_on_the_validation_part():
    for seed in range(3):
        saved(SST2, "baseline", seed, history=history(0.6 + seed / 100, 0.1))
    terms = {"variant": "sst2", "n": 6822, "first_epoch": True}
    near = judges.published(**terms, baseline=0.61)
    assert near.word == REPRODUCED and "on the validation part after one epoch: Baseline 0.6100 (3 seeds)" in near.statistic
    assert judges.published(**terms, baseline=0.9).word == CONTRADICTED
