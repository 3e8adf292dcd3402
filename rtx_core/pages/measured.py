"""Tables, figures and sentences of what is measured beside the runs: the bag-of-words yardstick, number formats, rounding."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from rtx_core.pages import display, figure
from rtx_core.pages.counted import error_ratio, sharings
from rtx_core.pages.display import Displayed
from rtx_core.pages.runs import BUDGET, Runs, recorded
from rtx_core.pages.table import device_of, mean_accuracy, title
from rtx_core.results import measurement
from rtx_core.results.measurement import Measurement
from rtx_core.results.record import Record
from rtx_core.results.statistics import (
    Difference, accuracy_interval, adjusted, answers_all, bootstrap_interval, common, compare, difference, equals, mean_interval, same_texts, tested,
)  # fmt: skip
from rtx_core.tasks import TASKS, task

COMPARED = ("baseline", "recurrent")
ROOT = 2**0.5  # two equal errors added up, relative to two unrelated ones
FORMATS = {"fp32": "FP32", "bf16": "BF16", "fp16": "FP16", "int8": "INT8, dynamic"}


def where(source: str) -> str:
    """Records are the same whatever real source they came from, and the hub is asked for nothing."""
    return source if source == "embedded" else "hub"


def missing(command: str) -> Displayed:
    line = f"python -m rtx_core.evaluation.{command}"
    return display.text(
        f"Not measured yet: where the trained weights and the data are, `{line}` measures it; where only smaller runs were made, `{line} fraction=0.1` or "
        "whichever parameters name theirs."
    )


def notes(found: list[Measurement]) -> str:
    """What a reader must know of these measurements, each once."""
    said = ["Synthetic: on the embedded corpus, which this project generates; it says nothing of real text."] * any(m.synthetic for m in found)
    said += ["Protocol reduced in part; the names say how."] * any(m["protocol"] == "reduced" for m in found)
    said += [f"{m['of']}, {m['name']}: {note}." for m in found if (note := m.note())]
    return " ".join(said)


def called(variant: str) -> str:
    """A variant as a reader knows it: the title of its task, and what differs from the full protocol."""
    for known, (name, *_) in TASKS.items():
        if variant.startswith(known) and (found := BUDGET.fullmatch(variant.removeprefix(known))):
            smaller = {setting: int(value) for setting, value in found.groupdict().items() if value}
            return f"{name} ({Runs(task(known).but(**smaller), [], None).budget})" if smaller else name
    return variant


def interval(record: Measurement) -> str:
    return "{:.4f} to {:.4f}".format(*accuracy_interval(record))


def listed(words: list[str]) -> str:
    """ "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def gap(first: list[Record], second: list[Record]) -> Difference:
    """`difference` on the same test texts; of a single seed McNemar's test without an interval, which resampling makes slow and no table shows."""
    if len(pairs := common(first, second)) > 1:
        return difference(first, second, same_training=False)
    pair = compare(*pairs[0], same_training=False)
    return Difference(pair["difference"], float("nan"), float("nan"), pair["p"], pair["n"], (pair["difference"],), "McNemar's exact test")


def _p(p: float | None) -> str | None:
    return None if p is None else equals(p).removeprefix("= ")


# -- yardstick ---------------------------------------------------------------------------------------------------------


def yardstick(source: str, *, label: str) -> Displayed:
    """The bag of words on every task, and each model's difference to it on the same texts."""
    rows, used, many = [], [], []
    for name, found, runs in _beside_words(source):
        row = {"Task": name, "Test texts": found["test"]["n"] if found else None}
        row |= {"Bag of words": f"{found['test']['accuracy']:.4f}" if found else None, "95 % interval": interval(found) if found else None}
        used += [found] if found else []
        row["Models' budget"] = runs.budget_named
        for model in COMPARED:
            records, d = runs.of(model), _ahead(runs, model, found)
            many += [f"{title(model)} on {name}: {len(records)}"] if len(records) > 1 else []
            row |= {title(model): mean_accuracy(records), f"{title(model)} ahead by": f"{100 * d.value:+.2f}" if d else None}
            row[f"p, {title(model)}"] = _p(d.p) if d else None
        rows.append(row)
    several = f" ({'; '.join(many)})" if many else ""
    note = (
        f"Accuracy on the test part, the models' as mean over their recorded seeds where there are several{several}, else of the one. "
        "Ahead by: percentage points over the bag of words on the same texts, with p of McNemar's exact test of one seed, or of the t-test of three or "
        "more seeds' differences to it; two have no p. Models' budget: what differs from the full protocol; the bag of words always reads the "
        "whole training part, so beside models of a smaller budget it has seen more. A dash: not measured yet."
    )
    frame = pd.DataFrame(rows).astype({"Test texts": "Int64"})
    return display.table(frame, label=label, caption="A bag of words and the two models on the same texts.", note=f"{note} {notes(used)}")


