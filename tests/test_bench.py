"""The bench of a loop: what is trained, what the card says, and what a faulty model leaves of it."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SERVER, refused
from torch import Tensor, nn

import rtx_core as rtx
import study
from rtx_core import records
from rtx_core.__main__ import main
from rtx_core.benchmark import bench as bench_module
from rtx_core.benchmark import card as cards
from rtx_core.benchmark import pair, recorded, suite
from rtx_core.benchmark.card import Card, Counts, TaskResult
from rtx_core.benchmark.subject import definition
from rtx_core.models import build_model, registry
from rtx_core.paths import REPOSITORY

SOURCE = '''
import torch, torch.nn.functional as F
from torch import nn

class Mine(nn.Module):
    """One causal layer, run `passes` times; each fault is one argument."""

    def __init__(self, vocab_size, width=16, passes=3, fault=""):
        super().__init__()
        self.word, self.qkv = nn.Embedding(vocab_size, width), nn.Linear(width, 3 * width)
        self.out, self.head = nn.Linear(width, width), nn.Linear(width, vocab_size)
        self.passes, self.fault = passes, fault
        if fault == "built for few tokens" and vocab_size > 100:
            raise KeyError("too many tokens")

    def forward(self, ids, num_passes=None):
        h = self.word(ids)
        for _ in range(num_passes or self.passes):
            q, k, v = self.qkv(F.layer_norm(h, h.shape[-1:])).chunk(3, -1)
            h = h + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        if self.fault == "NaN":
            h = h / 0
        if self.fault == "no gradient":
            return F.one_hot(ids, self.head.out_features).float()
        if self.fault == "out of memory":
            raise torch.OutOfMemoryError("tried to allocate 80 GiB. More")
        logits = self.head(h)
        return logits.mean(1) if self.fault == "shape" else logits
'''


@pytest.fixture
def mine(tmp_path) -> str:
    (file := tmp_path / "mine.py").write_text(SOURCE)
    return f"{file}:Mine"


@pytest.fixture
def one_task(monkeypatch):
    """A budget of seconds: two steps on pointers, with no controls."""
    monkeypatch.setitem(suite.BUDGETS, "trial", suite.Budget(("pointers",), makes_controls=False))


def results(card: Card) -> dict[str, TaskResult]:
    return {each.task: each for each in card.tasks}


def record_times() -> dict[Path, int]:
    return {record.path: record.path.stat().st_mtime_ns for record in records.records(source="embedded")}


def test_a_model_is_trained_with_its_controls_and_the_card_holds_what_was_measured(mine, monkeypatch):
    monkeypatch.setitem(suite.BUDGETS, "trial", suite.Budget(("pointers", "facts")))
    card = rtx.bench(mine, "trial", width=32)
    assert card == cards.read(cards.folder() / "Mine-width32-trial.json")
    assert card.counts == Counts(weights=4 * 32 * 32, applied=3 * 4 * 32 * 32, width=32, passes=3)
    for task in card.tasks:
        record = records.load(f"bench-{task.task}-trial/Mine-width32-seed0", "embedded")
        assert task.candidate.errors == [suite.error(task.task, record)[0]] and not task.problem
        assert [bits for bits, _ in task.rounded] == [32, 8, 4] and [n for n, _ in task.passes] == [1, 2, 3, 4, 5, 6]
        assert dict(task.passes)[3] == dict(task.rounded)[32]
        said = [(each.control, each.verdict) for each in task.verdicts]
        assert said == [("as large", "cannot say"), ("as deep", "cannot say")]
    page = (cards.folder() / "Mine-width32-trial.html").read_text()
    assert page.count("<img ") == 4 and "<script" not in page and "http" not in page
    before = record_times()
    assert len(before) == 6 and rtx.bench(mine, "trial", width=32).tasks == card.tasks and record_times() == before


def test_controls_have_the_model_s_parameters_or_its_depth():
    for layers, passes in ((1, 4), (2, 3)):
        sizes = dict(hidden_size=64, num_heads=4, intermediate_size=176, vocab_size=bench_module.TOKENS)
        loop = bench_module.counts(build_model("looped", num_layers=layers, num_passes=passes, **sizes))
        assert (loop.depth, loop.passes, loop.width) == (layers * passes, passes, 64)
        for settings in bench_module.controls(loop).values():
            role = settings.pop("role")
            found = bench_module.counts(build_model("looped", vocab_size=bench_module.TOKENS, **settings))
            assert found.passes == 1 and found.weights == found.applied
            expected = loop.weights if role == "as large" else loop.applied
            assert found.weights == pytest.approx(expected, rel=0.05), (layers, passes, role)
            assert settings["num_layers"] == layers * passes


@pytest.mark.parametrize("width", [1, 10, 50, 63, 66, 100, 386])
def test_controls_can_be_built_at_any_width(width):
    size = Counts(weights=12 * width**2, applied=36 * width**2, width=width, passes=3)
    for settings in bench_module.controls(size).values():
        registry.config_of("looped", **{name: value for name, value in settings.items() if name != "role"})


def test_a_text_of_one_s_own_is_read_by_characters(mine, one_task, tmp_path):
    (file := tmp_path / "book.txt").write_text("".join(np.random.RandomState(0).choice([*"abcde fgh"], 4000)))
    found = results(rtx.bench(mine, "trial", text=str(file)))
    assert found.keys() == {"pointers", "characters"} and found["characters"].unit == "nats"
    record = records.load("own-book-txt-steps2-evalevery2/Mine-seed0", "files")
    assert found["characters"].candidate.errors == [record["test"]["loss"]]


def test_the_ladder_has_stacks_with_the_parameters_of_one_and_of_two_layers():
    def weights(name: str) -> int:
        entry = suite.LADDER[name]
        return bench_module.counts(build_model(entry.base, vocab_size=bench_module.TOKENS, **entry.settings)).weights

    assert weights("4x1-w32") == pytest.approx(weights("1x1"), rel=0.03)
    assert weights("4x1-w44") == pytest.approx(weights("2x1"), rel=0.1)
    assert weights("1x4") == weights("1x1") and weights("2x2") == weights("2x1")


FAULTS = {"NaN": "finite", "no gradient": "no parameter can change", "shape": "logits (B, N, V)"}
FAULTS |= {"out of memory": "too little memory"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_model_is_one_sentence_a_task_and_the_rest_of_the_card_is_made(mine, one_task, fault):
    card = rtx.bench(mine, "trial", fault=fault)
    (task,) = card.tasks
    assert FAULTS[fault] in task.problem and "\n" not in task.problem and task.candidate is None
    assert [line.verdict for line in card.check].count("fail") > 0
    assert 'class="problem"' in cards.page(card) and record_times() == {}


def test_a_task_that_fails_leaves_the_others(mine, monkeypatch):
    monkeypatch.setitem(suite.BUDGETS, "trial", suite.Budget(("pointers", "facts"), makes_controls=False))
    found = results(rtx.bench(mine, "trial", fault="built for few tokens"))
    assert "too many tokens" in found["facts"].problem and found["facts"].candidate is None
    assert found["pointers"].candidate and not found["pointers"].problem


class FewTokens(nn.Module):
    """A module with a vocabulary of its own, and no loop."""

    def __init__(self):
        super().__init__()
        self.word, self.head = nn.Embedding(12, 16), nn.Linear(16, 12)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.word(ids))


def test_a_class_with_a_vocabulary_of_its_own_trains_where_that_is_enough(monkeypatch):
    monkeypatch.setitem(suite.BUDGETS, "trial", suite.Budget(("pointers", "facts"), makes_controls=False))
    card = rtx.bench(FewTokens, "trial")
    found = results(card)
    assert "reads 12 tokens" in found["facts"].problem and found["pointers"].candidate
    assert card.counts.passes == 1 and "no loop in depth" in cards.page(card) and not found["pointers"].passes


def test_an_edited_model_is_trained_again(mine, one_task):
    rtx.bench(mine, "trial")
    before, file = record_times(), Path(mine.rpartition(":")[0])
    file.write_text(SOURCE.replace("h = h + self.out", "h = h - self.out"))
    rtx.bench(mine, "trial")
    assert record_times() != before


def test_the_rate_is_picked_by_validation_and_the_card_warns_of_rates_and_seeds(mine, monkeypatch):
    rates = (1e-3, 5e-3)
    caution = {"pointers": "Mind the seed."}
    budget = suite.Budget(("pointers",), rates=rates, makes_controls=False, cautions=caution)
    monkeypatch.setitem(suite.BUDGETS, "trial", budget)
    (task,) = rtx.bench(mine, "trial").tasks
    runs = {rate: records.load(f"bench-pointers-trial-learningrate{rate}/Mine-seed0", "embedded") for rate in rates}
    best = min(rates, key=lambda rate: runs[rate]["selected"]["validation_loss"])
    assert task.candidate.rate == best and task.candidate.errors == [suite.error("pointers", runs[best])[0]]
    assert any("0.001 to 0.005" in sentence for sentence in task.places) and caution["pointers"] in task.places


def begin(environ: dict, *arguments: object) -> None:
    os.environ.update(environ)
    bench_module._begin(*arguments)


def test_several_jobs_make_the_records_of_one(mine, one_task, monkeypatch, capsys):
    """In processes that are copied from one that has imported torch."""
    monkeypatch.setattr(bench_module, "get_context", lambda method: SERVER)
    monkeypatch.setattr(bench_module, "_begin", partial(begin, dict(os.environ)))
    monkeypatch.setitem(suite.BUDGETS, "trial", suite.Budget(("pointers",), seeds=(0, 1), makes_controls=False))
    together = rtx.bench(mine, "trial", jobs=2)
    assert len(record_times()) == 2 and "0 s left" in capsys.readouterr().out
    for path in record_times():
        path.unlink()
    assert rtx.bench(mine, "trial").tasks[0].candidate == together.tasks[0].candidate
    with refused("jobs=1"):
        rtx.bench(FewTokens, "trial", jobs=2)


def test_the_command_takes_registered_models_and_compares_cards(one_task, monkeypatch, capsys):
    def said(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["rtx", "bench", *words])
        main()
        return capsys.readouterr().out.splitlines()[-1]

    sizes = ["hidden_size=16", "num_heads=2", "intermediate_size=32", "num_layers=1"]
    pages = [said("looped", *sizes, f"num_passes={n}", "--budget", "trial", "--name", f"loop-{n}") for n in (2, 3)]
    both = Path(said("--compare", *(page.replace(".html", ".json") for page in pages))).read_text()
    assert "loop-2" in both and "loop-3" in both and "<h1>loop-2 and loop-3</h1>" in both
    other = cards.read(pages[0].replace(".html", ".json")).model_copy(update={"budget": "quick"})
    cards.write(other, cards.folder() / "other")
    with refused("budgets", "quick"):
        pair.compare(pages[1].replace(".html", ".json"), str(cards.folder() / "other.json"))


def test_the_model_on_the_page_passes_the_check(tmp_path):
    cells = json.loads((REPOSITORY / "notebooks" / "bench.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    (file := tmp_path / "my_loop.py").write_text(text.partition("```python\n")[2].partition("```")[0])
    report = rtx.check(definition(f"{file}:MyLoop"), passes=4)
    assert report.failed == [] and {line.check: line.verdict for line in report}["loop"] == "pass"


def test_bad_input_is_one_sentence(mine):
    with refused("budget", "long"):
        rtx.bench(mine, "long")
    with refused("jobs"):
        rtx.bench(mine, "trial", jobs=0)
    with refused("seeds"):
        rtx.bench(mine, "trial", seeds=-1)
    with refused("give its class"):
        rtx.bench(FewTokens())
    with refused("expected a class"):
        rtx.bench(3)
    with refused("Unknown model"):
        rtx.bench("loooped")
    with refused("mine.py:MyLoop"):
        rtx.bench(mine.rpartition(":")[0])


def test_a_model_that_the_study_declares_is_one_of_those_that_are_compared(mine, one_task, monkeypatch):
    card = rtx.bench(mine, "trial", seeds=2)
    monkeypatch.setattr(records, "records", partial(records.records, source="embedded"))
    assert "Mine" not in recorded.recorded_points("pointers", "trial")
    monkeypatch.setattr(study, "RECURRENCES", {"Mine": mine})
    found = recorded.recorded_points("pointers", "trial")["Mine"]
    assert (found.role, found.passes, found.seeds) == (cards.RECURRENCE, 3, [0, 1])
    assert (found.errors, found.weights) == (card.tasks[0].candidate.errors, card.counts.weights)


def test_rounding_leaves_embeddings_and_vectors():
    torch.manual_seed(0)
    model = FewTokens()
    coarse = bench_module.rounded(model, 4)
    assert torch.equal(coarse.word.weight, model.word.weight) and torch.equal(coarse.head.bias, model.head.bias)
    rows = [len(np.unique(row)) for row in coarse.head.weight.detach().numpy()]
    assert max(rows) <= 15 and not torch.equal(coarse.head.weight, model.head.weight)
    step = model.head.weight.abs().amax(1, keepdim=True) / 7
    assert bool(((coarse.head.weight - model.head.weight).abs() <= step / 2 * 1.001).all())
