"""Looking inside a loop: on models made by hand, of which it is known what there is to find."""

import json
import math
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import refused
from reference import generator, small_decoder

from rtx_core.data.algorithmic import IGNORE_INDEX, GroupWords, KHop, hop, products
from rtx_core.data.config import GroupData, HopData, LanguageData
from rtx_core.errors import RtxError
from rtx_core.evaluate import inside
from rtx_core.models import build_model
from rtx_core.models.packed import Packed
from study.measurements import growth, lens, parity, spans
from study.predictions import dropdown, judged, told

MODELS = [({"num_layers": 4, "num_core_layers": 2, "num_passes": 3}, 2), ({"num_layers": 3, "num_passes": 1}, 1)]
EACH = pytest.mark.parametrize(("settings", "layers"), MODELS, ids=["a loop in the middle", "three layers"])


def texts(n: int, letters: int = 32, alphabet: int = 4, seed: int = 0) -> torch.Tensor:
    """Rows of letters of which no two neighbours are equal, after a token that is none."""
    drawn = np.random.RandomState(seed).randint(1, alphabet, size=(n, letters)).cumsum(1) % alphabet
    return torch.from_numpy(np.pad(drawn, ((0, 0), (1, 0)), constant_values=alphabet))


@EACH
def test_watching_changes_no_number_and_shows_what_the_heads_mix(settings, layers):
    model, ids, mixed_by = small_decoder("looped", **settings), texts(5), {}

    def mix(r, layer, qkv, mixed):
        mixed_by[r - 1, layer] = qkv.view(*ids.shape, 3, 4, -1)[:, :, 2], mixed.view(*ids.shape, 4, -1)
        return mixed

    every = list(inside.logits(model, ids, edit=lambda r, state: state, mix=mix))
    assert len(every) == 3 and torch.equal(every[-1], model(ids))
    alpha = inside.attention(model, ids)
    assert alpha.shape == (3, layers, 4, *ids.shape, ids.shape[1])
    assert sorted(mixed_by) == [(r, layer) for r in range(3) for layer in range(layers)]
    for place, (v, mixed) in mixed_by.items():
        torch.testing.assert_close(torch.einsum("hbij,bjhd->bihd", alpha[place], v), mixed)
    assert not [hook for layer in model.layers for hook in (*layer._forward_hooks, *layer._forward_pre_hooks)]


@pytest.mark.parametrize("step", [1, 2])
def test_a_silenced_head_writes_nothing_in_its_step_alone(step):
    model, without = (small_decoder("looped", num_layers=1, num_passes=3) for _ in range(2))
    without.layers[0].out.data[:, 16:24] = 0  # head 2 of four
    batch = Packed.from_rows(texts(3))
    state = model.word(batch.ids)
    found = list(inside.steps(model, texts(3), mix=inside.ablate_heads(model, [(step, 0, 2)])))
    for r in range(3):
        state = (without if r + 1 == step else model).one_pass(state, state, r, model.grid(batch))
        torch.testing.assert_close(found[r], state)


@pytest.mark.parametrize("place", [(9, 0, 1), (0, 0, 1), (1, 2, 1), (1, -1, 1), (1, 0, 4), (1, 0, -1)])
def test_what_is_not_there_cannot_be_changed(place):
    loop, ids = small_decoder("looped", num_layers=2, num_passes=3), texts(2)
    with refused(str(place)):
        inside.ablate_heads(loop, [place])
    longer = inside.ablate_heads(loop, [(9, 0, 1)], passes=9)
    assert len(list(inside.steps(loop, ids, 9, mix=longer))) == 9
    state, where = next(inside.steps(loop, ids)), torch.ones_like(ids, dtype=torch.bool)
    for change in ({"mix": longer}, {"edit": inside.patch(state, 4, where)}, {"edit": inside.hold(4)}):
        with refused("steps 1 to 3 are run"):
            list(inside.steps(loop, ids, **change))
    stack = small_decoder("looped", num_layers=2, num_passes=1)
    assert inside.ablate_heads(stack, [(2, 0, 3)])
    with refused("step 3", "1 to 2"):
        inside.ablate_heads(stack, [(3, 0, 3)])


