"""A recorded example of *Watch the loop* as a picture: for readers without JavaScript, for print and for the PDF."""

import io
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from rtx_core.data.algorithmic import hop
from rtx_core.paths import write_atomically
from study.demo.explorer import HERE, hop_places, stored_model, watched
from study.demo.explorer_text import MODELS, read_texts

COLOURS = {"follow": "#0f766e", "jump": "#c2570c", "previous": "#5d6879", "back": "#6f7b1d", "rest": "#a3abb8"}
GOLD, GREY, RIGHT, WRONG = "#b07a00", "#5c6370", "#25855e", "#c0434f"
GUTTER = -8.5  # left of the letters, for words
LEAST = 0.05  # attention that is drawn


def kind_of(looks: np.ndarray, places: dict[str, np.ndarray], at: int, letter: str) -> tuple[str, str]:
    """A head's color and words, as explorer-words.js has them, from its attention by place at position `at`."""
    kinds = ["earlier", *(kind for kind in places if kind.startswith("hop"))]
    best = next((kind for kind in kinds if places[kind][0, at] == looks.argmax()), "")
    if not best or looks.max() < HERE:
        return "rest", ""
    if best == "earlier":
        return "previous", f"previous {letter}"
    return ("follow" if best == "hop1" else "jump"), f"hop {best[3:]}"


def drawn(path: Path, letters: str, hops: int = 4, passes: int = 4):
    """A matplotlib figure: the chain of hops, and for each pass where its heads look and what the answer is.  Dashed:
    where they look from the letter that the next pass reads."""
    from matplotlib.figure import Figure

    model, header = stored_model(path)
    items = np.array(["abcdefgh".index(letter) for letter in letters])
    alphabet, N = header["task"]["alphabet"], len(letters)
    inputs = np.concatenate(([alphabet + 1 + hops], items))[None]
    places = hop_places(inputs, alphabet, hops)
    chain = [(places["earlier"][0, at], to) for at, to in steps_along(places, hops, N)]
    true = hop(items[None], np.array([hops]), -1)[0, -1]
    fig = Figure(figsize=(7.6, 1 + 0.95 * passes), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(7, 1))
    for ax in (left, right):
        ax.axis("off")
    top = 1.15 * passes
    left.set(xlim=(GUTTER, N + 1.2), ylim=(-0.3, top + 1.2))
    right.set(xlim=(-0.7, alphabet + 1.5), ylim=(-0.3, top + 1.2))
    gold = {to for _, to in chain}
    row(left, letters, top, N, gold, size=10)
    at = N
    for number, (back, to) in enumerate(chain, 1):
        height = arc(left, at, back, top + 0.32, 0.55, color=GOLD, linewidth=1.5)
        left.annotate("", (to - 0.2, top + 0.28), (back, top + 0.28), arrowprops={"arrowstyle": "->", "color": GOLD})
        left.text((at + back) / 2, top + 0.36 + height, f"hop {number}", color=GOLD, ha="center", fontsize=7.5)
        at = to
    seen = list(watched(model, torch.from_numpy(inputs), passes))
    path = trail([weights[0].numpy() for weights, _ in seen], [to for _, to in chain])
    for step, (weights, state) in enumerate(seen):
        base = top - 1.15 * (step + 1)
        row(left, letters, base, N, gold, size=7.5)
        left.text(GUTTER, base + 0.72, f"pass {step + 1}", color=GREY, fontsize=9, fontweight="bold")
        solved = np.cumprod([shares[step] > 0.9 for shares in header["right"][1:]]).sum()
        left.text(GUTTER + 3.2, base + 0.72, "●" * solved + "○" * (hops - solved), color=GOLD, fontsize=7.5)
        lines = 0
        for at, least, look in ((path[step], 0.2, "--"), (N, LEAST, "-")):
            for head, looks in enumerate(weights[0, :, at].numpy()):
                kind, words = kind_of(looks, places, at, letters[at - 1])
                for place, weight in enumerate(looks[:at].tolist()):
                    if weight >= least and (place or at == N):
                        strong = 0.8 + (1 if kind == "rest" else 3.5) * weight
                        alpha = (0.25 if kind == "rest" else 0.3) + 0.6 * weight * (kind != "rest")
                        style = {"color": COLOURS[kind], "linewidth": strong, "alpha": alpha, "linestyle": look}
                        arc(left, at, place, base + 0.17, 0.65, **style)
                if words and at == N and look == "-":
                    y = base + 0.5 - 0.2 * lines
                    left.text(GUTTER, y, f"head {head + 1}: {words}", color=COLOURS[kind], fontsize=7.5)
                    lines += 1
        logits = F.linear(model.norm(state[0, -1]), model.head)[:alphabet]
        shares = logits.softmax(-1).tolist()
        best = int(np.argmax(shares))
        for i, share in enumerate(shares):
            color = (RIGHT if best == true else WRONG) if i == best else "#c3c8d1"
            right.bar(i, 0.62 * share, 0.75, base + 0.14, color=color)
            right.text(i, base - 0.12, "abcdefgh"[i], color=GREY, ha="center", fontsize=7.5)
        mark = "right" if best == true else "wrong"
        right.text(alphabet - 0.3, base + 0.2, mark, color=RIGHT if best == true else WRONG, fontsize=8)
    return fig


def trail(steps: list[np.ndarray], chain: list[int]) -> list[int]:
    """The place of the chain that is read next, for each step, as in toys.js: from attention (H, N, N) of each."""
    found, at = [], len(steps[0][0]) - 1
    for weights in reversed(steps):
        found.append(at)
        looks = {place: weights[:, at, place].max() for place in chain if place < at}
        best = max(looks, key=looks.get, default=at)
        at = best if looks.get(best, 0) >= HERE else at
    return found[::-1]


def steps_along(places: dict[str, np.ndarray], hops: int, at: int):
    """(from, to) of each hop from position `at`."""
    for k in range(1, hops + 1):
        to = int(places[f"hop{k}"][0, -1])
        if to < 0:
            return
        yield at, to
        at = to


def row(ax, letters: str, y: float, asked: int, gold: set[int], size: float) -> None:
    for t, letter in enumerate(letters, 1):
        color, weight = (GOLD, "bold") if t in gold or t == asked else (GREY, "normal")
        ax.text(t, y - 0.12, letter, ha="center", color=color, fontweight=weight, fontsize=size)


def arc(ax, start: float, end: float, base: float, most: float, **style) -> float:
    """From a position to one at its left, so high."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    height = min(most, 0.13 + 0.13 * (start - end) ** 0.6)
    up = base + height * 4 / 3
    points = [(start, base), (start, up), (end, up), (end, base)]
    curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
    ax.add_patch(PathPatch(curve, fill=False, **style))
    return height


def write_picture(folder: str, **example) -> Path:
    """The figure as explorer.svg beside a folder of models and its text, the same bytes every time."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "explorer", "font.family": "sans-serif"}):
        content = io.BytesIO()
        letters = read_texts(folder)["hops"]["letters"][-32:]
        figure = drawn(Path(folder, MODELS["hops"]), **{"letters": letters} | example)
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    target = Path(folder).parent / "explorer.svg"
    write_atomically(target, content.getvalue())
    return target
