"""The benchmark of the recurrence at small sizes, and the displays of its record.  Nothing here judges a time."""

import pytest
import torch
from factory import markdown, plain

import rtx_core as rtx
from benchmarks import recurrence, timing
from rtx_core.errors import RtxError
from rtx_core.pages import performance
from rtx_core.results.record import read_json

SIZES = recurrence.Sizes(
    batch=2, length=8, rounds=1, lengths=(4, 8), length_rounds=1, memory_lengths=(), segments=(0, 4), generated=(2, 4), texts=1,
    model={"hidden_size": 12, "num_heads": 2, "intermediate_size": 16},
)  # fmt: skip
DISPLAYS = {"steps": "tab", "by_length": "fig", "memory": "tab", "next_character": "fig"}


@pytest.fixture
def shown(monkeypatch, home, figures):
    monkeypatch.setattr(performance, "REPOSITORY", home)
    return lambda: {name: plain(markdown(getattr(rtx.recurrence, name)(label=f"{kind}-a"))) for name, kind in DISPLAYS.items()} | {
        "told": plain(markdown(rtx.recurrence.told()))
    }


def test_record_is_drawn(monkeypatch, home, shown):
    monkeypatch.setattr(timing, "REPOSITORY", home)
    monkeypatch.setattr(recurrence, "copy_rate", lambda: 1e6)  # else it copies 100 MB
    content = recurrence.measure(SIZES, "cpu")
    content["memory"] = [{"segment": s, "length": 8, "batch": 2, "mib": 10.0 + n, "ms": 1000.0} for n, s in enumerate((None, 0, 4))]
    content["steps"] = {"plain loop": {"median_ms": 90.0, "p10_ms": 80.0, "p90_ms": 99.0}, "this project": {"median_ms": 20.0, "p10_ms": 19.0, "p90_ms": 21.0}}
    content["floor"] |= {"sequential_ms": 8.0, "sequential_gflop": 0.4, "parallel_ms": 2.0, "parallel_gflop": 0.5, "adamw_ms": 0.0, "ms": 10.0}
    timing.save("recurrence", content)
    said = shown()
    assert "| this project | 20.0 (19.0 to 21.0) | 4.50 |" in said["steps"] and "| floor | 10.0 | 9.00 |" in said["steps"]
    assert "it is 4.5 times, so the aim is not reached" in said["told"] and "at most 9.0 times" in said["told"] and "2.00 times the floor" in said["told"]
    assert "run at 50 GFLOP/s" in said["told"] and "they run at 250" in said["told"]
    assert "| recomputed 4 positions at a time | 12 MiB, 1.00 s |" in said["memory"]
    for name in ("by_length", "next_character"):
        assert "Standard, 6 layers" in said[name] and "Recurrent" in said[name]
    assert {row["who"] for row in content["by_length"]} == {"gpt-2", "gpt-6", "kausik"} and 0 < content["difference"] < 1e-4
    assert read_json(home / "results/benchmarks/recurrence-cpu.json")["sizes"]["lengths"] == [4, 8]


def test_missing_record_is_said(shown):
    assert all(text == "Not measured yet: `python -m benchmarks.recurrence` measures it." for text in shown().values())
    assert "--device cuda" in markdown(rtx.recurrence.told(device="cuda"))


def test_ways_that_differ_are_refused(monkeypatch):
    right = recurrence.plainly

    def wrong(model):
        other = right(model)
        with torch.no_grad():
            other.layers[0].up.weight[0] += 1
        return other

    monkeypatch.setattr(recurrence, "plainly", wrong)
    with pytest.raises(RtxError, match="they are not the same function"):
        recurrence.differences(SIZES, "cpu")


def test_step_changes_the_weights_alike():
    """Without dropout both ways end a step with the same weights."""
    model = recurrence.built("kausik", SIZES, "cpu", dropout=0.0)
    other = recurrence.plainly(model)
    batch = recurrence.characters(model, 2, 8)
    for one in (model, other):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        one(*batch).backward()
        optimizer.step()
    for (name, a), b in zip(model.named_parameters(), other.parameters()):
        assert torch.allclose(a, b, atol=1e-6), name


def test_memory_of_a_pass_is_a_number():
    found = recurrence.added_memory(SIZES, "cpu", 8, 4)
    assert found["mib"] >= 0 and found["ms"] > 0
