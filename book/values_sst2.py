"""Values of the SST-2 page: times on equal threads, the published rows, the course of training."""

from statistics import mean, median

from rtx_core import records
from rtx_core.report import published
from rtx_core.report.evidence import device_of, timed_alike
from rtx_core.report.statistics import common
from rtx_core.report.values import Space

PAIR = ("baseline", "recurrent")


def paired(name: str) -> list[tuple]:
    """(Baseline, Recurrent) of each seed that both have."""
    return common(*(records.records(name=name, model=model) for model in PAIR))


def time_ratio(name: str) -> Space:
    """Recurrent's time for a text over Baseline's, the median over pairs timed alike."""
    pairs = timed_alike(paired(name))

    def ratio(measured: int) -> float:
        times = [
            [record["latency"]["measured"][measured]["per_sentence_ms"] for record in pair] for pair in pairs
        ]
        return median(b / a for a, b in times)

    device = device_of(pairs[0][0], "latency")
    count = pairs[0][0]["latency"]["environment"]["threads"]
    threads = "one thread" if count == 1 else f"{count} threads"
    return Space({"batch": ratio(-1), "single": ratio(0), "device": device, "threads": threads})


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
            task: {
                entry["source"].removeprefix("published, ").replace(" ", "_").lower(): entry
                for entry in entries
            }
            for task, entries in tasks.items()
        }
    )


VALUES = {
    "published_rows": quoted,
    "sst2_time": lambda: time_ratio("sst2-10pct"),  # the full pair was timed with unequal threads
    "yelp_time": lambda: time_ratio("yelp-trainrows10000-epochs1"),
    "yelp_512_time": lambda: time_ratio("yelp-maxlength512-trainrows10000-epochs1"),
    "sst2_course": lambda: course("sst2"),
    "tenth_course": lambda: course("sst2-10pct"),
}
