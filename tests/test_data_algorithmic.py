"""k-hop induction and words over groups against their definitions; and what must hold of anything drawn afresh."""

import shutil
from copy import deepcopy
from functools import reduce
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import CPU, NO_AUTOCAST, SMALL, refused

import rtx_core as rtx
from rtx_core import records
from rtx_core.data import GroupData, HopData, config_of, task
from rtx_core.data.algorithmic import AlgorithmicTask, KHop, hop, pass_states, products
from rtx_core.data.config import AlgorithmicData, ScanData
from rtx_core.errors import RtxError
from rtx_core.experiments import Experiment, ModelVariant, audit, weights
from rtx_core.experiments.doctor import check_settings
from rtx_core.models import build_model, save_model
from rtx_core.models.packed import Packed
from rtx_core.records import released
from rtx_core.train.config import TrainConfig
from rtx_core.train.trainer import train
from study.experiments import EXPERIMENTS, CurriculumData, HopSetData
from study.measurements import quantized

TEXTS = HopData(letters=14, hops=3, eval_texts=12, test_texts=24)


def by_definition(letters: list[int], position: int, hops: int) -> int:
    """The letter that followed the last earlier occurrence, `hops` times; −100 where there was none."""
    for _ in range(hops):
        earlier = [j for j in range(position) if letters[j] == letters[position]]
        if not earlier:
            return -100
        position = earlier[-1] + 1
    return letters[position]


def test_hops_are_those_of_the_definition():
    random = np.random.RandomState(0)
    hops, steps = random.randint(0, 6, size=40), random.randint(1, 4, size=(40, 20))
    for letters in (random.randint(0, 4, size=(40, 20)), steps.cumsum(1) % 4):  # of these no two neighbours are equal
        expected = [[by_definition(list(row), i, k) for i in range(20)] for row, k in zip(letters, hops)]
        assert hop(letters, hops).tolist() == expected


def test_copying_errs_as_often_as_the_letter_it_says_is_another():
    task = KHop(HopData(letters=12, test_texts=4), 4)
    rows = task.texts(np.random.RandomState(0), np.full(50, 3), -100)[0][:, 1:].tolist()
    said, asked = ([by_definition(row, i, k) for row in rows for i in range(12)] for k in (1, 3))
    wrong = [a != b for a, b in zip(said, asked) if b >= 0]
    assert task.copying(3, 1, texts=50) == pytest.approx(np.mean(wrong)) and 0 < np.mean(wrong) < 1
    assert task.copying(3, 3) == 0 and task.copying(1, 0) == 1  # no two neighbours are equal


def test_a_text_is_a_number_of_hops_and_letters_without_equal_neighbours():
    inputs, targets = task(TEXTS, 400).step(3, 5)[0]
    assert inputs.shape == targets.shape == (400, 15)
    hops, letters = inputs[:, 0] - 5, inputs[:, 1:]
    assert set(hops.tolist()) == {0, 1, 2, 3} and set(letters.unique().tolist()) == {0, 1, 2, 3}
    assert (letters[:, 1:] != letters[:, :-1]).all() and (targets[:, 0] == -100).all()
    assert targets[:, 1:].tolist() == hop(letters.numpy(), hops.numpy()).tolist()


def test_no_text_is_drawn_twice_and_the_test_holds_as_many_of_each_number_of_hops():
    made = task(TEXTS.replace(test_texts=300), 8)
    drawn = [batch for seed in (0, 1) for i in (0, 1) for batch in made.step(seed, i)]
    fixed = made.test_batches() + made.validation
    rows, others = ([tuple(row) for x, _ in batches for row in x.tolist()] for batches in (drawn, fixed))
    assert len(set(rows)) == len(rows) == 32 and not set(rows) & set(others)
    assert np.bincount([row[0] - 5 for row in others[:300]]).tolist() == [75] * 4
    assert made.facts["n_test"] == sum(int((t >= 0).sum()) for _, t in made.test_batches())
    assert made.facts["sha256"] != task(TEXTS, 8).facts["sha256"]
    with refused("micro_batches is 2", "expected 1"):
        task(TEXTS, 8, 2)


