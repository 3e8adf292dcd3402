"""Cards of the bench: verdicts, places, comparisons and pages, of made-up scores and of what is recorded."""

import html
import shutil

import numpy as np
import pytest
from conftest import refused

import study
from rtx_core import records
from rtx_core.benchmark import card as cards
from rtx_core.benchmark import compare, pair, recorded, suite, words
from rtx_core.benchmark.card import Card, Counts, Point, TaskResult
from rtx_core.paths import REPOSITORY


def point(name: str, role: str, errors: list[float], depth: int = 4, weights: int = 50_000, passes: int = 1) -> Point:
    sizes = {"answers": 1000, "weights": weights, "depth": depth, "passes": passes, "rate": 1e-3}
    return Point(name=name, role=role, errors=errors, **sizes)


def card_of(candidate: Point | None, others: list[Point], name: str = "mine") -> Card:
    counts = Counts(weights=50_000, applied=200_000, width=64, passes=4)
    task = TaskResult(task="pointers", unit="error", candidate=candidate, others=others)
    about = {"budget": "standard", "date": "2026-01-01T00:00", "machine": "a machine", "counts": counts}
    return Card(name=name, check=[], tasks=[task], **about)


VERDICTS = {
    "better": ([0.02, 0.021, 0.019], [0.2, 0.21, 0.19]),
    "worse": ([0.2, 0.21, 0.19], [0.02, 0.021, 0.019]),
    "equal": ([0.2, 0.201, 0.199], [0.2, 0.2, 0.201]),
    "cannot say": ([0.02, 0.5, 0.1], [0.3, 0.05, 0.2]),
}


@pytest.fixture
def recorded_here(home):
    """The runs on the suite that are recorded."""
    for kept in ("results", "runs"):
        for source in (REPOSITORY / kept).glob("bench-*"):
            shutil.copytree(source, home / kept / source.name)


def test_recorded_models_are_compared_by_their_names(recorded_here):
    compared, path = pair.compare("Universal", "1x4")
    assert [row.task for row in compared.rows] == list(suite.BUDGETS["quick"].tasks)
    for row in compared.rows:
        runs = [records.records(f"bench-{row.task}-quick", model=name) for name in compared.names]
        errors = [[suite.error(row.task, run)[0] for run in each] for each in runs]
        assert [row.first.errors, row.second.errors] == errors
        assert row.difference == pytest.approx(np.mean(errors[0]) - np.mean(errors[1]))
        assert (row.verdict is None) == (min(map(len, errors)) < 3)
    assert compared.counts[1].weights * 4 == compared.counts[1].applied
    kept = pair.Comparison.model_validate_json(path.with_suffix(".json").read_text())
    assert kept == compared and len(str(kept).splitlines()) == len(compared.rows) + 3
    page = path.read_text()
    assert all(html.escape(cell) in page for line in compared.cells() for cell in line)


def test_a_card_is_compared_with_a_name_at_its_own_budget(recorded_here):
    cards.write(card_of(point("mine", "candidate", [0.1]), []), cards.folder() / "mine-standard")
    file = str(cards.folder() / "mine-standard.json")
    with refused("no trained task in common"):  # 1x4 is recorded on another one
        pair.compare(file, "1x4")
    assert pair.compare("mine", file, budget="standard")[0].names == ("mine (1)", "mine (2)")
    card = card_of(point("mine", "candidate", [0.1]), []).model_copy(update={"budget": "quick"})
    cards.write(card, cards.folder() / "mine-quick")
    assert (
        pair.compare("mine", "1x4")[0].rows[0].second.errors == pair.card_of("1x4", "quick").tasks[0].candidate.errors
    )
    cards.write(card_of(None, []), cards.folder() / "untrained")
    with refused("no trained task in common"):
        pair.compare(file, str(cards.folder() / "untrained.json"))
    with refused("Unknown recorded model '1x5': did you mean '1x4'"):
        pair.compare("1x4", "1x5")
    with refused("Unknown budget"):
        pair.compare("1x4", "2x2", budget="long")
    with refused("Got 1"):
        pair.compare("1x4")


@pytest.mark.parametrize(("seeds", "others", "decides"), [([0, 1, 2], [0, 1, 2], True), ([0, 1, 2], [3, 4, 5], False)])
def test_a_comparison_decides_on_three_seeds_that_both_have(seeds, others, decides):
    low, high = VERDICTS["better"]
    one = point("one", "candidate", low).model_copy(update={"seeds": seeds})
    other = point("other", "candidate", high).model_copy(update={"seeds": others})
    (row,) = pair.with_verdicts([pair.row_of("pointers", "error", one, other)], ("one", "other"))
    assert row.verdict == ("better" if decides else None)
    assert row.difference == pytest.approx(-0.18) and (row.interval is not None) == decides
    (row,) = pair.with_verdicts(
        [pair.row_of("pointers", "error", one, point("old", "candidate", high))], ("one", "old")
    )
    assert row.verdict is None


def test_seeds_that_one_model_lacks_decide_nothing():
    one = point("one", "candidate", [0.1, 0.11, 0.12, 0.9]).model_copy(update={"seeds": [0, 1, 2, 3]})
    other = point("other", "candidate", [0.12, 0.1, 0.11]).model_copy(update={"seeds": [2, 0, 1]})
    (row,) = pair.with_verdicts([pair.row_of("pointers", "error", one, other)], ("one", "other"))
    assert row.difference == pytest.approx(0) and row.first.errors[-1] == 0.9
    first, second = pair.in_common(row)
    assert (first.errors, second.errors) == ([0.1, 0.11, 0.12], [0.1, 0.11, 0.12])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', "NaN"])
