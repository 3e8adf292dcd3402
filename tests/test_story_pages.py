"""The TinyStories page from whole small runs on generated stories, and what it says of records that are not there."""

import math
from dataclasses import replace
from unittest.mock import ANY

import numpy as np
import pytest
from scipy.stats import spearmanr
from factory import markdown, plain
from test_notebooks import execute, kernel  # noqa: F401  (the kernel of this environment, for the last test)

import rtx_core as rtx
from rtx_core import language, run_language
from rtx_core.architectures import describe_decoder
from rtx_core.corpora import stories as data_module
from rtx_core.errors import RtxError
from rtx_core.evaluation import initial as initial_module
from rtx_core.evaluation import judge as judge_module
from rtx_core.evaluation import stories as measure_module
from rtx_core.pages import stories as pages
from rtx_core.pages import story_claims as claims_module
from rtx_core.pages import story_figures as figures_module
from rtx_core.pages.runs import BOOK, Runs
from rtx_core.paths import REPOSITORY
from rtx_core.results import measurement
from rtx_core.results.record import read_json

SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 24}
GIVEN = {"source": "embedded", "models": ["control", "frailt", "three-part", "relaxed", "control-long"], "seeds": [0], "steps": 4, "batch_size": 2,
         "block_size": 64, "warmup_steps": 1, "eval_every": 2, "eval_batches": 2}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """Small models, few stories, short measurements."""
    experiment = language.LANGUAGE["tinystories"]
    models = {name: (kind, overrides | SMALL) for name, (kind, overrides) in experiment.models.items()}
    monkeypatch.setitem(language.LANGUAGE, "tinystories", replace(experiment, models=models))
    monkeypatch.setattr(data_module, "EMBEDDED", {"train": 12, "validation": 6})
    for name, value in (("PROMPTS", 2), ("LONGEST", 4), ("LENGTHS", (2, 3))):
        monkeypatch.setattr(measure_module, name, value)
    monkeypatch.setattr(measure_module.latency, "__defaults__", (1,))


@pytest.fixture
def runs(small) -> Runs:
    return pages.runs(rtx.settings("tinystories", GIVEN))


