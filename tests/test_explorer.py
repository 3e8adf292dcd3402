"""*Watch the loop*: its JavaScript, run by V8 alone, gives what torch gives, and its toys are the study's tasks."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import disturbed
from test_demo import DEMO, ask, v8

from rtx_core import build_model
from rtx_core.data.algorithmic import GroupWords, KHop, hop
from rtx_core.data.config import GroupData, HopData
from rtx_core.errors import RtxError
from rtx_core.evaluate import inside
from rtx_core.experiments.weights import model_in
from rtx_core.models.configs import LoopedConfig
from rtx_core.models.packed import Packed
from rtx_core.paths import REPOSITORY
from study.demo import explorer
from study.demo.explorer import stored_model

EXPORTED = [path for path in sorted((DEMO / "models").glob("*.js")) if explorer.read_header(path).get("task")]
EACH = pytest.mark.parametrize(("layers", "passes"), [(1, 4), (2, 2), (3, 1)])
SMALL = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 24, "rope_base": 100.0}
HOPS = {"letters": 12, "alphabet": 4, "hops": 3, "eval_texts": 16, "test_texts": 16}
WORDS = {"group": "S3", "letters": 16, "eval_texts": 16, "test_texts": 16}
TASK = {"kind": "hops", "letters": 32, "alphabet": 4, "hops": 4}
READY = """
var E = rtxDemo.forward().decoder;
function seen(model, ids, steps, off) {
  var s = E.start(model, ids), found = [];
  for (var i = 1; i <= steps; i++) {
    var out = new Set(off.filter((one) => one[0] === i).map((one) => one[1]));
    found.push(E.step(model, s, out));
  }
  return found;
}
function plain(one) {
  return { weights: Array.from(one.weights), logits: Array.from(one.logits), lengths: Array.from(one.lengths) };
}
"""


def small(layers: int, passes: int, vocabulary: int = 9, **switches) -> torch.nn.Module:
    shape = {"vocab_size": vocabulary, "num_layers": layers, "num_passes": passes} | switches
    return disturbed(build_model("looped", seed=0, **shape, **SMALL), 0.3).half().float().eval()  # as a file holds it


def written(model, data: dict) -> str:
    """The file of a model, which calls it tiny."""
    about = {"model": "tiny", "record": "tiny/tiny-seed0", "key": "0" * 24}
    return explorer.explorer_file(model, "tiny", about, data).decode()


def page(content: str, name: str = "tiny") -> object:
    opened = f"var model = E.open(rtxDemo.files[{name!r}]);"
    return v8(DEMO / "forward.js", DEMO / "toys.js", DEMO / "explorer-state.js", content, READY, opened)


def texts(header: dict, n: int) -> np.ndarray:
    """Rows of the task that a header tells."""
    data = {"eval_texts": 16, "test_texts": 16} | header["task"]
    drawn = KHop(HopData(**data), 2) if data.pop("kind") == "hops" else GroupWords(GroupData(group="S3", **data), 2)
    return drawn.draw_evaluation(np.random.RandomState([5, 5]), n, 0)[0]


def agrees(context, model, inputs: np.ndarray, steps: int, off=()) -> None:
    """Attention, logits and the lengths of states of a few texts."""
    found = ask(context, f"(ids) => seen(model, ids, {steps}, {json.dumps(list(off))}).map(plain)", inputs.tolist())
    out = frozenset((step - 1, head) for step, head in off)
    for i, (weights, state) in enumerate(explorer.watched(model, torch.from_numpy(inputs), steps, out)):
        ours = {key: np.array([text[i][key] for text in found]) for key in found[0][i]}
        np.testing.assert_allclose(ours["weights"].reshape(weights.shape), weights, atol=1e-4)
        logits = F.linear(model.norm(state), model.head).detach()
        np.testing.assert_allclose(ours["logits"].reshape(logits.shape), logits, atol=2e-3, rtol=1e-4)
        np.testing.assert_allclose(ours["lengths"], state.norm(dim=-1).detach(), rtol=1e-4)


@EACH
def test_what_is_watched_and_switched_off_is_what_the_model_computes(layers, passes):
    model, inputs = small(layers, passes), torch.from_numpy(texts({"task": {"kind": "hops"} | HOPS}, 6))
    seen, states = zip(*explorer.watched(model, inputs, layers * passes))
    alpha = inside.attention(model, inputs)  # (R, layers, H, B, N, N)
    torch.testing.assert_close(torch.stack(seen).transpose(1, 2), alpha.flatten(0, 1), atol=1e-5, rtol=1e-4)
    for r, state in enumerate(model.states(Packed.from_rows(inputs))):
        torch.testing.assert_close(states[layers * (r + 1) - 1].flatten(0, 1), state, atol=1e-5, rtol=1e-5)
    *_, expected = inside.steps(model, inputs, mix=inside.ablate_heads(model, [(2, 0, 1)]))
    step = layers if passes > 1 else 1  # the second pass of a looped model, else the second layer
    *_, (_, found) = explorer.watched(model, inputs, layers * passes, frozenset({(step, 1)}))
    torch.testing.assert_close(found.flatten(0, 1), expected, atol=1e-4, rtol=1e-4)


@EACH
@pytest.mark.parametrize("data", [HOPS, WORDS], ids=["hops", "cups"])
def test_the_page_computes_what_torch_does_and_heads_can_be_off(layers, passes, data):
    model = small(layers, passes, vocabulary=9 if data == HOPS else 12)
    content = written(model, data)
    header = json.loads(content.partition("] = ")[2].rstrip().removesuffix(";"))
    assert header["task"]["letters"] == data["letters"] and len(header["right"]) == (4 if data == HOPS else 16)
    context, inputs = page(content), texts(header, 7)
    agrees(context, model, inputs, layers * passes + 2)
    agrees(context, model, inputs[:, :6], layers * passes)  # a shorter text
    agrees(context, model, inputs, layers * passes, off=[(1, 1), (2, 0), (2, 1)])


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.stem)
def test_an_exported_model_answers_as_in_torch(path):
    header, content = explorer.read_header(path), path.read_text(encoding="utf-8")
    assert header["record"].split("/")[1].rpartition("-seed")[0] == header["model"]
    (model, _), context, inputs = stored_model(path), page(content, path.stem), texts(header, 3)
    config = model.config
    counted = config.num_layers * (explorer.PASSES if config.num_passes > 1 else 1)
    assert np.shape(header["heads"]) == (counted, config.num_heads)
    steps = config.num_layers * config.num_passes
    agrees(context, model, inputs, steps + 3 * config.num_layers * (config.num_passes > 1))
    script = f"""(ids) => {{
      var last = seen(model, ids, {steps}, []).at(-1);
      var options = rtxDemo.toys().{header["task"]["kind"]}.options(model.file.task);
      return ids.map((_, t) => E.shares(model, last, t, options));
    }}"""
    *_, (_, state) = explorer.watched(model, torch.from_numpy(inputs), steps)
    options = 6 if header["task"]["kind"] == "cups" else header["task"]["alphabet"]
    expected = F.linear(model.norm(state), model.head)[..., :options].softmax(-1).detach()
    np.testing.assert_allclose(ask(context, script, inputs.tolist()), expected, atol=1e-3)


@pytest.mark.parametrize("path", EXPORTED, ids=lambda path: path.stem)
def test_weights_of_16_bits_answer_as_the_trained_ones(path):
    model, header = stored_model(path)
    trained = model_in(REPOSITORY / "results/weights" / f"{header['record']}.safetensors")
    inputs, steps = torch.from_numpy(texts(header, 200)), model.config.num_layers * model.config.num_passes
    answers = []
    for one in (model, trained):
        *_, (_, state) = explorer.watched(one, inputs, steps)
        answers.append(F.linear(one.norm(state), one.head).argmax(-1))
    assert (answers[0] == answers[1]).double().mean() > 0.998


def test_what_the_page_cannot_run_is_refused():
    with pytest.raises(RtxError, match="no looped decoder of k-hop or of words over S3"):
        written(small(1, 2), WORDS | {"group": "Z6"})
    with pytest.raises(RtxError, match="no looped decoder"):  # by the script that counts, too
        written(small(1, 2, injection="add"), HOPS)
    content, unread = written(small(1, 2), HOPS), explorer.UNREAD | {"tie_embeddings"}
    assert len(LoopedConfig.model_fields) == len(unread) + 13  # which the page reads, or which matter in training alone
    for name in unread:
        was, now = (f'"{name}":{json.dumps(value)}' for value in (LoopedConfig.model_fields[name].default, "other"))
        assert was in content
        with pytest.raises(Exception, match=f"cannot run a model with {name}"):
            page(content.replace(was, now))


def test_a_head_is_named_by_where_it_looks():
    inputs = torch.from_numpy(texts({"task": {"kind": "hops"} | HOPS}, 60))
    places = explorer.hop_places(inputs, 3)
    weights = torch.zeros(len(inputs), 4, 13, 13)
    for head, kind in enumerate(("hop1", "earlier", "question")):
        b, t = torch.nonzero(places[kind] >= 0, as_tuple=True)
        weights[b, head, t, places[kind][b, t]] = 0.9
    weights[:, 3] = torch.ones(13, 13).tril() / torch.arange(1, 14)[:, None]
    found = explorer.named(weights, places, places["hop3"] >= 0)
    assert [one["does"] for one in found] == ["hop1", "earlier", "question", "spread"]
    assert [one["share"] for one in found[:3]] == [0.9] * 3 and found[3]["share"] < inside.AT_LEAST


def test_the_catalogue_of_the_book_is_of_its_models(tmp_path):
    for path in [*EXPORTED, DEMO / "models" / "vocabulary.js"]:
        (tmp_path / path.name).symlink_to(path)
    listed = (DEMO / "models" / "explorer.js").read_text(encoding="utf-8")
    assert explorer.write_catalogue(tmp_path).read_text(encoding="utf-8") == listed
    (found,) = ask(v8(listed), "() => rtxDemo.explorer", [0])
    assert sorted(one["name"] for one in found) == [path.stem for path in EXPORTED] and found
    assert len({one["toy"] + one["model"] for one in found}) == len(found)  # a link names a model by these


@pytest.fixture(scope="module")
def toys():
    ready = "var T = rtxDemo.toys(), S = rtxDemo.explorerState();"
    return v8(DEMO / "toys.js", DEMO / "explorer-state.js", ready)


def test_what_is_true_is_what_the_task_asks_for(toys):
    inputs = texts({"task": TASK}, 50)
    for k in range(5):
        function = f"(items) => items.map((_, t) => T.hops.truth(items, {json.dumps(TASK)}, t, {k}))"
        found = ask(toys, function, inputs[:, 1:].tolist())
        np.testing.assert_array_equal(found, hop(inputs[:, 1:], np.full(50, k), -1))
    (ids,) = ask(toys, f"(items) => T.hops.ids(items, {json.dumps(TASK)}, 4)", inputs[4:5, 1:].tolist())
    assert ids == inputs[4].tolist()


def test_a_column_of_the_grid_asks_for_what_a_file_counts(toys):
    (items,) = texts({"task": TASK}, 1)[:, 1:].tolist()
    (columns,) = ask(toys, f"(items) => T.hops.columns(items, {json.dumps(TASK)}, 20)", [items])
    expected = [hop(np.array([items]), np.array([k]), -1)[0, 20] for k in (1, 2, 3, 4)]
    assert [(one["hops"], one["part"], one["at"], one["truth"]) for one in columns] == [
        (k, k, 20, truth) for k, truth in enumerate(expected, 1)
    ]
    (columns,) = ask(toys, "(items) => T.cups.columns(items, {})", [[1, 1, 2]])
    assert [(one["part"], one["at"], one["truth"]) for one in columns] == [(0, 0, 1), (1, 1, 0), (2, 2, 2)]


def test_a_head_looks_where_its_name_says(toys):
    """What the page takes for the place of a name, against what the names were counted with."""
    inputs, words = torch.from_numpy(texts({"task": TASK}, 20)), torch.zeros(2, 9, dtype=int)
    places = [("hops", inputs[:, 1:], does, at[:, 1:]) for does, at in explorer.hop_places(inputs, 4).items()]
    places += [("cups", words, does, at) for does, at in explorer.word_places(words).items()]
    for toy, items, does, expected in places:
        function = f"(items) => items.map((_, t) => T.{toy}.place(items, t, {json.dumps(does)}))"
        np.testing.assert_array_equal(np.maximum(ask(toys, function, items.tolist()), -1), expected, does)


def test_cups_stand_where_the_group_says(toys):
    inputs, expected = GroupWords(GroupData(**WORDS), 2).draw_evaluation(np.random.RandomState(0), 20, 0)
    words = inputs - [6, *[0] * 15]
    found = ask(toys, "(items) => items.map((_, t) => T.cups.truth(items, {}, t))", words.tolist())
    np.testing.assert_array_equal(found, expected)
    assert ask(toys, "(items) => T.cups.ids(items)", words.tolist()) == inputs.tolist()


def of_the_task(items: list[int]) -> bool:
    return 2 <= len(items) <= 32 and set(items) <= {0, 1, 2, 3} and (np.diff(items) != 0).all()


def test_drawn_texts_are_of_the_task(toys):
    drawn = ask(toys, f"() => T.draw(T.hops, {json.dumps(TASK)}, Math.random)", [0] * 20)
    assert {len(items) for items in drawn} == {32} and all(map(of_the_task, drawn))


@settings(deadline=None, max_examples=60)
@given(typed=st.text(max_size=60) | st.text("abcdABCD e\n", max_size=60))
def test_any_letters_become_a_text_or_none(toys, typed):
    (found,) = ask(toys, f"(text) => T.read(T.hops, {json.dumps(TASK)}, text)", [typed])
    assert of_the_task(found["items"]) if found["items"] else found["said"]
    if not found["said"]:
        (again,) = ask(toys, f"(items) => T.write(T.hops, {json.dumps(TASK)}, items)", [found["items"]])
        assert again == "".join(typed.lower().split())


WHOLE = "#letters=abcabd&asked=4&hops=1&passes=3&model=1x4&off=2.1,3.4"
CARRIED = {"items": [0, 1, 2, 0, 1, 3], "asked": 3, "hops": 1, "passes": 3, "off": ["2.1", "3.4"]}
LINKS = [  # what is read, and of a bad value, of which the nearest is taken, a word
    (WHOLE, CARRIED | {"said": [], "written": WHOLE}, ""),
    ("", {"written": "#letters=abca&hops=2&passes=4&model=1x4"}, ""),
    ("#hops=9", {"hops": 4}, "hops"),
    ("#hops=many", {"hops": 2}, "hops"),
    ("#passes=1e9", {"passes": 64}, "passes"),
    ("#passes=0", {"passes": 1}, "passes"),
    ("#asked=99", {"asked": 3}, "asked"),
    ("#letters=aab", {"items": [0, 2, 1]}, "letter"),
    ("#letters=a<b>x", {"items": [0, 1]}, "a, b, c, d"),
    ("#letters=%E0%Z1", {"items": [0, 1, 2, 0]}, "letters"),
    ("#letters=" + "ab" * 40, {"items": [0, 1] * 16}, "32"),
    ("#off=2.1,2.9", {"off": ["2.1"]}, "pass.head"),
    ("#off=2.1,<b>", {"off": ["2.1"]}, "pass.head"),
    ("#off=60.1,4.4,5.1&passes=4", {"off": ["4.4"], "passes": 4}, "4.4"),
    ("#tries=7", {"tries": 7, "written": "#letters=abca&hops=2&passes=4&model=1x4&tries=7"}, ""),
    ("#tries=-1", {"tries": 0}, "tries"),
]


@pytest.mark.parametrize(("link", "expected", "said"), LINKS)
def test_a_link_carries_all_and_what_is_wrong_in_it_is_told(toys, link, expected, said):
    file = {"task": TASK, "config": {"num_layers": 1, "num_passes": 4, "num_heads": 4}}
    script = f"""(link) => {{
      var usual = {{ items: [0, 1, 2, 0], asked: 3, hops: 2, passes: 0 }};
      var found = S.complete({json.dumps(file)}, T.hops, T, S.fields(link), usual);
      var letters = T.write(T.hops, {json.dumps(TASK)}, found.items);
      var written = S.write(found, {{ toy: "hops", model: "1x4" }}, letters);
      return {{ ...found, off: [...found.off], written }};
    }}"""
    (found,) = ask(toys, script, [link])
    assert {key: found[key] for key in expected} == expected
    assert any(said in one for one in found["said"]) if said else found["said"] == []
