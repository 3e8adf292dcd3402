"""Tables: every number comes from a record, and what is synthetic, reduced or made by other code says so."""

import copy
import json
import shutil

import pytest
from bs4 import BeautifulSoup
from factory import SPLITS, SST2, changed, content, markdown, plain, runs_of, saved
from sklearn.metrics import precision_recall_fscore_support

import rtx_core as rtx
from rtx_core.corpora.sources import CORPORA
from rtx_core.errors import RtxError
from rtx_core.pages import display
from rtx_core.pages import runs as pages_runs
from rtx_core.pages.published import apart, published, quotations
from rtx_core.pages.runs import Runs, Studies
from rtx_core.paths import REPOSITORY

pytestmark = pytest.mark.usefixtures("figures")
HOSTILE = "<script>x</script> | `b` $c$ **d** {ref}`e` f"


def rows(shown) -> list[dict[str, str]]:
    page = BeautifulSoup(shown.forms["text/html"], "html.parser")
    head = [cell.get_text() for cell in page.find_all("th")]
    return [dict(zip(head, [cell.get_text() for cell in row.find_all("td")], strict=True)) for row in page.tbody.find_all("tr")]


def test_benchmark_shows_what_is_recorded_and_what_is_published():
    runs = runs_of(wrong={"baseline": range(0, 80, 2)})  # all of class 0, so that no two metrics are equal
    assert len({runs.records[0]["test"][key] for key in ("accuracy", "f1", "precision", "recall")}) == 4
    shown = rtx.table.benchmark(runs, label="tab-a")
    table = rows(shown)
    ours = {row["Model"]: row for row in table if row["Result"].startswith("ours")}
    assert [row["Result"] for row in table if row["Result"].startswith("ours")] == ["ours, seed 0"] * 2
    for record, title in zip(runs, ("Baseline", "Recurrent")):
        row, test = ours[title], record["test"]
        for column in ("Accuracy", "F1", "Precision", "Recall"):
            assert row[column] == f"{test[column.lower()]:.4f}" and row[column] in plain(markdown(shown))
        assert row["Parameters"] == f"{record['parameters']['total']:,}" and row["MB"] == f"{record['size_mb']:.2f}"
        assert row["Test set"] == "200 seeded"
        assert row["ms"] == f"{record['latency']['measured'][-1]['per_sentence_ms']:.3f}"
    assert ours["Baseline"]["Accuracy"] == "0.8000" and ours["Recurrent"]["Accuracy"] == "0.8500"
    quoted = [row for row in table if row["Result"].startswith("published")]
    assert [(row["Model"], row["Accuracy"]) for row in quoted] == [
        (title, f"{entry[model]['accuracy']:.4f}")
        for entry in published()["benchmarks"]["sst2"]
        for model, title in (("baseline", "Baseline"), ("recurrent", "Recurrent"))
    ]
    assert len(quoted) == 4 and "Synthetic" not in markdown(shown) and "reduced" not in markdown(shown)
    differences = [(row["Model"], row["Accuracy"]) for row in table if row["Result"] == "difference"]
    assert differences == [("Baseline", "-0.1061"), ("Recurrent", "-0.0521")]  # to the final report's
    assert "inference time for a text, ours at batch 16 on Test CPU (2 threads)" in markdown(shown) and "in brackets" not in markdown(shown)


@pytest.mark.parametrize(("given", "called"), [({"train_rows": 100}, "smaller budget"), ({"epochs": 1}, "smaller budget"), ({"epochs": 9}, "another protocol"),
                                               ({"train_rows": 100, "learning_rate": 1e-4}, "another protocol")])  # fmt: skip
def test_a_difference_of_another_protocol_is_called_so(given, called):
    shown = rtx.table.benchmark(runs_of(**given), label="tab-a")
    results = [row["Result"] for row in rows(shown)]
    assert results == ["ours, seed 0"] * 2 + ["published, Table 6"] * 2 + ["published, final report"] * 2 + [f"difference ({called})"] * 2
    assert rows(shown)[-1]["Accuracy"] == "-0.0521" and "and their difference to ours" in markdown(shown)
    assert "Protocol reduced: " in plain(markdown(shown))


