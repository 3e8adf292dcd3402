"""Values of the SST-2 page: times on equal threads, the published rows, the course of training."""

from statistics import mean, median

from rtx_core import records
from rtx_core.report import published
from rtx_core.report.statistics import common
from rtx_core.report.tables import device_of
from rtx_core.report.values import Space

PAIR = ("baseline", "recurrent")


def time_ratio(name: str) -> Space:
    """Recurrent's time for a text over Baseline's, the median over pairs timed with equal threads."""
    found = [records.records(name=name, model=model) for model in PAIR]
    pairs = [pair for pair in common(*found) if len({device_of(record, "latency") for record in pair}) == 1]

    def ratio(measured: int) -> float:
        times = [
            [record["latency"]["measured"][measured]["per_sentence_ms"] for record in pair] for pair in pairs
        ]
        return median(b / a for a, b in times)

    device = " and ".join(dict.fromkeys(device_of(a, "latency") for a, _ in pairs))
    count = pairs[0][0]["latency"]["environment"]["threads"]
    threads = "one thread" if count == 1 else f"{count} threads"
    return Space(
        {"batch": ratio(-1), "single": ratio(0), "device": device, "threads": threads, "pairs": len(pairs)}
    )


def course(name: str) -> Space:
    """Validation loss by model, means over seeds: at the selected epoch, at the last, the rise between."""
    found = {}
    for model in PAIR:
        runs = records.records(name=name, model=model)
        best = [record["selected"]["validation_loss"] for record in runs]
        last = [record["history"][-1]["validation_loss"] for record in runs]
        chosen = [
            next(row["epoch"] for row in record["history"] if row["step"] == record["selected"]["step"])
            for record in runs
        ]
        found[model] = {
            "best": mean(best),
            "last": mean(last),
            "rise": mean(last) - mean(best),
            "rises": [b - a for a, b in zip(best, last)],
            "epochs": chosen,
        }
    return Space(found)


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
    "sst2_time": lambda: time_ratio("sst2"),
    "yelp_time": lambda: time_ratio("yelp-trainrows10000-epochs1"),
    "yelp_512_time": lambda: time_ratio("yelp-maxlength512-trainrows10000-epochs1"),
    "sst2_course": lambda: course("sst2"),
    "tenth_course": lambda: course("sst2-10pct"),
}
