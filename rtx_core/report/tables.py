"""The tables that several pages share.  Each takes runs, records or a frame of `rtx.results()` and hands a
frame to `display.table`."""

import numpy as np
import pandas as pd

from rtx_core.report import display
from rtx_core.report.badges import as_records, badge, by_model
from rtx_core.report.display import Displayed
from rtx_core.report.published import apart
from rtx_core.report.statistics import accuracy, answers_all, common, difference, mean_auc, mean_interval
from rtx_core.report.style import MINUS, interval, number, p_value, title

METRICS = {"accuracy": "Accuracy (%)", "f1": "F1 (%)", "precision": "Precision (%)", "recall": "Recall (%)"}
NOT_MEASURED = "not measured"


def benchmark(
    found: object, *, label: str, caption: str, published: list[dict] = (), note: str = ""
) -> Displayed:
    """Quality, size and speed of each model, with published values and, where both are of texts of one kind,
    the difference.

    `published`: rows of `report.published.benchmarks(task)`.  Several seeds give their mean with Student's 95
    % interval.
    """
    groups = by_model(found)
    average = published[0].get("average") if published else None
    rows = [_ours(name, records, average) for name, records in groups.items()]
    for entry in published:
        models = [name for name in groups if name in entry]
        rows += [_quoted(name, entry) for name in models]
        for name in models:
            if not apart(entry, groups[name][0]):
                rows.append(_distance(name, groups[name], entry))
    reasons = {
        entry["source"]: apart(entry, records[0]) for entry in published for records in groups.values()
    }
    notes = [f"No difference to “{source}”: {reason}." for source, reason in reasons.items() if reason]
    if average:
        notes.append(
            f"F1, precision and recall are {average} averages over the classes, as in the published rows."
        )
    return display.table(
        pd.DataFrame(rows), label=label, caption=caption, note=" ".join([*notes, note]).strip()
    )


def scores(records: list, metric: str, average: str | None = None) -> list[float]:
    """A test metric of each record: its own, or for precision, recall and F1 another average, from the
    predictions."""
    if metric == "accuracy" or average in (None, records[0]["test"]["average"]):
        return [record["test"][metric] for record in records]
    from sklearn.metrics import precision_recall_fscore_support

    place = ("precision", "recall", "f1").index(metric)
    found = []
    for predictions in (record.predictions for record in records):
        guesses = predictions["logits"].argmax(1)
        every = precision_recall_fscore_support(
            predictions["labels"], guesses, average=average, zero_division=0.0
        )
        found.append(float(every[place]))
    return found


def milliseconds(records: list, measured: int = -1) -> float:
    """Inference time of a text, the median over seeds; `measured` is 0 for single texts, -1 for batches."""
    return float(
        np.median([record["latency"]["measured"][measured]["per_sentence_ms"] for record in records])
    )


def device_of(record, of: str = "") -> str:
    """The machine of a record, or of one of its entries (`of="latency"`), with the threads of a CPU."""
    environment = record[of]["environment"] if of else record["environment"]
    threads = environment["threads"]
    plural = "s" if threads > 1 else ""
    return environment["device"] + (
        f" ({threads} thread{plural})" if environment["device_type"] == "cpu" else ""
    )


def _ours(name: str, records: list, average: str | None) -> dict:
    first = records[0]
    row = {"Model": title(name)}
    row |= {heading: _mean(scores(records, metric, average)) for metric, heading in METRICS.items()}
    return row | {
        "ms": f"{milliseconds(records):.2f}",
        "MB": f"{first['size_mb']:.1f}",
        "Parameters": first["parameters"]["total"],
        "Test texts": f"{first['test']['n']:,}",
        "Result": f"ours, {badge(records)}",
    }


def _mean(values: list[float]) -> str:
    mean, low, high = mean_interval([100 * value for value in values])
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ({low:.1f} to {high:.1f})"


def _quoted(name: str, entry: dict) -> dict:
    value = entry[name]
    row = {"Model": title(name)}
    row |= {heading: f"{100 * value[metric]:.1f}" for metric, heading in METRICS.items() if metric in value}
    row |= {"ms": f"{value['ms']:.2f}"} if "ms" in value else {}
    row |= {"MB": f"{value['size_mb']:.1f}"} if "size_mb" in value else {}
    return row | {
        "Parameters": value.get("total"),
        "Test texts": entry["test_set"],
        "Result": entry["source"],
    }


def _distance(name: str, records: list, entry: dict) -> dict:
    row = {"Model": title(name)}
    for metric, heading in METRICS.items():
        if metric in entry[name]:
            ours = np.mean(scores(records, metric, entry.get("average")))
            row[heading] = number(100 * (ours - entry[name][metric]), "+.1f")
    reduced = "" if all(record["budget"] == "full" for record in records) else " (reduced budget)"
    return row | {"Result": f"ours minus {entry['source']}{reduced}"}


def accuracies(
    settings: dict[str, object],
    *,
    heading: str,
    label: str,
    caption: str,
    models: tuple[str, str] = ("baseline", "recurrent"),
    note: str = "",
) -> Displayed:
    """One row a setting: paired difference of the first two models in points, accuracies, p, AUC, texts,
    badge.

    `settings`: {reader's name: runs, records or frame}; the same setting at two budgets is two entries.  The
    intervals are Wilson's or, over seeds, Student's; the test is the one of `statistics.difference`.  A model
    that never answers some class is not paired.
    """
    first, second = models[:2]
    rows = []
    for name, found in settings.items():
        groups = {
            model: [record for record in as_records(found) if record["model"] == model] for model in models
        }
        row = {heading: name, f"{title(first)} {MINUS} {title(second)} (points)": None}
        for model, records in groups.items():
            row[f"{title(model)} (%)"] = _accuracy(records) if records else NOT_MEASURED
        if common(groups[first], groups[second]) and all(map(answers_all, groups[first] + groups[second])):
            pair = difference(groups[first], groups[second])
            row[f"{title(first)} {MINUS} {title(second)} (points)"] = interval(pair)
            row["p"] = p_value(pair.p) or None
        row["AUC"] = _areas(list(groups.values()))
        every = [record for records in groups.values() for record in records]
        row["Training texts"] = f"{every[0]['data']['n_train']:,}" if every else None
        row["Test texts"] = f"{every[0]['data']['n_test']:,}" if every else None
        row["Evidence"] = str(badge(every))
        rows.append(row)
    frame = pd.DataFrame(rows)
    columns = [name for name in rows[0] if name != "p"]
    if "p" in frame:
        columns.insert(2 + len(models), "p")
    return display.table(frame[columns], label=label, caption=caption, note=note)


def _accuracy(records: list) -> str:
    value, low, high = accuracy(records)
    return f"{100 * value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _areas(groups: list[list]) -> str | None:
    """The area under the ROC curve of each model in one cell; None of more than two classes."""
    found = [mean_auc(records) for records in groups]
    if all(value is None for value in found):
        return None
    return " / ".join(display.MISSING if value is None else f"{value:.3f}" for value in found)