def test_in_the_published_setting_no_answer_is_one_too():
    """Length 100, 16 hops, loss on all positions; errors are counted on answers all the same."""
    published = task(HopData(letters=99, hops=16, scored="all", eval_texts=17, test_texts=17), 32)
    (inputs, targets), (_, answers) = published.step(0, 0)[0], published.test_batches()[0]
    assert inputs.shape == (32, 100) and (targets[:, 0] == 4).all() and targets.min() == 0
    assert answers.min() == -100 and answers.max() == 3


def composed(group: str, word: list[int]) -> int:
    """The product of a word, in Zn by adding, in Sn and An by carrying each point through the permutations."""
    n = int(group[1:])
    if group[0] == "Z":
        return sum(word) % n
    elements = list(permutations(range(n)))
    if group[0] == "A":  # an even number of pairs stand the wrong way round
        elements = [e for e in elements if sum(x > y for i, x in enumerate(e) for y in e[i:]) % 2 == 0]
    points = list(range(n))
    for number in word:
        points = [elements[number][point] for point in points]
    return elements.index(tuple(points))


GROUPS = [("S3", 6, False), ("Z6", 6, True), ("A5", 60, False), ("S5", 120, False)]


@pytest.mark.parametrize(("group", "size", "commutes"), GROUPS)
def test_states_are_the_products_of_what_was_read(group, size, commutes):
    made = task(GroupData(group=group, letters=16, eval_texts=128, test_texts=8), 16)
    assert made.vocab_size == 2 * size and made.parts == list(range(1, 17))
    drawn = [made.step(1, i)[0] for i in range(12)]
    for inputs, targets in drawn + made.validation + made.test_batches():
        words = [[first - size, *rest] for first, *rest in inputs.tolist()]  # elements of their own begin a text
        expected = [[composed(group, row[: i + 1]) for i in range(len(row))] for row in words]
        assert targets.tolist() == expected and {x for word in words for x in word} <= set(range(size))
        assert made.part_of(inputs).tolist() == [list(range(inputs.shape[1]))]
    for batches in (drawn, made.validation):
        assert {inputs.shape for inputs, _ in batches} == {(64, 4), (32, 8), (16, 16)}
    assert made.examples(0) == 256 and made.test_batches()[0][0].shape == (4, 16)
    table = products(group)
    assert (table == table.T).all() == commutes and table[0].tolist() == list(range(size))


class Oracle(torch.nn.Module):
    """Right about `right` hops and wrong about the others."""

    def __init__(self, right: list[int]):
        super().__init__()
        self.config, self.right = build_model("looped").config, right

    def states(self, batch, passes):
        rows = batch.ids.view(len(batch), -1)
        hops = rows[:, 0] - 5
        letters = torch.from_numpy(hop(rows[:, 1:].numpy(), hops.numpy()))
        for r in range(passes):
            known = torch.isin(hops, torch.tensor(self.right[: r + 1]))[:, None]
            answers = torch.where(known, letters, (letters + 1) % 4).clamp(min=0)
            yield F.one_hot(F.pad(answers, (1, 0)), 9).flatten(0, 1)

    def output_hidden(self, state, batch):
        return 20.0 * state

    head = torch.eye(9)


def test_a_scan_asks_after_pass_r_for_the_product_of_the_last_2_to_the_r():
    scanned = task(ScanData(group="S3", letters=16), 4)
    inputs, targets = scanned.texts(np.random.RandomState(0), 3, 16)
    read = inputs % 6
    for r, product in zip(range(1, 6), scanned.scan(torch.from_numpy(inputs))):
        for b, n in np.ndindex(*inputs.shape):
            assert product[b, n] == reduce(lambda x, y: scanned.table[x, y], read[b, max(0, n + 1 - 2**r) : n + 1])
    assert (product.numpy() == targets).all()


