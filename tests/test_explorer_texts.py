"""What *Watch the loop* says of a text: what heads do in it, which letters are read, and the texts it opens with."""
# ruff: noqa: F811  (fixtures)

import json
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from test_demo import DEMO, ask, v8
from test_explorer import TASK, texts, toys  # noqa: F401

from rtx_core.data.algorithmic import hop, products
from study.demo.explorer import hop_places, read_texts, stored_model, watched

FOLDER = DEMO / "models"
OPENED = read_texts(FOLDER)
EXAMPLE = OPENED["hops"]["letters"][-32:]
HERE = 0.4  # of a head's attention on one place, for the page to say what it does, as in toys.js


def test_a_head_is_said_to_do_what_it_does_in_this_text(toys):
    generator, at = np.random.RandomState(1), 32
    looks = 0.5 * generator.dirichlet(np.ones(at + 1), 120)
    looks[np.arange(120), generator.randint(at + 1, size=120)] += generator.choice([0, 0.3, 0.5], 120)
    for text in texts({"task": TASK}, 4):
        places = {kind: int(where[0, at]) for kind, where in hop_places(torch.from_numpy(text[None]), 4).items()}
        script = f"""(weights) => ["hop1", "spread", "earlier"].map((usual) =>
          T.doesHere(T.hops, {json.dumps(TASK)}, {text[1:].tolist()}, {at - 1}, weights, usual))"""
        for weights, found in zip(looks, ask(toys, script, looks.tolist())):
            best = weights.argmax()
            named = [kind for kind, place in places.items() if place == best and kind != "back1"]
            for usual, does in zip(("hop1", "spread", "earlier"), found):
                if weights[best] < HERE:
                    assert does == "spread"
                elif named:
                    assert does in named and (does == usual or usual not in named)
                else:
                    assert does == f"back{at - best}"
    weights = [0.02] * 7 + [0.9, 0.02]
    (found,) = ask(toys, "(w) => T.doesHere(T.cups, {}, [0, 1, 2, 3, 4, 5, 0, 1, 2], 8, w, 'spread')", [weights])
    assert found == "back1"


def test_what_the_passes_read_is_followed_back_from_the_asked_letter(toys):
    looks = "(step, item) => steps[step].map((head) => head[item + 1].slice(0, item + 2))"
    steps = np.zeros((3, 1, 12, 12))
    steps[2, 0, 11, 7] = steps[1, 0, 7, 4] = 0.9  # the first step is read at 4
    for chain, expected in (([6, 3], [3, 6, 10]), ([6], [6, 6, 10])):
        (found,) = ask(toys, f"(steps) => T.trail(steps.length, 10, {chain}, 1, {looks})", [steps.tolist()])
        assert found == expected


def answered(model, ids: list[int], at: int, options: int, passes: int, off=()) -> list[int]:
    """The answer of one text after each pass, with parts "pass.head" switched off."""
    off = frozenset(tuple(int(n) - 1 for n in part.split(".")) for part in off)
    states = [state for _, state in watched(model, torch.tensor([ids]), passes, off)]
    return [int(F.linear(model.norm(state[0, at]), model.head)[:options].argmax()) for state in states]


def test_the_text_of_hops_needs_every_pass_and_heads_in_each():
    """Two layers run once fail where a second pass gets all four hops right; a layer of its own gets a hop a pass."""
    once, twice, random = (stored_model(FOLDER / f"khop-{name}.js")[0] for name in ("2x1", "2x2", "1x6-random"))
    items = ["abcd".index(letter) for letter in EXAMPLE]
    for k in (1, 2, 3, 4):
        ids, true = [5 + k, *items], hop(np.array([items]), np.array([k]), -1)[0, -1]
        assert [answer == true for answer in answered(random, ids, -1, 4, k)] == [False] * (k - 1) + [True]
        assert (answered(once, ids, -1, 4, 2)[-1] == true) == (k <= 2)
        first, second = answered(twice, ids, -1, 4, 4)[1::2]
        assert (first == true) == (k == 1) and second == true
    for name in ("1x4", "4x1"):
        assert answered(stored_model(FOLDER / f"khop-{name}.js")[0], ids, -1, 4, 4)[-1] == true
    assert {part[0] for part in OPENED["hops"]["serves"]} == {"1", "2", "3", "4"}
    for part in OPENED["hops"]["serves"]:
        assert answered(twice, ids, -1, 4, 4, [part])[-1] != true


def test_the_text_of_cups_is_right_and_a_head_is_missed():
    model, header = stored_model(FOLDER / "state-tracking-1x8.js")
    moves, table = ["nludro".index(move) for move in OPENED["cups"]["letters"]], products("S3")
    assert len(moves) == header["task"]["letters"]
    true, ids = reduce(lambda x, y: table[x, y], moves[:8]), [moves[0] + 6, *moves[1:]]
    assert answered(model, ids, 7, 6, 8)[-1] == true
    assert any(part > "2" for part in OPENED["cups"]["serves"])
    for part in OPENED["cups"]["serves"]:
        assert answered(model, ids, 7, 6, 8, [part])[-1] != true


def test_cups_are_counted_at_the_move_that_is_shown():
    name, later = "state-tracking-1x8", "var wait = [], setTimeout = (f) => wait.push(f), clearTimeout = () => {};"
    _, header = stored_model(FOLDER / f"{name}.js")
    files = [DEMO / "forward.js", DEMO / "toys.js", DEMO / "explorer-count.js", FOLDER / f"{name}.js"]
    opened = f"var E = rtxDemo.forward().decoder, model = E.open(rtxDemo.files[{name!r}]), T = rtxDemo.toys();"
    script = """(asked) => {
      var last, state = { asked, hops: 0, off: new Set(["3.3", "4.3"]) };
      rtxDemo.countTexts(E, T, model, T.cups, state, 8, 40, (found) => (last = found));
      while (wait.length) wait.shift()();
      return last; }"""
    early, late = ask(v8(later, *files, opened), script, [7, 15])
    assert early["finished"] and early["whole"] > 0.9 > 0.7 > late["whole"]  # as `right` in its file
    assert early["without"] < early["whole"]
    assert header["right"][7][7] > 0.98 and header["right"][15][7] < 0.5
