"""What the book shows: records and nothing else, all seeds of them, at the largest budget that both models have."""

import re

import pytest
from factory import SST2, markdown, plain, saved
from scipy.stats import fisher_exact

import rtx_core as rtx
from rtx_core import paper
from rtx_core.errors import Busy, RtxError
from rtx_core.pages.runs import BOOK, Studies, matched, recorded, variants
from rtx_core.paths import REPOSITORY
from rtx_core.results.statistics import difference

pytestmark = pytest.mark.usefixtures("figures")
TENTH = rtx.settings("sst2", {"fraction": 0.1})


@pytest.fixture
def book(monkeypatch):
    """As while the book is built; whoever trains now fails."""
    import rtx_core.run as run_module

    monkeypatch.setenv(BOOK, "1")
    monkeypatch.setattr(run_module, "run", lambda settings, model, seed: pytest.fail(f"trained {settings.variant}, {model}, {seed}"))


def test_the_books_extension_says_that_the_book_is_built():
    assert f'os.environ["{BOOK}"]' in (REPOSITORY / "book/_ext/paper.py").read_text()


def test_the_book_trains_nothing_on_real_text_and_says_what_is_missing(book):
    runs = rtx.runs(SST2)
    assert runs.records == [] and runs.models == [] and runs.first == {} and runs.notes == []
    for draw in (rtx.figure.bubble, rtx.figure.learning_curves, rtx.figure.confusion, rtx.table.latency):
        assert markdown(draw(runs, label="fig-a")).startswith("Not measured yet: ")
    for say in (rtx.text.comparison, rtx.text.training):
        assert markdown(say(runs)).startswith("Not measured yet: ")
    table, end = plain(markdown(rtx.table.benchmark(runs, label="tab-a"))), plain(markdown(rtx.provenance(runs, notebook="sst2")))
    assert table.count("not measured yet") == 3 and "published, Table 6" in table and "difference" not in table
    assert "Not measured yet: sst2, baseline; sst2, recurrent." in end and "papermill notebooks/sst2.ipynb" in end


def test_half_of_a_pair_is_shown_and_the_other_half_said_to_be_missing(book):
    saved(SST2, "baseline")
    runs = rtx.runs(SST2)
    assert runs.models == ["baseline"] and list(runs.first) == ["baseline"]
    table = plain(markdown(rtx.table.benchmark(runs, label="tab-a")))
    assert "| Recurrent | not measured yet |" in table and "| Baseline | ours, seed 0 |" in table
    assert "Recurrent is not measured yet." in markdown(rtx.text.comparison(runs))
    assert "Recurrent" not in markdown(rtx.figure.bubble(runs, label="fig-a")) and "Baseline" in markdown(rtx.figure.confusion(runs, label="fig-b"))
    assert "Not measured yet: sst2, recurrent." in plain(markdown(rtx.provenance(runs, notebook="sst2")))


def test_outside_the_book_what_is_missing_is_trained(monkeypatch):
    import rtx_core.run as run_module

    asked = []
    monkeypatch.setattr(run_module, "run", lambda settings, model, seed: asked.append((model, seed)) or saved(settings, model, seed))
    saved(SST2, "baseline")
    assert len(rtx.runs(SST2).records) == 2 and asked == [("recurrent", 0)]


def test_the_book_shows_every_seed(book):
    for seed in (0, 2, 11):
        saved(SST2, "baseline", seed)
    saved(SST2, "recurrent", 2)
    runs = rtx.runs(SST2)
    assert [(r["model"], r["seed"]) for r in runs] == [("baseline", 0), ("baseline", 2), ("baseline", 11), ("recurrent", 2)]
    assert runs.settings.seeds == [0, 2, 11]


def test_the_full_budget_is_shown_where_there_is_one_of_each_model(book):
    small, middle = (TENTH.but(epochs=1, train_rows=n) for n in (20, 40))
    for model in TENTH.models:
        saved(small, model)
    assert rtx.runs(TENTH).settings.variant == "sst2-10pct-trainrows20-epochs1"
    for model in TENTH.models:
        saved(middle, model, wrong=range(30))
    runs = rtx.runs(TENTH)
    assert {r["experiment"] for r in runs} == {"sst2-10pct-trainrows40-epochs1"}
    assert "Protocol reduced: epochs 1, train rows 40 instead of" in " ".join(runs.notes)
    saved(TENTH, "baseline")
    assert len(rtx.runs(TENTH).records) == 2 and rtx.runs(TENTH).settings.train_rows == 40  # half a pair does not displace a pair
    saved(TENTH, "recurrent")
    runs = rtx.runs(TENTH)
    assert {r["experiment"] for r in runs} == {"sst2-10pct"} and runs.notes == []


