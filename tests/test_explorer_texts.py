"""What *Watch the loop* says of a text: what heads do in it, which letters are read, and the texts it opens with."""

import json
import re
import shutil

import numpy as np
import torch
import torch.nn.functional as F
from test_demo import DEMO, ask, v8
from test_explorer import TASK, TOYS, texts

from rtx_core.data.algorithmic import hop, products
from study.demo.explorer import HERE, hop_places, stored_model, watched
from study.demo.explorer_picture import trail, write_picture
from study.demo.explorer_text import FOUR, HOPS, MODELS, PASSES, read_texts, serving

FOLDER = DEMO / "models"
OPENED = read_texts(FOLDER)
EXAMPLE = OPENED["hops"]["letters"][-32:]


def toys():
    return v8(DEMO / "toys.js", DEMO / "explorer-state.js", TOYS)


def random_attention(generator: np.random.RandomState, rows: int, n: int) -> np.ndarray:
    """(rows, n): some rows with most on one place, some spread out."""
    drawn = generator.dirichlet(np.ones(n), rows)
    peak = generator.choice([0.05, 0.3, 0.5, 0.9], rows)
    drawn *= (1 - peak)[:, None]
    drawn[np.arange(rows), generator.randint(n, size=rows)] += peak
    return drawn


def test_a_head_is_said_to_do_what_it_does_in_this_text():
    generator, context = np.random.RandomState(1), toys()
    inputs = texts({"task": TASK}, 4)
    at = 32
    looks = random_attention(generator, 120, at + 1)
    for text in inputs:
        places = {kind: where[0, at] for kind, where in hop_places(text[None], 4, 4).items()}
        script = f"""(weights) => ["hop1", "spread", "earlier"].map((usual) =>
          T.doesHere(T.hops, {json.dumps(TASK)}, {text[1:].tolist()}, {at - 1}, weights, usual))"""
        for weights, found in zip(looks, ask(context, script, looks.tolist())):
            best = weights.argmax()
            if weights[best] < HERE:
                assert found == ["spread"] * 3
                continue
            named = [kind for kind, place in places.items() if place == best and kind != "back1"]
            for usual, does in zip(("hop1", "spread", "earlier"), found):
                assert does == (f"back{at - best}" if not named else usual if usual in named else does)
                assert does in named or not named
    weights = [0.02] * 7 + [0.9, 0.02]
    (found,) = ask(context, "(w) => T.doesHere(T.cups, {}, [0, 1, 2, 3, 4, 5, 0, 1, 2], 8, w, 'spread')", [weights])
    assert found == "back1"


def test_what_the_passes_read_is_followed_back_from_the_asked_letter():
    generator, context = np.random.RandomState(2), toys()
    looks = "(step, item) => steps[step].map((head) => head[item + 1].slice(0, item + 2))"
    script = f"(steps) => T.trail(steps.length, 10, [9, 8, 5, 4, 2, 0], 1, {looks})"
    for _ in range(20):
        steps = np.stack([[random_attention(generator, 12, 12) for _ in range(2)] for _ in range(4)])
        (found,) = ask(context, script, [steps.tolist()])
        assert [item + 1 for item in found] == trail(list(steps), [10, 9, 6, 5, 3, 1])
    steps = np.zeros((3, 1, 12, 12))
    steps[2, 0, 11, 7] = steps[1, 0, 7, 4] = 0.9  # the first step is read at 4
    assert trail(list(steps), [7, 4]) == [4, 7, 11] and trail(list(steps), [7]) == [7, 7, 11]


def answered(model, ids: np.ndarray, at: int, options: int, passes: int, off=()) -> list[int]:
    """The answer of one text after each pass."""
    states = [state for _, state in watched(model, torch.from_numpy(ids[None]), passes, frozenset(off))]
    with torch.inference_mode():
        return [int(F.linear(model.norm(state[0, at]), model.head)[:options].argmax()) for state in states]


