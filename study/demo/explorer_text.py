"""The texts that *Watch the loop* opens with, chosen by a rule from fresh ones, so that a head that is switched off is
missed on the first try.  How often it is missed on any text, the page counts itself.

A head *serves* in a pass on a text if it looks along the chain there (at a hop, or some moves back) and the model's
right answer is lost without it in this pass alone.
"""

import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from rtx_core.data.algorithmic import GroupWords, KHop, hop
from rtx_core.data.config import GroupData, HopData
from rtx_core.errors import RtxError
from rtx_core.models.looped import Looped
from rtx_core.paths import write_atomically
from study.demo.explorer import HERE, hop_places, stored_model, watched

MODELS = {"hops": "khop-1x6-random.js", "cups": "state-tracking-1x8.js"}  # that the page opens with
FOUR = (
    "khop-1x4.js",
    "khop-2x2.js",
    "khop-4x1.js",
)  # that apply a layer four times too, and are right on the text as on most
FARTHEST = 8  # hops that another model here follows; they lead somewhere too
LETTERS = 48  # of a text of hops: the model here reads its end, that of eight hops all of it
HOPS = PASSES = 4  # that are shown
TEXTS = 80_000  # that are looked through
APART = 3  # letters that each hop leads back, at least, so that one sees it
ALONG = [f"hop{k}" for k in range(1, HOPS + 1)]
STREAM = 5  # of the generator, beside those of validation (0), test (1) and the counts (4)


@torch.inference_mode()
def answers(
    model: Looped, ids: np.ndarray, at: int, options: int, passes: int, off=()
) -> tuple[np.ndarray, np.ndarray]:
    """(answers (passes, B), attention (passes, H, B, N)) at position `at` of texts (B, N); a pass
    is one application of one layer."""
    best, looks = [], []
    for weights, state in watched(model, torch.from_numpy(ids), passes, frozenset(off)):
        best.append(F.linear(model.norm(state[:, at]), model.head)[:, :options].argmax(-1).numpy())
        looks.append(weights[:, :, at].transpose(0, 1).numpy())
    return np.stack(best), np.stack(looks)


def serving(model: Looped, ids: np.ndarray, at: int, options: int, passes: int, true: np.ndarray, along) -> np.ndarray:
    """(passes, H, B): whether a head serves; `along(b)` are the places of text b along its chain."""
    whole, looks = answers(model, ids, at, options, passes)
    found = np.zeros(looks.shape[:3], dtype=bool)
    rows = [b for b in range(len(ids)) if whole[-1, b] == true[b]]
    strongest = looks.max(-1) >= HERE
    on_chain = np.array([np.isin(looks[:, :, b].argmax(-1), along(b)) for b in range(len(ids))]).transpose(1, 2, 0)
    for step, head in np.ndindex(*found.shape[:2]):
        without = answers(model, ids[rows], at, options, passes, [(step, head)])[0][-1]
        found[step, head, rows] = without != true[rows]
    return found & strongest & on_chain


def text_of_hops(model: Looped, others: list[Looped], alphabet: int) -> tuple[np.ndarray, list]:
    """The first text of which the model answers k hops rightly after pass k and not after the pass before, for each k,
    and the others four; in which after the first pass every pass has a head that serves; and which those are,
    as `chosen` gives them."""
    small = {"eval_texts": 16, "test_texts": 16}
    task = KHop(HopData(letters=LETTERS, alphabet=alphabet, hops=HOPS, **small), 2)
    items = task.fixed(np.random.RandomState([0, STREAM]), TEXTS, 0)[0][:, 1:]
    ids = np.pad(items[:, -32:], ((0, 0), (1, 0)), constant_values=alphabet + 1 + HOPS)
    found = hop_places(ids, alphabet, HOPS)
    places = np.stack([found[kind][:, -1] for kind in ("self", *ALONG)], 1)
    seen = (places[:, -1] >= 0) & (places[:, :-1] - places[:, 1:] >= APART).all(1)
    seen &= hop(items, np.full(TEXTS, FARTHEST), -1)[:, -1] >= 0
    items, ids, places = items[seen], ids[seen], places[seen]
    for k in range(1, HOPS + 1):
        ids[:, 0] = alphabet + 1 + k
        true = hop(ids[:, 1:], np.full(len(ids), k), -1)[:, -1]
        right = answers(model, ids, -1, alphabet, k)[0] == true
        seen = right[-1] & ~right[:-1][-1:].any(0)
        items, ids, places, true = items[seen], ids[seen], places[seen], true[seen]
    serves = serving(model, ids, -1, alphabet, PASSES, true, lambda b: places[b, 1:])
    good = serves[1:].any(1).all(0)
    for other in others:
        good &= answers(other, ids, -1, alphabet, PASSES)[0][-1] == true
    return chosen(items, serves, good)


def text_of_cups(model: Looped, letters: int) -> tuple[np.ndarray, list]:
    """The first text in which a head of a pass after the first serves, asked after as many moves as passes; and which
    do, as `chosen` gives them."""
    small = {"eval_texts": 16, "test_texts": 16}
    task = GroupWords(GroupData(group="S3", letters=letters, **small), 2)
    ids, targets = task.fixed(np.random.RandomState([0, STREAM]), TEXTS // 1600, 0)
    passes = model.config.num_passes
    at = passes - 1
    serves = serving(model, ids, at, 6, passes, targets[:, at], lambda b: np.arange(at))
    return chosen(ids - 6 * (np.arange(ids.shape[1]) == 0), serves, serves[1:].any((0, 1)))


def chosen(items: np.ndarray, serves: np.ndarray, good: np.ndarray) -> tuple[np.ndarray, list]:
    """The first good text and the (pass, head) that serve on it, both from 0; what serves on most texts comes first."""
    if not good.any():
        raise RtxError("No text shows what a head is for; look through more of them.")
    first = int(good.argmax())
    often = serves.mean(-1)
    return items[first], sorted(np.argwhere(serves[:, :, first]).tolist(), key=lambda part: -often[tuple(part)])


def texts(folder: Path) -> dict[str, dict]:
    """{toy: {letters, serves: ["pass.head", …]}} for the models in a folder."""
    (hops, header), (cups, other) = (stored_model(folder / name) for name in MODELS.values())
    others = [stored_model(folder / name)[0] for name in FOUR]
    found = {
        "hops": ("abcdefgh", *text_of_hops(hops, others, header["task"]["alphabet"])),
        "cups": ("nludro", *text_of_cups(cups, other["task"]["letters"])),  # as in toys.js
    }
    return {
        toy: {
            "letters": "".join(symbols[item] for item in items),
            "serves": [f"{step + 1}.{head + 1}" for step, head in serves],
        }
        for toy, (symbols, items, serves) in found.items()
    }


def write_texts(folder: str) -> Path:
    """`explorer-texts.js` beside the models."""
    target = Path(folder, "explorer-texts.js")
    content = json.dumps(texts(Path(folder)), indent=2)
    write_atomically(target, f"var rtxDemo = rtxDemo || {{}};\nrtxDemo.explorerTexts = {content};\n".encode())
    return target


def read_texts(folder: str | Path) -> dict[str, dict]:
    """What `write_texts` wrote."""
    content = Path(folder, "explorer-texts.js").read_text(encoding="utf-8")
    return json.loads(content.partition("explorerTexts = ")[2].rstrip().removesuffix(";"))
