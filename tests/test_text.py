"""Sentences and provenance: what they say follows from the records, and the provenance can be run."""

import copy
import re
import shlex

import numpy as np
import pytest
import yaml
from factory import SPLITS, SST2, N, changed, content, markdown, plain, runs_of, saved
from papermill.cli import _resolve_type

import rtx_core as rtx
from rtx_core.pages.runs import Runs
from rtx_core.paths import REPOSITORY
from rtx_core.results import store
from rtx_core.results.statistics import accuracy_interval

pytestmark = pytest.mark.usefixtures("figures")


# -- sentences --------------------------------------------------------------------------------------------------------


def test_comparison_says_what_the_records_say():
    said = markdown(rtx.text.comparison(runs_of()))  # baseline wrong on 0-39, recurrent on 30-59
    low, high = accuracy_interval(runs_of().first["baseline"])
    for fact in ("42% of the parameters", "accuracy of 0.8500 (95 % interval", f"Baseline 0.8000 (95 % interval {low:.4f} to {high:.4f})",
                 "Baseline minus Recurrent, is -5.00 points", "seed 0", "same 200 texts", "20 are right with Baseline only",
                 "30 with Recurrent only", "p = 0.2)", "may well be chance", "Wilson's",
                 "In batches of 16 Recurrent needs 1.06 of Baseline's time a text, for single texts 1.06."):  # fmt: skip
        assert fact in said, fact


def test_comparison_changes_with_the_records():
    base = markdown(rtx.text.comparison(runs_of()))
    better = markdown(rtx.text.comparison(runs_of(wrong={"recurrent": range(5)})))
    assert "accuracy of 0.9750" in better and "0 are right with Baseline only" in better and "chance alone would rarely" in better
    runs = runs_of()
    measured = copy.deepcopy(runs.first["recurrent"]["latency"])
    measured["measured"][-1]["per_sentence_ms"] *= 10
    slower = changed(runs, "recurrent", latency=measured, parameters={"total": 2_591_271, "non_embedding": 1})
    said = markdown(rtx.text.comparison(slower))
    assert "10% of the parameters" in said and "Recurrent needs 10.56 of Baseline's time a text, for single texts 1.06." in said
    assert len({base, better, said}) == 3


def test_comparison_takes_the_median_time_over_seeds_as_the_table_does():
    runs, slow = runs_of(seeds=[0, 1, 2]), {1: 2.0, 2: 36.0}
    for seed, factor in slow.items():
        latency = copy.deepcopy(runs.first["recurrent"]["latency"])
        latency["measured"][-1]["per_sentence_ms"] = 1.8 * factor
        runs.records[3 + seed] = saved(runs.settings, "recurrent", seed, range(30, 60), latency=latency)
    said = markdown(rtx.text.comparison(runs))
    assert "Recurrent needs 2.00 of Baseline's time a text, for single texts 1.06 (medians over the seeds)." in said
    assert "| 3.600 |" in plain(markdown(rtx.table.benchmark(runs, label="tab-a")))


def ranked(model: str, called: int, swapped: int = 0, seed: int = 0):
    """A saved record that scores `swapped` texts of each class like the other and all else perfectly, and calls the first `called` positive."""
    labels = np.arange(N) % 2
    order = np.argsort(-labels, kind="stable")
    order[: 2 * swapped : 2], order[N - 2 * swapped :: 2] = order[N - 2 * swapped :: 2].copy(), order[: 2 * swapped : 2].copy()
    logits = np.zeros((N, 2), np.float32)
    logits[order, 1] = called - 0.5 - np.arange(N)
    wrong = np.flatnonzero(logits.argmax(1) != labels)
    return store.save(content(SST2, model, seed, wrong.tolist()), logits, labels)


def area(record) -> float:
    """Over all pairs of a positive and a negative text."""
    labels, scores = record.predictions["labels"], record.predictions["logits"][:, 1]
    return (scores[labels == 1][:, None] > scores[labels == 0]).mean()


def test_comparison_tells_a_shifted_threshold_from_a_bad_ranking():
    base, rec = ranked("baseline", 60), ranked("recurrent", 100, swapped=15)
    assert (base["test"]["accuracy"], rec["test"]["accuracy"], area(base)) == (0.8, 0.85, 1.0) and area(rec) < 0.9
    said = markdown(rtx.text.comparison(Runs(SST2, [base, rec], None)))
    assert (
        "Baseline calls 30 % of the texts positive and Recurrent 50 %, while 50 % are. With the threshold moved until each calls as many positive as there "
        "are, the accuracies would be 1.0000 and 0.8500, the opposite order; by the area under the ROC curve, which knows no threshold, Baseline has 1.0000 and Recurrent "
        f"{area(rec):.4f}, the opposite order."
    ) in said
    said = markdown(rtx.text.comparison(Runs(SST2, [base, ranked("recurrent", 100, swapped=25)], None)))
    assert "Baseline calls 30 %" in said and "opposite" not in said
    assert "calls" not in markdown(rtx.text.comparison(Runs(SST2, [ranked("baseline", 108), ranked("recurrent", 100)], None)))  # 4 points off
    several = [ranked("baseline", 60), ranked("baseline", 100, seed=1), ranked("recurrent", 100)]
    assert "Baseline calls 30 % / 50 % of the texts positive and Recurrent 50 % (by seed)" in markdown(rtx.text.comparison(Runs(SST2, several, None)))
    assert "calls" not in markdown(rtx.text.comparison(runs_of("multi-domain", wrong={"baseline": range(0, 80, 2)})))