def test_a_model_that_cannot_be_looked_into_or_does_not_know_a_token_is_one_sentence():
    others = [torch.nn.GRU(4, 4), build_model("gpt", seed=0, hidden_size=8, num_heads=1), build_model("recurrent")]
    for look in (
        inside.attention,
        lambda *about: list(inside.logits(*about)),
        lambda model, _: inside.ablate_heads(model, []),
    ):
        for model in others:
            with refused(type(model).__name__, "'looped'"):
                look(model, texts(1))
    loop = small_decoder("looped", vocab_size=4, num_passes=2)
    for ids, token in ((texts(1), 4), (-texts(1), -4)):
        with refused(f"Got token {token}", "0 to 3"):
            inside.attention(loop, ids)


def looking_at(*targets: torch.Tensor):
    """One layer, run twice, whose head h looks from token i at targets[h][i], or for −1 at all alike."""
    H, N = len(targets), len(targets[0])
    D = N + 2 + N % 2
    settings = {"vocab_size": N, "hidden_size": H * D, "num_heads": H, "num_layers": 1, "num_passes": 2}
    model = build_model("looped", seed=0, **settings, rope_base=1e300)  # no pair but the first is turned
    free = [i for i in range(D) if i not in (0, D // 2)][:N]
    for parameter in model.parameters():
        parameter.data *= parameter.dim() == 1
    model.word.weight.data[range(N), range(N)] = 1
    q, k, _ = model.layers[0].qkv.data.view(3, H, D, H * D)
    for head, target in enumerate(targets):
        k[head, free, range(N)] = 1
        for i, j in enumerate(target.tolist()):
            if j >= 0:
                q[head, free[j], i] = 10
    return model


def test_heads_made_by_hand_are_seen_and_named():
    letters = texts(1, letters=13, alphabet=3)[:, 1:]
    _, one, two = inside.places(letters, 2)[:, 0]
    previous = torch.where(one >= 0, one - 1, -1)
    model = looking_at(previous, one, two, torch.full_like(one, -1))
    alpha = inside.attention(model, torch.arange(13)[None])
    for head, target in enumerate((previous, one, two)):
        assert inside.mass(alpha, target[None])[:, 0, head].min() > 0.999
    spread = inside.mass(alpha, torch.zeros_like(letters))[0, 0, 3]  # of the head that looks at all alike
    torch.testing.assert_close(spread, (1 / torch.arange(1, 14)).mean())
    rows = inside.roles(alpha, letters, most=2)
    assert [(r["step"], r["layer"], r["head"]) for r in rows] == [(s, 0, h) for s in (1, 2) for h in range(4)]
    assert [row["role"] for row in rows] == 2 * ["previous", "follow", "jump", "other"]
    assert rows[0]["p_2"] < 0.001  # also where p_2 is the previous occurrence
    assert rows[2]["place"] == "p_2" and rows[1]["p_1"] > 0.999 and rows[1]["previous"] < 0.001
    with refused("None of 13 tokens"):
        inside.mass(alpha, torch.full_like(letters, -1))


def test_places_lead_to_the_letters_that_the_task_asks_for():
    ids = texts(40)
    chain = inside.places(ids, 6)
    for j, place in enumerate(chain):
        expected = hop(ids.numpy(), np.full(40, j))
        found = torch.where(place >= 0, ids.gather(1, place.clamp(min=0)), IGNORE_INDEX)
        assert np.array_equal(found.numpy(), expected)
        assert ((place < chain[j - 1]) | (place < 0)).all() or j == 0
    assert (chain[6] >= 0).any() and (chain[1, :, :2] == -1).all()


@pytest.mark.parametrize("at", [1, 3, 4])
def test_twins_differ_in_one_letter_and_in_the_answer(at):
    ids = texts(400)
    rows, donors = inside.counterfactuals(ids, 4, at, 4, np.random.RandomState(0))
    assert len(rows) > 20
    own, far = ids[rows], np.full(len(rows), 4)
    assert ((own != donors).sum(1) == 1).all() and (donors[:, 1:] != donors[:, :-1]).all()
    assert torch.equal((own != donors).int().argmax(1), inside.places(own, at)[at, :, -1])
    assert torch.equal(inside.places(own, at)[..., -1], inside.places(donors, at)[..., -1])
    answers = [hop(x.numpy(), far)[:, -1] for x in (own, donors)]
    assert (answers[0] != answers[1]).all() and min(map(np.min, answers)) >= 0
    with refused("hop=5", "1 to 4"):
        inside.counterfactuals(ids, 4, 5, 4, np.random.RandomState(0))


@EACH
@pytest.mark.parametrize("step", [1, 3])
def test_a_patch_carries_the_donors_answer_where_it_is_put(settings, layers, step):
    model, ids, donors = small_decoder("looped", **settings), texts(6), texts(6, seed=1)
    donor = [state.clone() for state in inside.steps(model, donors)][step - 1]

    def patched(where):
        return list(inside.logits(model, ids, edit=inside.patch(donor, step, where)))[-1]

    where = torch.zeros_like(ids, dtype=torch.bool)
    assert torch.equal(patched(where), model(ids))
    torch.testing.assert_close(patched(~where), model(donors))
    where[:, 9] = True
    moved = (patched(where) - model(ids)).abs().amax((0, 2)) > 1e-9
    reached = torch.arange(33) >= 9 if step == 1 else torch.arange(33) == 9  # after the last step nobody looks
    assert torch.equal(moved, reached) or layers == 2  # where a coda looks
    assert moved[9:].any() and not moved[:9].any()


def test_whose_answer_it_is():
    own, donors = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 2, 3, 3, 2])
    assert inside.interchange_accuracy(torch.tensor([0, 2, 3, 3, 1]), own, donors) == (0.25, 0.5)
    with refused("2 pairs"):
        inside.interchange_accuracy(own[:2], own[:2], own[:2])


