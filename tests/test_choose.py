"""Choosing between a loop and stacks: sizes of what is compared, what is said of scores, and a whole small run."""

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import refused

import rtx_core as rtx
from rtx_core import records
from rtx_core.__main__ import main
from rtx_core.benchmark import choose as chooser
from rtx_core.benchmark.card import Point, Verdict
from rtx_core.benchmark.choose import DEEP, LARGE, LONGER, LOOP, ONCE
from rtx_core.train.config import TrainConfig


class Copy(rtx.data.SequenceTask):
    """The token before."""

    vocab_size = 5

    def draw(self, random, n):
        ids = random.randint(5, size=(n, 6))
        return ids, np.hstack((np.full((n, 1), -100), ids[:, :-1]))


def scored(name, errors, rate=2e-3):
    errors = [errors] if isinstance(errors, float) else errors
    sizes = {"weights": 100, "depth": 2, "passes": 1}
    return Point(name=name, role=name, errors=errors, seeds=list(range(len(errors))), answers=1000, rate=rate, **sizes)


def judged(verdict):
    return Verdict(control="", verdict=verdict, says="")


SHORT = {"steps": 3, "eval_every": 3, "batch_size": 4, "test_texts": 20, "eval_texts": 20, "warmup_steps": 1}
SMALL = SHORT | {"width": 16}


@pytest.mark.parametrize(("layers", "passes", "width"), [(2, 2, 64), (1, 4, 64), (2, 3, 128), (3, 4, 32)])
def test_the_narrow_stack_is_as_deep_and_as_large_and_the_deep_one_as_deep_and_as_wide(layers, passes, width):
    models = chooser.models_of(layers, passes, width)
    size = {role: chooser.size_of(each) for role, each in models.items()}
    assert size[ONCE].weights == size[LOOP].weights and size[LOOP].applied == passes * size[ONCE].applied
    assert size[LARGE].passes == size[DEEP].passes == 1
    assert abs(size[LARGE].weights / size[LOOP].weights - 1) < 0.1
    assert abs(size[DEEP].applied / size[LOOP].applied - 1) < 0.05 and size[DEEP].width == size[LOOP].width == width
    names = [each["name"] for each in models.values()]
    assert len(set(names)) == 4 and all(name.startswith(f"{layers * passes}x1-") for name in names[2:])


@pytest.mark.parametrize(
    ("once", "loop", "deep", "share", "needs"),
    [
        (0.4, 0.1, 0.1, 1, "steps"),
        (0.4, 0.39, 0.1, 1 / 30, "parameters"),
        (0.4, 0.5, 0.1, -1 / 3, "parameters"),
        (0.1, 0.05, 0.1, None, ""),
    ],
)
def test_the_share_of_the_gain_tells_what_a_task_needs(once, loop, deep, share, needs):
    points = [scored("a", [each] * 3) for each in (once, loop, deep)]
    assert chooser.share_of_gain(*points) == (share if share is None else pytest.approx(share))
    said = chooser.need(*points, "error", judged("better"))
    assert [word for word in ("need steps", "need parameters") if word in said] == [f"need {needs}"] * bool(needs)


def test_nothing_is_said_of_steps_where_layers_do_not_help_significantly():
    points = [scored("a", [0.40, 0.41, 0.39]), scored("b", [0.2, 0.2, 0.2]), scored("c", [0.1, 0.7, 0.3])]
    assert "significantly" in chooser.need(*points, "error", judged("cannot say"))


def test_only_a_better_loop_is_advised():
    kinds = ("better", "worse", "equal", "cannot say")
    says = {kind: chooser.advice({LOOP: judged("equal"), LONGER: judged(kind)}, 2.1) for kind in kinds}
    assert "Take the loop if" in says.pop("better") and all("Take the narrow stack" in each for each in says.values())


def test_a_loop_that_is_better_after_equal_steps_alone_is_not_advised():
    for kind in ("worse", "equal", "cannot say"):
        assert "stack, trained for longer" in chooser.advice({LOOP: judged("better"), LONGER: judged(kind)}, 2.1)


def test_a_narrow_stack_that_is_better_after_equal_computation_alone_is_advised():
    points = {role: scored("a", [0.2] * 3) for role in (LOOP, LARGE, DEEP, LONGER)}
    kinds = {LOOP: judged("cannot say"), LONGER: judged("worse"), DEEP: judged("cannot say")}
    own, beside_once = points, points | {ONCE: scored("b", [0.2] * 3)}
    for each in (own, beside_once):
        says = chooser.sentences(each, kinds, "error", 2.1, [2e-3])
        assert [line for line in says if line.startswith("Take the narrow stack, trained for longer")]


def test_equal_computation_is_in_the_unit_of_the_training():
    assert chooser.trained_longer(TrainConfig(steps=100, epochs=0, eval_every=10), 2.13) == {"steps": 213}
    assert chooser.trained_longer(TrainConfig(steps=0, epochs=3), 1.8) == {"epochs": 5}


def test_a_rate_at_an_end_of_those_tried_is_told():
    points = [scored("a", 0.1, 1e-3), scored("b", 0.1, 2e-3)]
    assert chooser.at_an_end(points, (1e-3, 2e-3, 4e-3)) == [
        "Of a the best rate is at an end of those tried, 0.001 to 0.004: try rates beyond it."
    ]
    assert chooser.at_an_end(points[:1], (1e-3,)) == []


