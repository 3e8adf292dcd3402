"""The Performance page says what its records say, and says so where there are none; the plain way is the same model."""

import json

import pytest
import torch
from reference import sentences_of, small

from benchmarks.plain import plain_copy
from benchmarks.timing import interleaved, save, summary
from rtx_core.models.packed import Packed
from rtx_core.pages import performance

STEPS = {
    "batch": 16, "tokens_per_step": 200.0, "longest_per_step": 30.0, "rows_trained": 10, "rows": 20, "compiled": None,
    "steps": {
        f"{model}, {way}": {"median_ms": ms, "p10_ms": ms - 1, "p90_ms": ms + 1, "rounds": 3}
        for model in ("baseline", "recurrent")
        for way, ms in (("plain, padded to 128", 1500.0), ("plain, padded to the longest", 300.0), ("this project", 100.0))
    },
    "floor": {
        model: {"gflops_per_step": 1.0, "gflops_per_second": 10.0, "matrix_products_ms": 60.0, "parameters_updated": 5, "copy_gb_per_second": 9.0,
                "adamw_ms": 20.0, "ms": 80.0}
        for model in ("baseline", "recurrent")
    },
    "breakdown": {way: {"matrix products": 50.0, "attention": 5.0} for way in ("plain", "ours")},
    "ablation": {"packed, eager": {"median_ms": 200.0, "p10_ms": 1.0, "p90_ms": 2.0}, "+ masks": {"median_ms": 180.0, "p10_ms": 1.0, "p90_ms": 2.0}},
    "by_size": [{"swept": s, "length": n, "batch": n, "who": who, "median_ms": 1.0 * n} for s in ("length", "batch") for n in (8, 16)
                for who in ("baseline", "recurrent", "baseline, plain")],
}  # fmt: skip


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A results folder with the made-up benchmark, written as the benchmarks write theirs."""
    for module in ("benchmarks.timing", "rtx_core.pages.performance", "rtx_core.pages.display"):
        monkeypatch.setattr(f"{module}.REPOSITORY", tmp_path)
    save("training-step", STEPS)
    return tmp_path / "results" / "benchmarks" / "training-step-cpu.json"


def shown(display) -> str:
    return display.forms["text/html"] if "text/html" in display.forms else display.forms["text/markdown"]


def test_the_table_follows_the_record(recorded):
    table = shown(performance.steps(label="tab-x"))
    assert "15.00" in table and table.count("reached") == 3 and "not reached" not in table  # two ratios of 15, one floor of 1.25
    content = json.loads(recorded.read_text())
    content["steps"]["baseline, this project"]["median_ms"] = 150.0
    recorded.write_text(json.dumps(content))
    table = shown(performance.steps(label="tab-x"))
    assert "10.00" in table and table.count("not reached") == 2
    assert "10.0 times as long" in shown(performance.told())


def test_figures_and_the_floor_are_drawn(recorded):
    assert "80.0" in shown(performance.floor(label="tab-f"))
    assert "20.0" in shown(performance.ablation(label="tab-a"))
    assert "matrix products 50 ms" in shown(performance.breakdown(label="fig-b"))
    assert "8 ms at 8, 16 ms at 16" in shown(performance.by_size(label="fig-s"))


def test_what_is_not_measured_is_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr(performance, "REPOSITORY", tmp_path)
    for draw in (performance.steps, performance.floor, performance.breakdown, performance.by_size, performance.sentence, performance.startup):
        assert "Not measured yet: `python -m benchmarks." in shown(draw(label="tab-x"))
    assert shown(performance.gpu_targets(label="tab-g")).count("not measured yet") == 4
    assert "--device cuda" in shown(performance.steps(label="tab-x", device="cuda"))


@pytest.mark.parametrize("shape", [{}, {"num_passes": 2}], ids=str)
def test_the_plain_way_computes_the_same_logits(shape):
    model, sentences = small(**shape).float(), sentences_of([5, 1, 9])
    ids, mask = torch.zeros(3, 12, dtype=torch.int64), torch.zeros(3, 12, dtype=torch.int64)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)], mask[row, : len(sentence)] = torch.tensor(sentence), 1
    with torch.no_grad():
        torch.testing.assert_close(plain_copy(model).eval()(ids, mask), model(Packed.from_sequences(sentences)), rtol=1e-4, atol=1e-4)


def test_contestants_take_turns_and_the_median_is_kept():
    calls = []
    took = interleaved({"a": lambda i: calls.append(("a", i)), "b": lambda i: calls.append(("b", i))}, rounds=3, warm_up=1)
    assert calls == [(name, i) for i in range(4) for name in "ab"] and took["a"]["rounds"] == 3
    assert summary([1.0, 2.0, 30.0])["median_ms"] == 2.0
