"""Tables and figures of what is measured beside the runs: the bag-of-words yardstick, transfer, number formats, rounding."""

import pandas as pd

from rtx_core.pages import display, figure
from rtx_core.pages.counted import error_ratio, sharings
from rtx_core.pages.display import Displayed
from rtx_core.pages.runs import recorded
from rtx_core.pages.table import device_of, title
from rtx_core.results import measurement
from rtx_core.results.measurement import Measurement
from rtx_core.results.statistics import accuracy_interval, compare, equals
from rtx_core.tasks import TASKS, task

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


# -- yardstick ---------------------------------------------------------------------------------------------------------


def yardstick(source: str, *, label: str) -> Displayed:
    """The bag of words on every task, and each model's difference to it on the same texts."""
    source, rows, used = where(source), [], []
    for variant, (name, *_) in TASKS.items():
        found = measurement.find(source, "yardstick", variant, "bag-of-words-seed0")
        row = {"Task": name, "Test texts": found["test"]["n"] if found else None}
        row |= {"Bag of words": f"{found['test']['accuracy']:.4f}" if found else None, "95 % interval": _interval(found) if found else None}
        used += [found] if found else []
        runs = recorded(task(variant, source))
        row["Models' budget"] = runs.budget_named
        for model in ("baseline", "recurrent"):
            record = (runs.of(model) or [None])[0]
            row[title(model)] = f"{record['test']['accuracy']:.4f}" if record else None
            if record and found:
                pair = compare(record, found, same_training=False)
                row |= {f"{title(model)} ahead by": f"{pair['points']:+.2f}", f"p, {title(model)}": f"{pair['p']:.2g}"}
            else:
                row |= {f"{title(model)} ahead by": None, f"p, {title(model)}": None}
        rows.append(row)
    note = (
        "Accuracy on the test part, the models' of their first seed. Ahead by: percentage points over the bag of words on the same texts, with p of "
        "McNemar's exact test. Models' budget: what differs from the full protocol; the bag of words always reads the whole training part, so beside "
        "models of a smaller budget it has seen more. A dash: not measured yet."
    )
    frame = pd.DataFrame(rows).astype({"Test texts": "Int64"})
    return display.table(frame, label=label, caption="Logistic regression on a bag of words, and what order adds to it.", note=f"{note} {notes(used)}")


def _interval(record: Measurement) -> str:
    return "{:.4f} to {:.4f}".format(*accuracy_interval(record))


# -- transfer ----------------------------------------------------------------------------------------------------------


def transfer(source: str, *, label: str) -> Displayed:
    """Trained on one corpus, tested on another, beside the same architecture trained where it is tested."""
    found, rows = measurement.every(where(source), "transfer"), []
    if not found:
        return missing("transfer sst2 yelp")
    for m in found:
        there = recorded(task(m["tested_on"], where(source)))
        home = [r for r in there.of(m["model"]) if r["seed"] == m["seed"]]
        rows.append({
            "Trained on": m["trained_on"], "Tested on": m["tested_on"], "Model": title(m["model"]), "Seed": str(m["seed"]),
            "Test texts": m["test"]["n"], "Accuracy": f"{m['test']['accuracy']:.4f}", "95 % interval": _interval(m),
            "F1": f"{m['test']['f1']:.4f}", "Trained there": f"{home[0]['test']['accuracy']:.4f}" if home else None,
            "Budget there": there.budget_named if home else None,
        })  # fmt: skip
    note = (
        "Trained there: accuracy on the same test texts after training on the corpus of the test, with what differs from the full protocol as its "
        f"budget; a dash: not measured yet. {notes(found)}"
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Transfer between corpora.", note=note)


def transfer_differences(source: str) -> Displayed:
    """The paired difference of the two models, for each direction and seed."""
    found = {(m["of"], m["model"], m["seed"]): m for m in measurement.every(where(source), "transfer")}
    said = []
    for (of, model, seed), b in found.items():
        a = found.get((of, "baseline", seed))
        if model != "baseline" and a:
            pair = compare(a, b)
            said.append(
                f"From {a['trained_on']} to {a['tested_on']}, seed {seed}: {title('baseline')} minus {title(model)} is {pair['points']:+.2f} points; of "
                f"{pair['n']:,} texts {pair['only_a']:,} are right with the first only and {pair['only_b']:,} with the second only (McNemar's exact "
                f"test, p {equals(pair['p'])}); {pair['verdict']}."
            )
    return display.text("\n\n".join(said) or "A difference between the models is not measured yet.")


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
            row = {"Data": of, "Model": title(model), "Seed": str(seed), "Format": name}
            if m is None:
                rows.append(row | dict.fromkeys(("Accuracy", "Points to FP32", "p", "MB", "1 text (ms)", "A batch (ms)")))
                continue
            pair, (one, batch) = compare(m, base), m["latency"]
            rows.append(row | {
                "Accuracy": f"{m['test']['accuracy']:.4f}", "Points to FP32": f"{pair['points']:+.2f}" if m is not base else None,
                "p": f"{pair['p']:.2g}" if m is not base else None, "MB": f"{m['size_mb']:.1f}",
                "1 text (ms)": f"{one['median_ms']:.2f}", "A batch (ms)": f"{batch['median_ms']:.2f}",
            })  # fmt: skip
    note = (
        f"p: McNemar's exact test against FP32 on the same texts. Latency: median, on {' and '.join(dict.fromkeys(map(device_of, found)))}, a batch "
        f"being {found[0]['latency'][-1]['batch']} texts, with every row of the last layer computed, so that these times compare with one another and "
        "not with those of other pages. A dash: this processor has no arithmetic for the format, or it is not measured yet."
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Trained models in other number formats.", note=f"{note} {notes(found)}")


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
        for bits in sorted({c["bits"] for c in m["curves"]}):
            ratio, low, high, n = error_ratio(m["curves"], comparison, bits, model)
            rows.append({"Models": f"{title(model)}, trained" if model else "fresh pairs", "Trained on": m["of"] if model else None, "Bits": bits,
                         "Shared over unshared": f"{ratio:.3f}", "95 % interval": f"{low:.3f} to {high:.3f}", "Seeds": n})  # fmt: skip
    texts = "; ".join(f"{m['texts']:,} test texts of {m['of']} with {m['tokens']:,} tokens" for m in found)
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
            rows.setdefault((m["of"], c["arm"]), {"Model": title(c["arm"]), "Trained on": m["of"]})[f"{c['bits']} bits"] = f"{c['errors'][-1]:.2g}"
    caption = "Relative error of the last hidden state of the trained models, weights of the layers rounded to nearest."
    return display.table(pd.DataFrame(rows.values()), label=label, caption=caption, note=notes(found))
