"""Bring the files of `results/` and `runs/` to today's form: `python -m rtx_core migrate`.

A step takes what a record or a measurement holds and gives what it should hold.  It changes no measured number, and
leaves alone what it has already changed and what it cannot vouch for.  Reading needs no migration: a file of an older
form stays readable.  A new step is a function in `STEPS`, after those that are there."""

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from rtx_core.data import config_of
from rtx_core.errors import RtxError
from rtx_core.models import registry
from rtx_core.records.fingerprint import name_of
from rtx_core.records.released import name_tensors
from rtx_core.study import declaration

TEXTS = "rtx_core.data.tasks:Classification"


@cache
def _before_tasks() -> dict[str, dict]:
    """{a model's class, or a module that measures: {"known": hashes of code without the task, all of which give the
    same numbers, "now": {a task: the hash of that code with it}}}"""
    return json.loads(Path(__file__).with_name("before_tasks.json").read_text(encoding="utf-8"))


def hash_of_task(content: dict) -> dict:
    """The hash of the code covers the task that was trained on or measured with, and the record names its class."""
    code, model = content["code"], registry.MODELS.get(content.get("config", {}).get("architecture"))
    owner = declaration("MEASUREMENTS").get(content["kind"]) if "kind" in content else model and model.kind
    before = _before_tasks().get(owner) if isinstance(owner, str) else None
    task = code.get("task") if before else None
    with suppress(RtxError):  # of settings that this code does not know
        task = task or (before and _task_of(content))
    if not before or task not in before["now"]:
        return content
    now = before["now"][task]
    hashes = dict.fromkeys(now if code_hash in before["known"] else code_hash for code_hash in code["hashes"])
    if [*hashes] != [now] and "task" not in code:  # of code that is not known
        return content
    return content | {"code": code | {"hashes": [*hashes], "task": task}}


def _task_of(content: dict) -> str | None:
    """The class of a task, as "module:class"; of data that other settings describe, by the experiment."""
    experiments, name = declaration("EXPERIMENTS"), content.get("experiment") or content["of"]
    names = [key for key in experiments if f"{name}-".startswith(f"{key}-")]
    experiment = experiments.get(max(names, key=len, default=""))
    if "config" in content:
        data = config_of(content["config"]["data"], experiment and type(experiment.data))
    elif experiment is None:
        return None
    else:
        data = experiment.data
    if data.labeled:
        return TEXTS
    return data.task_class if isinstance(data.task_class, str) else name_of(data.task_class)


Step = Callable[[dict], dict]
STEPS: list[Step] = [hash_of_task, name_tensors]


def migrate(content: dict) -> dict:
    """What a record or a measurement holds in today's form; the same where it is in that form already."""
    content = copy.deepcopy(content)
    for step in STEPS:
        content = step(content)
    return content


def main() -> None:
    """Rewrite every sound file of an older form, of the study and of one's own."""
    from rtx_core import records
    from rtx_core.paths import write_json

    paths, count = [path for root in records.folders() for path in records.paths_in(root)], 0
    for path in paths:
        record = records.read_or_none(path, measurement=True)
        if record and (content := migrate(record.content)) != record.content:
            write_json(path, content)
            count += 1
    print(f"{count} of {len(paths)} files changed; the rest are of today's form, or no step fits them")