def yardstick_reading(source: str) -> Displayed:
    """On how many tasks the bag of words is significantly ahead of each model, and how far that measures word order."""
    tasks, said, behind = list(_beside_words(source)), [], False
    for model in COMPARED:
        measured = [(name, runs.budget, d) for name, found, runs in tasks if (d := _ahead(runs, model, found))]
        family = adjusted([d for *_, d in measured])
        lost, won = ([(name, budget) for (name, budget, _), d in zip(measured, family) if d.sign == sign] for sign in (-1, 1))
        if measured:
            said.append(
                f"Of {len(measured)} task{'s' * (len(measured) > 1)} with {title(model)} beside it, the bag of words is significantly ahead on "
                f"{_tasks(lost)} and behind on {_tasks(won)}; on {len(measured) - len(lost) - len(won)} the test cannot tell."
            )
        behind |= bool(lost)
    if not said:
        return display.text("No model is measured beside the bag of words yet.")
    said.append("p is adjusted over the tasks of each model, after Benjamini and Hochberg.")
    if behind:
        said.append(
            "A model reads the same tokens and their order as well, so where the bag of words is ahead, the comparison does not tell what word order is worth, "
            "but that this model, trained so, does not learn from it."
        )
    return display.text(" ".join(said))


def _tasks(found: list[tuple[str, str]]) -> str:
    """Their number, and which of them have models of the full protocol."""
    full = [name for name, budget in found if not budget]
    return f"{len(found)}" + (f" ({len(full)} at the full protocol{': ' * bool(full)}{'; '.join(full)})" if found else "")


def _beside_words(source: str) -> Iterator[tuple[str, Measurement | None, Runs]]:
    """(title, bag of words, runs) of every task, measured or not."""
    for variant, (name, *_) in TASKS.items():
        yield name, measurement.find(where(source), "yardstick", variant, "bag-of-words-seed0"), recorded(task(variant, where(source)))


def _ahead(runs: Runs, model: str, words: Measurement | None) -> Difference | None:
    """The model minus the bag of words, which is the same whatever the seed; None where one is missing or the model never answers a class."""
    records = [record for record in runs.of(model) if answers_all(record)]
    return gap(records, [Measurement(words.content | {"seed": r["seed"]}, words.path) for r in records]) if words and records else None


# -- number formats ----------------------------------------------------------------------------------------------------


