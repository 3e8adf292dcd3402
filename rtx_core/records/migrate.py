"""Bring the files of `results/` and `runs/` to today's form: `python -m rtx_core migrate`.

A step takes what a record or a measurement holds and gives what it should hold.  It changes no measured number, and
leaves alone what it has already changed and what it cannot vouch for.  Reading needs no migration: a file of an older
form stays readable.  A new step is a function in `STEPS`, after those that are there."""

import copy
from collections.abc import Callable

from rtx_core import records
from rtx_core.paths import write_json
from rtx_core.records.released import name_tensors

STEPS: list[Callable[[dict], dict]] = [name_tensors]


def migrate(content: dict) -> dict:
    """What a record or a measurement holds in today's form; the same where it is in that form already."""
    content = copy.deepcopy(content)
    for step in STEPS:
        content = step(content)
    return content


def main() -> None:
    """Rewrite every sound file of an older form, of the study and of one's own."""
    paths, count = [path for root in records.folders() for path in records.paths_in(root)], 0
    for path in paths:
        record = records.read_or_none(path, measurement=True)
        if record and (content := migrate(record.content)) != record.content:
            write_json(path, content)
            count += 1
    print(f"{count} of {len(paths)} files changed; the rest are of today's form, or no step fits them")