def test_page_is_drawn_from_runs(runs, figures, home):
    settings = runs.settings
    assert [record["model"] for record in runs] == GIVEN["models"] and all(record.synthetic for record in runs)
    by_model = {record["model"]: record for record in runs}
    assert by_model["control-long"]["history"][-1]["step"] == 13 and by_model["control"]["history"][-1]["tokens"] == 4 * 128
    assert by_model["three-part"]["extra"]["trained_passes"] == 7 and len(by_model["three-part"]["extra"]["passes"]["validation"]) == 14
    trained = by_model["frailt"]["extra"]
    assert len(trained["flops_per_token"]) == 8 and len(trained["exits"]) == 6 and trained["change"][0] is None
    initial_module.initial(settings, seeds=3)

    loss = plain(markdown(rtx.stories.losses(runs, label="tab-a")))
    for record in runs:
        assert f"{record['test']['loss']:.4f}" in loss and f"{pages.bits_per_byte(record):.4f}" in loss
    assert "Synthetic: trained and tested on the embedded corpus" in loss and "| 1.429 |" in loss and "FraiLT" in loss
    assert "Control, more tokens" in loss and pages.training_flops(by_model["control-long"]) / pages.training_flops(by_model["control"]) == 13 / 4
    compared = plain(markdown(rtx.story_claims.comparisons(runs, label="tab-g")))
    texts = plain(markdown(rtx.stories.data(runs)))
    assert texts.startswith("12 training stories of ") and " 6 validation stories of " in texts and "Synthetic" in texts and "mirror" not in texts
    tests = [by_model[m]["test"] for m in ("frailt", "control")]
    whole = np.array(tests[0]["batch_sizes"]) == tests[0]["batch_sizes"][0]
    gap = np.subtract(*(test["batch_losses"] for test in tests))[whole].mean()
    assert f"| FraiLT | Control | {gap:+.4f} |" in compared and "| Three Part | Control, more tokens |" in compared
    assert "| FraiLT | Relaxed |" in compared and "| undecided: one seed |" in compared and "| Control |\n" not in compared
    said = markdown(rtx.story_claims.outcome(runs))
    assert f"against Control, at equal tokens: FraiLT {gap:+.3f} (1 seed, published -0.039), Three Part" in said and "against Control, more tokens" in said
    assert "control-long 3.25 times the steps" in " ".join(runs.notes)
    last = by_model["control"]["history"][-1]
    assert f"| {last['validation_loss'] - last['training_sample_loss']:+.3f} ± {math.hypot(last['validation_error'], last['training_sample_error']):.3f} |" in loss
    assert f"| {512 / by_model['control']['data']['n_train']:.2f} |" in loss and "at this budget the order of the models cannot either" in loss
    first = plain(markdown(rtx.story_claims.initial(runs, label="tab-b")))
    assert "| 8.369 | 1.384 |" in first and "a uniform guess" in first.lower() and "Not measured" not in first
    claim = markdown(rtx.story_claims.initialisation(runs))
    losses = measurement.find("embedded", "initial", "tinystories", "losses")["losses"]
    ranges = [max(losses[m]) - min(losses[m]) for m in pages.STUDY]
    assert "of 3 seeds" in claim and "span 0.021" in claim and f"ours span {min(ranges):.3f} to {max(ranges):.3f}" in claim
    mean = sum(a - b for a, b in zip(losses["frailt"], losses["control"])) / 3
    assert f"FraiLT {mean:+.4f} (" in claim
    final = {m: by_model[m]["test"]["loss"] for m in pages.STUDY}
    rank = spearmanr([losses[m][0] for m in pages.STUDY], [final[m] for m in pages.STUDY]).statistic
    assert f"and the final ones {', '.join(pages.NAMES[m] for m in sorted(final, key=final.get))} (rank correlation {rank:+.2f})" in claim
    assert "were not graded" in markdown(rtx.story_texts.judged(runs, label="tab-c"))
    assert "Prompt words used" in plain(markdown(rtx.story_texts.yardsticks(runs, label="tab-d")))
    assert "Beginning" in markdown(rtx.story_texts.samples(runs, label="tab-e"))
    for draw in ("cost", "curves", "compute", "passes", "exits"):
        shown = markdown(getattr(rtx.story_figures, draw)(runs, label=f"fig-{draw}"))
        assert "FraiLT" in shown and "Synthetic" in shown and (figures / f"fig-{draw}.svg").exists()
    said = plain(markdown(rtx.stories.provenance(runs)))
    assert "control-seed0.json" in said and "All runs of this page are recorded" in said and "run_language tinystories --run" in said
    assert sorted(path.name for path in (home / "_build" / "results").iterdir()) == ["initial", "language"] and not (home / "results").exists()


def test_run_is_found_and_a_rerun_gives_the_same_numbers(small, home, monkeypatch):
    settings = rtx.settings("tinystories", GIVEN | {"models": ["three-part"]})
    (first,) = pages.runs(settings)
    monkeypatch.setattr(run_language, "train", None)  # would fail if it were called
    (found,) = pages.runs(settings)
    assert found.content == first.content
    monkeypatch.undo()


def test_runs_repeat(small, home, tmp_path, monkeypatch):
    settings, made = rtx.settings("tinystories", GIVEN | {"models": ["relaxed"]}), []
    for name in ("a", "b"):
        monkeypatch.setenv("RTX_HOME", str(tmp_path / name))
        made.append(run_language.run(settings, "relaxed", 0).content)
    for key in ("test", "samples", "extra", "key", "selected"):
        assert made[0][key] == made[1][key]


