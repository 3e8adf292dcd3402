"""The theory page: what looping buys, the gradient by pass, rotary positions, gated units, and where [CLS] looks."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rtx_core.errors import RtxError
from rtx_core.pages import display, gates
from rtx_core.pages.display import Displayed
from rtx_core.pages.figure import PALETTE, canvas
from rtx_core.pages.measured import gap, listed, missing, notes, where
from rtx_core.pages.runs import architectures, recorded
from rtx_core.pages.table import title, with_interval
from rtx_core.parameters import CLASSIFIERS
from rtx_core.results import measurement
from rtx_core.results.record import Record
from rtx_core.results.statistics import ENOUGH_SEEDS, common, difference, equals, over_seeds
from rtx_core.tasks import task

EXPONENT = 0.46  # φ: r passes are worth r^φ independent layers (Schwethelm et al. 2026, abstract), of language models
LOOPED = "recurrent"  # whose layers are run other numbers of times
READ_AS = {"The plot is thin, but the acting is a joy to watch.": "positive"}  # sentences of our own -> their class as we read them
interactive = gates.interactive


# -- depth -------------------------------------------------------------------------------------------------------------


def depth(source: str, *, label: str) -> Displayed:
    """The models, the recurrent one with other numbers of passes, and as many independent layers as it applies."""
    rows, told = [], {}
    for name, model in architectures().items():
        n, passes = model["config"]["num_layers"], model["config"]["num_passes"]
        forms = [(title(name), n, passes)]
        if name == LOOPED:
            forms += [(f"– its layers {_times(times)}", n, times) for times in (1, passes + 1)] + [("– its depth, unshared", n * passes, 1)]
        for form, stored, times in forms:
            records, notes_of = _trained(source, name, stored, times)
            told |= {f"{form.removeprefix('– ')}: {note}": None for note in notes_of}
            rows.append({
                "Model": form, "Width": model["config"]["hidden_size"], "Layers": f"{stored} × {times}", "Depth": stored * times,
                "Weights (M)": f"{stored * model['parameters']['layer'] / 1e6:.2f}",
                "MFLOPs": f"{model['flops_per_token'] * stored * times / model['effective_depth'] / 1e6:.1f}",
                "Accuracy": with_interval(records) if records else None, "Selected epoch": _epochs(records) or None,
                "Test loss": f"{np.mean([r['test']['loss'] for r in records]):.4f}" if records else None,
            })  # fmt: skip
    note = (
        "Layers: stored × passes. Weights: parameters of the stored layers. MFLOPs: matrix products of a forward pass, for a token. Accuracy and test "
        "loss: trained on 10 % of SST-2 by the report's protocol, on the pooled test part; of one seed with Wilson's 95 % interval over texts, which knows "
        "nothing of other seeds, or the mean of several with Student's. Selected epoch: of each seed, that of the lowest validation loss. Rows of different "
        "seeds are compared below, on the seeds that they share. A dash: not measured."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="What a loop stores and what it computes.", note=" ".join([note, *told]))


def _trained(source: str, model: str, stored: int, times: int) -> tuple[list[Record], list[str]]:
    """The records of a model with so many layers run so many times, by the full protocol on 10 % of SST-2, and their notes."""
    config = architectures()[model]["config"]
    changed = {"num_layers": stored * (stored != config["num_layers"]), "num_passes": times * (times != config["num_passes"])}
    full = [one for one in recorded(task("sst2-10pct", where(source)).but(models=[model], **changed)).budgets if not one.budget and one.records]
    return (full[0].of(model), full[0].notes) if full else ([], [])


def _epochs(records: list[Record]) -> str:
    """The epoch of the selected checkpoint of each seed."""
    rows = [next(row for row in record["history"] if row["step"] == record["selected"]["step"]) for record in records]
    return " / ".join(f"{row['epoch']:g}" for row in rows)


def depth_reading(source: str) -> Displayed:
    """Whether further passes raise accuracy or lower the test loss: the values on the seeds that all numbers of passes have, and each step to
    one pass more on those of the two."""
    found = _by_passes(source)
    seeds = common(*found.values()) if found else []
    if len(found) < 2 or not seeds:
        return display.text("Whether further passes help is not measured yet.")
    times, same = list(found), dict(zip(found, map(list, zip(*seeds))))
    accuracy, loss = (_means(same, lambda record: record["test"][name]) for name in ("accuracy", "loss"))
    end = _means(same, lambda record: record["history"][-1]["validation_accuracy"])
    steps = [(few, many, difference(found[many], found[few])) for few, many in zip(times, times[1:])]
    rises, falls = ([d.sign for *_, d in steps].count(sign) or "none" for sign in (1, -1))
    numbers = [str(record["seed"]) for record in same[times[0]]]
    said = [
        f"On {f'seeds {listed(numbers)}, in the mean' if len(numbers) > 1 else f'seed {numbers[0]}'}, {title(LOOPED)} with its layers run "
        f"{listed([_times(n) for n in times])} has an accuracy of {_values(accuracy)} and a test loss of {_values(loss)} "
        f"(selected after epoch {listed([_epochs(records) for records in same.values()])}).",
        *(f"Run {_times(many)} minus run {_times(few)}: accuracy {d}; test loss {_loss_change(found[few], found[many])}." for few, many, d in steps),
        f"Of {len(steps)} steps to more passes, accuracy rises significantly in {rises} and falls in {falls}.",
    ]
    best, lowest = max(accuracy, key=accuracy.get), min(loss, key=loss.get)
    if best != lowest:
        said.append(f"There accuracy is highest with the layers run {_times(best)}, and the test loss lowest with them run {_times(lowest)}.")
    if len({_epochs(records) for records in same.values()}) > 1:
        said.append(
            "A checkpoint is selected by its validation loss, and those compared here are of different epochs, so part of a difference is how long a model "
            f"had learned by then; after the last epoch, whatever was selected, the validation accuracies are {_values(end)}."
        )
    if (fewest := min(d.seeds for *_, d in steps)) < ENOUGH_SEEDS:
        said.append(f"{'One seed tells' if fewest == 1 else f'{fewest} seeds tell'} trained models apart, not numbers of passes.")
    return display.text(" ".join(said))


def _by_passes(source: str) -> dict[int, list[Record]]:
    """Number of passes -> the records of the recurrent model's layers run so often."""
    config = architectures()[LOOPED]["config"]
    found = {times: _trained(source, LOOPED, config["num_layers"], times)[0] for times in range(1, config["num_passes"] + 2)}
    return {times: records for times, records in found.items() if records}


