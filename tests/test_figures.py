"""Figures: they and their alt texts change with the records and only with them, and every model and seed has its mark."""

import json
import re

import pytest
from factory import N, changed, markdown, runs_of

import rtx_core as rtx

pytestmark = pytest.mark.usefixtures("figures")


def alt(shown) -> str:
    said = json.loads(re.search(r"^:alt: (.*)$", markdown(shown), flags=re.MULTILINE).group(1))
    assert f'alt="{said}"' in shown.forms["text/html"]
    return said


def test_alt_text_carries_the_numbers(figures, profiles):
    runs = runs_of()
    bubble = alt(rtx.figure.bubble(runs, label="fig-bubble"))
    assert bubble.startswith("Bubble plot of test accuracy against time a text. ")
    assert "Baseline (seed 0): 1.800 ms, accuracy 0.8000, 98.8 MB" in bubble and "Recurrent (seed 0): 1.900 ms, accuracy 0.8500, 41.9 MB" in bubble
    curves = alt(rtx.figure.learning_curves(runs, label="fig-curves"))
    assert curves.count("lowest 0.432 at epoch 1") == 2
    assert "Baseline: 80 of true negative right, 80 of true positive right" in alt(rtx.figure.confusion(runs, label="fig-confusion"))
    assert "under official the median text has 7 words in train" in alt(rtx.figure.lengths(profiles, label="fig-lengths"))
    assert {path.name for path in figures.iterdir()} == {
        f"fig-{name}.{kind}" for name in ("bubble", "curves", "confusion", "lengths") for kind in ("svg", "pdf")
    }


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