def test_a_task_of_ones_own_is_run_once_and_judged(home, monkeypatch):
    choice = rtx.choose(Copy(), rates=[1e-3, 2e-3], **SMALL)
    assert [each.role for each in choice.points] == [ONCE, LOOP, LARGE, DEEP, LONGER] and choice.unit == "error"
    every = records.records()
    made = [record for record in every if record["config"]["train"]["steps"] == SMALL["steps"]]
    longer = [record for record in every if record["config"]["train"]["steps"] > SMALL["steps"]]
    assert len(made) == 4 * 2 * 3 and all(len(each.errors) == 3 for each in choice.points)
    assert {record["model"] for record in longer} == {choice.points[2].name} and len(longer) == 3
    assert set(choice.verdicts) == {LOOP, LONGER, DEEP} and len(choice.frame) == 5
    picked = {each.name: each.rate for each in choice.points}
    losses = [(r["model"], r["config"]["train"]["learning_rate"], r["selected"]["validation_loss"]) for r in made]
    means = pd.DataFrame(losses, columns=["model", "rate", "loss"]).groupby(["model", "rate"])["loss"].mean()
    assert picked == {name: means[name].idxmin() for name in picked}
    monkeypatch.setattr(chooser.runner, "train_and_record", lambda *_: pytest.fail("trained again"))
    assert str(rtx.choose(Copy(), rates=[1e-3, 2e-3], **SMALL)) == str(choice)


class OwnLoop(torch.nn.Module):
    """One layer, three times."""

    def __init__(self, vocab_size, width=16):
        super().__init__()
        self.word, self.head = torch.nn.Embedding(vocab_size, width), torch.nn.Linear(width, vocab_size)
        self.layer = torch.nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.0, batch_first=True)

    def forward(self, ids):
        state, causal = self.word(ids), torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for _ in range(3):
            state = self.layer(state, src_mask=causal, is_causal=True)
        return self.head(state)


def pairs(vocab_size):
    return torch.nn.Embedding(vocab_size, vocab_size)


def test_a_loop_of_ones_own_is_compared_with_two_stacks_of_its_depth(home):
    choice = rtx.choose(Copy(), model=OwnLoop, rates=[1e-3], **SHORT)
    roles = [each.role for each in choice.points]
    assert roles == [LOOP, LARGE, DEEP, LONGER] and choice.points[0].name == "OwnLoop" and len(choice.frame) == 4
    assert all(each.name.startswith("3x1-") for each in choice.points[1:])
    assert set(choice.verdicts) == {LOOP, LONGER, DEEP}
    assert "deep stack" in choice.says[0] and all("narrow stack" in each for each in choice.says[1:3])
    with refused("applies every weight once"):
        rtx.choose(Copy(), model=pairs, rates=[1e-3], **SHORT)
    with refused("leave them out"):
        rtx.choose(Copy(), passes=3, model=OwnLoop)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"passes": 1}, "passes is 1; expected a whole number from 2"),
        ({"seeds": 0}, "seeds is 0"),
        ({"width": 20}, "width is 20; expected a multiple of 8"),
        ({"hidden_size": 64}, "hidden_size is set by choose"),
        ({"learning_rate": 1e-3}, "expected rates"),
        ({"stpes": 3}, "stpes"),
        ({"rates": 0.001}, "rates is 0.001; expected a list"),
        ({"rates": [1e-3, "2e-3"]}, "expected a list of learning rates"),
        ({"replace": 1}, "replace is 1"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments, said, home):
    with refused(said):
        rtx.choose(Copy(), **arguments)


def test_a_text_is_tried_at_higher_rates_than_a_task(home):
    (home / "mine.txt").write_text("To be, or not to be. " * 200)
    rest = (2, 2, 64, None, (), 3, 1, False, {})
    assert chooser.check_arguments(rtx.data.from_text(str(home / "mine.txt")), *rest) == chooser.TEXT_RATES
    assert chooser.check_arguments(Copy(), *rest) == chooser.RATES
    assert min(chooser.TEXT_RATES) > min(chooser.RATES)


def test_classifiers_are_refused_before_anything_is_trained(home):
    with refused("labeled texts"):
        rtx.choose("quickstart")
    with refused("rtx.data.from_text('mine.txt')"):
        rtx.choose("mine.txt")


def test_recorded_runs_are_made_again_when_that_is_asked(home, monkeypatch):
    small = SMALL | {"rates": [1e-3], "seeds": 1}
    choice, made = rtx.choose(Copy(), **small), []
    assert len(choice.says) == 3  # no advice on one seed
    real = chooser.runner.train_and_record
    monkeypatch.setattr(chooser.runner, "train_and_record", lambda *a: made.append(a) or real(*a))
    rtx.choose(Copy(), **small, replace=True)
    assert len(made) == 5


def test_a_switch_that_is_written_as_a_setting_is_told(home, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["rtx", "choose", "khop", "seeds=2"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert "--seeds" in f"{stop.value}{capsys.readouterr().err}"
