"""The text that *Watch the loop* opens with as a picture: for readers without JavaScript, for print and for the PDF."""

import io
from itertools import pairwise
from pathlib import Path

import torch
import torch.nn.functional as F

from rtx_core.paths import write_atomically
from study.demo.explorer import hop_places, read_texts, stored_model, watched

GOLD, GREY, RIGHT, WRONG = "#b07a00", "#5c6370", "#25855e", "#c0434f"
HEADS = ("#5d6879", "#c2570c", "#6f7b1d", "#0f766e")
LEAST = 0.05  # attention that is drawn


def drawn(path: Path, text: str, hops: int = 4, passes: int = 4):
    """A matplotlib figure: the chain of hops, then for each pass where its heads look from the last letter, and what
    the answer is."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    (model, header), N = stored_model(path), len(text)
    letters = "abcdefgh"[: header["task"]["alphabet"]]
    ids = torch.tensor([[len(letters) + 1 + hops, *map(letters.index, text)]])
    places = hop_places(ids, hops)
    chain = [int(places[f"hop{k}"][0, -1]) for k in range(1, hops + 1)]
    fig = Figure(figsize=(7.6, 1 + 0.8 * passes), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-5, N + 6), ylim=(-passes - 0.3, 0.9))
    ax.axis("off")

    def arc(start: int, end: int, row: int, **style) -> None:
        look = {"arrowstyle": "-", "connectionstyle": "arc3,rad=0.3", "shrinkA": 0, "shrinkB": 0} | style
        ax.annotate("", (end, 0.2 - row), (start, 0.2 - row), arrowprops=look)

    for row in range(passes + 1):
        ax.text(-5, -row, f"pass {row}" if row else f"{hops} hops", color=GREY if row else GOLD, fontsize=9)
        for t, letter in enumerate(text, 1):
            marked = {"color": GOLD, "fontweight": "bold"} if t in (*chain, N) else {"color": GREY}
            ax.text(t, -row, letter, ha="center", fontsize=8, **marked)
    for start, end in pairwise([N, *chain]):
        arc(start, end, 0, color=GOLD, linewidth=1.5)
    for row, (weights, state) in enumerate(watched(model, ids, passes), 1):
        for head, looks in enumerate(weights[0, :, -1].tolist()):
            for place, weight in enumerate(looks[1:N], 1):
                if weight >= LEAST:
                    arc(N, place, row, color=HEADS[head], linewidth=0.5 + 3 * weight, alpha=0.3 + 0.6 * weight)
        best = int(F.linear(model.norm(state[0, -1]), model.head)[: len(letters)].argmax())
        said = "right" if best == ids[0, chain[-1]] else "wrong"
        ax.text(N + 1.5, -row, f"{letters[best]}: {said}", color=RIGHT if said == "right" else WRONG, fontsize=9)
    heads = [Line2D([], [], color=color, linewidth=2, label=f"head {n}") for n, color in enumerate(HEADS, 1)]
    fig.legend(handles=heads, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return fig


def write_picture(folder: str) -> Path:
    """The figure as explorer.svg beside a folder of models and its texts, the same bytes every time."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "explorer", "font.family": "sans-serif"}):
        content = io.BytesIO()
        figure = drawn(Path(folder, "khop-1x6-random.js"), read_texts(folder)["hops"]["letters"][-32:])
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    target = Path(folder).parent / "explorer.svg"
    write_atomically(target, content.getvalue())
    return target
