"""What the workflow asks of the project.  Snakemake has an environment of its own, so it asks by command.

python workflow/stages.py plan FILE '{"source": "real", "reduced": false, "keep_stale": false, "only": []}'
python workflow/stages.py data EXPERIMENT SETTINGS       fetch the texts of a run and tokenise them into the cache
"""

import hashlib
import json
import os
import shlex
import sys
from pathlib import Path

from rtx_core import records
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments import run as runner
from rtx_core.experiments.configure import RunConfig, configure
from rtx_core.experiments.cost import duration, minutes
from rtx_core.paths import write_json
from rtx_core.study import declaration
from study import plan

ENVIRONMENT = ("PATH", "RTX_DATA", "RTX_HOME")  # that a job on another machine has as the workflow had


def trial(config: RunConfig) -> RunConfig:
    """The same run on generated text in a few steps, which says nothing of real text."""
    settings = config.settings | config.data.smoke_settings | {"source": "embedded"}
    return configure(config.experiment, config.model_spec, config.seed, **settings)


def make_plan(source: str, reduced: bool, keep_stale: bool, only: list[str]) -> dict[str, dict]:
    """Stage -> name -> its command and what it needs; every record is looked at once, here."""
    for name in only:
        if name not in declaration("EXPERIMENTS"):
            raise unknown("experiment", name, declaration("EXPERIMENTS"))
    stages: dict[str, dict] = {"data": {}, "run": {}}
    stages["environment"] = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    runs = [] if source == "embedded" else records.records()  # whose times say nothing of a trial's
    extra = {} if source in ("real", "embedded") else {"source": source}
    for config in plan.everything(reduced, **extra):
        config = trial(config) if source == "embedded" else config
        why = plan.why(config)
        if only and config.experiment not in only:
            continue
        digest = hashlib.sha256(config.data.model_dump_json().encode()).hexdigest()
        texts = f"{config.experiment}-{digest[:8]}"
        words = ["workflow/stages.py", "data", config.experiment, json.dumps(config.settings)]
        stages["data"][texts] = {"command": shlex.join(["python", *words])}
        is_stale = why not in ("", "missing")
        is_needed = why == "missing" or (is_stale and not keep_stale)
        stages["run"][f"{config.name}-{config.model}-seed{config.seed}"] = {
            "command": runner.command_of(config, is_stale),
            "data": texts,
            "why": why,
            "needed": is_needed,
            "minutes": minutes(config, runs) if is_needed else 0.0,
        }
    return stages


def write_plan(file: str, request: str) -> None:
    stages = make_plan(**json.loads(request))
    write_json(Path(file), stages)
    print(total(stages["run"]), file=sys.stderr)


def total(runs: dict[str, dict]) -> str:
    """How many runs are needed, and about how long they take in all."""
    costs = [run["minutes"] for run in runs.values() if run["needed"]]
    known_costs = [cost for cost in costs if cost is not None]
    duration_text = f", about {duration(sum(known_costs))} of one thread in all" if known_costs else ""
    uncounted = ""
    if 0 < len(known_costs) < len(costs):
        uncounted = f" ({len(costs) - len(known_costs)} are like no recorded run and not counted)"
    return f"{len(costs)} of {len(runs)} runs are missing or stale{duration_text}{uncounted}."


def prepare(experiment: str, settings: str) -> None:
    config = configure(experiment, declaration("EXPERIMENTS")[experiment].default_models[0], **json.loads(settings))
    config.data.task(config.train.batch_size, config.train.micro_batches)


if __name__ == "__main__":
    try:
        {"plan": write_plan, "data": prepare}[sys.argv[1]](*sys.argv[2:])
    except RtxError as error:
        sys.exit(str(error))