def test_a_smaller_budget_stays_as_a_footnote(book):
    small, middle = (TENTH.but(epochs=1, train_rows=n) for n in (20, 40))
    for model in TENTH.models:
        saved(small, model)
        saved(TENTH, model)
    assert rtx.runs(small).footnote == []
    saved(middle, "baseline", 0)
    found = saved(middle, "baseline", 3, wrong=range(30))
    runs = rtx.runs(TENTH)
    other, least = sorted(runs.footnote, reverse=True)
    assert other.startswith("At another budget (epochs 1, train rows 40): baseline accuracy 0.") and other.endswith(" (mean of 2 seeds).")
    assert f"{(rtx.runs(small).of('baseline')[0]['test']['accuracy'] + found['test']['accuracy']) / 2:.4f}" in other
    assert "train rows 20): baseline accuracy 0." in least and ", recurrent accuracy 0." in least
    assert other in plain(markdown(rtx.table.benchmark(runs, label="tab-a"))) and runs.notes == []
    assert Studies({"10 %": runs}, "fraction").footnote == [f"10 %: {one}" for one in runs.footnote]


def test_a_larger_budget_with_half_a_pair_stays_as_a_footnote(book):
    small = TENTH.but(epochs=1)
    for model in TENTH.models:
        saved(small, model)
    saved(TENTH, "recurrent", wrong=range(30))
    runs = rtx.runs(TENTH)
    assert runs.settings.variant == "sst2-10pct-epochs1" and runs.models == TENTH.models
    assert runs.footnote == ["At the full budget: recurrent accuracy 0.8500."]
    assert runs.footnote[0] in plain(markdown(rtx.table.benchmark(runs, label="tab-a")))
    assert [(one.budget, one.models) for one in runs.budgets] == [("", ["recurrent"]), ("epochs 1", TENTH.models)]


def test_tasks_are_matched_at_the_largest_budget_that_all_have(book):
    one, two = TENTH, SST2.but(length="short")

    def found(models):
        same = matched(models, recorded(one), recorded(two))
        return same and [(runs.settings.variant, runs.budget) for runs in same]

    both = [(name, budget) for name, budget in (("sst2-10pct-epochs1", "epochs 1"), ("sst2-short-epochs1", "epochs 1"))]
    saved(one, "baseline"), saved(two.but(epochs=1), "baseline"), saved(two.but(epochs=1, train_rows=20), "baseline")
    assert found(["baseline"]) is None  # nothing that both have
    saved(one.but(epochs=1), "baseline"), saved(one.but(epochs=1, train_rows=20), "baseline")
    assert found(["baseline"]) == both and found(["baseline", "recurrent"]) is None
    saved(two, "recurrent")
    assert found(["baseline"]) == both and found(["recurrent"]) is None
    saved(two, "baseline")
    assert found(["baseline"]) == [("sst2-10pct", ""), ("sst2-short", "")]
    for settings in (one.but(epochs=1), two.but(epochs=1)):
        saved(settings, "recurrent")
    assert found(["baseline", "recurrent"]) == both  # the full one has not both models of the tenth


@pytest.mark.parametrize("other", [{"split": "official"}, {"fraction": 0.5}, {"max_length": 64}, {"learning_rate": 1e-4}, {"epochs": 1, "residual": "paper"}])
def test_no_other_experiment_stands_in(book, other):
    for model in SST2.models:
        saved(rtx.settings("sst2", other), model)
    assert rtx.runs(SST2).records == []


