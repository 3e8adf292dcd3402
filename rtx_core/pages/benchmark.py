"""Tables 6 to 12 beside ours: parameters, size, metrics and latency of each model, and the published values of the same."""

import numpy as np
import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.cells import devices_of, milliseconds, title
from rtx_core.pages.display import Displayed
from rtx_core.pages.published import apart, quotations
from rtx_core.pages.runs import Runs, Studies, recorded
from rtx_core.parameters import Settings
from rtx_core.results.record import Record
from rtx_core.results.statistics import mean_interval
from rtx_core.training.protocol import Protocol


def benchmark(runs: Runs | Studies, *, label: str) -> Displayed:
    """Tables 6 to 12: parameters, size, metrics and latency of each model, published values and the difference beside ours."""
    every = Studies.of(runs)
    rows = [({every.heading: name} if name else {}) | row for name, one in every.items() for row in _rows(one)]
    names = dict.fromkeys(record["data"]["name"] for record in every.records)
    variants = ", ".join(one.settings.variant for one in every.values())
    results = [row["Result"] for row in rows]
    quoted = any(result.startswith("published") for result in results)
    if names:
        caption = f"Results on {'; '.join(names)} ({variants})" + (", with published values" if quoted else "")
    else:
        caption = f"Published results ({variants}); ours are not measured yet" if quoted else f"Results ({variants}), not measured yet"
    if any(result.startswith(DIFFERENCE) for result in results):
        caption += " and their difference to ours"
    return display.table(pd.DataFrame(rows), label=label, caption=f"{caption}.", note=" ".join([*_reading(every), *every.footnote, *every.notes]))


def beside(settings: Settings, *, label: str, **other: object) -> Displayed:
    """The benchmark of the same settings but for one or some, as far as it is recorded; nothing is trained for it."""
    changed = settings.but(**other)
    return display.text("The benchmark above is of these settings.") if changed == settings else benchmark(recorded(changed), label=label)


DIFFERENCE = "difference"
METRICS = ("Accuracy", "F1", "Precision", "Recall")


def _rows(runs: Runs) -> list[dict]:
    """Ours, and the published ones, with a difference where both were found on texts of the same kind."""
    settings, rows = runs.settings, []
    quoted = quotations(settings)
    average = quoted[0].get("average") if quoted else None
    for model in settings.models:
        records = runs.of(model)
        rows.append(_ours(records, average) if records else {"Model": title(model), "Result": "not measured yet"})
    for entry in quoted:
        models = [model for model in settings.models if model in entry]
        rows += [_quoted(entry, model) for model in models]
        if not apart(entry, settings, data_of(runs)):
            rows += [_difference(runs, entry, model) for model in models if runs.of(model)]
    return rows


def data_of(runs: Runs) -> list[str]:
    """The names of the data that the records were tested on."""
    return list(dict.fromkeys(record["data"]["name"] for record in runs))


def scores(records: list[Record], metric: str, average: str | None = None) -> list[float]:
    """A test metric of each record: the record's own, or for precision, recall and F1 another average, from the predictions."""
    if metric == "accuracy" or average in (None, records[0]["test"]["average"]):
        return [record["test"][metric] for record in records]
    from sklearn.metrics import precision_recall_fscore_support

    found = [record.predictions for record in records]
    all_three = [precision_recall_fscore_support(f["labels"], f["logits"].argmax(1), average=average, zero_division=0.0) for f in found]
    return [float(three[("precision", "recall", "f1").index(metric)]) for three in all_three]


def _ours(records: list[Record], average: str | None) -> dict:
    first = records[0]
    return {
        "Model": title(first["model"]), "Result": f"ours, seed {first['seed']}" if len(records) == 1 else f"ours, mean of {len(records)} seeds",
        "Test set": f"{first['test']['n']:,} {first['data']['split']}",
        "Parameters": first["parameters"]["total"], "MB": f"{first['size_mb']:.2f}",
        **{name: _mean_and_interval(scores(records, name.lower(), average)) for name in METRICS},
        "ms": f"{milliseconds(records):.3f}",
    }  # fmt: skip


def _mean_and_interval(values: list[float]) -> str:
    mean, low, high = mean_interval(values)
    return f"{mean:.4f}" if len(values) == 1 else f"{mean:.4f} ({low:.4f} to {high:.4f})"


def _quoted(entry: dict, model: str) -> dict:
    value = entry[model]

    def text(key: str, form: str) -> str | None:
        return format(value[key], form) if key in value else None

    return {
        "Model": title(model), "Result": entry["source"], "Test set": entry["test_set"],
        "Parameters": value.get("total"), "MB": text("size_mb", ".2f"),
        **{name: text(name.lower(), ".4f") for name in METRICS}, "ms": text("ms", ".4f"),
    }  # fmt: skip


def _difference(runs: Runs, entry: dict, model: str) -> dict:
    value, records, changed = entry[model], runs.of(model), runs.settings.reduced
    smaller = changed.keys() <= {"epochs", "train_rows"} and runs.settings.protocol.epochs <= Protocol().epochs
    return {
        "Model": title(model), "Result": f"{DIFFERENCE} ({'smaller budget' if smaller else 'another protocol'})" if changed else DIFFERENCE,
        **{name: f"{np.mean(scores(records, name.lower(), entry.get('average'))) - value[name.lower()]:+.4f}" for name in METRICS if name.lower() in value},
    }  # fmt: skip


def _reading(studies: Studies) -> list[str]:
    """How to read the columns of a benchmark."""
    records, said = studies.records, []
    if not records:
        return said
    if any(len(runs.of(model)) > 1 for runs in studies.values() for model in runs.models):
        said.append("Ours: the mean over seeds, in brackets Student's 95 % interval; ms is the median over seeds.")
    synthetic = any(record.synthetic for record in records)
    weighted = [name for name, runs in studies.items() if any(entry.get("average") for entry in quotations(runs.settings))]
    for name, runs in studies.items():
        for entry in quotations(runs.settings):
            if (why := apart(entry, runs.settings, data_of(runs))) and any(model in entry for model in runs.models):
                said.append(f"{f'{name}: n' if name else 'N'}o difference to \"{entry['source']}\": {why}.")
    if weighted:
        where = f" at {', '.join(weighted)}" if any(weighted) else ""
        said.append(f"F1, precision and recall{where} are averages over the classes, weighted by their size, as in the published rows.")
    elif len(records[0]["test"]["confusion"]) > 2:
        said.append("F1, precision and recall are plain averages over the classes.")
    measured = records[0]["latency"]["measured"][-1]
    said.append(
        f"ms: inference time for a text, ours at batch {measured['batch']} on {devices_of(records, 'latency')}"
        + ("." if synthetic else "; the published ones come from other, unnamed machines and cannot be compared with ours.")
    )
    return said