def test_a_file_that_is_no_card_is_one_sentence(tmp_path, content):
    (file := tmp_path / "card.json").write_text(content)
    with refused("card.json"):
        cards.read(file)
    with refused("nothing.json"):
        cards.read(tmp_path / "nothing.json")


@pytest.mark.parametrize("expected", VERDICTS)
def test_a_verdict_follows_the_rule_of_methods(expected):
    candidate, control = VERDICTS[expected]
    card = compare.with_verdicts(card_of(point("mine", "candidate", candidate), [point("stack", "as large", control)]))
    (verdict,) = card.tasks[0].verdicts
    assert (verdict.control, verdict.verdict) == ("as large", expected)
    two = compare.with_verdicts(
        card_of(point("mine", "candidate", candidate[:2]), [point("stack", "as large", control)])
    )
    assert two.tasks[0].verdicts[0].verdict == "cannot say"


@pytest.mark.parametrize(("candidate", "other"), [([0.0] * 3, [0.0] * 3), ([0.0] * 3, [0.3] * 3)])
def test_seeds_without_spread_have_a_verdict(candidate, other):
    card = compare.with_verdicts(card_of(point("mine", "candidate", candidate), [point("stack", "as deep", other)]))
    assert card.tasks[0].verdicts[0].verdict == ("equal" if candidate == other else "better")


def test_places_are_among_stacks_by_parameters_by_depth_and_by_layers():
    stacks = [point(f"{n}x1", "recorded", [e], n, 50_000 * n) for n, e in enumerate((0.5, 0.3, 0.1, 0.02), 1)]
    others = [*stacks, point("4x1-w32", "recorded", [0.2], 4), point("1x4", "recorded", [0.01], 4, passes=4)]
    loop, largest, deepest, worth = compare.places(point("mine", "candidate", [0.06], passes=4), others, "error")
    assert "1x4 (" in loop and "4 times" in loop
    assert "4x1-w32 (" in largest and "20.0" in largest
    assert "4x1 (200,000" in deepest
    layers = float(worth.partition("about ")[2].split()[0])
    assert 3 < layers < 4
    assert compare.worth(0.0, [1.0, 0.5, 0.6, 0.1]) == "no higher than that of 4 layers"
    assert compare.worth(2.0, [1.0, 0.5]) == "no lower than that of one layer"
    assert compare.places(point("mine", "candidate", [0.06]), [], "error") == []
    of_seeds = compare.places(point("mine", "candidate", [0.1, 0.7, 0.8]), stacks, "error")[-1]
    one, best = "no lower than that of one layer", "that of about 3.0 layers"
    assert one in of_seeds.partition("(")[0] and f"best seed: {best}; worst seed: {one}" in of_seeds


def test_a_name_cannot_write_into_the_page():
    named = card_of(point("<b>x", "candidate", [0.1]), [point("<script>alert(1)</script>", "as deep", [0.1])], "<b>x")
    page = cards.page(compare.with_verdicts(named))
    assert "<script" not in page and "<b>x" not in page


def test_what_passes_and_rounding_change_is_a_sentence_each_with_its_numbers():
    passes, rounded = [(1, 0.9), (2, 0.2), (4, 0.05), (6, 0.1), (8, 0.082)], [(32, 0.05), (8, 0.05), (4, 0.3)]
    task = TaskResult(task="pointers", unit="error", passes=passes, rounded=rounded)
    half, twice, eight, four = words.changes(task, 4)
    assert "2 passes" in half and "15.0 points more" in half and "8 passes" in twice and "3.2 points more" in twice
    assert "8 bits" in eight and "points" not in eight and "25.0 points more" in four
    nats = TaskResult(task="characters", unit="nats", passes=[(1, 2.0), (2, 1.5), (3, 1.25)])
    half, twice = words.changes(nats, 2)
    assert "0.500 nats higher" in half and "0.250 nats lower" in twice
    assert words.changes(TaskResult(task="s3", unit="error", rounded=[(32, 0.1)]), 1) == []


def test_the_matrix_is_of_the_recorded_models(monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    table = recorded.matrix().set_index("Model")
    record = records.load("bench-s3-quick/1x4-seed0")
    assert table.loc["1x4", "s3, error"] == cards.score(1 - record["test"]["accuracy"], "error")
    assert (table.loc["1x4", "Depth"], table.loc["1x4", "Passes"], table.loc["4x1", "Passes"]) == (4, 4, 1)
    assert list(table["Passes"] > 1) == sorted(table["Passes"] > 1)


def test_a_quick_card_compares_with_every_recorded_recurrence(monkeypatch):
    monkeypatch.setenv("RTX_HOME", str(REPOSITORY))
    for task in suite.BUDGETS["quick"].tasks:
        points = recorded.recorded_points(task, "quick")
        assert {name for name, each in points.items() if each.role == cards.RECURRENCE} == study.RECURRENCES.keys()
        assert points.keys() > suite.LADDER.keys()
        seeds = [run["seed"] for run in records.records(f"bench-{task}-quick", model="Universal")]
        assert points["Universal"].seeds == seeds


def test_a_recurrence_is_no_stack_and_no_control():
    lstm = point("LSTM", cards.RECURRENCE, [0.4], 1)
    card = card_of(candidate := point("mine", "candidate", [0.3]), [lstm])
    assert compare.places(candidate, [lstm], "error") == [] and compare.with_verdicts(card).tasks[0].verdicts == []