def test_variants_have_names_for_readers():
    assert list(variants(SST2, fraction=[0.1, 1.0])) == ["10 %", "100 %"]
    assert list(variants(SST2.but(length_fraction=0.1), length=["short", "long", "all"])) == ["shortest 10 %", "longest 10 %", "all"]
    assert list(variants(SST2, max_length=[64])) == ["64 tokens"] and list(variants(SST2, split=["grouped"])) == ["grouped"]
    with pytest.raises(RtxError, match="Parameter fraction is \\[\\]; expected a list"):
        variants(SST2, fraction=[])
    with pytest.raises(RtxError, match="Parameter fraction is '0.1' of type str; expected float"):
        variants(SST2, fraction=["0.1"])


# -- several values of a setting ---------------------------------------------------------------------------------------


@pytest.fixture
def sizes(book) -> Studies:
    """A tenth recorded in full, a half of one model only, and nothing of the whole."""
    for model, wrong in (("baseline", range(40)), ("recurrent", range(30, 60))):
        saved(TENTH, model, wrong=wrong)
    saved(TENTH.but(fraction=0.5), "baseline", wrong=range(10))
    return rtx.studies(SST2, fraction=[0.1, 0.5, 1.0])


def test_one_table_compares_values_of_a_setting(sizes):
    table = plain(markdown(rtx.table.accuracies(sizes, label="tab-a")))
    lines = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in table.splitlines() if line.startswith("| ")}
    assert lines["10 %"][1] == "full" and lines["10 %"][4].startswith("0.8000 (") and lines["10 %"][5].startswith("0.8500 (")
    assert lines["10 %"][6].startswith("-5.00 (") and float(lines["10 %"][7].strip("| ")) == pytest.approx(0.2, abs=0.01)
    assert lines["50 %"][4].startswith("0.9500 (") and lines["50 %"][5] == "not measured yet"
    assert lines["100 %"][1:6] == ["–", "–", "–", "not measured yet", "not measured yet"]
    said = markdown(rtx.text.comparison(sizes))
    assert "**10 \\%.** With 42% of the parameters" in said and "**100 \\%.** Not measured yet." in said


def test_every_budget_has_a_row(sizes):
    for value in (0.1, 0.5):
        for model in SST2.models:
            saved(SST2.but(fraction=value, epochs=1), model, wrong=range(100))
    table = plain(markdown(rtx.table.accuracies(rtx.studies(SST2, fraction=[0.1, 0.5]), label="tab-a")))
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ") and " % |" in line]
    assert [(row[0].strip("| "), row[1]) for row in rows] == [("10 %", "full"), ("10 %", "epochs 1"), ("50 %", "full"), ("50 %", "epochs 1")]
    assert [row[4][:6] for row in rows] == ["0.8000", "0.5000", "0.9500", "0.5000"] and rows[2][5] == "not measured yet"


@pytest.mark.parametrize("seeds", [2, 3])
def test_the_sentence_has_the_difference_of_the_table(book, seeds):
    for seed in range(seeds):
        saved(TENTH, "baseline", seed, range(40 + seed)), saved(TENTH, "recurrent", seed, range(20))
    runs = rtx.runs(TENTH)
    found = difference(runs.of("baseline"), runs.of("recurrent"))
    said = markdown(rtx.text.comparison(runs))
    assert f"The difference, Baseline minus Recurrent, is {found}; chance alone would rarely give such a difference." in said
    assert f"{seeds} seeds" in str(found) and "McNemar" not in said and "are right with" not in said
    row = plain(markdown(rtx.table.accuracies(Studies({"10 %": runs}, "fraction"), label="tab-a")))
    assert f"{100 * found.value:+.2f} ({100 * found.low:+.2f} to {100 * found.high:+.2f})" in row


def test_models_without_a_common_seed_are_not_paired(book):
    saved(TENTH, "baseline", 0), saved(TENTH, "recurrent", 1)
    assert "is not tested: no seed is recorded of both." in markdown(rtx.text.comparison(rtx.runs(TENTH)))


def test_one_figure_and_one_provenance_hold_all(sizes):
    curves = markdown(rtx.figure.learning_curves(sizes, label="fig-a"))
    assert "10 %, Recurrent (seed 0)" in curves and "50 %, Baseline (seed 0)" in curves and "100 %" not in curves
    end = plain(markdown(rtx.provenance(sizes, notebook="data-size")))
    assert end.count("-seed0.json") == 3 and "Not measured yet: sst2-50pct, recurrent; sst2, baseline; sst2, recurrent." in end
    assert [f'"fraction": [{value}]' in end for value in (0.1, 0.5, 1.0)] == [True] * 3


