"""Values of SST-2: the published rows, and the course of training."""

from statistics import mean

from rtx_core import records
from rtx_core.report.statistics import common
from rtx_core.report.values import Space
from study import paper, published

PAIR = ("baseline", "recurrent")


def course(name: str) -> Space:
    """By model, an entry a seed that both have: the `epochs` tested; `missed` points of validation accuracy between
    that epoch and the best; `gaps` of validation over training loss after the last, and `rises` of the former over
    its lowest, in nats.  `peaks`: the best validation accuracies, and `peak` their mean."""
    found = {}
    pairs = common(*(paper.records(name=name, model=model) for model in PAIR))
    for model, runs in zip(PAIR, zip(*pairs)):
        best = [max(row["validation_accuracy"] for row in run["history"]) for run in runs]
        ends = [run["history"][-1] for run in runs]
        found[model] = {
            "epochs": records.frame(runs)["selected_epoch"].tolist(),
            "missed": [100 * (high - chosen(run)["validation_accuracy"]) for high, run in zip(best, runs)],
            "gaps": [end["validation_loss"] - end["train_loss"] for end in ends],
            "rises": [end["validation_loss"] - chosen(run)["validation_loss"] for end, run in zip(ends, runs)],
            "peaks": best,
            "peak": mean(best),
        }
    return Space(found)


def chosen(record) -> dict:
    """The row of a run's history that was tested."""
    return next(row for row in record["history"] if row["step"] == record["selected"]["step"])


def quoted() -> Space:
    """The published rows, by task and source: `published_rows.sst2.table_6.baseline.accuracy`."""
    name = "published, "
    return Space(
        {
            task: {row["source"].removeprefix(name).lower(): row for row in rows}
            for task, rows in published.published()["benchmarks"].items()
        }
    )


VALUES = {"published_rows": quoted, "sst2_course": lambda: course("sst2")}