@pytest.mark.parametrize(("layers", "passes"), [(1, 3), (3, 1)])
def test_a_scan_is_learned_from_the_state_after_each_pass_or_layer(layers, passes):
    scanned = task(ScanData(group="S3", letters=8), 4)
    inputs, targets = scanned.step(0, 0)[0]
    model = build_model("looped", **SMALL, vocab_size=12, num_layers=layers, num_passes=passes)
    objective, sums = scanned.loss(model, inputs, targets, targets.numel())
    batch, losses = Packed.from_rows(inputs), []
    for state, product in zip(pass_states(model, batch), scanned.scan(inputs)):
        losses.append(F.cross_entropy(model.output_hidden(state, batch) @ model.head.T, product.flatten()).item())
    assert len(losses) == 3 and objective.item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert sums.item() == pytest.approx(objective.item() * targets.numel())
    assert torch.equal(F.linear(model.output_hidden(state, batch), model.head).view(*inputs.shape, -1), model(inputs))
    with refused("GPT", "states"):
        next(pass_states(build_model("gpt", hidden_size=8, num_heads=2), batch))


def test_a_training_set_is_as_large_as_its_setting_and_another_for_each_seed():
    small = task(HopSetData(sequences=5, eval_texts=16, test_texts=16), 8)
    afresh = task(HopData(eval_texts=16, test_texts=16), 8)

    def read(seed):
        return {tuple(row.tolist()) for i in range(20) for row in small.micro_batch(seed, i, 0)[0]}

    assert len(read(0)) == len(read(1)) == 5 and not read(0) & read(1)
    assert all(torch.equal(*pair) for pair in zip(small.validation[0], afresh.validation[0]))
    assert small.facts["n_train"] == 5 and small.facts["sha256"] == afresh.facts["sha256"]


def test_a_curriculum_doubles_its_texts_and_runs_a_loop_once_a_factor():
    short = task(CurriculumData(group="S3", letters=16, stage=2, eval_texts=16, test_texts=4), 4)
    lengths = [{short.step(seed, i)[0][0].shape for seed in range(20)} for i in (1, 3, 9)]
    assert lengths == [{(16, 4)}, {(16, 4), (8, 8)}, {(16, 4), (8, 8), (4, 16)}]
    inputs, targets = short.step(0, 0)[0]
    for layers, passes, run in ((1, 9, 4), (2, 1, 1)):
        model = build_model("looped", **SMALL, vocab_size=12, num_layers=layers, num_passes=passes)
        objective, _ = short.loss(model, inputs, targets, targets.numel())
        assert torch.equal(objective, model(inputs, targets, num_passes=run))


def test_error_is_counted_by_hops_and_by_passes():
    made = task(TEXTS, 8)
    result, _ = made.test(Oracle([0, 2, 1]), CPU, NO_AUTOCAST)
    assert [row["hops"] for row in result["parts"]] == [0, 1, 2, 3] and result["by"] == "hops"
    assert [row["error"] for row in result["parts"]] == [0, 0, 0, 1]
    assert [row["error_by_passes"] for row in result["parts"]] == [[0] * 8, [1, 1] + [0] * 6, [1] + [0] * 7, [1] * 8]
    of_part = [row["answers"] for row in result["parts"]]
    assert result["n"] == sum(of_part) == made.facts["n_test"]
    assert result["accuracy"] == pytest.approx(1 - of_part[3] / sum(of_part))
    assert result["loss"] == pytest.approx(20 * of_part[3] / sum(of_part), rel=1e-4)


LOOP = SMALL | {"vocab_size": 9, "num_layers": 1, "num_passes": 4}


def test_a_looped_model_is_tested_with_its_layers_rounded():
    made, model = task(TEXTS, 8), build_model("looped", seed=0, **LOOP).eval()
    before = deepcopy(model.state_dict())
    measured = quantized.of_run({}, SimpleNamespace(task=made, trained=lambda record: model))
    assert [content["suffix"] for content, _ in measured] == [[f"int{bits}"] for bits in quantized.BITS]
    exact, _ = made.test(model, CPU, NO_AUTOCAST)
    off = [abs(content["test"]["loss"] - exact["loss"]) for content, _ in measured]
    assert 0 < off[0] < off[-1]  # 8 bits are nearer to the exact weights than 3
    for content, _ in measured:
        records.verify(SimpleNamespace(get=content.get, path=None))
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_every_step_of_training_draws_its_passes(tmp_path):
    made, ran, model = task(TEXTS, 4), [], build_model("looped", seed=0, **LOOP, random_passes=True)
    model.register_forward_pre_hook(lambda model, _: ran.append(model.drawn_passes) if model.training else None)
    config = TrainConfig(epochs=0, steps=12, batch_size=4, eval_every=12)
    train(model, made, config, 3, CPU, tmp_path / "c", say=lambda line: None)
    assert ran == [np.random.RandomState([20_003, i]).randint(4) + 1 for i in range(12)]