def test_scores_of_a_judge_are_shown_with_what_was_rejected(runs, monkeypatch):
    good = {"grammar": 7, "creativity": 6, "consistency": 5, "plot": 4}
    answers = iter([good, None] * 5)
    monkeypatch.setattr(judge_module.Judge, "grade", lambda self, stories: [next(answers) for _ in stories])
    judge_module.judge(runs.settings, judge_module.Judge("k", model="some-judge"), "embedded")
    shown = plain(markdown(rtx.story_texts.judged(runs, label="tab-a")))
    assert "ours, some-judge" in shown and "| 7.00 | 6.00 | 5.00 | 4.00 | 5.50 |" in shown and "| 1 | 1 |" in shown and "rejected stories had no valid answer" in shown
    record = runs.records[0]
    record.content["samples"][0]["text"] += " and more"  # other texts have no scores
    shown = plain(markdown(rtx.story_texts.judged(runs, label="tab-b")))
    assert len(shown.split("ours, some-judge")) == len(runs.records) and "Control seed 0: the recorded scores are of other texts than the run's" in shown


def test_book_trains_nothing_on_real_text_and_says_what_is_missing(home, monkeypatch, figures):
    monkeypatch.setenv(BOOK, "1")
    empty = rtx.stories.runs(rtx.settings("tinystories", {"source": "hub"}))
    assert empty.records == []
    assert "Not measured yet" in markdown(rtx.stories.data(empty))
    tables, drawn = (rtx.stories.losses, rtx.story_texts.yardsticks, rtx.story_texts.samples), ("cost", "curves", "compute", "passes", "exits")
    for table in tables:
        assert "Not measured yet" in markdown(table(empty, label="tab-a"))
    for name in drawn:
        assert "Not measured yet" in markdown(getattr(rtx.story_figures, name)(empty, label="fig-a"))
    assert "Not measured yet" in markdown(rtx.story_claims.comparisons(empty, label="tab-a")) and "not measured yet" in markdown(rtx.story_claims.initialisation(empty))
    for say in (rtx.story_claims.outcome, rtx.story_claims.passes, rtx.story_figures.costs):
        assert "Not measured yet" in markdown(say(empty))
    first = plain(markdown(rtx.story_claims.initial(empty, label="tab-a")))
    assert "8.390" in first and "Not measured yet" in first
    assert "3.07" in markdown(rtx.story_texts.judged(empty, label="tab-a")).replace("\\", "")
    assert "control seed 0, control seed 1, frailt seed 0" in plain(markdown(rtx.stories.provenance(empty)))


def test_tables_of_the_models_stand_without_runs():
    settings = rtx.settings("tinystories", {"source": "hub", "budget": "full"})
    said = plain(markdown(rtx.stories.hyperparameters(settings, label="tab-a")))
    assert "| Intermediate dimension | 512 | 688 |" in said and "| Tokens | 204 million | 204,800,000 |" in said
    said = plain(markdown(rtx.stories.components(label="tab-a")))
    for text in ("| Passes | 1 | 4 (4) | 7 (7) | 4 (4) |", "| Rank of corrections | 0 | 0 | 0 | 16 (16) |", "4,212,992 (4,212,992)", "5,462,272 (5,462,272)", "1,249,280 (1,246,976)", "131,072 (131,072)", "3.25", "3.47", "3.55"):
        assert text in said


