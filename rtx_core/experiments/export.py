"""A trained model as a folder that others can load, laid out as on the hub: weights, config, tokenizer, a card."""

import shutil
from pathlib import Path

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments.weights import load_weights, weights_of
from rtx_core.paths import write_atomically, write_json

CARD = """---
library_name: rtx-core
tags: [recurrent-depth, {run[config][architecture]}]
---

# {run[name]}: {run[model]}, seed {run[seed]}

Trained on {run[data][name]} ({run[data][n_train]:,} training {unit}), {run.score} on {run[test][n]:,}.
Every setting stands in `config.json`, which is the record of the run.

```python
import rtx_core as rtx

rtx.load("this folder").classify(["a film of great charm"])  # of a language model: rtx.load_model("model.safetensors")
```
"""


def export(address: str, folder: str, source: str = "hub") -> Path:
    """Write the model of a record, "sst2/recurrent-seed0", into an empty or new folder."""
    record, target = records.at(address, source), Path(folder)
    load_weights(record)  # which refuses those that are not of today's class
    weights = weights_of(record)
    if target.exists() and any(target.iterdir()):
        raise RtxError(f"{folder} is not empty; name a new folder, so that nothing in it is overwritten.")
    target.mkdir(parents=True, exist_ok=True)
    for file in ("model.safetensors", "tokenizer.json"):
        if weights.with_name(file).exists():
            shutil.copyfile(weights.with_name(file), target / file)
    write_json(target / "config.json", {k: record[k] for k in ("config", "data", "parameters", "test", "code", "key")})
    card = CARD.format(run=record, unit=record["data"].get("unit", "texts"))
    write_atomically(target / "README.md", card.encode())
    return target
