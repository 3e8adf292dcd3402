"""Copies of committed records, with changes, in a home that tests may spoil."""

import json
import shutil
from functools import reduce
from operator import getitem
from pathlib import Path

from rtx_core.paths import REPOSITORY


def put(home: Path, name: str, **changes: object) -> Path:
    """The path of a record copied to `home`, with its predictions and kept weights, and then `altered`."""
    for file in [*REPOSITORY.glob(f"results/{name}.*"), *REPOSITORY.glob(f"results/weights/{name}.*")]:
        place = home / file.relative_to(REPOSITORY)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    return altered(home / "results" / f"{name}.json", **changes)


def altered(path: Path, **changes: object) -> Path:
    """Another value under each key, `test__f1` for one within another; None takes it away."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for place, value in changes.items():
        *keys, last = place.split("__")
        inner = reduce(getitem, keys, content)
        inner.pop(last) if value is None else inner.update({last: value})
    if changes:
        path.write_text(json.dumps(content), encoding="utf-8")
    return path