def _means(found: dict[int, list[Record]], score: Callable[[Record], float]) -> dict[int, float]:
    return {times: float(np.mean([score(record) for record in records])) for times, records in found.items()}


def _values(by_passes: dict[int, float]) -> str:
    return listed([f"{value:.4f}" for value in by_passes.values()])


def _loss_change(few: list[Record], many: list[Record]) -> str:
    first, second = zip(*((b["test"]["loss"], a["test"]["loss"]) for a, b in common(few, many)))
    if len(first) < ENOUGH_SEEDS:
        return f"{np.mean(first) - np.mean(second):+.4f}"
    value, low, high, p = over_seeds(first, second)
    return f"{value:+.4f} (95 % interval {low:+.4f} to {high:+.4f}; paired t-test over seeds, p {equals(p)})"


def exchange(source: str) -> Displayed:
    """What the loop stores and computes in a sentence, and the published rate of exchange between passes and layers, if it held here."""
    known, found = architectures(), _by_passes(source)
    model = known["recurrent-wide"]
    n, passes, once = model["config"]["num_layers"], model["config"]["num_passes"], known["baseline"]
    if common(found.get(1, []), found.get(passes, [])):
        helps = gap(found[passes], found[1]).sign > 0
        here = f"the accuracies above {'agree' if helps else 'do not show'} that running the layers {_times(passes)} helps"
    else:
        here = "whether a further pass helps here is not measured yet"
    return display.text(
        f"At the baseline's width the loop stores {n * model['parameters']['layer'] / 1e6:.1f} million parameters in its layers instead of "
        f"{once['config']['num_layers'] * once['parameters']['layer'] / 1e6:.1f} million, and spends {model['flops_per_token'] / once['flops_per_token']:.2f} "
        f"times the FLOPs: it saves memory and no time. "
        f"For language models {{cite:t}}`schwethelm2026recurrence` find that a block run $r$ times is worth $r^{{{EXPONENT}}}$ independent ones. "
        f"For these classifiers {here}; only if the rate held would {n} layers run {_times(passes)} be worth {n * passes**EXPONENT:.1f} independent "
        f"layers, at the price of {n * passes}."
    )


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


