"""The claims page: verdicts follow the records, and change with them."""

import importlib.util
import json
import shutil

import numpy as np
import pytest
from factory import SST2, markdown, plain, predictions, saved

import rtx_core as rtx
from rtx_core.pages import claims, counted, judges, verdicts
from rtx_core.pages.verdicts import CONTRADICTED, MISSING, REPRODUCED, UNDECIDED, Missing
from rtx_core.parameters import settings
from rtx_core.paths import REPOSITORY
from rtx_core.results import measurement
from rtx_core.tasks import TASKS, task

ALL = [claim for section in claims.claims().values() for claim in section]


def pair(wrong_baseline, wrong_recurrent, variant: str = "sst2", seed: int = 0, **changes) -> None:
    asked = task(variant)
    saved(asked, "baseline", seed, wrong_baseline, **changes)
    saved(asked, "recurrent", seed, wrong_recurrent, **changes)


def test_every_claim_is_complete_and_without_records_nothing_fails(home):
    for claim in ALL:
        assert set(claim) == {"says", "source", "page", "judge"} and claim["says"].endswith(".")
        variants = claim["judge"][1].get("variants", [claim["judge"][1].get("variant", "sst2")])
        assert set(variants) <= set(TASKS)
        verdict = claims.judge(claim)
        assert verdict.word in verdicts.VERDICTS and verdict.statistic.endswith(".")
    needing_records = [claim for claim in ALL if claim["judge"][0] in vars(judges)]
    assert needing_records and all(claims.judge(claim).word == MISSING for claim in needing_records)


def test_tasks_are_named_as_their_records():
    assert {name: task(name).variant for name in TASKS} == {name: name for name in TASKS}


def test_the_page_changes_when_a_record_changes():
    pair(range(40), range(5))
    before = markdown(claims.section("SST-2")), markdown(claims.summary(label="tab-claims"))
    assert judges.more("sst2", "recurrent", "baseline").word == REPRODUCED
    pair(range(5), range(40))
    after = markdown(claims.section("SST-2")), markdown(claims.summary(label="tab-claims"))
    assert before[0] != after[0] and before[1] != after[1]
    assert judges.more("sst2", "recurrent", "baseline").word == CONTRADICTED
    assert f"\n: **{CONTRADICTED.capitalize()}.** SST-2, pooled split, accuracy, Recurrent minus Baseline: -17.50 points" in after[0]


def test_a_direction_that_the_test_cannot_tell_is_undecided():
    pair(range(40), range(1, 41))
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert verdict.word == UNDECIDED and "McNemar's exact test, p = 1; n = 200 texts, one seed" in verdict.statistic


def test_three_seeds_are_tested_over_seeds():
    for seed, more in enumerate((10, 11, 12)):
        pair(range(40 + more), range(40), seed=seed)
    verdict = judges.more("sst2", "recurrent", "baseline")
    assert verdict.word == REPRODUCED and "+5.50 points" in verdict.statistic and "paired t-test over seeds" in verdict.statistic
    assert "3 seeds" in verdict.statistic


def test_comparable_needs_every_task():
    pair(range(40), range(40))
    assert judges.comparable(["sst2"], "recurrent", "baseline").word == REPRODUCED
    some = judges.comparable(["sst2", "yelp"], "recurrent", "baseline")
    assert some.word == UNDECIDED and "Not measured yet: 1 of the 2 tasks." in some.statistic
    pair(range(90), range(10))
    assert judges.comparable(["sst2", "yelp"], "recurrent", "baseline").word == CONTRADICTED
    assert judges.overall(["sst2"], "recurrent", "baseline").word == REPRODUCED
    assert judges.overall(["sst2"], "baseline", "recurrent").word == CONTRADICTED


def test_published_values_are_told_from_ours():
    pair(range(40), range(40))  # 0.8
    assert judges.published("sst2", n=872, baseline=0.8, recurrent=0.8028).word == REPRODUCED
    assert judges.published("sst2", n=872, baseline=0.8, recurrent=0.95).word == CONTRADICTED
    assert judges.published("sst2", n=200, baseline=0.8, recurrent=0.83).word == UNDECIDED


def test_a_reduced_protocol_is_marked():
    asked = settings("yelp", {"source": "hub", "epochs": 1})
    saved(asked, "baseline"), saved(asked, "recurrent")
    assert "Protocol reduced: epochs 1" in judges.more("yelp", "recurrent", "baseline").statistic