APART = (  # experiment, parameters: the published rows, those with a difference, and why the others have none
    ("sst2", {}, ["Table 6", "final report"], ["final report"], "GLUE's development set (872 sentences), ours of a pooled split"),
    ("sst2", {"split": "published"}, ["Table 6", "final report"], ["final report"], "GLUE's development set (872 sentences), ours of a pooled split"),
    ("sst2", {"split": "official"}, ["Table 6", "final report"], ["Table 6"], "a pooled split, ours of GLUE's development set (872 sentences)"),
    ("sst2", {"split": "grouped"}, ["Table 6", "final report"], [], "ours of a split that keeps the phrases of a sentence together"),
    ("sst2", {"fraction": 0.1}, ["Table 7"], ["Table 7"], ""),
    ("sst2", {"fraction": 0.1, "split": "official"}, ["Table 7"], [], "a pooled split, ours of GLUE's development set (872 sentences)"),
    ("sst2", {"length": "long"}, ["Table 9"], [], "the longest 10 % of the texts, ours of the longest 30 % of the texts"),
    ("sst2", {"length": "short", "length_fraction": 0.1}, ["Table 10"], ["Table 10"], ""),
    ("yelp", {}, ["Table 11"], ["Table 11"], ""),
    ("yelp", {"max_length": 512}, ["Table 11"], [], "texts cut at 128 tokens, ours of texts cut at 512 tokens"),
    ("multi-domain", {}, ["Table 12"], ["Table 12"], ""),
    ("multi-domain", {"num_passes": 4, "residual": "paper"}, ["Table 12"], [], "models of the published form, ours of models with residual paper, num passes 4"),
    ("yelp", {"max_length": 512, "train_rows": 100}, ["Table 11"], [], "texts cut at 128 tokens, ours of texts cut at 512 tokens"),
)


@pytest.mark.parametrize(("experiment", "given", "quoted", "subtracted", "why"), APART)
def test_a_difference_is_taken_where_published_values_and_ours_are_of_the_same_kind_of_texts(experiment, given, quoted, subtracted, why):
    shown = rtx.table.benchmark(runs_of(experiment, **given), label="tab-a")
    table, note = rows(shown)[2:], plain(markdown(shown)).split("{.table-note}")[1]
    assert [row["Result"].removeprefix("published, ") for row in table[::2] if row["Result"] != "difference"] == quoted
    found = [before["Result"].removeprefix("published, ") for before, row in zip(table[::2], table[2::2]) if row["Result"] == "difference"]
    assert found == subtracted and note.count("o difference to") == len(quoted) - len(subtracted)
    assert why in note and ("difference to ours" in shown.forms["text/html"]) == bool(subtracted)


PLACE = " in place of "  # a name of a record's data
STAND_INS = (
    ("yelp", {}, f"another sample{PLACE}Yelp/full", "these values are of Yelp/full, ours of another sample."),
    ("yelp", {"max_length": 512}, f"another sample{PLACE}Yelp/full", "Yelp/full and texts cut at 128 tokens, ours of another sample and texts cut at 512"),
    ("multi-domain", {}, f"a sample{PLACE}Yelp/full + stanfordnlp/sst2 + old reviews{PLACE}amazon", "of Yelp/full and amazon, ours of a sample and old reviews."),
)


@pytest.mark.parametrize(("experiment", "given", "name", "why"), STAND_INS)
def test_no_difference_is_taken_to_texts_that_stand_in_for_others(experiment, given, name, why):
    runs = runs_of(experiment, **given)
    for model in runs.models:
        runs = changed(runs, model, data=runs.of(model)[0]["data"] | {"name": name})
    shown = rtx.table.benchmark(runs, label="tab-a")
    assert [row["Result"][:4] for row in rows(shown)] == ["ours"] * 2 + ["publ"] * 2
    assert why in plain(markdown(shown)) and "difference to ours" not in markdown(shown)
    (entry,) = quotations(runs.settings)
    assert apart(entry, runs.settings, [name]) in plain(markdown(shown)) and (apart(entry, runs.settings) == "") == (not given)


