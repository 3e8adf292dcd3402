"""A trained model as a folder that others can load: weights, configuration, tokenizer and a card, as the hub lays models out."""

import shutil
from pathlib import Path

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.paths import write_atomically, write_json
from rtx_core.runner import weights_of

CARD = """---
library_name: rtx-core
tags: [recurrent-depth, {architecture}]
---

# {name}: {model}, seed {seed}

Trained on {data} ({n_train:,} training {unit}), tested on {n_test:,}: {result}.
Every setting stands in `config.json`, which is the record of the run.

```python
import rtx_core as rtx

model = rtx.load_model("model.safetensors")
```
"""


def export(address: str, folder: str, source: str = "hub") -> Path:
    """Write the model of a record, "sst2/recurrent-seed0", into an empty or new folder."""
    record, target = records.at(address, source), Path(folder)
    weights = weights_of(record)
    if not weights.exists():
        raise RtxError(
            f"The trained weights of {address} are not in _build/runs; export where the run was made."
        )
    if target.exists() and any(target.iterdir()):
        raise RtxError(f"{folder} is not empty; name a new folder, so that nothing in it is overwritten.")
    target.mkdir(parents=True, exist_ok=True)
    for file in ("model.safetensors", "tokenizer.json"):
        if weights.with_name(file).exists():
            shutil.copyfile(weights.with_name(file), target / file)
    write_json(
        target / "config.json",
        {k: record[k] for k in ("config", "data", "parameters", "test", "code", "key")},
    )
    test = record["test"]
    measure = "accuracy" if "accuracy" in test else "loss"
    card = CARD.format(
        **{k: record[k] for k in ("name", "model", "seed")},
        architecture=record["config"]["architecture"],
        data=record["data"]["name"],
        unit=record["data"].get("unit", "texts"),
        n_train=record["data"]["n_train"],
        n_test=test["n"],
        result=f"{measure} {test[measure]:.4f}",
    )
    write_atomically(target / "README.md", card.encode())
    return target