def test_throughput_follows_the_benchmark(monkeypatch):
    assert "python -m benchmarks.decoder --device cuda`" in markdown(rtx.stories.throughput(label="tab-a", device="cuda")).replace("\\", "")
    block = {"blocks, 32 bits": {"plain": {"median_ms": 300.0, "ms": [300.0, 310.0]}, "ours": {"median_ms": 250.0, "ms": [250.0, 240.0], "rounds": 2}}}
    stories = {"stories, 32 bits": {"plain": {"median_ms": 400.0, "ms": [400.0, 420.0]}, "ours": {"median_ms": 251.0, "ms": [251.0, 252.0], "rounds": 2}}}
    content = {"tokens_a_step": 8192, "products_ms": {"control": 200.0}, "models": {"control": block | stories}}
    monkeypatch.setattr(pages, "benchmark", lambda name, device: content)
    monkeypatch.setattr(pages, "machine", lambda content: "a machine")
    said = plain(markdown(rtx.stories.throughput(label="tab-a")))
    assert "| Control | stories, 32 bits | 20,480 | 32,637 | 1.59 (1.59 to 1.67) |" in said and "stories, 32 bits, 0 of 1 models" in said
    assert "Control 80% of ours on blocks, 32 bits, so at most 1.50 times the plain way is possible there" in said
    content["models"]["control"]["stories, 32 bits"]["ours"]["ms"][0] = 250.0
    assert "stories, 32 bits, 1 of 1 models" in plain(markdown(rtx.stories.throughput(label="tab-a")))


def test_exits_pay_for_the_predictions_that_they_need(runs):
    """Counted from the shapes: a token that is read after two passes pays for two output matrices, and two codas."""
    V, d, layer = runs.records[0]["config"]["model"]["vocab_size"], 16, 4 * 16 * 16 + 3 * 16 * 24
    frailt, three = runs.of("frailt")[0], runs.of("three-part")[0]
    assert claims_module.exit_costs(frailt, np.array([1.0, 2.5])).tolist() == [2 * (V * d + 4 * layer), 2 * (2.5 * V * d + 2.5 * 4 * layer)]
    assert claims_module.exit_costs(frailt, np.array([2.5]), asked=False).tolist() == [2 * (V * d + 2.5 * 4 * layer)]
    core = 2 * layer + 2 * d * d
    assert claims_module.exit_costs(three, np.array([2.0])).tolist() == [2 * (2 * V * d + layer + 2 * core + 2 * layer)]


def test_exits_are_held_against_the_best_number_of_passes_for_all(runs):
    (record,) = runs.of("frailt")
    f = record["extra"]["flops_per_token"]
    record.content["extra"]["passes"]["validation"][:4] = [9.0, 5.0, 6.0, 4.0]
    rows = [(1.0, 2.0, 4.5), (2.0, 2.0, 4.5), (0.1, 3.0, 4.2)]  # the second changes nothing
    record.content["extra"]["exits"] = [
        {"allowed": a, "threshold": 0.5, "training_passes": n, "training_loss": 4.0, "validation_passes": n, "validation_loss": v} for a, n, v in rows
    ]
    two, three = claims_module.exit_points(runs, "frailt")
    assert (two["validation_passes"], three["validation_passes"]) == (2.0, 3.0) and two["free"] == f[1] and two["free_fixed"] == 5.0
    assert three["free"] == f[2] and three["free_fixed"] == 5.0 and two["cost"] > f[1]  # three passes for all are worse than two
    best = min(v for v, flops in zip([9.0, 5.0, 6.0, 4.0], f) if flops <= two["cost"])
    shown = plain(markdown(rtx.story_claims.exits(replace(runs, records=[record]), label="tab-a")))
    assert f"| {4.5 - best:+.4f} | -0.5000 |" in shown and "were asking free, at 2" in shown and shown.count("| FraiLT |") == 2


def test_time_is_that_of_the_fastest_stretch_of_any_seed(runs):
    (record,) = runs.of("control")
    slow, quick = (
        replace(record, content=record.content | {"history": [{"step": 50 * i, "seconds": s} for i, s in enumerate(seconds, 1)]})
        for seconds in ((30.0, 400.0, 460.0), (60.0, 80.0, 460.0))
    )
    assert figures_module.fastest([slow, quick]) == 20.0 / 50 * 150