def test_why_there_is_no_difference_is_said_of_the_value_that_it_is_true_of():
    short = {f"shortest {100 * share:g} %": runs_of(length="short", length_fraction=share) for share in (0.1, 0.3)}
    shown = rtx.table.benchmark(Studies(short, "length"), label="tab-a")
    assert [row["Length"] for row in rows(shown) if row["Result"] == "difference"] == ["shortest 10 %"] * 2
    said = 'shortest 30 %: no difference to "published, Table 10": these values are of the shortest 10 % of the texts, ours of the shortest 30 % of the texts.'
    assert said in plain(markdown(shown)) and plain(markdown(shown)).count("o difference to") == 1


def test_the_same_on_another_split_is_shown_as_far_as_it_is_recorded(monkeypatch):
    import rtx_core.run as run_module

    monkeypatch.setattr(run_module, "run", lambda *asked: pytest.fail(f"trained {asked}"))
    beside = lambda asked: rtx.table.beside(asked, label="tab-a", split="official")  # noqa: E731
    assert [row["Result"] for row in rows(beside(SST2))[:2]] == ["not measured yet"] * 2 and "ours are not measured yet" in markdown(beside(SST2))
    saved(SST2.but(split="official"), "recurrent")
    table = rows(beside(SST2))
    assert table[1]["Test set"] == "200 official" and [row["Accuracy"] for row in table if row["Result"] == "difference"] == ["+0.0007"]
    assert "above" in markdown(beside(SST2.but(split="official"))) and "tab-a" not in markdown(beside(SST2.but(split="official")))
    synthetic = rows(beside(SST2.but(source="embedded")))
    assert [row["Result"] for row in synthetic] == ["not measured yet"] * 2 and "ublished" not in markdown(beside(SST2.but(source="embedded")))


def test_weighted_averages_stand_beside_weighted_ones():
    """Tables 7 and 8 print averages over the classes; ours beside them are scikit-learn's of the same predictions."""
    runs = runs_of(fraction=0.1, wrong={"baseline": range(0, 80, 2)})
    shown = rtx.table.benchmark(runs, label="tab-a")
    ours, difference = (next(row for row in rows(shown) if row["Result"].startswith(result)) for result in ("ours", "difference"))
    labels, guesses = runs.records[0].predictions["labels"], runs.records[0].predictions["logits"].argmax(1)
    p, r, f, _ = precision_recall_fscore_support(labels, guesses, average="weighted")
    assert (ours["Precision"], ours["Recall"], ours["F1"]) == (f"{p:.4f}", f"{r:.4f}", f"{f:.4f}") and ours["Recall"] == ours["Accuracy"]
    assert difference["F1"] == f"{f - 0.7665:+.4f}" and "weighted by their size" in markdown(shown)
    assert ours["F1"] != f"{runs.records[0]['test']['f1']:.4f}"


def test_every_quoted_table_is_of_a_setting_that_exists():
    known = {"sst2", "yelp", "multi-domain", "sst2-10pct", "sst2-50pct", "sst2-short", "sst2-long"}
    assert set(published()["benchmarks"]) == known
    for experiment, given in (("sst2", {}), ("sst2", {"fraction": 0.1}), ("sst2", {"fraction": 0.5}), ("sst2", {"length": "short", "length_fraction": 0.1}),
                              ("sst2", {"length": "long"}), ("yelp", {"max_length": 512}), ("multi-domain", {})):  # fmt: skip
        assert quotations(rtx.settings(experiment, given))
    assert quotations(rtx.settings("multi-domain-imdb", {})) == []


def test_every_quoted_table_has_settings_of_ours_to_be_subtracted_from():
    for name, entries in published()["benchmarks"].items():
        experiment = next(known for known in ("sst2", "yelp", "multi-domain") if name.startswith(known))
        length = next((kind for kind in ("short", "long") if name.endswith(kind)), "all")
        for entry in entries:
            for split in entry["split"]:
                asked = rtx.settings(experiment, {"split": split, "max_length": entry["max_length"], "length": length}).but(
                    length_fraction=entry.get("length_fraction", 0.3))  # fmt: skip
                assert split in CORPORA[asked.corpus].splits and apart(entry, asked) == ""