# -- the gradient ------------------------------------------------------------------------------------------------------


def gradient(model: str, num_passes: int, seed: int, *, label: str) -> Displayed:
    """Norm of each pass's gradient and of their sum, for every shared layer of a fresh model; the identity, checked by autograd."""
    from rtx_core.evaluation.identities import shared_gradient  # needs torch

    if num_passes < 2:
        raise RtxError(f"Parameter num_passes is {num_passes}; a sum over passes needs at least 2.")
    found = shared_gradient(model, num_passes, seed)
    rows = []
    for i, layer in enumerate(found["layers"], start=1):
        row = {"Shared layer": str(i)} | {f"Pass {r}": f"{norm:.3f}" for r, norm in enumerate(layer["passes"], start=1)}
        row |= {"Sum of norms": f"{sum(layer['passes']):.3f}", "Norm of the sum": f"{layer['sum']:.3f}"}
        rows.append(row | {"Cosine of neighbors": ", ".join(f"{c:.3f}" for c in layer["cosines"])})
    note = (
        f"{title(model)}, {found['parameters']:,} shared parameters, seed {seed}, float64, no dropout, random tokens. The gradient of the shared "
        f"parameters and the sum of the copies' gradients {_apart(found['error'], 'at most ', ' in relative terms')}; the two losses "
        f"{_apart(found['loss_difference'])}."
    )
    caption = f"Gradients by pass of a freshly initialized model that runs its layers {_times(num_passes)}."
    return display.table(pd.DataFrame(rows), label=label, caption=caption, note=note)


def _apart(x: float, before: str = "", after: str = "") -> str:
    return f"differ by {before}{x:.0e}{after}" if x else "are equal to the last bit"


# -- rotary positions --------------------------------------------------------------------------------------------------


def relative_offset(furthest: int) -> Displayed:
    """The relative-offset property of the models' own rotation, in numbers."""
    from rtx_core.evaluation.identities import relative_offset as check  # needs torch

    config = architectures()["baseline"]["config"]
    size = config["hidden_size"] // config["num_heads"]
    found = check(size, config["rope_base"], furthest)
    return display.text(
        f"With the models' own `rotate`, heads of size {size} and one random pair of query and key, moving both by up to {furthest - 1} positions changes "
        f"their score by at most {found['shifted']:.0e} of $\\lVert q \\rVert \\lVert k \\rVert$, which is rounding in float32; moving only one of them "
        f"changes it by up to {found['moved']:.2f}. The length of the query changes by at most {found['length']:.0e} of itself."
    )


def similarity(size: int, offsets: np.ndarray, base: float) -> np.ndarray:
    """s(m) = 2/D Σ_i cos(m θ_i): the score of a vector with itself m positions on, all pairs weighing the same; s(0) = 1."""
    theta = base ** (-np.arange(0, size, 2) / size)
    return np.cos(np.outer(offsets, theta)).mean(1)


def collisions(size: int, furthest: int, base: float) -> np.ndarray:
    """Offsets beyond 1 whose token looks at least as near as the neighbour does: s(m) ≥ s(1)."""
    offsets = np.arange(2, furthest)
    return offsets[similarity(size, offsets, base) >= similarity(size, np.ones(1), base)]