def test_comparison_names_a_class_that_a_model_never_answers():
    assert "never answers" not in markdown(rtx.text.comparison(runs_of()))
    runs = runs_of()
    test = runs.first["baseline"]["test"] | {"confusion": [[100, 0], [100, 0]]}
    said = markdown(rtx.text.comparison(changed(runs, "baseline", test=test)))
    assert said.count("never answers") == 1
    assert "Baseline (seed 0) recognizes none of the 100 texts of class positive: it never answers so." in said
    assert "Baseline minus Recurrent, is not tested: a model was stopped before it knew every class." in said and "McNemar" not in said


def test_training_sentence_and_say_take_their_numbers_from_the_record():
    runs = runs_of()
    said = markdown(rtx.text.training(runs))
    assert "Baseline (seed 0) has its lowest validation loss, 0.4321, after epoch 1 of 2" in said
    assert "at the end its training loss is 0.3000 and its validation loss 0.5432" in said
    later = markdown(rtx.text.training(changed(runs, "baseline", selected={"step": 200, "validation_loss": 0.2222})))
    assert "0.2222, after epoch 2 of 2" in later
    assert markdown(rtx.say("{baseline[test][accuracy]:.3f} and {recurrent[seed]}", **runs.first)) == "0.800 and 0"


def test_overlap_says_how_many_test_texts_are_in_training_texts(profiles):
    profiles["seeded"]["parts"]["test"] |= {"n": 200, "within_training": 30}
    assert "Under `seeded`, 30 of the 200 test texts (15.0%)" in markdown(rtx.text.overlap(profiles))


def test_contents_say_what_else_sets_subsets_apart(profiles):
    """The counts decide which subset has more of its training part; no side is taken for granted."""
    seeded, official = (profiles[split]["parts"]["test"] for split in SPLITS)
    seeded |= {"n": 200, "within_training": 30, "labels": [80, 120]}
    official |= {"n": 100, "within_training": 90, "labels": [50, 50]}
    said = markdown(rtx.text.contents(profiles))
    assert said.startswith("Of the 200 test texts under `seeded`, 30 (15.0%) are, word for word, a text of its training part or a piece of one; 40.0% negative, 60.0% positive.")
    assert "Of the 100 test texts under `official`, 90 (90.0%)" in said and "50.0% negative, 50.0% positive" in said


def test_origin_names_what_stands_in_for_what(profiles):
    assert plain(markdown(rtx.text.origin(profiles))) == "The texts are the corpora's own rows: stanfordnlp/sst2."
    profiles["official"]["data"]["name"] = "another sample in place of Yelp/full + stanfordnlp/imdb + old reviews in place of amazon"
    said = "Another sample stands in for Yelp/full and old reviews stands in for amazon, so the published values are of other texts than ours."
    assert plain(markdown(rtx.text.origin(profiles))) == said


def test_selection_says_how_the_seeds_go_with_the_selected_epoch():
    assert markdown(rtx.text.selection(runs_of())).startswith("One seed of each model is recorded here;")
    history = [{"step": 100 * e, "epoch": float(e), "train_loss": 0.5, "train_accuracy": 0.7, "learning_rate": 1e-5, "validation_loss": loss,
                "validation_accuracy": accuracy} for e, loss, accuracy in ((1, 0.5, 0.70), (2, 0.4, 0.75), (3, 0.45, 0.79))]  # fmt: skip
    late = [row | {"validation_loss": 0.6 - row["epoch"] / 10} for row in history]
    asked = rtx.settings("sst2", {"seeds": [0, 1, 2], "models": ["baseline"]})

    def said(*wrong):
        early = {"history": history, "selected": {"step": 200, "validation_loss": 0.4}}
        last = {"history": late, "selected": {"step": 300, "validation_loss": 0.3}}
        changes = (early, early, last)
        return markdown(rtx.text.selection(Runs(asked, [saved(asked, "baseline", s, range(n), **changes[s]) for s, n in enumerate(wrong)], None)))

    found = said(46, 44, 40)
    first = "Baseline is selected at epoch 2 with seeds 0 and 1 (test accuracy 0.7700 and 0.7800) and at epoch 3 with seed 2 (test accuracy 0.8000)."
    assert found.startswith(first)
    assert "The mean accuracies of these epochs are 2.50 points apart, seeds of one epoch at most 1.00; so few seeds do not show whether" in found
    assert found.endswith("the validation accuracy is higher too in 2 of 2 runs, and changes by +4.00 points in their mean.")
    assert "goes with" not in said(46, 36, 40)  # seeds of one epoch are further apart than the epochs


