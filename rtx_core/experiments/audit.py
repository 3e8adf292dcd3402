"""Train a recorded run again and compare history, metrics and predictions with the record."""

import tempfile
from pathlib import Path

import numpy as np
import torch

from rtx_core import data, records
from rtx_core.errors import RtxError
from rtx_core.fast.layers import compile_layers
from rtx_core.models import build_model
from rtx_core.records import fingerprint
from rtx_core.study import declaration
from rtx_core.train.config import TrainConfig
from rtx_core.train.device import choose, environment
from rtx_core.train.trainer import autocast_of, train

TOLERANCE = 5e-3  # relative, of losses on another machine or with other threads


def audit(path: str, steps: int = 0, keep: bool = False) -> dict:
    """Repeat the run of a record, or its first `steps` steps; numbers further off than `TOLERANCE` are an error.

    Gives how many `steps` and `rows` of the history were compared, whether all were `exact`, the `worst` relative
    difference of a loss, and `predictions_equal`, None of a prefix and of language models.  As many threads as the
    record had are set.  With `keep` the outcome is written to `results/audits/`.
    """
    file = Path(path).resolve()
    record = records.read(file) if file.exists() else records.load(path.removeprefix("results/"))
    torch.set_num_threads(record["environment"]["threads"])
    made_by = fingerprint.commit() | {"hashes": [fingerprint.module_hash(__name__)]}
    config = TrainConfig(**record["config"]["train"])
    experiment = declaration("EXPERIMENTS").get(record["experiment"])
    data_class = experiment and type(experiment.data)  # two classes may have the same fields
    data_config = data.config_of(record["config"]["data"], data_class)
    task = data.task(data_config, config.batch_size, config.micro_batches)
    if task.facts["sha256"] != record["data"]["sha256"]:
        raise RtxError(f"{path} was made on other data than today's; an audit needs the same data.")
    model = build_model(record["config"]["architecture"], seed=record["seed"], **record["config"]["model"])
    device, compared = choose("auto"), [row for row in record["history"] if not steps or row["step"] <= steps]
    if not compared:
        raise RtxError(f"The first evaluation of {path} is at step {record['history'][0]['step']:,}; audit as many.")
    complete, mode = len(compared) == len(record["history"]), record["config"].get("compile", "")
    with tempfile.TemporaryDirectory() as folder:
        run_options = (config, record["seed"], device, Path(folder, "checkpoint.safetensors"))
        last_step = None if complete else compared[-1]["step"]
        progress, best = train(model, task, *run_options, compile=compile_layers(model, mode), max_steps=last_step)
    rows = list(zip(compared, progress.history))
    pairs = [(name, row[name], again[name]) for row, again in rows for name in again.keys() & row.keys() - {"seconds"}]
    predictions_equal = None
    if complete:
        model.load_state_dict(best.get("validation_loss", model.state_dict()))
        test, predictions = task.test(model, device, autocast_of(config.precision, device))
        pairs.append(("test_loss", record["test"]["loss"], test["loss"]))
        if predictions is not None:
            predictions_equal = bool(np.array_equal(predictions["logits"], record.predictions["logits"]))
    largest = max(abs(a - b) / max(abs(a), 1e-9) for name, a, b in pairs if name.endswith("loss"))
    if largest > TOLERANCE:
        raise RtxError(f"{path} does not come from this code and data: a loss is off by {largest:.1e}.")
    outcome = {"record": str(record), "steps": rows[-1][0]["step"], "rows": len(rows)}
    outcome |= {"exact": all(a == b for _, a, b in pairs), "worst": largest}
    outcome |= {"predictions_equal": predictions_equal, "record_finished": record["finished"]}
    if keep:
        identity = {"kind": "audits", "of": record["name"], "name": f"{record['model']}-seed{record['seed']}"}
        identity |= {"model": record["model"], "seed": record["seed"], "run": record["key"]}
        provenance = {"data": task.facts, "environment": environment(device), "code": made_by, "made_by": __name__}
        records.save_measurement(identity | provenance | {"outcome": outcome})
    return outcome
