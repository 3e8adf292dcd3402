"""Stories as data: exact batches, borders, the tokenizer, sources; and what is measured of written stories and of passes."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from rtx_core.corpora import stories
from rtx_core.corpora.stories import STORY, Stories
from rtx_core.corpora.story_stream import data as stream_data
from rtx_core.corpora.tales import tales
from rtx_core.errors import RtxError
from rtx_core.evaluation import exits, story_metrics
from rtx_core.evaluation.passes import Readings, readings
from rtx_core.evaluation.stories import draw, prompts, write
from rtx_core.models import build_model
from rtx_core.training.recipes import Recipe

RECIPE = Recipe(batch_size=4, block_size=32, dropout=0.0, eval_batches=3)
CPU = torch.device("cpu")
SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 24}


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(stories, "EMBEDDED", {"train": 30, "validation": 12})


@pytest.fixture
def data(few) -> Stories:
    return stories.data("embedded", RECIPE)


# -- text to tokens ---------------------------------------------------------------------------------------------------


def test_tales_are_the_same_in_every_process_and_differ_among_themselves():
    first = tales(200)
    assert first == tales(200) and first[:5] == tales(5) and len(set(first)) > 190 and tales(3, seed=1) != tales(3)


def test_tokenizer_is_the_same_every_time_and_loses_nothing():
    texts = tales(100)
    tokenizer = stories.train_tokenizer(texts)
    assert tokenizer.to_str() == stories.train_tokenizer(texts).to_str()
    for text in (texts[0], "Zoë said: “42 + 7”\n\n\t😀 ", "\x00\x7f", "<story> of the <story>", " a  b "):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert len(tokenizer.encode("2024").ids) == 4  # digits stand alone


def test_a_sign_written_in_a_text_does_not_begin_a_story(data):
    assert STORY not in data.encode("a <story> b")
    assert STORY not in stories.data("embedded", RECIPE).encode("a <story> b")  # from the cache too


def test_every_story_begins_with_its_sign_and_reads_back(data):
    part, texts = data.parts["validation"], stories.texts("embedded")["validation"]
    assert (part.ids == STORY).sum() == len(texts) == 12 and part.bytes == sum(len(t.encode()) for t in texts)
    for i, text in enumerate(texts):
        ids = part.ids[part.starts[i] : part.starts[i + 1]]
        assert ids[0] == STORY and data.decode(ids[1:]) == text
    assert data.facts["n_test"] == len(part.ids) - 1 and data.facts["validation_stories"] == 12 and data.facts["test_is_validation"]


def test_cache_is_used_and_a_damaged_one_is_made_anew(data, home, monkeypatch):
    (cache,) = (home / "_build" / "cache").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(stories, "train_tokenizer", None)  # would fail if it were called
        assert stories.data("embedded", RECIPE).facts == data.facts
    cache.write_bytes(cache.read_bytes()[:500])
    assert stories.data("embedded", RECIPE).facts == data.facts


# -- batches ----------------------------------------------------------------------------------------------------------


def test_step_has_exactly_its_tokens_and_each_is_followed_by_its_target(data):
    for step in range(3):
        ((batch, targets),) = data.step(0, step)
        assert len(batch.ids) == len(targets) == 128 and torch.equal(batch.ids[1:], targets[:-1])


def test_an_epoch_reads_every_story_once_in_an_order_of_its_own(data):
    part, size = data.parts["train"], 128
    steps = (len(part.ids) - 1) // size
    epochs = [torch.cat([next(iter(data.step(0, k)))[0].ids for k in range(e * steps, (e + 1) * steps)]) for e in range(2)]
    for ids in epochs:
        assert (ids.bincount(minlength=data.vocab_size) <= torch.from_numpy(part.ids.astype(int)).bincount(minlength=data.vocab_size)).all()
        assert len(ids) > len(part.ids) - 1 - size
    assert not torch.equal(*epochs) and not torch.equal(next(iter(data.step(1, 0)))[0].ids, epochs[0][:size])
    again = stories.data("embedded", RECIPE)
    assert torch.equal(next(iter(again.step(0, steps + 1)))[0].ids, epochs[1][size : 2 * size])  # a function of (seed, step)


def test_sequences_end_with_their_story_or_at_the_block(data):
    for batch, _ in data.test():
        lengths, begins = torch.diff(batch.offsets), set(batch.starts.tolist())
        assert lengths.max() <= 32 and set((batch.ids == STORY).nonzero()[:, 0].tolist()) <= begins
        for start in sorted(begins - {0}):  # a cut inside a story is a whole block after the last one
            assert batch.ids[start] == STORY or start - 32 in begins


def test_stream_cuts_every_block_tokens(few):
    ((batch, _),) = stream_data("embedded", RECIPE).step(0, 0)
    assert torch.diff(batch.offsets).tolist() == [32] * 4 and stream_data("embedded", RECIPE).facts["across_stories"]


def test_test_part_is_every_validation_token_once(data):
    ids = torch.cat([targets for _, targets in data.test()])
    assert np.array_equal(ids.numpy(), data.parts["validation"].ids[1:])


def test_micro_batches_are_the_same_step(few, data):
    pieces = list(stories.data("embedded", Recipe(batch_size=4, block_size=32, dropout=0.0, micro_batches=2)).step(0, 1))
    assert len(pieces) == 2
    assert torch.equal(torch.cat([batch.ids for batch, _ in pieces]), next(iter(data.step(0, 1)))[0].ids)


def test_evaluation_is_the_same_for_every_run(data):
    first, second = data.evaluation(), stories.data("embedded", RECIPE).evaluation()
    assert list(first) == ["validation", "training_sample"] and len(first["validation"]) == 3
    assert all(torch.equal(a[1], b[1]) for name in first for a, b in zip(first[name], second[name]))


# -- refusals and sources ---------------------------------------------------------------------------------------------


def test_dropout_and_too_large_batches_are_refused(few):
    with pytest.raises(RtxError, match="dropout is 0.1; the story models have none"):
        stories.data("embedded", Recipe(dropout=0.1))
    with pytest.raises(RtxError, match="A step reads batch_size · block_size, 65,536 tokens"):
        stories.data("embedded", Recipe(batch_size=256, dropout=0.0))


def test_mirror_is_checked(home, monkeypatch):
    folder = home / "mirror" / "tinystories"
    folder.mkdir(parents=True)
    monkeypatch.setenv("RTX_DATA", str(home / "mirror"))
    texts = {"train": [" One.\n", "Two.", "  "], "validation": ["Three."]}
    for part, rows in texts.items():
        pd.DataFrame({"text": rows}).to_parquet(folder / f"{part}.parquet")
    with pytest.raises(RtxError, match="train.parquet has content hash .* expected d8ffcf2f94aa"):
        stories.texts("mirror")
    monkeypatch.setattr(stories, "MIRROR_SHA256", {"train": stories.sha256_of(["One.", "Two."]), "validation": stories.sha256_of(["Three."])})
    assert stories.texts("real") == {"train": ["One.", "Two."], "validation": ["Three."]}
    pd.DataFrame({"story": ["x"]}).to_parquet(folder / "train.parquet")
    with pytest.raises(RtxError, match=r"columns \['story'\] and lacks text"):
        stories.texts("mirror")


def test_real_mirror_holds_the_stories(real_mirror):
    parts = stories.texts("mirror")
    assert {name: len(part) for name, part in parts.items()} == {"train": 10_258, "validation": 6_677}


# -- written stories --------------------------------------------------------------------------------------------------


def test_prompts_are_beginnings_of_validation_stories(data):
    made, texts = prompts(data, 4), stories.texts("embedded")["validation"]
    assert len(set(made)) == 4 and all(len(p.split(" ")) == 25 and any(t.startswith(p) for t in texts) for p in made)


def test_drawing_follows_the_distribution():
    logits = torch.tensor([[0.0, math.log(3.0), -math.inf]]).expand(4, -1)
    assert draw(logits, torch.tensor([0.0, 0.24, 0.26, 0.999999]).double(), 1.0).tolist() == [0, 0, 1, 1]
    assert draw(logits, torch.tensor([0.2, 0.2, 0.2, 0.2]).double(), 0.1).tolist() == [1, 1, 1, 1]  # colder


def test_writing_does_not_depend_on_the_other_stories(data):
    model = build_model("control", seed=0, vocab_size=data.vocab_size, **SMALL)
    beginnings = prompts(data, 3)
    texts = write(model, data, beginnings, CPU, longest=6)
    assert texts == write(model, data, beginnings, CPU, longest=6) and write(model, data, beginnings[:1], CPU, longest=6) == texts[:1]


class Ends(torch.nn.Module):
    """Writes the letter a until the text has so many tokens, then ends it."""

    def __init__(self, letter: int, vocabulary: int, after: int):
        super().__init__()
        self.letter, self.vocabulary, self.after = letter, vocabulary, after

    def start(self, batch):
        return []

    def advance(self, ids, state):
        state.append(ids)
        logits = torch.full((len(ids), self.vocabulary), -100.0)
        logits[:, self.letter if len(state) < self.after else STORY] = 100.0
        return logits


def test_writing_stops_where_the_story_ends(data):
    (letter,) = data.encode("a")
    lengths = [len(data.encode(text)) + 1 for text in ("One", "The brave Oskar was")]
    model = Ends(letter, data.vocab_size, lengths[1] + 2)
    texts = write(model, data, ["One", "The brave Oskar was"], CPU, longest=50)
    assert texts == ["a" * (lengths[1] + 2 - lengths[0]), "aa"]
    assert write(model, data, ["One"], CPU, longest=1) == ["a"]


def test_measures_of_stories():
    m = story_metrics
    assert m.distinct(["a b a b"], 1) == 0.5 and m.distinct(["a b", "a b"], 2) == 0.5 and m.distinct(["a"], 2) is None
    assert m.repetition("a b c d a b c d") == pytest.approx(1 / 5) and m.repetition("a b") == 0 and m.repetition("") == 0
    assert m.prompt_words_used("Once there was a red Dragon.", "The dragon slept.") == 0.5 and m.prompt_words_used("it was", "x") is None
    made = m.measures([{"prompt": "the dog ran", "text": "a dog"}, {"prompt": "it", "text": ""}])
    assert made["stories"] == 2 and made["words"] == 1 and made["prompt_words_used"] == 0.5
    with pytest.raises(RtxError, match="no samples"):
        m.measures([])


# -- passes and exits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frailt", "three-part", "relaxed"])
def test_readings_are_the_losses_of_as_many_passes(name, data, monkeypatch):
    monkeypatch.setattr("rtx_core.evaluation.passes.CHUNK", 50)
    model, batches = build_model(name, seed=0, vocab_size=data.vocab_size, **SMALL), data.test()[:2]
    made = readings(model, batches, 5, CPU)
    assert model.training and made.losses.shape == (5, sum(len(t) for _, t in batches))
    model.eval()
    with torch.no_grad():
        for r in (1, 3, 5):
            each = [F.cross_entropy(model(batch, passes=r), targets, reduction="none") for batch, targets in batches]
            torch.testing.assert_close(made.losses[r - 1], torch.cat(each))
        p = [torch.cat([F.log_softmax(model(batch, passes=r), -1) for batch, _ in batches]) for r in (2, 3)]
        kl = F.kl_div(p[1], p[0], log_target=True, reduction="none").sum(-1)  # KL(p₂ ‖ p₃)
        torch.testing.assert_close(made.divergence[2], kl, rtol=1e-3, atol=1e-7)
        a, b = (torch.cat([list(model.states(batch, 3))[r] for batch, _ in batches]) for r in (1, 2))
        assert made.change[2].item() == pytest.approx(((b - a).norm(dim=1) / b.norm(dim=1)).mean().item(), rel=1e-5)
    assert made.divergence[0].isinf().all() and made.change[0].isnan()


def test_tokens_stop_where_their_prediction_settles():
    inf = math.inf
    divergence = torch.tensor([[inf, inf, inf], [0.5, 0.01, 0.5], [0.05, 0.5, 0.4], [0.01, 0.01, 0.3]])
    assert exits.stops(divergence, 0.1).tolist() == [2, 1, 3] and exits.stops(divergence, 0.0).tolist() == [3, 3, 3]
    assert exits.stops(divergence, 1.0).tolist() == [1, 1, 1]
    losses = torch.arange(12.0).view(4, 3)
    assert exits.at(Readings(losses, divergence, torch.zeros(4)), 4, 0.1) == pytest.approx(((6 + 4 + 11) / 3, (3 + 2 + 4) / 3))


def test_threshold_is_chosen_on_training_stories_alone():
    random = torch.Generator().manual_seed(0)
    losses = torch.rand(4, 500, generator=random) + torch.tensor([3.0, 2.0, 1.5, 1.4])[:, None]
    divergence = torch.rand(4, 500, generator=random) * torch.tensor([math.inf, 1.0, 0.5, 0.1])[:, None]
    training = Readings(losses, divergence, torch.zeros(4))
    rows = exits.frontier(training, Readings(losses + 9, divergence, torch.zeros(4)), 4)
    full = losses[3].double().mean().item()
    passes = [row["training_passes"] for row in rows]
    assert all(row["training_loss"] <= full + row["allowed"] + 1e-9 for row in rows) and passes == sorted(passes, reverse=True) and passes[-1] < passes[0] <= 4
    assert all(row["validation_loss"] == pytest.approx(row["training_loss"] + 9, rel=1e-5) for row in rows)
    other = exits.frontier(training, Readings(losses, divergence * 0 + 1, torch.zeros(4)), 4)
    assert [row["threshold"] for row in other] == [row["threshold"] for row in rows]