def test_published_rows_stand_never_beside_synthetic_ones():
    assert [row["Result"] for row in rows(rtx.table.benchmark(runs_of(source="embedded"), label="tab-a"))] == ["ours, seed 0"] * 2


def test_every_machine_of_a_table_is_named():
    runs = runs_of()
    machine = runs.records[0]["environment"] | {"device": "Other CPU", "threads": 1}
    mixed = changed(runs, "recurrent", latency=runs.records[1]["latency"] | {"environment": machine})
    assert "on Test CPU (2 threads) and Other CPU (1 thread)" in markdown(rtx.table.benchmark(mixed, label="tab-a"))


def test_synthetic_results_say_so_and_stand_beside_no_published_ones(figures):
    runs = runs_of(source="embedded", epochs=2)
    shown = rtx.table.benchmark(runs, label="tab-a")
    assert len(rows(shown)) == 2 and all(row["Result"] == "ours, seed 0" for row in rows(shown))
    for output in (
        shown, rtx.table.latency(runs, label="tab-b"), rtx.provenance(runs, notebook="sst2"), rtx.figure.bubble(runs, label="fig-a"),
        rtx.figure.learning_curves(runs, label="fig-b"), rtx.figure.confusion(runs, label="fig-c"),
    ):  # fmt: skip
        assert "Synthetic: trained and tested on the embedded corpus" in plain(markdown(output))
        assert "Protocol reduced: epochs 2 instead of" in plain(markdown(output))


def test_published_rows_are_those_of_the_models_asked_for():
    table = rows(rtx.table.benchmark(runs_of(models=["recurrent"]), label="tab-a"))
    assert {row["Model"] for row in table} == {"Recurrent"} and len(table) == 1 + 2 + 1  # ours, published, one difference


def test_several_seeds_give_mean_and_students_interval():
    asked = rtx.settings("sst2", {"models": ["baseline"], "seeds": [0, 1, 2]})
    records = [saved(asked, "baseline", seed, range(wrong)) for seed, wrong in enumerate((38, 40, 42))]
    shown = rtx.table.benchmark(Runs(asked, records, None), label="tab-a")
    row = rows(shown)[0]
    half = 4.302653 * 0.01 / 3**0.5
    assert (row["Result"], row["Accuracy"]) == ("ours, mean of 3 seeds", f"0.8000 ({0.8 - half:.4f} to {0.8 + half:.4f})")
    assert "the mean over seeds, in brackets Student's 95 % interval" in markdown(shown)
    asked = rtx.settings("sst2", {"seeds": [0, 1, 2]})
    records += [saved(asked, "recurrent", seed, range(30, 60)) for seed in range(3)]
    said = markdown(rtx.text.comparison(Runs(asked, records, None)))
    assert f"Baseline 0.8000 (95 % interval {0.8 - half:.4f} to {0.8 + half:.4f})" in said and "Student's, over seeds" in said


def test_other_code_is_noted_beside_tables_and_figures():
    entry = content(rtx.settings("sst2", {}))["code"] | {"fingerprints": ["0" * 64]}
    runs = changed(runs_of(), "recurrent", code=entry)
    for output in (rtx.table.benchmark(runs, label="tab-a"), rtx.table.latency(runs, label="tab-b"), rtx.figure.bubble(runs, label="fig-a")):
        assert "recurrent, seed 0: made by another version of the code (commit c0ffee012)" in markdown(output)
        assert "baseline, seed 0" not in markdown(output)


