"""What tables and sentences write of records: a model's name, its accuracy with an interval, its machine."""

from collections.abc import Iterable

import numpy as np

from rtx_core.results.record import Record
from rtx_core.results.statistics import accuracy_interval, auc, mean_interval

TITLES = {"recurrent-wide": "Recurrent, wide"}  # where capitals are not enough


def title(model: str) -> str:
    """A model's name as pages write it."""
    return TITLES.get(model, model.capitalize())


def with_interval(records: list[Record]) -> str:
    """Accuracy and its 95 % interval: Student's over seeds, or of a single one Wilson's."""
    if len(records) > 1:
        value, low, high = mean_interval([record["test"]["accuracy"] for record in records])
    else:
        value, (low, high) = records[0]["test"]["accuracy"], accuracy_interval(records[0])
    return f"{value:.4f} ({low:.4f} to {high:.4f})"


def mean_accuracy(records: list[Record]) -> str | None:
    """Over the seeds; None where there is no record."""
    return f"{np.mean([record['test']['accuracy'] for record in records]):.4f}" if records else None


def mean_auc(records: list[Record]) -> float | None:
    """Area under the ROC curve, over the seeds; None of more than two classes, or where there is no record."""
    found = [auc(record) for record in records]
    return float(np.mean(found)) if found and None not in found else None


def milliseconds(records: list[Record], measured: int = -1) -> float:
    """Inference time of a text, the median over seeds; `measured` is 0 for single texts, -1 for batches."""
    return float(np.median([record["latency"]["measured"][measured]["per_sentence_ms"] for record in records]))


def devices_of(runs: Iterable[Record], of: str = "") -> str:
    """Every machine that a table's numbers come from; more than one cannot be compared, and the reader sees it."""
    return " and ".join(dict.fromkeys(device_of(record, of) for record in runs))


def device_of(record: Record, of: str = "") -> str:
    """The machine of a record, or of one of its entries, with the threads of a CPU."""
    environment = record[of]["environment"] if of else record["environment"]
    threads = environment["threads"]
    return environment["device"] + (f" ({threads} thread{'s' if threads > 1 else ''})" if environment["device_type"] == "cpu" else "")
