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


def answering(record: records.Record, size: int, asked: timing.Options) -> timing.Work:
    """Reads a batch of test texts, and answers it."""
    config = record["config"]
    test = data.task(data.config_of(config["data"] | {"source": asked.source}), size).parts["test"]
    model = build_model(config["architecture"], seed=0, **config["model"]).to(asked.where).eval()
    random = np.random.RandomState(0)
    rows = [random.choice(len(test), min(size, len(test)), replace=False) for _ in range(asked.rounds(ROUNDS))]

    def answer(i: int) -> torch.Tensor:
        ids, lengths, _ = test.take(rows[i % len(rows)])
        return model(Packed.from_flat(ids, lengths).to(asked.where)).cpu()

    return answer


@torch.inference_mode()
def measure(asked: timing.Options, found: Iterable[records.Record]) -> dict[tuple[str, str], list[dict]]:
    """(name, model) of the records -> what `latency.measured` of each becomes."""
    first = {(record["name"], record["model"]): record for record in found}
    measured = {key: [] for key in first}
    for size in SIZES:
        work = {key: answering(record, size, asked) for key, record in first.items()}
        for key, times in timing.interleaved(work, asked.rounds(ROUNDS)).items():
            row = {"batch": size, "batches": times.pop("rounds"), "threads": torch.get_num_threads()}
            del times["ms"]
            measured[key].append(row | times | {"per_sentence_ms": times["median_ms"] / size})
    return measured


if __name__ == "__main__":
    asked = timing.options(__doc__)
    torch.set_num_threads(1)
    keep_heap()
    every = [record for record in records.records() if "accuracy" in record["test"] and "parts" not in record["test"]]
    measured = measure(asked, every)
    for record in every if not asked.quick else ():
        latency = {"measured": measured[record["name"], record["model"]], "environment": timing.on_machine(asked.where)}
        records.save(record.content | {"latency": latency})