def test_ratios_of_cost_stand_beside_the_published_ones(runs, monkeypatch):
    step = {m: {figures_module.TIMED: {"ours": {"median_ms": ms}}} for m, ms in (("control", 10.0), ("frailt", 33.0))}
    content = {"memory_mib": {"control": 100.0, "three-part": 200.0, "relaxed": 250.0}, "models": step}
    monkeypatch.setattr(figures_module, "benchmark", lambda name, device: content)
    said = markdown(rtx.story_figures.costs(runs))
    assert "1.46 times Three Part's 2.08" in said and "time of a training step, over the control's: FraiLT 3.30; its memory, over the control's: Three Part 2.00, Relaxed 2.50" in said and "memory of Relaxed over Three Part's: 1.25" in said
    monkeypatch.setattr(figures_module, "benchmark", lambda name, device: None)
    assert "Ours are not measured yet" in markdown(rtx.story_figures.costs(runs))


def test_a_record_of_other_settings_is_refused(small, home, monkeypatch):
    settings = rtx.settings("tinystories", GIVEN | {"models": ["control"]})
    pages.runs(settings)
    budgets = language.LANGUAGE["tinystories"].budgets
    changed = replace(language.LANGUAGE["tinystories"], budgets=budgets | {"reduced": budgets["reduced"] | {"weight_decay": 0.3}})
    monkeypatch.setitem(language.LANGUAGE, "tinystories", changed)
    with pytest.raises(RtxError, match="control-seed0.json was made under other settings than the ones of that name today"):
        pages.runs(rtx.settings("tinystories", GIVEN | {"models": ["control"]}))


def test_committed_counts_are_those_of_the_models():
    committed = read_json(REPOSITORY / "results" / "decoders.json")
    assert committed == {name: describe_decoder(name) for name in language.LANGUAGE["tinystories"].models}


def test_book_shows_the_budget_with_most_models_and_of_equals_the_larger(home, monkeypatch):
    monkeypatch.setenv(BOOK, "1")
    rest = {"test": {"loss": 2.5}, "config": {"training": ANY}}
    monkeypatch.setattr(pages.store, "find", lambda source, variant, model, seed: rest | {"variant": variant, "model": model, "seed": seed})
    asked = rtx.settings("shakespeare", {"source": "hub", "models": ["gpt-1", "kausik"]})

    def shown(*paths: str) -> list[tuple]:
        for path in paths:
            file = home / "results" / "language" / f"{path}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return [(r["variant"].removeprefix("shakespeare-report") or "full", r["model"], r["seed"]) for r in pages.runs(asked)]

    assert shown() == []
    reduced = [("-reduced", "gpt-1", 0), ("-reduced", "kausik", 0), ("-reduced", "kausik", 4)]
    assert shown("shakespeare-report-reduced/gpt-1-seed0", "shakespeare-report-reduced/kausik-seed0", "shakespeare-report-reduced/kausik-seed4") == reduced
    assert shown("shakespeare-report/kausik-seed0") == reduced
    assert pages.runs(asked).footnote == ["At the full budget: kausik loss 2.5000."]  # not hidden, though it is not all
    assert shown("shakespeare-report/gpt-1-seed2") == [("full", "gpt-1", 2), ("full", "kausik", 0)]
    (said,) = pages.runs(asked).footnote
    assert "batch size 8" in said and said.endswith("gpt-1 loss 2.5000, kausik loss 2.5000 (mean of 2 seeds).")
    changed = rtx.settings("shakespeare", {"source": "hub", "models": ["kausik"], "steps": 7})
    assert pages.runs(changed).records == []  # a change of the reader's own is nothing else's


def test_notebook_runs_on_embedded_stories(home):
    said = plain(execute("tinystories", home, {"models": ["control"], "seeds": [0], "source": "embedded", "steps": 1, "batch_size": 2, "block_size": 32}))
    (record,) = (home / "_build/results/language/tinystories-report-reduced-steps1-batchsize2-blocksize32").glob("*.json")
    assert f"| {read_json(record)['test']['loss']:.4f} |" in said and "control-seed0.json" in said and "Synthetic" in said
    assert not (home / "results").exists() and "No model with passes is measured yet." in said
