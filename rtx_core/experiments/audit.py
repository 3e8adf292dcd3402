"""Train a recorded run again and compare history, metrics and predictions with the record."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import torch

from rtx_core import data, records
from rtx_core.errors import RtxError
from rtx_core.models import build_model
from rtx_core.records import fingerprint
from rtx_core.train.config import TrainConfig
from rtx_core.train.device import choose, environment
from rtx_core.train.trainer import autocast_of, train

TOLERANCE = 5e-3  # relative, of losses on another machine or with other threads


@dataclasses.dataclass(frozen=True)
class Audit:
    """What came out; `worst` is the largest relative difference of a number of the history."""

    record: str
    steps: int
    rows: int  # of the history that were compared
    exact: bool
    worst: float
    predictions_equal: bool | None  # None for a prefix, and for language models

    def __str__(self) -> str:
        outcome = "bit for bit the same" if self.exact else f"within {self.worst:.1e} relatively"
        evaluations = "1 evaluation is" if self.rows == 1 else f"{self.rows} evaluations are"
        text = f"{self.record}: in {self.steps:,} steps {evaluations} {outcome}"
        if self.predictions_equal is not None:
            text += f"; predictions are {'equal' if self.predictions_equal else 'not equal'}"
        return text


def audit(path: str, steps: int = 0, keep: bool = False) -> Audit:
    """Repeat the run of a record, or its first `steps` steps; numbers further off than `TOLERANCE` are an error.

    It sets as many threads as the record had.  With `keep` the outcome is written to `results/audits/`.
    """
    record = records.read(Path(path).resolve())
    torch.set_num_threads(record["environment"]["threads"])
    made_by = fingerprint.commit() | {"hashes": [fingerprint.module_hash(__name__)]}
    config = TrainConfig(**record["config"]["train"])
    task = data.task(data.config_of(record["config"]["data"]), config.batch_size, config.micro_batches)
    if task.facts["sha256"] != record["data"]["sha256"]:
        raise RtxError(f"{path} was made on other data than today's; an audit needs the same data.")
    model = build_model(record["config"]["architecture"], seed=record["seed"], **record["config"]["model"])
    device, compared = choose("auto"), [row for row in record["history"] if not steps or row["step"] <= steps]
    if not compared:
        first = record["history"][0]["step"]
        raise RtxError(f"The first evaluation of this record is at step {first:,}; audit at least that many.")
    whole = len(compared) == len(record["history"])
    end = None if whole else compared[-1]["step"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "checkpoint.safetensors")
        mode = record["config"].get("compile", "")
        progress, best = train(model, task, config, record["seed"], device, file, compile=mode, max_steps=end)
    rows = list(zip(compared, progress.history))
    pairs = [(name, row[name], mine[name]) for row, mine in rows for name in mine if name != "seconds"]
    worst = max(abs(a - b) / a for name, a, b in pairs if name.endswith("loss"))
    exact, equal = all(a == b for _, a, b in pairs), None
    if whole:
        if "validation_loss" in best:
            model.load_state_dict(best["validation_loss"])
        test, predictions = task.test(model, device, autocast_of(config.precision, device))
        worst = max(worst, abs(test["loss"] - record["test"]["loss"]) / record["test"]["loss"])
        exact = exact and test["loss"] == record["test"]["loss"]
        if predictions is not None:
            equal = bool(np.array_equal(predictions["logits"], record.predictions["logits"]))
    result = Audit(records.short_name(record.path), rows[-1][0]["step"], len(rows), exact, worst, equal)
    if worst > TOLERANCE:
        raise RtxError(f"{result}, at most {TOLERANCE:g} expected: the record does not come from this code and data.")
    if keep:
        identity = {"kind": "audits", "of": record["name"], "name": f"{record['model']}-seed{record['seed']}"}
        identity |= {"model": record["model"], "seed": record["seed"], "run": record["key"]}
        about = {"data": task.facts, "environment": environment(device), "code": made_by, "made_by": __name__}
        outcome = dataclasses.asdict(result) | {"record_finished": record["finished"]}
        records.save_measurement(identity | about | {"outcome": outcome})
    return result