def test_latency_has_a_row_for_each_batch_size():
    table = rows(rtx.table.latency(runs_of(), label="tab-a"))
    assert [(row["Model"], row["Batch"]) for row in table] == [("Baseline", "1"), ("Baseline", "16"), ("Recurrent", "1"), ("Recurrent", "16")]
    assert "over 7 batches, measured on Test CPU (2 threads)" in markdown(rtx.table.latency(runs_of(), label="tab-a"))
    assert table[1] == {
        "Model": "Baseline", "Seed": "0", "Batch": "16", "Median (ms)": "28.80", "10–90 % (ms)": "25.92–34.56", "Per text (ms)": "1.800",
        "Threads": "2",
    }  # fmt: skip


def test_configuration_shows_what_is_counted(home, monkeypatch):
    monkeypatch.setattr(pages_runs, "REPOSITORY", home)
    counted = json.loads((REPOSITORY / "results" / "architectures.json").read_text())
    counted["recurrent"]["parameters"]["total"] = 12_345_678
    (home / "results").mkdir()
    (home / "results" / "architectures.json").write_text(json.dumps(counted))
    values = {row["Component"]: row["Value"] for row in rows(rtx.table.configuration("recurrent", label="tab-a"))}
    assert values["Total parameters, counted"] == "12,345,678" and values["Total parameters, as the report's table states"] == "3.4M"
    assert (values["Passes through them"], values["Effective depth"], values["Residual scale α"]) == ("2", "6", "0.5")
    assert {row["Component"]: row["Value"] for row in rows(rtx.table.configuration("baseline", label="tab-a"))}["Residual scale α"] == "–"
    totals = next(row for row in rows(rtx.table.parameter_counts(label="tab-b")) if row["Parameters"] == "Total")
    assert (totals["Baseline"], totals["Recurrent"]) == ("25,912,706", "12,345,678")


def test_missing_architectures_are_one_sentence(home, monkeypatch):
    monkeypatch.setattr(pages_runs, "REPOSITORY", home)
    with pytest.raises(RtxError, match="results/architectures.json is not readable"):
        rtx.table.parameter_counts(label="tab-a")


def test_label_distribution_counts_what_the_profile_counts(profiles):
    table = {(row["Split"], row["Part"]): row for row in rows(rtx.table.label_distribution(profiles, label="tab-a"))}
    row = table["official", "test"]
    assert (row["Label 0, negative (%)"], row["Label 1, positive (%)"], row["n"]) == ("49.08", "50.92", "872")  # GLUE dev: 428 and 444
    assert {row["As printed"] for row in table.values()} == {"–"} and len(table) == 2 * 3
    other = copy.deepcopy(profiles)
    other["official"]["parts"]["test"]["labels"] = [218, 654]
    assert {(r["Split"], r["Part"]): r for r in rows(rtx.table.label_distribution(other, label="tab-a"))}["official", "test"]["Label 0, negative (%)"] == "25.00"


def test_only_the_published_split_gives_the_published_shares(home):
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    said = markdown(rtx.text.labels(rtx.profiles(rtx.settings("sst2", {"source": "hub"}), ["published", *SPLITS])))
    published_split = rtx.profiles(rtx.settings("sst2", {"source": "hub"}), ["published"])
    printed = [row["As printed"] for row in rows(rtx.table.label_distribution(published_split, label="tab-a"))]
    assert printed == ["44.11 / 55.89", "44.91 / 55.09", "45.04 / 54.96"]
    first, *others = said.split("Under ")[1:]
    assert first.startswith("`published` label 0 has 44.11 / 44.91 / 45.04 %") and "exactly the shares of the report's Table 1" in first
    assert len(others) == 2 and not any("exactly" in other for other in others)


def test_lengths_are_counted_from_the_histograms(profiles):
    histogram = {"1": 5, "3": 4, "10": 1}
    profiles["seeded"]["parts"]["train"] |= {"n": 10, "words": histogram, "truncated": 7, "distinct_texts": 9}
    row = rows(rtx.table.lengths(profiles, label="tab-a"))[0]
    assert (row["Split"], row["Part"], row["Texts"], row["Distinct"], row["At the limit"]) == ("seeded", "train", "10", "9", "7")
    assert row["Words"] == "2.7 / 2 / 10"  # the median of 1 1 1 1 1 3 3 3 3 10 is 2


