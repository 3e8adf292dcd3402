"""How long every recorded classifier takes for a text, all in one sitting: `python -m benchmarks.sitting`.

Replaces the entry `latency` of their records, which was taken when each run ended, by another machine or beside other
work.  All take turns on one thread, on random batches of their test texts; a model of random weights is as fast as a
trained one, so one is timed for all seeds.  Needs the texts of the runs; seven minutes on a quiet core.
"""

from collections.abc import Iterable

import numpy as np
import torch

from benchmarks import timing
from rtx_core import data, records
from rtx_core.models import build_model
from rtx_core.models.packed import Packed
from rtx_core.train.device import keep_heap

ROUNDS, SIZES = 60, (1, 16)


def answering(record: records.Record, size: int, options: timing.Options) -> timing.Work:
    """Reads a batch of test texts, and answers it."""
    config = record["config"]
    test = data.task(data.config_of(config["data"] | {"source": options.source}), size).parts["test"]
    model = build_model(config["architecture"], seed=0, **config["model"]).to(options.where).eval()
    random = np.random.RandomState(0)
    rows = [random.choice(len(test), min(size, len(test)), replace=False) for _ in range(options.rounds(ROUNDS))]

    def answer(i: int) -> torch.Tensor:
        ids, lengths, _ = test.take(rows[i % len(rows)])
        return model(Packed.from_flat(ids, lengths).to(options.where)).cpu()

    return answer


@torch.inference_mode()
def measure(options: timing.Options, runs: Iterable[records.Record]) -> dict[tuple[str, str], list[dict]]:
    """(name, model) of the records -> what `latency.measured` of each becomes."""
    by_model = {(record["name"], record["model"]): record for record in runs}
    rows_by_model = {key: [] for key in by_model}
    for size in SIZES:
        work = {key: answering(record, size, options) for key, record in by_model.items()}
        for key, times in timing.interleaved(work, options.rounds(ROUNDS)).items():
            row = {"batch": size, "batches": times.pop("rounds"), "threads": torch.get_num_threads()}
            del times["ms"]
            rows_by_model[key].append(row | times | {"per_sentence_ms": times["median_ms"] / size})
    return rows_by_model


if __name__ == "__main__":
    options = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    tests = [(record, record["test"]) for record in records.records()]
    classifiers = [record for record, test in tests if "accuracy" in test and "parts" not in test]
    rows_by_model = measure(options, classifiers)
    for record in classifiers if not options.quick else ():
        rows = rows_by_model[record["name"], record["model"]]
        latency = {"measured": rows, "environment": timing.on_machine(options.where)}
        records.save(record.content | {"latency": latency})
