"""Bring the files of `results/` to today's form: `python -m rtx_core migrate`.

A step takes what a record or a measurement holds and gives what it should hold.  It changes no measured number, and
leaves alone what it has already changed and what it cannot vouch for.  Reading needs no migration: a file of an older
form stays readable.  A new step is a function in `STEPS`, after those that are there."""

import copy
from collections.abc import Callable

from rtx_core.records.released import name_tensors

Step = Callable[[dict], dict]
STEPS: list[Step] = [name_tensors]


def migrated(content: dict) -> dict:
    """What a record or a measurement holds in today's form; the same where it is in that form already."""
    content = copy.deepcopy(content)
    for step in STEPS:
        content = step(content)
    return content


def main() -> None:
    """Rewrite every sound file in `results/` that is of an older form."""
    from rtx_core import records
    from rtx_core.paths import write_json

    paths, changed = records.all_paths(records.folder()), 0
    for path in paths:
        if (record := records.sound(path, measured=True)) and (content := migrated(record.content)) != record.content:
            write_json(path, content)
            changed += 1
    print(f"results/: {changed} of {len(paths)} files changed; the rest are of today's form, or no step fits them")