def aliasing(sizes: list[int], furthest: int, *, label: str) -> Displayed:
    """Similarity by offset, a row a head size, with the collisions marked above it and counted beside it."""
    if not sizes or any(size < 2 or size % 2 for size in sizes):
        raise RtxError(f"Parameter head_sizes is {sizes}; expected even numbers, as coordinates are rotated in pairs.")
    if furthest < 3:
        raise RtxError(f"Parameter furthest is {furthest}; expected at least 3 offsets.")
    base = architectures()["baseline"]["config"]["rope_base"]
    fig, (ax,) = canvas(height=0.55 * len(sizes) + 1.2)
    ax.grid(False)
    said = []
    for row, size in enumerate(sizes):
        strip = similarity(size, np.arange(furthest), base)[None]
        image = ax.imshow(strip, extent=(0, furthest, row + 0.42, row - 0.2), aspect="auto", cmap="cividis", vmin=-1, vmax=1, interpolation="nearest")
        hits = collisions(size, furthest, base)
        ax.vlines(hits, row - 0.42, row - 0.24, color=PALETTE[3], linewidth=0.6)
        ax.text(1.01 * furthest, row + 0.1, f"{len(hits)}", va="center", fontsize=9)
        said.append(f"{size}: {len(hits)}")
    ax.text(1.01 * furthest, -0.75, "collisions", va="center", fontsize=9)
    ax.set(xlim=(0, furthest), ylim=(len(sizes) - 0.5, -0.5), yticks=range(len(sizes)), yticklabels=sizes, xlabel="offset m", ylabel="head size D")
    fig.colorbar(image, ax=ax, label="s(m)", shrink=0.8, pad=0.12)
    caption = (
        f"Similarity $s(m)$ of a token to itself $m$ positions on, for {furthest:,} offsets and several head sizes; bright where the rotation is almost "
        "the identity. A mark above a strip is a collision, an offset that looks as near as the next token."
    )
    alt = f"Strips of similarity against offset, one for each head size. Collisions among offsets 2 to {furthest - 1} by head size: {', '.join(said)}."
    return display.figure(fig, label=label, caption=caption, alt=alt)


# -- gated units -------------------------------------------------------------------------------------------------------

_ACTIVATIONS = {  # label -> (formula, β, line)
    "ReLU": ("relu", (), ":"), "GELU": ("gelu", (), "-."), "Swish, β = 0": ("swish", (0.0,), (0, (1, 1))),
    "Swish, β = 1 (SiLU)": ("swish", (1.0,), "-"), "Swish, β = 10": ("swish", (10.0,), "--"),
}  # fmt: skip


def activations(*, label: str) -> Displayed:
    """ReLU, GELU and Swish at several β, with their gradients: the printed form of the interactive figure."""
    fig, (left, right) = canvas(2)
    f, z = gates.functions(), np.linspace(-4, 4, 401)
    for (name, (formula, beta, line)), color in zip(_ACTIVATIONS.items(), (PALETTE[2], PALETTE[3], PALETTE[7], PALETTE[0], PALETTE[1])):
        for ax, kind in ((left, formula), (right, f"{formula}_slope")):
            ax.plot(z, f[kind](z, *beta), linestyle=line, color=color, label=name)
    left.set(title="value", xlabel="z", ylim=(-1.5, 4))
    right.set(title="gradient", xlabel="z", ylim=(-0.4, 1.3))
    fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    alt = (
        "Two panels of curves over z from -4 to 4, values and gradients. Swish with beta 0 is the line z/2; with beta 1 it dips a little below zero "
        "for negative z and approaches z for positive z; with beta 10 it is close to ReLU, whose gradient jumps from 0 to 1 at 0. GELU lies between."
    )
    return display.figure(fig, label=label, caption="Activations and their gradients.", alt=alt)