@pytest.mark.parametrize(("name", "more"), [("looped", {}), ("gpt", {"block_size": 15}), ("kausik", {})])
def test_validation_counts_every_answer_alike(name, more):
    made = task(TEXTS, 8)
    model = build_model(name, seed=0, **SMALL | {"vocab_size": 9} | more).eval()
    inputs, targets = (torch.cat(x) for x in zip(*made.validation))
    with torch.inference_mode():
        logits, asked = model(inputs), targets >= 0
    row, wrong = made.evaluate(model, CPU, NO_AUTOCAST), logits.argmax(-1) != targets
    assert len({int((y >= 0).sum()) for _, y in made.validation}) == 2  # batches of unequal numbers
    assert row["validation_loss"] == pytest.approx(F.cross_entropy(logits[asked], targets[asked]).item())
    assert row["validation_accuracy"] == pytest.approx(1 - wrong[asked].double().mean().item())
    assert row["error_hops_2"] == pytest.approx(wrong[asked & (inputs[:, :1] == 7)].double().mean().item())


class CountData(AlgorithmicData):
    task_class = f"{__name__}:Count"
    by: int = 1
    eval_texts: int = 4
    test_texts: int = 4


class Count(AlgorithmicTask):
    """0 … 8 in steps, from anywhere: a kind of data that the library does not know."""

    name, by, parts, reported_parts, vocab_size = "counting", "part", [0], [0], 9

    def __init__(self, config, batch_size, micro_batches=1):
        super().__init__(config, 6, batch_size, micro_batches)

    def draw(self, random, n, first=0):
        texts = (random.randint(9, size=(n, 1)) + self.config.by * np.arange(7)) % 9
        return texts[:, :-1].copy(), texts[:, 1:].copy()

    draw_evaluation = draw

    def part_of(self, inputs):
        return inputs * 0


def test_a_new_kind_of_data_is_one_file(home, monkeypatch):
    """It trains, is recorded and kept, and comes back from its record, without a line in the library."""
    train = TrainConfig(epochs=0, steps=2, batch_size=4, eval_every=2)
    made = Experiment(CountData(), train, {"tiny": ModelVariant("looped", SMALL)}, ("tiny",), keep_weights=True)
    monkeypatch.setitem(EXPERIMENTS, "count", made)
    run = rtx.run("count", "tiny", by=2, compile="")
    assert type(config_of(ScanData(group="S3").model_dump(), ScanData)) is ScanData  # which has the fields of another
    assert config_of(run.record["config"]["data"]) == CountData(by=2) and run.record["name"] == "count-by2"
    assert run.record["asked"] == {"model": "tiny", "settings": {"by": 2, "compile": ""}}
    file = home / "results/weights/count-by2/tiny-seed0.safetensors"
    assert run.record["tensors_sha256"] == released.tensors_sha256(file.read_bytes())
    shutil.rmtree(home / "_build/runs")
    for address in (run, run.record, "count-by2/tiny-seed0"):
        assert rtx.load(address).model.about["run"] == run.record["key"]
    assert [record.path for record in records.records()] == [run.record.path]
    assert records.paths_in(home / "results") == [run.record.path]
    check_settings(run.record)
    assert audit.audit(str(run.record.path))["exact"]
    with pytest.raises(RtxError, match="not what was asked for: name count-by2 instead of count-by3"):
        check_settings(records.Record(run.record.content | {"asked": {"model": "tiny", "settings": {"by": 3}}}, file))
    save_model(build_model("looped", seed=1, **run.record["config"]["model"]), "looped", file, run=run.record["key"])
    with pytest.raises(RtxError, match="holds weights of another run than its record's, or altered ones; restore"):
        rtx.load(run)
    monkeypatch.setattr(weights, "MAX_RELEASED_PARAMETERS", 100)  # parameters, and this model has more
    assert rtx.run("count", "tiny", 1, by=2, compile="").record.get("tensors_sha256") is None
    assert [path.name for path in file.parent.iterdir()] == [file.name]