def test_the_text_of_hops_needs_every_pass_and_heads_in_each():
    model, _ = stored_model(FOLDER / MODELS["hops"])
    items = np.array(["abcd".index(letter) for letter in EXAMPLE])
    for k in range(1, HOPS + 1):
        ids, true = np.array([5 + k, *items]), hop(items[None], np.array([k]), -1)[0, -1]
        right = [answer == true for answer in answered(model, ids, -1, 4, k)]
        assert right[-1] and not any(right[k - 2 : -1])
    for name in FOUR:
        assert answered(stored_model(FOLDER / name)[0], ids, -1, 4, PASSES)[-1] == true
    places = hop_places(ids[None], 4, HOPS)
    on_chain = [places[f"hop{k}"][0, -1] for k in range(1, HOPS + 1)]
    found = serving(model, ids[None], -1, 4, PASSES, np.array([true]), lambda b: on_chain)[:, :, 0]
    assert [f"{step + 1}.{head + 1}" for step, head in np.argwhere(found)] == sorted(OPENED["hops"]["serves"])
    assert found[1:].any(1).all()
    attention = [weights[0] for weights, _ in watched(model, torch.from_numpy(ids[None]), PASSES)]
    for step, head in np.argwhere(found):
        assert attention[step][head, -1].max() >= HERE and int(attention[step][head, -1].argmax()) in on_chain
        assert answered(model, ids, -1, 4, PASSES, [(step, head)])[-1] != true


def test_the_text_of_cups_is_right_and_a_head_is_missed():
    model, header = stored_model(FOLDER / MODELS["cups"])
    passes = model.config.num_passes
    moves = np.array(["nludro".index(move) for move in OPENED["cups"]["letters"]])
    assert len(moves) == header["task"]["letters"]
    true, table = moves[0], products("S3")
    for move in moves[1:passes]:
        true = table[true, move]
    ids = moves + 6 * (np.arange(len(moves)) == 0)
    assert answered(model, ids, passes - 1, 6, passes)[-1] == true
    parts = [tuple(int(n) - 1 for n in part.split(".")) for part in OPENED["cups"]["serves"]]
    assert any(step > 0 for step, _ in parts)
    for part in parts:
        assert answered(model, ids, passes - 1, 6, passes, [part])[-1] != true


def test_cups_are_counted_at_the_move_that_is_shown():
    model, header = stored_model(FOLDER / MODELS["cups"])
    content = (FOLDER / MODELS["cups"]).read_text(encoding="utf-8")
    later = "var wait = [], setTimeout = (f) => wait.push(f), clearTimeout = () => {};"
    files = [DEMO / name for name in ("looped.js", "toys.js", "explorer-count.js")]
    name = MODELS["cups"].removesuffix(".js")
    context = v8(
        later,
        *files,
        content,
        f"var E = rtxDemo.looped(), model = E.open(rtxDemo.files[{name!r}]), T = rtxDemo.toys();",
    )
    script = """(asked) => {
      var last, state = { asked, hops: 0, off: new Set(["3.3", "4.3"]) };
      rtxDemo.countTexts(E, T, model, T.cups, state, 8, 40, (found) => (last = found));
      while (wait.length) wait.shift()();
      return last; }"""
    early, late = ask(context, script, [7, 15])
    assert early["finished"] and early["whole"] > 0.9 > 0.7 > late["whole"]  # as `right` in its file
    assert early["without"] < early["whole"]
    assert header["right"][7][7] > 0.98 and header["right"][15][7] < 0.5


def test_the_recorded_example_is_the_pages_drawn_from_its_model(tmp_path):
    (tmp_path / "models").mkdir()
    for name in (MODELS["hops"], "explorer-texts.js"):
        shutil.copy(FOLDER / name, tmp_path / "models")
    drawn, kept = (path.read_text() for path in (write_picture(tmp_path / "models"), DEMO / "explorer.svg"))
    words, expected = (re.findall(r">([^<>]+)</text>", text) for text in (drawn, kept))
    assert words == expected and {"pass 4", "hop 4", "head 4: hop 1"} <= set(words)
    assert [word for word in words if word in ("right", "wrong")] == ["wrong"] * 3 + ["right"]