def test_a_probe_finds_what_was_planted_and_nothing_else():
    random, of_text = np.random.RandomState(0), torch.arange(300).repeat_interleave(4)
    labels = torch.from_numpy(random.randint(4, size=1200))
    noise = torch.randn(1200, 12, generator=generator(0))
    planted = noise + 4 * torch.randn(4, 12, generator=generator(1))[labels]
    found = inside.probe(planted, labels, of_text, random)
    assert found.accuracy > 0.97 and abs(found.shuffled - 0.25) < 0.06 and abs(found.commonest - 0.25) < 0.06
    assert abs(inside.probe(noise, labels, of_text, random).accuracy - 0.25) < 0.06
    by_text = torch.from_numpy(random.randint(4, size=300))[of_text]  # of no use on other texts
    known = torch.randn(300, 200, generator=generator(2))[of_text]
    assert abs(inside.probe(known, by_text, of_text, random).accuracy - 0.25) < 0.1


def linear(matrix: torch.Tensor):
    """A loop of which a pass is s ↦ matrix s."""
    d = len(matrix)
    settings = {"vocab_size": 5, "hidden_size": d, "num_heads": 1, "num_layers": 1, "num_passes": 2}
    model = build_model("looped", seed=0, injection="linear", **settings).double()
    for layer in model.layers:
        layer.out.data.zero_(), layer.down.data.zero_()
    model.word.weight.data = torch.randn(5, d, generator=generator(3)).double()
    model.adapter.data = torch.cat((matrix, torch.zeros(d, d)), 1).double()
    return model


def with_eigenvalues(*values: float) -> torch.Tensor:
    basis = torch.randn(len(values), len(values), generator=generator(5)).double()
    return basis @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ basis.inverse()


