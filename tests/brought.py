"""Records as another machine would leave them, true or not, and how `bring` refuses."""

import json

import numpy as np
import pytest
from factory import SST2, content, predictions

from rtx_core.errors import RtxError
from rtx_core.evaluation.metrics import metrics
from rtx_core.results.record import run_key
from rtx_core.travel.bring import bring


def wrote(root, name: str, made: dict, arrays: dict | None = None) -> str:
    """Writes the files; gives the path, as `bring` takes it."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(made))
    if arrays is not None:
        np.savez(path.with_suffix(".npz"), **arrays)
    return str(root)


def record(asked=SST2, model="baseline", seed=0, wrong=range(40), **changes) -> tuple[dict, dict]:
    """(a record that its predictions prove, those predictions); its key is made last."""
    logits, labels = predictions(wrong)
    made = content(asked, model, seed, wrong, **({"test": metrics(logits, labels)} | changes))
    return made, {"logits": logits, "labels": labels.astype(np.int8)}


def deep(made: dict, *path: str, to: object) -> dict:
    """With another value at a place, and the key that follows."""
    made = json.loads(json.dumps(made))
    at = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return made | {"key": run_key(made["config"], made["data"]["sha256"], made["seed"])}


def refused(home, path, said: str, *options: str) -> None:
    """One sentence, and nothing is written."""
    before = held(home)
    with pytest.raises(RtxError) as error:
        bring([str(path), *options])
    message = str(error.value)
    assert said in message and "\n" not in message and message.endswith("."), message
    assert held(home) == before


def held(home) -> dict:
    return {file: file.read_bytes() for folder in ("results", "_build/results") for file in (home / folder).glob("**/*") if file.is_file()}
