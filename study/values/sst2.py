"""Values of the SST-2 page: the published rows, the course of training."""

from statistics import mean

from rtx_core import records
from rtx_core.report.statistics import common
from rtx_core.report.values import Space
from study import paper, published

PAIR = ("baseline", "recurrent")


def paired(name: str) -> list[tuple]:
    """(Baseline, Recurrent) of each seed that both have."""
    return common(*(paper.records(name=name, model=model) for model in PAIR))


def course(name: str) -> Space:
    """Validation loss by model, means over the seeds of both: at the selected epoch, at the last, the rise
    between; and by seed what was tested."""
    found = {}
    for model, runs in zip(PAIR, zip(*paired(name))):
        best = [record["selected"]["validation_loss"] for record in runs]
        last = [record["history"][-1]["validation_loss"] for record in runs]
        chosen = records.frame(runs)["selected_epoch"].tolist()
        found[model] = {
            "best": mean(best),
            "last": mean(last),
            "rise": mean(last) - mean(best),
            "rises": [b - a for a, b in zip(best, last)],
            "epochs": chosen,
            "tested": [record["test"]["accuracy"] for record in runs],
            "confusion": runs[0]["test"]["confusion"],  # rows: truth, columns: answers
            "missed": [missed(record) for record in runs],
            "peak": mean(max(row["validation_accuracy"] for row in record["history"]) for record in runs),
        }
    return Space(found)


def missed(record) -> float:
    """Points of validation accuracy between the selected epoch, that of lowest loss, and the best one."""
    rows = record["history"]
    (chosen,) = (row for row in rows if row["step"] == record["selected"]["step"])
    return 100 * (max(row["validation_accuracy"] for row in rows) - chosen["validation_accuracy"])


def quoted() -> Space:
    """The published rows, by task and source: `published_rows.sst2.table_6.baseline.accuracy`."""
    tasks = published.published()["benchmarks"]
    return Space(
        {
            task: {entry["source"].removeprefix("published, ").replace(" ", "_").lower(): entry for entry in entries}
            for task, entries in tasks.items()
        }
    )


VALUES = {"published_rows": quoted, "sst2_course": lambda: course("sst2"), "tenth_course": lambda: course("sst2-10pct")}