def test_the_spectral_radius_of_a_linear_map_is_its_largest_eigenvalue():
    at = torch.zeros(4).double()
    real = with_eigenvalues(-0.9, 0.5, 0.3, 0.1)
    assert inside.spectral_radius(lambda s: s @ real.T, at) == pytest.approx(0.9, abs=1e-9)
    turning = torch.block_diag(torch.tensor([[0.6, -1.5], [0.4, 0.6]]), torch.diag(torch.tensor([0.5, 0.2]))).double()
    found = inside.spectral_radius(lambda s: s @ turning.T, at, 400)
    assert found == pytest.approx((0.6**2 + 0.6) ** 0.5, rel=0.01)  # of 0.6 ± i √0.6
    assert inside.spectral_radius(lambda s: torch.sin(3 * s), at) == pytest.approx(3)
    with refused("float32", "float64"):
        inside.spectral_radius(torch.sin, at.float())


def test_a_state_that_grows_rests_only_in_its_direction():
    model, ids = linear(with_eigenvalues(1.5, 0.9, 0.4, -0.2)), torch.tensor([[0, 1, 2, 3, 4]])
    free, held = inside.motion(model, ids, 80), inside.motion(model, ids, 80, hold_after=3)
    assert free[-1]["norm"] / free[-2]["norm"] == pytest.approx(1.5)
    assert free[-1]["step"] == pytest.approx(1 - 1 / 1.5) and free[0]["step"] != free[0]["step"]
    assert free[0]["cosine"] < 0.999 and free[40]["cosine"] == pytest.approx(1)
    assert {round(row["norm"], 9) for row in held[2:]} == {round(free[2]["norm"], 9)}
    assert held[-1]["step"] < 1e-9 and [row["norm"] for row in held[:3]] == [row["norm"] for row in free[:3]]
    g, state = inside.normalised_pass(model, ids, 80)
    torch.testing.assert_close(g(state), state)
    assert inside.spectral_radius(g, state) == pytest.approx(0.9 / 1.5, rel=1e-6)


def test_a_loop_halts_where_two_passes_agree():
    answers = torch.tensor([[1, 1, 2], [1, 2, 3], [3, 2, 1], [3, 3, 0]])
    assert [x.tolist() for x in inside.halting(answers)] == [[2, 3, 4], [1, 2, 0]]  # passes spent, and what was said
    assert inside.changed_share(answers).tolist() == pytest.approx([math.nan, 2 / 3, 2 / 3, 2 / 3], nan_ok=True)


def measured(kind, task):
    """What a measurement saves of a small loop, as a file would give it back, and the loop."""
    model = small_decoder("looped", **{"vocab_size": task.vocab_size, "num_layers": 1, "num_passes": 3})
    ((content, predictions),) = kind.of_run({}, SimpleNamespace(task=task, trained=lambda record: model.float()))
    assert predictions is None
    return json.loads(json.dumps(content)), model.float()


def test_what_is_saved_of_a_loop_that_runs_on_is_what_the_loop_does(monkeypatch):
    monkeypatch.setattr(growth, "PASSES", (1, 2, 3, 5))
    task = KHop(HopData(letters=12, hops=2, eval_texts=3, test_texts=3), batch_size=1)
    saved, model = measured(growth, task)
    assert saved["hops"] == [0, 1, 2] and saved["trained"] == 3 and saved["answers"][0] == growth.TEXTS * 12
    assert saved["free"]["norm"][:3] == saved["held"]["norm"][:3] and saved["free"]["step"][0] is None
    assert saved["held"]["norm"][3] == pytest.approx(saved["held"]["norm"][2])
    drawn = task.texts(np.random.RandomState([5, 2]), np.repeat([0, 1, 2], growth.TEXTS), -1)
    ids, targets = map(torch.from_numpy, drawn)
    of_hops, asked = ids[:, :1] - 5, targets >= 0
    for r, errors in zip(saved["passes"], saved["free"]["error"]):
        wrong = model(ids, num_passes=r).argmax(-1) != targets
        assert errors == pytest.approx([wrong[asked & (of_hops == k)].double().mean().item() for k in range(3)])
    assert sorted(map(int, saved["radius"])) == [3, 5, 64]
    radius = inside.spectral_radius(*inside.normalised_pass(model.double(), ids[-1:], 3))
    assert saved["radius"]["3"][0] == pytest.approx(radius, rel=1e-6)


