"""Pages: every number comes from a record, what is synthetic or stale says so, and the provenance can be run."""

import copy
import json
import re
import shlex
import shutil
import subprocess
import sys

import matplotlib.pyplot as plt
import pytest
import yaml
from bs4 import BeautifulSoup
from papermill.cli import _resolve_type
from factory import N, content, runs_of, saved

import rtx_core as rtx
from rtx_core.errors import RtxError
from rtx_core.pages import display
from rtx_core.pages import runs as pages_runs
from rtx_core.pages.published import published
from rtx_core.pages.runs import Runs
from rtx_core.paths import REPOSITORY
from rtx_core.results.statistics import accuracy_interval

SPLITS = ["seeded", "official"]
HOSTILE = "<script>x</script> | `b` $c$ **d** {ref}`e` f"


@pytest.fixture(autouse=True)
def figures(home, monkeypatch):
    """Figures are written under the test's own home."""
    plt.switch_backend("agg")
    monkeypatch.setattr(display, "REPOSITORY", home)
    yield home / "book" / "figures"
    assert plt.get_fignums() == []


@pytest.fixture
def profiles(home):
    """The repository's own profiles."""
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    return rtx.profiles(rtx.settings("sst2", {"source": "hub"}), SPLITS)


def markdown(shown) -> str:
    return shown.forms["text/markdown"]


def plain(text: str) -> str:
    """MyST with its escapes undone."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def rows(shown) -> list[dict[str, str]]:
    page = BeautifulSoup(shown.forms["text/html"], "html.parser")
    head = [cell.get_text() for cell in page.find_all("th")]
    return [dict(zip(head, [cell.get_text() for cell in row.find_all("td")], strict=True)) for row in page.tbody.find_all("tr")]


def changed(runs: Runs, model: str, **entries) -> Runs:
    """The same runs with some entries of a model's records replaced."""
    made = [saved(runs.settings, r["model"], r["seed"], range(40), **entries) if r["model"] == model else r for r in runs]
    return Runs(runs.settings, made, runs.data_sha256)


# -- tables -----------------------------------------------------------------------------------------------------------


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
    assert "at batch 16 on Test CPU (2 threads)" in markdown(shown)


def test_published_rows_stand_only_beside_the_reports_protocol():
    shown = rtx.table.benchmark(runs_of(train_rows=100), label="tab-a")
    assert [row["Result"] for row in rows(shown)] == ["ours, seed 0"] * 2 and "Protocol reduced: train rows 100" in plain(markdown(shown))


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
    assert {row["Model"] for row in table} == {"Recurrent"} and len(table) == 3


def test_several_seeds_give_mean_deviation_and_students_interval():
    asked = rtx.settings("sst2", {"models": ["baseline"], "seeds": [0, 1, 2]})
    records = [saved(asked, "baseline", seed, range(wrong)) for seed, wrong in enumerate((38, 40, 42))]
    shown = rtx.table.benchmark(Runs(asked, records, None), label="tab-a")
    row = rows(shown)[0]
    assert (row["Result"], row["Accuracy"]) == ("ours, mean of 3 seeds", "0.8000 ± 0.0100")
    assert "mean ± standard deviation over seeds" in markdown(shown)
    asked = rtx.settings("sst2", {"seeds": [0, 1, 2]})
    records += [saved(asked, "recurrent", seed, range(30, 60)) for seed in range(3)]
    half = 4.302653 * 0.01 / 3**0.5
    said = markdown(rtx.text.comparison(Runs(asked, records, None)))
    assert f"Baseline 0.8000 (95 % interval {0.8 - half:.4f} to {0.8 + half:.4f})" in said and "Student's, over seeds" in said


def test_other_code_is_noted_beside_tables_and_figures():
    entry = content(rtx.settings("sst2", {}))["code"] | {"fingerprints": ["0" * 64]}
    runs = changed(runs_of(), "recurrent", code=entry)
    for output in (rtx.table.benchmark(runs, label="tab-a"), rtx.table.latency(runs, label="tab-b"), rtx.figure.bubble(runs, label="fig-a")):
        assert "recurrent, seed 0: made by other code (commit c0ffee012)" in markdown(output)
        assert "baseline, seed 0" not in markdown(output)