def test_other_test_sets_are_compared_without_pairs(book):
    for split, wrong in (("seeded", range(20)), ("grouped", range(60))):
        saved(rtx.settings("sst2", {"split": split}), "baseline", wrong=wrong)
    said = markdown(rtx.text.against_first(rtx.studies(SST2, split=["seeded", "grouped"])))
    assert "Baseline, seed 0: 0.7000 under `grouped`, -20.00 points from the 0.9000 under `seeded`" in said and f"p = {fisher_exact([[180, 20], [140, 60]]).pvalue:.2g})" in said
    assert "Not measured yet" in markdown(rtx.text.against_first(rtx.studies(SST2, split=["seeded", "official"])))


def test_overlaid_profiles_show_every_subset(profiles):
    shown = markdown(rtx.figure.overlaid(profiles, label="fig-a"))
    assert "seeded: 54,576 texts, median 7 words, 44.4 % negative" in shown and "official: 63,981 texts" in shown


# -- the plan ----------------------------------------------------------------------------------------------------------


def test_the_plan_names_every_run_once_and_lists_what_is_missing(capsys):
    runs = [run.name for run in paper.runs()]
    assert len(runs) == len(set(runs)) == 72 and runs[0] == "sst2-baseline-seed0"
    assert not any(run.settings.reduced for run in paper.runs())
    reduced = {re.sub(r"-trainrows\d+", "-some", run.variant) for run in paper.runs(reduced=True) if run.settings.reduced}
    classifiers = {f"{name}-some-epochs1" for name in ("sst2", "yelp", "yelp-maxlength512", "multi-domain", "multi-domain-imdb")}
    one_epoch = {f"{name}-epochs1" for name in ("sst2", "sst2-official", "sst2-10pct", "sst2-short", "sst2-50pct", "sst2-long", "sst2-grouped")}
    assert reduced == classifiers | one_epoch | {"shakespeare-report-reduced", "shakespeare-nanogpt-reduced", "tinystories-report-reduced"}
    names = [run.name for run in paper.runs(reduced=True)]
    assert len(names) == len(set(names)) == 86 and "sst2-10pct-recurrent-wide-seed0" in names
    for study in (study for study in paper.PLAN if study.both):  # what two cores can carry in full, and beside it what compares with the rest
        full, small, *smaller = (rtx.settings(study.experiment, study.given | given) for given in study.budgets(reduced=True))
        assert {f"{one.variant}-{model}-seed{seed}" for one in (full, small, *smaller) for model in one.models for seed in study.seeds} <= set(names)
        assert not full.reduced and small.reduced and study.budgets(reduced=False) == [study.full]
    saved(SST2, "recurrent")
    paper.main([])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 72 and lines[0].endswith("seed 0  missing") and lines[1].split()[:2] == ["sst2", "recurrent"]
    assert lines[1].endswith("recorded, test accuracy 0.8000") and sum("missing" in line for line in lines) == 71


def test_run_trains_what_is_missing_only(monkeypatch, capsys):
    import rtx_core.run as run_module

    made = []
    monkeypatch.setattr(paper, "PLAN", paper.PLAN[:2])
    monkeypatch.setattr(run_module, "run", lambda settings, model, seed, wait: made.append((settings.variant, model)) or saved(settings, model, seed))
    saved(SST2, "recurrent")
    paper.main(["--run"])
    assert made == [("sst2", "baseline"), ("sst2-official", "baseline"), ("sst2-official", "recurrent")]
    assert "missing" not in capsys.readouterr().out and recorded(SST2).models == SST2.models


def test_side_by_side_a_run_that_another_process_makes_is_left_to_it(monkeypatch, capsys):
    import rtx_core.run as run_module
    import rtx_core.run_language as run_language_module

    asked = []

    def busy(settings, model, seed, wait):
        asked.append((settings.variant, model, seed))
        raise Busy("Another process is training it now.")

    monkeypatch.setattr(run_module, "run", busy)
    monkeypatch.setattr(run_language_module, "run", busy)
    paper.main(["--run"])
    assert len(asked) == len(list(paper.runs())) and capsys.readouterr().out.count("missing") == len(asked)
