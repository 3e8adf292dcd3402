"""What is measured of classifiers: attention, number formats, rounding, bag of words, latency; grades of stories."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from conftest import CPU, NO_AUTOCAST, random_tokens

from rtx_core import build_model
from rtx_core.evaluate import latency
from rtx_core.models.packed import Packed
from study.measurements import attention, bag_of_words, ngrams, number_formats, rounding
from study.measurements.grades import Grader, names_in

BATCH = Packed.from_sequences([[2, 9, 30, 41, 3], [2, 7, 3], [2, 5, 6, 8, 9, 11, 3]])
TINY = {"hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "vocab_size": 100}


def tiny(name="recurrent", **overrides):
    return build_model(name, seed=0, **TINY | overrides).eval()


def test_bag_of_words_learns_words_and_no_order():
    train, test = random_tokens(150, 0), random_tokens(40, 1)
    _, logits = bag_of_words.fit(train, test)
    assert (logits.argmax(1) == test.labels).mean() > 0.9
    np.testing.assert_allclose(np.exp(logits).sum(1), 1, rtol=1e-5)
    for part in (train, test):
        for row in np.split(part.ids, part.offsets[1:-1]):
            row[:] = row[::-1].copy()
    np.testing.assert_allclose(bag_of_words.fit(train, test)[1], logits, atol=1e-3)


@pytest.mark.parametrize("name", ["baseline", "recurrent"])
def test_attention_weights_give_what_the_layers_compute(name):
    model, ids = tiny(name), [2, 9, 30, 41, 3]
    weights, probabilities = attention.cls_attention(model, ids)
    c = model.config
    assert weights.shape == (c.num_layers * c.num_passes, c.num_heads, len(ids))
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
    seen, a = [], model.layers[0].attention
    a.register_forward_hook(lambda m, given, out: seen.append((given, out)))
    torch.testing.assert_close(probabilities, model(Packed.from_sequences([ids])).softmax(-1)[0])
    (x, *_), out = seen[0]
    values = a.qkv(x).view(len(x), 3, a.num_heads, a.head_size)[:, 2]
    mixed = torch.einsum("ht,thd->hd", weights[0], values).flatten()
    torch.testing.assert_close(a.out(mixed), out[0], atol=1e-5, rtol=1e-4)


FORMATS = [("fp32", 1e-6, 1), ("bf16", 0.03, 0.5), ("int8", 0.06, 0.97)]


@pytest.mark.parametrize(("number_format", "error", "size"), FORMATS)
def test_a_format_stays_within_its_error_and_size(number_format, error, size):
    model = tiny(vocab_size=30_000)
    ready = number_formats.converted(model, number_format)
    assert next(model.parameters()).dtype == torch.float32 and "forward" not in vars(model)  # it stays as it was
    with torch.inference_mode():
        exact, got = model(BATCH), ready(BATCH).float()
    assert (got - exact).norm() <= error * exact.norm()
    assert number_format == "fp32" or not torch.equal(got, exact)
    assert number_formats.stored_mb(ready) / number_formats.stored_mb(model) == pytest.approx(size, abs=0.03)


def test_rounding_is_symmetric_a_row_and_within_half_a_step():
    weight = torch.randn(7, 50, generator=torch.Generator().manual_seed(0))
    for bits in rounding.BITS:
        got = rounding.rounded(weight, bits)
        step = weight.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        assert ((got - weight).abs() <= step / 2 + 1e-6).all()
        assert torch.equal(rounding.rounded(-weight, bits), -got)
        assert max(len(row.unique()) for row in got) <= 2**bits - 1
    several = [rounding.rounded(weight, 3, torch.Generator().manual_seed(seed)) for seed in range(2000)]
    assert torch.allclose(torch.stack(several).mean(0), weight, atol=0.05)  # right on average
    bias = torch.randn(5)
    assert rounding.rounded(bias, 2) is bias


def test_states_are_those_of_the_forward_pass():
    model = tiny()
    found, c = rounding.states(model, BATCH), model.config
    assert len(found) == c.num_layers * c.num_passes
    last = found[-1] + c.residual_scale * found[c.num_layers - 1]
    with torch.inference_mode():
        torch.testing.assert_close(model.head(last[BATCH.starts]), model(BATCH))
    for a, b in zip(found, rounding.states(rounding.untied(model), BATCH), strict=True):
        torch.testing.assert_close(a, b)


def test_error_falls_with_bits_and_the_model_keeps_its_weights():
    model = tiny()
    before = deepcopy(model.state_dict())
    ends = [row["errors"][-1] for row in rounding.curves(model, rounding.states(model, BATCH), BATCH, arm="x")]
    assert ends == sorted(ends, reverse=True) and 0 < ends[-1] < ends[0]
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_shared_draws_repeat_and_unshared_ones_do_not():
    chance = torch.Generator().manual_seed(0)
    apart = rounding.with_rounded_layers(rounding.untied(tiny()), 2, chance).layers[0].copies
    assert not torch.equal(apart[0].ffn.down.weight, apart[1].ffn.down.weight)
    drawn = rounding.draws(tiny(), BATCH, "recurrent", 0)
    assert [row["arm"] for row in drawn] == [arm for arm in ("shared", "unshared") for _ in rounding.BITS]
    assert drawn == rounding.draws(tiny(), BATCH, "recurrent", 0)


def test_latency_is_of_every_batch_size_after_warming_up(monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 2)
    monkeypatch.setattr(latency, "TIMED", 5)
    sizes = []

    def model(batch):
        sizes.append(len(batch))
        return torch.zeros(len(batch), 2)

    rows = latency.latency(model, random_tokens(30, 0), (1, 16, 64), CPU, NO_AUTOCAST)
    assert sizes == [1] * 7 + [16] * 7 + [30] * 7  # no more texts than there are
    for row, size in zip(rows, (1, 16, 64)):
        assert (row["batch"], row["batches"]) == (size, 5)
        assert 0 < row["p10_ms"] <= row["median_ms"] <= row["p90_ms"]
        assert row["per_sentence_ms"] == row["median_ms"] / size


@pytest.mark.parametrize(("n", "a"), [(2, 1.0), (3, 0.1)])
def test_pairs_and_triples_are_counted_and_smoothed(n, a):
    train, validation = [0, 1, 2, 0, 1, 1, 2, 0], [1, 2, 0, 2, 1]
    met = [tuple(train[i : i + n]) for i in range(len(train) - n + 1)]
    asked = [tuple(validation[i : i + n]) for i in range(len(validation) - n + 1)]
    after = [sum(other[:-1] == gram[:-1] for other in met) for gram in asked]
    losses = [-np.log((met.count(gram) + a) / (m + 3 * a)) for gram, m in zip(asked, after)]
    assert ngrams.nats_per_token(np.array(train), np.array(validation), 3, n, a) == pytest.approx(np.mean(losses))


STORIES = [
    "One day Tom saw a red ball near the old tree by the lake. " * 5,
    "Lily ran. Lily sat. Run, Lily, run. Lily! Lily!",
]


def test_names_are_words_that_are_always_capitalised():
    assert names_in([*STORIES, "run on one day " * 9]) == {"Tom", "Lily"}


WRITTEN = [  # spelled, familiar, new, kept
    ("One day Tom saw", "a red ball near the old tree by the lake", (1, 1, 0, None)),  # recited
    ("Tom", "Lily the ball zrk Tom saw a red ball tree", (0.9, 3 / 8, 1, 0.5)),
    ("Tom", "Lily saw Tom Lily saw Tom", (1, 0, None, 3 / 4)),  # the first Lily was not said before
    ("Tom", "", (None, None, None, None)),
]


@pytest.mark.parametrize(("prompt", "text", "grades"), WRITTEN)
def test_grades_of_what_is_written(prompt, text, grades):
    found = Grader(STORIES).grade([{"prompt": prompt, "text": text}])
    assert found == pytest.approx(dict(zip(("spelled", "familiar", "new", "kept"), grades)))