def test_latency_has_a_row_for_each_batch_size():
    table = rows(rtx.table.latency(runs_of(), label="tab-a"))
    assert [(row["Model"], row["Batch"]) for row in table] == [("Baseline", "1"), ("Baseline", "16"), ("Recurrent", "1"), ("Recurrent", "16")]
    assert "over 7 batches, measured on Test CPU (2 threads)" in markdown(rtx.table.latency(runs_of(), label="tab-a"))
    assert table[1] == {
        "Model": "Baseline", "Seed": "0", "Batch": "16", "Median (ms)": "28.80", "10–90 % (ms)": "25.92–34.56", "Per sentence (ms)": "1.800",
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


def test_overlap_says_how_many_test_texts_are_in_training_texts(profiles):
    profiles["seeded"]["parts"]["test"] |= {"n": 200, "within_training": 30}
    assert "Under `seeded`, 30 of the 200 test texts (15.0%)" in markdown(rtx.text.overlap(profiles))


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


def test_hostile_notes_stay_words_in_the_provenance():
    entry = content(rtx.settings("sst2", {}))["code"] | {"fingerprints": ["0" * 64], "commit": "<b>$x$`|`"}
    said = markdown(rtx.provenance(changed(runs_of(), "baseline", code=entry), notebook="sst2"))
    assert "<b>" not in said and plain(said).count("<b>$x$`|`") == 2  # in the note and in the table


# -- sentences --------------------------------------------------------------------------------------------------------


def test_comparison_says_what_the_records_say():
    said = markdown(rtx.text.comparison(runs_of()))  # baseline wrong on 0-39, recurrent on 30-59
    low, high = accuracy_interval(runs_of().first["baseline"])
    for fact in ("42% of the parameters", "accuracy of 0.8500 (95 % interval", f"Baseline 0.8000 (95 % interval {low:.4f} to {high:.4f})",
                 "Baseline minus Recurrent, is -5.00 points", "seed 0", "same 200 sentences", "20 are right with Baseline only",
                 "30 with Recurrent only", "p = 0.2)", "may well be chance", "Wilson's",
                 "At batch 16 a sentence takes Recurrent 1.06 times as long"):  # fmt: skip
        assert fact in said, fact


def test_comparison_changes_with_the_records():
    base = markdown(rtx.text.comparison(runs_of()))
    better = markdown(rtx.text.comparison(runs_of(wrong={"recurrent": range(5)})))
    assert "accuracy of 0.9750" in better and "0 are right with Baseline only" in better and "chance alone would rarely" in better
    runs = runs_of()
    measured = copy.deepcopy(runs.first["recurrent"]["latency"])
    measured["measured"][-1]["median_ms"] *= 10
    slower = changed(runs, "recurrent", latency=measured, parameters={"total": 2_591_271, "non_embedding": 1})
    said = markdown(rtx.text.comparison(slower))
    assert "10% of the parameters" in said and "takes Recurrent 10.56 times as long" in said
    assert len({base, better, said}) == 3


def test_training_sentence_and_say_take_their_numbers_from_the_record():
    runs = runs_of()
    said = markdown(rtx.text.training(runs))
    assert "Baseline (seed 0) has its lowest validation loss, 0.4321, after epoch 1 of 2" in said
    assert "at the end its training loss is 0.3000 and its validation loss 0.5432" in said
    later = markdown(rtx.text.training(changed(runs, "baseline", selected={"step": 200, "validation_loss": 0.2222})))
    assert "0.2222, after epoch 2 of 2" in later
    assert markdown(rtx.say("{baseline[test][accuracy]:.3f} and {recurrent[seed]}", **runs.first)) == "0.800 and 0"


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


def test_data_provenance_names_source_and_hash(profiles):
    said = plain(markdown(rtx.text.data_provenance(profiles)))
    for split in SPLITS:
        assert f"| {split} | stanfordnlp/sst2 | mirror | {profiles[split]['data']['sha256'][:16]}… |" in said


# -- figures ----------------------------------------------------------------------------------------------------------


def alt(shown) -> str:
    said = json.loads(re.search(r"^:alt: (.*)$", markdown(shown), flags=re.MULTILINE).group(1))
    assert f'alt="{said}"' in shown.forms["text/html"]
    return said


def test_alt_text_carries_the_numbers(figures, profiles):
    runs = runs_of()
    bubble = alt(rtx.figure.bubble(runs, label="fig-bubble"))
    assert "Baseline (seed 0): 1.800 ms, accuracy 0.8000, 98.8 MB" in bubble and "Recurrent (seed 0): 1.900 ms, accuracy 0.8500, 41.9 MB" in bubble
    curves = alt(rtx.figure.learning_curves(runs, label="fig-curves"))
    assert curves.count("lowest 0.432 at epoch 1") == 2
    assert "Baseline: 80 of true negative right, 80 of true positive right" in alt(rtx.figure.confusion(runs, label="fig-confusion"))
    assert "under official the median text has 7 words in train" in alt(rtx.figure.lengths(profiles, label="fig-lengths"))
    assert {path.name for path in figures.iterdir()} == {f"fig-{name}.svg" for name in ("bubble", "curves", "confusion", "lengths")}


def test_figures_change_with_the_records_and_only_with_them(figures):
    def drawn(runs) -> list[bytes]:
        rtx.figure.bubble(runs, label="fig-a"), rtx.figure.learning_curves(runs, label="fig-b"), rtx.figure.confusion(runs, label="fig-c")
        return [(figures / f"fig-{letter}.svg").read_bytes() for letter in "abc"]

    first, again = drawn(runs_of()), drawn(runs_of())
    assert first == again
    other = runs_of(wrong={"baseline": range(20)})
    other = changed(other, "recurrent", selected={"step": 200, "validation_loss": 0.5432})
    assert all(a != b for a, b in zip(first, drawn(other)))


def test_synthetic_profiles_say_so(profiles):
    for profile in profiles.values():
        profile["data"] = profile["data"] | {"source": "embedded"}
    for output in (rtx.figure.lengths(profiles, label="fig-a"), rtx.table.lengths(profiles, label="tab-a"), rtx.table.label_distribution(profiles, label="tab-b")):
        assert "Synthetic data (embedded corpus)." in markdown(output)


def test_every_model_and_seed_has_its_mark(figures):
    runs = runs_of(models=["baseline", "recurrent", "recurrent-wide"], seeds=[0, 1], wrong={"recurrent-wide": range(10)})
    assert "Recurrent, wide (seed 1)" in alt(rtx.figure.bubble(runs, label="fig-a"))
    assert "Recurrent, wide (seed 1)" in alt(rtx.figure.learning_curves(runs, label="fig-b"))
    assert "Recurrent, wide: 95 of true negative right" in alt(rtx.figure.confusion(runs, label="fig-c"))
    assert runs.first["recurrent_wide"]["seed"] == 0 and N == 200


# -- light as a page must be ------------------------------------------------------------------------------------------


def run_python(source: str, *arguments: object) -> str:
    done = subprocess.run([sys.executable, "-c", source, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_heavy():
    heavy = ("torch", "pandas", "numpy", "matplotlib", "scipy", "sklearn", "datasets", "jsonschema")
    assert run_python(f"import sys, rtx_core; print([name for name in {heavy} if name in sys.modules])").strip() == "[]"


def test_drawing_from_records_imports_no_torch(home):
    shutil.copytree(REPOSITORY / "results" / "data", home / "results" / "data")
    shutil.copy(REPOSITORY / "results" / "architectures.json", home / "results")
    runs_of()
    said = run_python("""
import sys
from pathlib import Path
import rtx_core as rtx
from rtx_core.pages import display
from rtx_core.pages import runs as pages_runs
display.REPOSITORY = Path(sys.argv[1])
asked = rtx.settings("sst2", {"source": "hub"})
runs, profiles = rtx.runs(asked), rtx.profiles(asked, ["seeded", "official"])
for draw in (rtx.table.benchmark, rtx.table.latency, rtx.figure.bubble, rtx.figure.learning_curves, rtx.figure.confusion):
    draw(runs, label="tab-a" if "table" in draw.__module__ else "fig-a")
rtx.text.comparison(runs), rtx.text.training(runs), rtx.provenance(runs, notebook="sst2")
rtx.table.configuration("recurrent", label="tab-a"), rtx.table.parameter_counts(label="tab-b")
rtx.table.label_distribution(profiles, label="tab-d"), rtx.table.lengths(profiles, label="tab-e"), rtx.text.labels(profiles)
rtx.table.preprocessing(["A  b!!"], label="tab-f"), rtx.figure.lengths(profiles, label="fig-b"), rtx.text.data_provenance(profiles)
print([name for name in ("torch", "datasets", "sklearn", "tokenizers") if name in sys.modules], len(runs.records))
""", home)
    assert said.strip() == "[] 2" and (home / "book/figures/fig-b.svg").exists()


def test_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"^module 'rtx_core' has no attribute 'tables'; it offers .*build_model.*settings.*table"):
        rtx.tables
    assert not hasattr(rtx, "nothing") and set(dir(rtx)) == set(rtx.__all__)
    for name in rtx.__all__:
        assert getattr(rtx, name) is not None