def formats(source: str, *, label: str) -> Displayed:
    """Accuracy, stored size and latency of each model in each number format."""
    found, rows = measurement.every(where(source), "precision"), []
    if not found:
        return missing("precision sst2")
    exact = {(m["of"], m["model"], m["seed"]): m for m in found if m["format"] == "fp32"}
    for (of, model, seed), base in exact.items():
        for kind, name in FORMATS.items():
            m = next((m for m in found if (m["of"], m["model"], m["seed"], m["format"]) == (of, model, seed, kind)), None)
            row = {"Data": called(of), "Model": title(model), "Seed": str(seed), "Format": name}
            if m is None:
                rows.append(row | dict.fromkeys(("Accuracy", "Points to FP32", "p", "MB", "1 text (ms)", "A batch (ms)")))
                continue
            pair, (one, batch) = compare(m, base), m["latency"]
            rows.append(row | {
                "Accuracy": f"{m['test']['accuracy']:.4f}", "Points to FP32": f"{pair['points']:+.2f}" if m is not base else None,
                "p": _p(pair["p"]) if m is not base else None, "MB": f"{m['size_mb']:.1f}",
                "1 text (ms)": f"{one['median_ms']:.2f}", "A batch (ms)": f"{batch['median_ms']:.2f}",
            })  # fmt: skip
    note = (
        f"p: McNemar's exact test against FP32 on the same texts. Latency: median, on {' and '.join(dict.fromkeys(map(device_of, found)))}, a batch "
        f"being {found[0]['latency'][-1]['batch']} texts, with every row of the last layer computed, so that these times compare with one another and "
        "not with those of other pages. A dash: this processor has no arithmetic for the format, or it is not measured yet."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Trained models in other number formats.", note=f"{note} {notes(found)}")


def formats_reading(source: str) -> Displayed:
    """Whether a smaller format costs accuracy, whether it costs the looped models more than the baseline, and which format has no record."""
    groups: dict[tuple[str, str, str], list[Measurement]] = {}
    for m in measurement.every(where(source), "precision"):
        groups.setdefault((m["of"], m["model"], m["format"]), []).append(m)
    exact = {
        key: found for key, group in groups.items() if key[2] != "fp32" and common(group, found := groups.get((*key[:2], "fp32"), []))
    }
    if not exact:
        return display.text("Whether a smaller format costs accuracy is not measured yet.")
    several = len({data for data, *_ in exact}) > 1
    names = {key: f"{title(key[1])}{f' of {called(key[0])}' if several else ''} in {FORMATS[key[2]]}" for key in exact}
    changes = dict(zip(exact, adjusted([gap(groups[key], found) for key, found in exact.items()])))
    clear = [f"{names[key]} by {100 * d.value:+.2f} points" for key, d in changes.items() if d.sign]
    largest = max(changes, key=lambda key: abs(changes[key].value))
    said = [
        (f"Accuracy changes significantly for {listed(clear)}" if clear else "No smaller format changes accuracy significantly")
        + f", of {len(changes)} comparisons with FP32{_smallest(list(changes.values()))}; the largest change is {100 * changes[largest].value:+.2f} points, "
        f"of {names[largest]}."
    ]
    beside = {}
    for (data, model, kind), found in exact.items():
        base = [groups.get((data, COMPARED[0], one), []) for one in (kind, "fp32")]
        if model != COMPARED[0] and (seeds := common(groups[data, model, kind], found, *base)):
            beside[names[data, model, kind]] = _change_beside(seeds)
    if beside:
        values = [f"{name} {100 * value:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})" for name, (value, low, high) in beside.items()]
        more, less = sum(high < 0 for *_, high in beside.values()), sum(low > 0 for _, low, _ in beside.values())
        said.append(
            f"Minus the change of {title(COMPARED[0])} in the same format, in points with 95 % interval: {'; '.join(values)}. So of {len(beside)} comparisons "
            f"the recurrent model is shown to lose more in {more or 'none'}, and less in {less or 'none'}."
        )
    if lacking := [name for kind, name in FORMATS.items() if all(kind != known for *_, known in groups)]:
        machines = listed(list(dict.fromkeys(device_of(m) for group in groups.values() for m in group)))
        said.append(
            f"{listed(lacking)} {'has' if len(lacking) == 1 else 'have'} a dash, not measured on {machines}: a format that a processor has no arithmetic "
            "for is left out."
        )
    return display.text(" ".join(said))


def _smallest(family: list[Difference]) -> str:
    """The smallest p, and what it is as one of the family; two seeds have none."""
    least = min((d for d in family if d.p is not None), key=lambda d: d.p, default=None)
    return f" (smallest p {equals(least.p)} by {least.test}, adjusted for their number {least.adjusted:.2g})" if least else ""


def _change_beside(seeds: list[tuple[Measurement, ...]]) -> tuple[float, float, float]:
    """(value, low, high): the change of one model's accuracy minus that of another, of four measurements a seed; the interval is over texts,
    or with enough seeds over these."""
    found = []
    for four in tested(seeds):
        labels, *guesses = same_texts(*four, same_training=False)
        small, exact, base_small, base_exact = (1.0 * (guess == labels) for guess in guesses)
        found.append(small - exact - base_small + base_exact)
    return mean_interval([float(one.mean()) for one in found]) if len(found) > 1 else bootstrap_interval(np.mean, found[0])


# -- rounding ----------------------------------------------------------------------------------------------------------


def _rounding(source: str) -> list[Measurement]:
    return measurement.every(where(source), "rounding")


def rounding(source: str, *, label: str) -> Displayed:
    """Relative error after each layer application, a colour a bit width, shared weights solid and unshared dashed."""
    found = _rounding(source)
    if not found:
        return missing("rounding sst2")
    panels = list(sharings(found))
    rows = -(-len(panels) // 3)
    fig, axes = figure.canvas(min(len(panels), 3), rows=rows, height=3.8 if rows == 1 else 3.0, sharey=True)
    bits, said = sorted({c["bits"] for m in found for c in m["curves"]}), []
    colors = dict(zip(bits, figure.sns.color_palette("viridis", len(bits)).as_hex()))
    for ax, (m, comparison, model) in zip(axes, panels):
        name, curves = f"{title(model)} ({m['of']})" if model else "fresh models", pd.DataFrame(m["curves"])
        chosen = curves[(curves["comparison"] == comparison) & (curves["model"].eq(model) if model else True)]
        for (b, arm), group in chosen.groupby(["bits", "arm"]):
            mean = pd.DataFrame(group["errors"].tolist()).mean()
            style = {"linestyle": "-", "marker": "o"} if arm == "shared" else {"linestyle": "--", "marker": "x"}
            ax.plot(mean.index + 1, mean, color=colors[b], markersize=4, label=f"{b} bits, {arm}", **style)
            if b in (bits[0], bits[-1]):
                said.append(f"{name}, {b} bits, {arm}: {mean.iloc[-1]:.2g} after the last")
        ax.set(title=name, xlabel="layer application", yscale="log")
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    axes[0].set_ylabel("relative error of the hidden state")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    caption = (
        "Relative error of the hidden state after each layer application, weights of the layers rounded, mean over seeds. Left, fresh models of the "
        "same width and effective depth; then trained models with random rounding, the same draw in every pass (shared) or a new one (unshared). "
        f"{notes(found)}"
    )
    return display.figure(fig, label=label, caption=caption, alt=f"Curves of error against layer application. {'; '.join(said)}.")


def ratios(source: str, *, label: str) -> Displayed:
    """How many times larger the error of shared weights is after the last layer."""
    found = _rounding(source)
    if not found:
        return missing("rounding sst2")
    rows = []
    for m, comparison, model in sharings(found):
        for bits in _bits(m):
            ratio, low, high, n = error_ratio(m["curves"], comparison, bits, model)
            rows.append({"Models": f"{title(model)}, trained" if model else "fresh pairs", "Trained on": called(m["of"]) if model else None, "Bits": bits,
                         "Shared over unshared": f"{ratio:.3f}", "95 % interval": f"{low:.3f} to {high:.3f}", "Seeds": n})  # fmt: skip
    texts = "; ".join(f"{m['texts']:,} test texts of {called(m['of'])} with {m['tokens']:,} tokens" for m in found)
    note = (
        "Geometric mean over seeds, of fresh models or of the draws of one trained model, with Student's interval on the logarithm. "
        f"Errors are those on {texts}. {notes(found)}"
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Error after the last layer, shared over unshared weights.", note=note)


def trained_errors(source: str, *, label: str) -> Displayed:
    """The error of each trained model with its own weights, rounded to nearest."""
    found = _rounding(source)
    if not found:
        return missing("rounding sst2")
    rows = {}
    for m in found:
        for c in (c for c in m["curves"] if c["comparison"] == "trained"):
            rows.setdefault((m["of"], c["arm"]), {"Model": title(c["arm"]), "Trained on": called(m["of"])})[f"{c['bits']} bits"] = f"{c['errors'][-1]:.2g}"
    caption = "Relative error of the last hidden state of the trained models, weights of the layers rounded to nearest."
    return display.table(pd.DataFrame(rows.values()), label=label, caption=caption, note=notes(found))


def rounding_reading(source: str) -> Displayed:
    """Whether sharing amplifies the error, beside what equal errors in every pass would do, and how the trained models compare."""
    found = _rounding(source)
    if not found:
        return display.text("Whether sharing amplifies the error is not measured yet.")
    every, said = [], []
    for m, comparison, model in sharings(found):
        these = [error_ratio(m["curves"], comparison, bits, model)[:3] for bits in _bits(m)]
        every += these
        name = f"{title(model)} trained on {called(m['of'])}" if model else "fresh pairs"
        said.append(f"{min(these)[0]:.2f} to {max(these)[0]:.2f} in {name}")
    above, below, beyond = sum(low > 1 for _, low, _ in every), sum(high < 1 for *_, high in every), sum(low > ROOT for _, low, _ in every)
    bits = [b for m in found for b in _bits(m)]
    sentences = [
        f"Over {min(bits)} to {max(bits)} bits the error of shared weights is, as a multiple of that of unshared ones, {listed(said)}; equal errors in "
        f"two passes that add up would make it $\\sqrt 2 = {ROOT:.3f}$. Of these {len(every)} ratios the whole 95 % interval is above 1 in {above}, below 1 in "
        f"{below}, and above $\\sqrt 2$ in {beyond}, so sharing {_amplifies(above, len(every))}"
        + (", and in none significantly by more than equal errors would." if above and not beyond else ".")
    ]
    for m in found:
        ends = {(c["arm"], c["bits"]): c["errors"][-1] for c in m["curves"] if c["comparison"] == "trained"}
        for model in dict.fromkeys(arm for arm, _ in ends if arm != COMPARED[0]):
            beside = [ends[model, b] / ends[COMPARED[0], b] for b in _bits(m) if {(model, b), (COMPARED[0], b)} <= ends.keys()]
            if beside:
                sentences.append(
                    f"With its own weights rounded to nearest, {title(model)} trained on {called(m['of'])} has a larger error than {title(COMPARED[0])} at "
                    f"{sum(one > 1 for one in beside)} of {len(beside)} bit widths and a smaller one at {sum(one < 1 for one in beside)}, from "
                    f"{min(beside):.2f} to {max(beside):.2f} times as large."
                )
    return display.text(" ".join(sentences))


def _amplifies(above: int, of: int) -> str:
    return "amplifies the error in all of them" if above == of else f"is shown to amplify the error in {above or 'none'} of them"


def _bits(m: Measurement) -> list[int]:
    return sorted({c["bits"] for c in m["curves"]})