def test_products_of_the_last_factors():
    table, elements = products("S3"), np.random.RandomState(0).randint(6, size=(5, 7))
    for m in (1, 2, 4):
        for row, factors in zip(spans.of_last(table, elements, m), elements):
            assert row[: m - 1].tolist() == [-1] * (m - 1)
            for place in range(m - 1, 7):
                assert row[place] == reduce(lambda x, y: table[x, y], factors[place - m + 1 : place + 1])


def test_of_a_fresh_loop_probes_read_the_last_factor_alone(monkeypatch):
    monkeypatch.setattr(spans, "TEXTS", 200)
    saved, _ = measured(spans, GroupWords(GroupData(group="S3", letters=8, eval_texts=16, test_texts=4), 16))
    read = np.array(saved["spans"]["accuracy"])
    assert saved["spans_read"] == list(spans.SPANS) and saved["late_places"] == [5, 8]
    assert read.shape == (4, len(spans.SPANS)) and read[0, 0] > 0.99 and read[0, 1] < 0.4
    prefix = np.array(saved["prefix"]["accuracy"])
    assert prefix.shape == (4, 8) and prefix[:, 0].min() > 0.99 and prefix[0, 1:].max() < 0.5


def test_the_parity_of_a_permutation_is_that_of_its_exchanges(monkeypatch):
    task = GroupWords(GroupData(group="S3", letters=8, eval_texts=16, test_texts=4), 16)
    odd, table = parity.odd(task.table), task.table
    assert odd.sum() == 3 and (odd[table] == odd[:, None] ^ odd[None]).all()  # a product is odd if one factor is
    monkeypatch.setattr(parity, "TEXTS", 200)
    saved, _ = measured(parity, task)
    read = np.array(saved["parity"]["accuracy"])
    assert read.shape == (4, 8) and read[0, 0] == 1 and read[0, 1:].max() < 0.7
    with pytest.raises(RtxError, match="got the group Z6; expected S3"):
        measured(parity, GroupWords(GroupData(group="Z6", letters=8, eval_texts=16, test_texts=4), 16))


def test_what_is_read_of_a_language_loop_ends_where_its_evaluation_does(monkeypatch):
    monkeypatch.setattr(lens, "SENTENCE", "the ")
    monkeypatch.setattr(lens, "TOKENS", 1000)
    task = LanguageData(corpus="shakespeare", source="embedded", block_size=16, eval_batches=2).task(4)
    saved, model = measured(lens, task)
    expected = task.evaluate(model, torch.device("cpu"), torch.no_grad())["validation_loss"]
    assert saved["loss"][-1] == pytest.approx(expected, rel=1e-5) and len(saved["loss"]) == 3
    n = np.array([row["n"] for row in saved["tokens"]])
    assert n.sum() == saved["n"] == 2 * 4 * 16
    for what in ("loss", "right", "changed"):
        each = np.array([row[what] for row in saved["tokens"]])
        assert (n @ each / n.sum()).tolist() == pytest.approx(saved[what])
    assert saved["sentence"]["read"] == list("the ") and len(saved["sentence"]["said"]) == 3


def test_a_prediction_is_judged_by_its_clauses():
    came_to = {"inside-jumper": ({"one": True}, False), "inside-s3": ({"one": False}, True)}
    found = judged(came_to | {"inside-patch": ({"one": True, "two": False, "three": False}, False)})
    assert [one.verdict for one in found] == ["kept", "in part", "contradicted"]
    counts, lines, *_ = dropdown(found).markdown.split("\n\n")
    assert counts.endswith("1 kept, 1 in part, 1 contradicted")
    assert [line.rpartition("*")[2] for line in lines.splitlines()] == [
        "",
        *(f" This did not hold: {what}." for what in ("two; three", "one")),
    ]
    assert all(words in told(found).markdown for words in ("three predictions", "1 contradicted"))