def test_one_task_against_another():
    pair(range(40), range(40))
    pair(range(5), range(5), "sst2-50pct", data={**_data("sst2-50pct"), "sha256": "e" * 64})
    assert judges.subset_beats_full("sst2-50pct", "sst2", ["baseline", "recurrent"]).word == REPRODUCED
    assert judges.harder("sst2", "sst2-50pct", "baseline").word == REPRODUCED
    assert judges.harder("sst2-50pct", "sst2", "baseline").word == CONTRADICTED
    pair(range(60), range(20), "sst2-10pct", data={**_data("sst2-10pct"), "sha256": "f" * 64})
    assert judges.gap_shrinks("sst2-10pct", "sst2-50pct", "baseline", "recurrent").word == REPRODUCED
    assert judges.at_least("sst2", "recurrent", "baseline", 0.97).word == REPRODUCED
    assert judges.balanced(["sst2"], ["baseline"], 0.5).word == REPRODUCED


def _data(variant: str) -> dict:
    from factory import content

    return content(task(variant))["data"]


def test_training_claims_read_the_history():
    pair(range(40), range(40))
    alike = judges.starts_lower("sst2", "recurrent", "baseline")
    assert alike.word == UNDECIDED and "0.8000, Baseline 0.8000" in alike.statistic
    assert judges.overfits_more("sst2", "baseline", "recurrent").statistic.endswith("A test needs three seeds.")
    rows = [{"step": 100, "epoch": 1.0, "validation_loss": 0.43, "validation_accuracy": 0.5}, {"step": 200, "epoch": 2.0, "validation_loss": 0.9,
            "validation_accuracy": 0.5}]  # fmt: skip
    rows = [row | {"train_loss": 0.3, "train_accuracy": 0.7, "learning_rate": 1e-3} for row in rows]
    for seed in range(3):
        saved(SST2, "baseline", seed, history=[row | {"validation_loss": row["validation_loss"] + seed / 100 * (row["step"] - 100)} for row in rows])
        saved(SST2, "recurrent", seed)
    assert judges.starts_lower("sst2", "baseline", "recurrent").word == REPRODUCED
    assert "3 seeds" in judges.overfits_more("sst2", "baseline", "recurrent").statistic


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


def curve(comparison: str, arm: str, seed: int, error: float, **more) -> dict:
    return {"comparison": comparison, "arm": arm, "seed": seed, "bits": 4, "errors": [0.01, error], **more}


def test_amplification_is_judged_by_the_ratio_of_errors():
    curves = [curve("random", arm, seed, size * (1 + seed / 50)) for arm, size in (("shared", 0.04), ("unshared", 0.03)) for seed in range(3)]
    curves += [curve("draws", c["arm"], c["seed"], c["errors"][-1], model="recurrent") for c in curves]
    said = {"kind": "rounding", "of": "sst2", "name": "errors", "model": "recurrent-wide", "seed": 0, "protocol": "report",
            "data": {"source": "hub"}, "environment": {}, "code": measurement.made_by("rounding")}  # fmt: skip
    measurement.save(said | {"curves": curves})
    assert counted.amplifies([4]).word == REPRODUCED
    assert counted.error_ratio(curves, "random", 4)[0] == pytest.approx(4 / 3)
    measurement.save(said | {"curves": [c | {"arm": {"shared": "unshared", "unshared": "shared"}[c["arm"]]} for c in curves]})
    assert counted.amplifies([4]).word == CONTRADICTED


def test_transfer_is_paired_on_the_target():
    pair(range(40), range(40))
    for model, wrong in (("baseline", range(60)), ("recurrent", range(10))):
        logits, labels = predictions(wrong)
        measurement.save({"kind": "transfer", "of": "sst2-to-yelp", "name": f"{model}-seed0", "model": model, "seed": 0, "protocol": "report",
                          "data": {"source": "hub", "sha256": "a" * 64}, "environment": {}, "code": measurement.made_by("transfer")}, logits, labels)  # fmt: skip
    assert judges.transfers_better("sst2", "yelp", "recurrent", "baseline").word == REPRODUCED


def test_links_lead_to_pages_of_the_book():
    assert claims.link("sst2") == " [](notebooks/sst2.ipynb)" and claims.link("architectures") == " [](architectures.md)"
    assert claims.link("nowhere") == ""


def test_the_page_depends_on_all_that_it_reads(home):
    """By the rule of the book's extension, every folder of results/ that a verdict may come from."""
    spec = importlib.util.spec_from_file_location("paper", REPOSITORY / "book/_ext/paper.py")
    paper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper)
    page = REPOSITORY / "book" / "claims.md"
    files = [home / "results" / name / "a.json" for name in (*TASKS, "yelp-trainrows10000-epochs1", "data", "transfer/x", "rounding/x", "yardstick/x")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    assert set(files) <= set(paper.inputs(page, page.read_text()))


def test_section_that_is_not_there():
    with pytest.raises(rtx.RtxError, match="Unknown section of claims 'sst2'"):
        claims.section("sst2")


def test_differences_in_print_are_computed():
    said = plain(markdown(claims.in_print(label="tab-print")))
    assert "| SST-2, GLUE's own split | 872 | 0.7901 | 0.7993 | +0.92 |" in said
    assert json.loads(json.dumps(claims.claims())) and np.isfinite(len(said))