def test_seeds_say_how_many_there_are_and_how_far_apart():
    assert markdown(rtx.text.seeds(runs_of())) == "Of Baseline and Recurrent one seed is recorded, which cannot show what another would change."
    asked = rtx.settings("sst2", {"seeds": [0, 1, 2]})
    records = [saved(asked, "baseline", seed, range(wrong)) for seed, wrong in enumerate((38, 44, 40))] + [saved(asked, "recurrent", 1)]
    said = markdown(rtx.text.seeds(Runs(asked, records, None)))
    assert said.startswith("The 3 recorded seeds of Baseline have accuracies from 0.7800 to 0.8100, 3.00 points apart. Of Recurrent one seed is recorded,")
    assert markdown(rtx.text.seeds(Runs(asked, [], None))).startswith("Not measured yet")


# -- provenance -------------------------------------------------------------------------------------------------------


def asked_by(line: str, experiment: str):
    words = shlex.split(line)
    assert words[0] == "papermill" and (REPOSITORY / words[1]).exists() and words[2].startswith("_build/") and words[3] == "-y"
    given = yaml.safe_load(words[4])
    for flag, name, value in zip(words[5::3], words[6::3], words[7::3], strict=True):
        assert flag == "-p"
        given[name] = _resolve_type(value)  # papermill's own reading of -p
    return rtx.settings(experiment, given)


@pytest.mark.parametrize(
    ("experiment", "given"),
    [
        ("sst2", {}),
        ("quickstart", {}),
        ("quickstart", {"models": ["recurrent"], "epochs": 3, "train_rows": 48}),
        ("sst2", {"models": ["recurrent", "baseline"], "seeds": [3, 0], "source": "embedded", "split": "official", "max_length": 64, "train_rows": 9,
                  "residual": "paper", "learning_rate": 0.00001, "weight_decay": 0.0, "precision": "bf16", "eval_every": 5}),
    ],
)  # fmt: skip
def test_provenance_names_every_record_and_how_to_make_it_again(experiment, given):
    runs = runs_of(experiment, **given)
    said = markdown(rtx.provenance(runs, notebook=experiment))
    for record in runs:
        assert f"| {record.path.parts[-3]}/{record['experiment']}/{record['model']}-seed{record['seed']}.json |" in plain(said)
    assert plain(said).count("| c0ffee012 |") == len(runs.records) == len(runs.settings.models) * len(runs.settings.seeds)
    line = re.search(r"^papermill .*$", said, flags=re.MULTILINE).group()
    assert asked_by(line, experiment) == runs.settings
    assert "1.5 min" in plain(said) and "1,234 MiB" in plain(said) and "torch 2.0" in said


def test_provenance_says_whether_the_data_was_compared_and_the_code_committed():
    runs = runs_of()
    assert "not compared with today's data" in markdown(rtx.provenance(runs, notebook="sst2"))
    compared = Runs(runs.settings, runs.records, "d" * 64)
    assert "(the same as today's data)" in markdown(rtx.provenance(compared, notebook="sst2"))
    other = markdown(rtx.provenance(Runs(runs.settings, runs.records, "e" * 64), notebook="sst2"))
    assert "(not today's data)" in other and "made on other data" in other
    dirty = changed(runs, "baseline", code=runs.records[0]["code"] | {"clean": False})
    assert plain(markdown(rtx.provenance(dirty, notebook="sst2"))).count("c0ffee012 + changes") == 1


def test_provenance_names_also_what_a_page_shows_besides():
    runs = runs_of()
    official = runs.settings.but(split="official")
    saved(official, "recurrent")
    said = plain(markdown(rtx.provenance(runs, notebook="sst2", also=official)))
    assert "| results/sst2-official/recurrent-seed0.json |" in said and "| results/sst2/baseline-seed0.json |" in said
    assert "Not measured yet: sst2-official, baseline." in said
    assert [asked_by(line, "sst2") for line in re.findall(r"^papermill .*$", said, flags=re.MULTILINE)] == [runs.settings, official]
    assert markdown(rtx.provenance(runs, notebook="sst2", also=runs.settings)) == markdown(rtx.provenance(runs, notebook="sst2"))


def test_data_provenance_names_source_and_hash(profiles):
    said = plain(markdown(rtx.text.data_provenance(profiles)))
    for split in SPLITS:
        assert f"| {split} | stanfordnlp/sst2 | mirror | {profiles[split]['data']['sha256'][:16]}… |" in said


def test_hostile_notes_stay_words_in_the_provenance():
    entry = content(rtx.settings("sst2", {}))["code"] | {"fingerprints": ["0" * 64], "commit": "<b>$x$`|`"}
    said = markdown(rtx.provenance(changed(runs_of(), "baseline", code=entry), notebook="sst2"))
    assert "<b>" not in said and plain(said).count("<b>$x$`|`") == 2  # in the note and in the table
