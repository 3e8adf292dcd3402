"""What is measured of language models: sampling, latency by length, stories, passes and early exit."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import CPU, refused
from reference import small_decoder

from rtx_core import build_model
from rtx_core.data import stories as data_of_stories
from rtx_core.data import task as task_of
from rtx_core.data.config import LanguageData
from rtx_core.evaluate import early_exit, generation, stories
from rtx_core.experiments.run import measure_run
from rtx_core.models.packed import Packed

GPT = {"hidden_size": 32, "num_heads": 2, "block_size": 16, "vocab_size": 65}
LLAMA = {"hidden_size": 32, "num_heads": 2, "num_layers": 4}


@pytest.fixture
def task(monkeypatch):
    """A few hundred small stories."""
    random = np.random.RandomState(0)
    words = "the cat sat on a mat and saw one big red dog who ran far to play with a ball".split()  # noqa: SIM905
    made = [" ".join(random.choice(words, random.randint(30, 60))) + "." for _ in range(220)]
    monkeypatch.setattr(data_of_stories, "load", lambda source: {"train": made[:200], "validation": made[200:]})
    return task_of(LanguageData(corpus="tinystories", source="embedded", block_size=64, eval_batches=2), 2)


@pytest.mark.parametrize("name", ["gpt", "kausik"])
def test_a_sample_is_what_its_seed_says(name):
    model, ids = build_model(name, seed=0, **GPT), torch.tensor([1, 5])
    drawn, again, other = (list(generation.stream(model, ids, 40, seed=seed)) for seed in (0, 0, 1))
    assert drawn == again != other and len(drawn) == 40  # beyond the block size too
    assert all(0 <= token < 65 for token in drawn)
    assert len(list(generation.stream(build_model(name, seed=0, **GPT | {"block_size": 1}), ids[:1], 5))) == 5


def test_a_cold_sample_is_the_most_probable_text():
    model, ids = build_model("gpt", seed=0, **GPT), [1, 5, 9]
    drawn = list(generation.stream(model, torch.tensor(ids), 8, temperature=1e-6))
    with torch.inference_mode():
        for token in drawn:
            assert token == model.eval()(torch.tensor([ids]))[0, -1].argmax().item()
            ids.append(token)


def test_drawing_follows_the_distribution():
    logits = torch.tensor([0.5, 2.0, -1.0]).expand(20_000, 3)
    uniform = torch.from_numpy(np.random.RandomState(0).random_sample(20_000))
    share = torch.bincount(stories.draw(logits, uniform, 0.7), minlength=3) / 20_000
    torch.testing.assert_close(share, torch.softmax(logits[0] / 0.7, -1), atol=0.01, rtol=0)
    assert stories.draw(torch.zeros(1, 4), torch.tensor([1.0 - 1e-17], dtype=torch.float64), 1.0) == 3


def test_writing_depends_on_no_other_story_and_a_cold_one_is_the_most_probable(task, monkeypatch):
    model = build_model("control", seed=0, vocab_size=task.vocab_size, **LLAMA).eval()
    beginnings = ["the cat sat on", "a big red dog who"]
    both = stories.write(model, task, beginnings, CPU, 12)
    assert stories.write(model, task, beginnings[:1], CPU, 12) == both[:1] and both[0] != both[1]
    monkeypatch.setattr(stories, "TEMPERATURE", 1e-6)
    for text, found in zip(beginnings, stories.write(model, task, beginnings, CPU, 6)):
        ids = [data_of_stories.STORY, *task.encode(text)]
        for _ in range(6):
            ids.append(model(Packed.from_sequences([ids]))[-1].argmax().item())
        assert found == task.decode(ids[-6:]).strip()


def test_writing_stops_where_the_story_ends(task):
    logits = torch.zeros(2, task.vocab_size)
    logits[:, data_of_stories.STORY] = 100.0
    model = SimpleNamespace(eval=lambda: None, start=lambda n: None, advance=lambda ids, state: logits)
    assert stories.write(model, task, ["the cat", "a dog ran"], CPU, 9) == ["", ""]


def test_metrics_of_stories():
    assert stories.ngrams("Tim's Dog, ran!", 1) == ["tim's", "dog", "ran"]
    assert stories.different(["a", "b", "a", "b"]) == 0.5 and stories.different([]) is None
    assert stories.repetition("a b c d e a b c d") == pytest.approx(1 - 5 / 6)
    assert stories.repetition("a b") == 0
    assert stories.prompt_words_used("The dog and a ball", "Her ball.") == 0.5
    assert stories.prompt_words_used("once upon a time", "x") is None
    found = stories.metrics([{"prompt": "a dog", "text": "dog dog"}, {"prompt": "a cat", "text": "the end"}])
    assert (found["stories"], found["words"], found["prompt_words_used"]) == (2, 2.0, 0.5)


@pytest.mark.parametrize(("name", "passes"), [("frailt", 8), ("control", 1)])
def test_a_record_of_a_story_model_is_whole(name, passes, task, monkeypatch):
    monkeypatch.setattr(stories, "LENGTHS", (8,))
    monkeypatch.setattr(stories, "LONGEST", 5)
    model = build_model(name, seed=0, vocab_size=task.vocab_size, **LLAMA)
    found = measure_run(model, task, SimpleNamespace(data=LanguageData(corpus="tinystories"), train=None), CPU)
    extra = found["extra"]
    assert len(found["samples"]) == stories.PROMPTS and found["latency"][0]["length"] == 8
    assert {len(x) for x in (*extra["passes"].values(), extra["change"], extra["flops_per_token"])} == {passes}
    assert extra["flops_per_token"][-1] == 2 * model.macs_per_token(passes)
    assert sum(extra["components"].values()) == sum(p.numel() for p in model.parameters())
    assert bool(extra["exits"]) == (name == "frailt")


@pytest.mark.parametrize("name", ["frailt", "three-part", "relaxed", "control"])
def test_readings_are_the_losses_of_as_many_passes(name, task, monkeypatch):
    monkeypatch.setattr(early_exit, "CHUNK", 50)
    model = build_model(name, seed=0, vocab_size=task.vocab_size, **LLAMA)
    batches = task.evaluation["validation"][:1]
    found = early_exit.readings(model.train(), batches, 3, CPU)
    assert model.training
    (inputs, targets), log_p = batches[0], []
    with torch.inference_mode():
        for passes in (1, 2, 3):
            log_p.append(model.eval()(inputs, num_passes=passes).log_softmax(-1))
            loss = -log_p[-1].gather(1, targets[:, None]).squeeze(1)
            torch.testing.assert_close(found.losses[passes - 1], loss, atol=1e-5, rtol=1e-5)
        kl = F.kl_div(log_p[2], log_p[1], log_target=True, reduction="none").sum(-1)
    torch.testing.assert_close(found.divergence[2], kl, atol=1e-6, rtol=1e-3)
    assert found.divergence[0].isinf().all() and math.isnan(found.change[0])
    before, after = model.states(inputs, 2)
    moved = ((after - before).norm(dim=1) / after.norm(dim=1)).mean().item()
    assert found.change[1].item() == pytest.approx(moved, rel=1e-4)


def test_tokens_stop_where_their_prediction_settles():
    losses = torch.tensor([3.0, 2.0, 1.0])[:, None].expand(3, 3)
    divergence = torch.tensor([[math.inf] * 3, [0.1, 1.0, 5.0], [0.1, 0.2, 5.0]])
    made = early_exit.Readings(losses, divergence, torch.zeros(3))
    assert early_exit.exit_at(made, 3, 0.5) == pytest.approx(((2 + 1 + 1) / 3, (2 + 3 + 3) / 3))
    assert early_exit.exit_at(made, 3, 0.0) == (1.0, 3.0) and early_exit.exit_at(made, 2, 0.0) == (2.0, 2.0)


def test_the_threshold_is_chosen_on_training_stories_alone():
    random = torch.Generator().manual_seed(0)
    losses = torch.rand(4, 300, generator=random).sort(0, descending=True).values
    divergence = torch.rand(4, 300, generator=random)
    divergence[0] = torch.inf
    training = early_exit.Readings(losses, divergence, torch.zeros(4))
    other = early_exit.Readings(losses + 1, divergence.flip(1), torch.zeros(4))
    rows, again = early_exit.frontier(training, training, 4), early_exit.frontier(training, other, 4)
    assert [row["threshold"] for row in rows] == [row["threshold"] for row in again]
    assert all(row["training_loss"] <= losses[3].double().mean() + row["allowed"] for row in rows)
    passes = [row["training_passes"] for row in rows]
    assert passes == sorted(passes, reverse=True)


@pytest.mark.parametrize("options", [{"cache": "last"}, {"stop": "confident"}, {"cache": "last", "stop": "agree"}])
def test_a_looped_decoder_writes_with_another_cache_and_with_fewer_passes(options):
    model, ids = small_decoder("looped", num_passes=3), torch.arange(4)
    drawn = list(generation.stream(model, ids, 12, **options))
    assert len(drawn) == 12 and drawn == list(generation.stream(model, ids, 12, **options))
    with refused("GPT", "looped decoder"):
        list(generation.stream(build_model("gpt", seed=0, **GPT), ids, 1, **options))