def test_lengths_say_at_most_how_many_tokens_are_read(profiles):
    assert "of which at most 128 are kept and read" in markdown(rtx.table.lengths(profiles, label="tab-a"))
    profiles["official"]["data"]["max_length"] = 512
    assert "of which at most the limit of the row are kept and read" in markdown(rtx.table.lengths(profiles, label="tab-a"))


def test_accuracies_have_the_area_under_the_curve_beside_them():
    runs = runs_of(seeds=[0, 1], models=["baseline", "recurrent"], wrong={"recurrent": range(0, 60, 2)})  # 30 of class 0 wrong: 0.85 on average
    shown = rtx.table.accuracies(Studies({"a": runs}, "split"), label="tab-a")
    (row,) = rows(shown)
    assert row["AUC: Baseline / Recurrent"] == "0.8000 / 0.8500" and "AUC: area under the ROC curve, the mean over seeds" in markdown(shown)
    assert row["p"] == "–" and row["Baseline − Recurrent (points)"].startswith("-5.00")
    early = changed(runs_of(), "baseline", test=runs.of("baseline")[0]["test"] | {"confusion": [[100, 0], [100, 0]]})
    (row,) = rows(rtx.table.accuracies(Studies({"a": early}, "split"), label="tab-a"))
    assert "Baseline − Recurrent (points)" not in row and "p" not in row  # stopped before it knew both classes
    better = saved(runs.settings, "baseline", 1, range(10))
    runs = Runs(runs.settings, [*runs.of("baseline")[:1], better], None)
    assert rows(rtx.table.accuracies(Studies({"a": runs}, "split"), label="tab-a"))[0]["AUC: Baseline / Recurrent"] == "0.8750 / –"
    three = [changed(runs_of("multi-domain"), "baseline", test=better["test"] | {"n": 200, "accuracy": 0.8, "confusion": [[1, 0, 0]] * 3}).of("baseline")[0]]
    assert rows(rtx.table.accuracies(Studies({"a": Runs(runs.settings, three, None)}, "split"), label="tab-a"))[0]["AUC: Baseline / Recurrent"] == "–"


def test_hostile_words_in_cells_stay_words(profiles):
    profiles["seeded"]["classes"] = [HOSTILE, "positive"]
    profiles[HOSTILE] = profiles.pop("seeded")
    distribution = rtx.table.label_distribution(profiles, label="tab-a")
    provenance = rtx.text.data_provenance(profiles)
    preprocessing = rtx.table.preprocessing([HOSTILE], label="tab-b")
    runs = changed(runs_of(), "baseline", environment=content(rtx.settings("sst2", {}))["environment"] | {"device": HOSTILE}, finished=HOSTILE)
    for output in (distribution, preprocessing, provenance, rtx.provenance(runs, notebook="sst2")):
        assert display.escape(HOSTILE) in markdown(output) and HOSTILE not in markdown(output)
        assert "<script>" not in output.forms.get("text/html", "") and "<script>" not in markdown(output)


def test_costs_are_summed_over_records():
    assert "Not measured yet" in markdown(rtx.cost.runs(label="tab-a"))
    made = [saved(rtx.settings("sst2", {"source": "hub", **given}), model, seed) for given in ({}, {"epochs": 1})
            for model, seed in (("baseline", 0), ("recurrent", 0), ("recurrent", 4))]  # fmt: skip
    full, reduced, whole = rows(rtx.cost.runs(label="tab-a"))
    assert (full["Experiment"], full["Protocol"], full["Runs"]) == ("sst2", "report", "3")
    assert (reduced["Experiment"], reduced["Protocol"], whole["Experiment"], whole["Runs"]) == ("sst2-epochs1", "reduced", "all", "6")
    seconds = sum(record["seconds"] for record in made)
    assert whole["Hours in all"] == f"{seconds / 3600:.2f}" and full["Minutes a run"] == f"{sum(r['seconds'] for r in made[:3]) / 180:.1f}"
    assert whole["Most memory (MiB)"] == f"{max(record['peak_memory_mib'] for record in made):,.0f}"