def swish_facts() -> Displayed:
    """Swish beside ReLU and GELU, in numbers."""
    f, z = gates.functions(), np.linspace(-8, 8, 160_001)
    to_gelu = {beta: np.abs(f["swish"](z, beta) - f["gelu"](z)).max() for beta in (1.0, 1.702)}
    to_relu = np.abs(f["swish"](z, 10.0) - f["relu"](z)).max()
    low = f["swish"](z, 1.0).argmin()
    return display.text(
        f"SiLU, the Swish with β = 1, has its lowest value, {f['swish'](z, 1.0)[low]:.3f}, at z = {z[low]:.2f}. It is at most {to_gelu[1.0]:.3f} away from "
        f"GELU, and with β = 1.702 at most {to_gelu[1.702]:.3f}; with β = 10 it is at most {to_relu:.3f} away from ReLU."
    )


# -- [CLS] -------------------------------------------------------------------------------------------------------------


def attention(source: str, *, label: str) -> Displayed:
    """Attention of [CLS] over a sentence, mean over heads: a panel a model (its first seed), a row a layer application."""
    found = _first_seeds(source)
    if not found:
        return missing("attention sst2")
    means = [np.mean(m["weights"], axis=1) for m in found]  # each (applications, T)
    highest = max(mean.max() for mean in means)
    fig, axes = canvas(rows=len(found), height=2.6)
    said = []
    for ax, m, mean in zip(axes, found, means):
        ax.grid(False)
        image = ax.imshow(mean, aspect="auto", cmap="Blues", vmin=0, vmax=highest)
        n, many = m["num_layers"], len(mean) > m["num_layers"]
        rows = [f"pass {1 + i // n}, layer {1 + i % n}" if many else f"layer {1 + i}" for i in range(len(mean))]
        ax.set_xticks(range(len(m["tokens"])), m["tokens"], rotation=60, ha="right", rotation_mode="anchor", fontsize=8, parse_math=False)
        ax.set_yticks(range(len(rows)), rows, fontsize=8)
        ax.set(title=f"{title(m['model'])}, seed {m['seed']}")
        said.append(f"{title(m['model'])}, highest in {rows[-1]}: {_highest(m['tokens'], mean[-1])}")
    fig.colorbar(image, ax=list(axes), label="attention weight", shrink=0.8)
    caption = f"Attention of [CLS] over a sentence, mean over heads, in every application of a layer. {notes(found)}"
    return display.figure(fig, label=label, caption=caption, alt=f"Heat maps of attention weight by token. {'; '.join(said)}.")


def attended(source: str) -> Displayed:
    """The sentence and how we read it, what the models answer, and the tokens that [CLS] attends to most at the end."""
    found = _first_seeds(source)
    said = []
    for sentence in dict.fromkeys(m["sentence"] for m in found):
        read = f"; we read it as {READ_AS[sentence]}" if sentence in READ_AS else ""
        said.append(f"The sentence is “{display.escape(sentence)}”, our own, which no data set has labeled{read}.")
    for m in found:
        best = int(np.argmax(m["probabilities"]))
        answer, ours = m["classes"][best], READ_AS.get(m["sentence"])
        weights = np.mean(m["weights"], axis=1)
        said.append(
            f"{title(m['model'])} (`{m['of']}`, seed {m['seed']}) calls it {answer} with probability {m['probabilities'][best]:.2f}"
            f"{'' if ours is None else ', as we do' if answer == ours else ', against our reading'}; "
            f"the highest weights of its last layer application are those of {display.escape(_highest(m['tokens'], weights[-1]))}, where equal "
            f"attention to all {len(m['tokens'])} tokens would give each {1 / len(m['tokens']):.2f}."
        )
    return display.text(" ".join(said) or "What the models answer is not measured yet.")


def _first_seeds(source: str) -> list[measurement.Measurement]:
    """One measurement a model, the first in order of task and seed, in the order of the models."""
    found = {}
    for m in sorted(measurement.every(where(source), "attention"), key=lambda m: (m["of"], m["seed"])):
        found.setdefault(m["model"], m)
    return [found[model] for model in CLASSIFIERS if model in found]


def _highest(tokens: list[str], weights: np.ndarray, n: int = 3) -> str:
    return ", ".join(f"“{tokens[i]}” ({weights[i]:.2f})" for i in np.argsort(-weights, kind="stable")[:n])
