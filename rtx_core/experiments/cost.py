"""About how long a run takes, by recorded runs that are like it."""

from collections.abc import Sequence
from math import prod

from rtx_core import records
from rtx_core.experiments.configure import RunConfig

LISTED = 8  # names of runs in an announcement


def minutes(config: RunConfig, known: Sequence[records.Record], device_type: str = "cpu") -> float | None:
    """Minutes of the likest recorded run of this experiment and model, scaled by what each reads; None without one."""
    by = ("steps", "batch_size") if config.train.steps else ("epochs", "fraction", "train_rows", "facts", "max_length")
    mine = config.data.model_dump() | config.train.model_dump()

    def cost(record: records.Record) -> tuple:
        theirs = record["config"]["data"] | record["config"]["train"]
        sizes = [(mine.get(size), theirs.get(size)) for size in by]
        work = prod(a / b for a, b in sizes if all(isinstance(size, int | float) and size > 0 for size in (a, b)))
        return theirs.get("length") != mine.get("length"), abs(1 - work), record["seconds"] / 60 * work

    known = [r for r in known if r["environment"]["device_type"] == device_type]
    same = [r for r in known if (r["experiment"], r["model"]) == (config.experiment, config.model)]
    if config.experiment == "own-data":  # of these data alone
        same = [r for r in same if f"{r['name']}-".startswith(f"own-{config.data.slug}-")]
    same = [r for r in same if bool(r["config"]["data"].get("train_rows")) == bool(mine.get("train_rows"))]
    return min(map(cost, same))[-1] if same else None


def duration(minutes: float) -> str:
    """As in "40 s", "12 min" or "3.5 hours"."""
    if minutes < 1.5:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} hours"


def announcement(configs: Sequence[RunConfig], device_type: str = "cpu") -> str:
    """How many runs these are, about how long they take in all, and which."""
    experiments = {config.experiment for config in configs}
    sources = {"embedded" if config.source == "embedded" else "hub" for config in configs}
    known = [r for source in sources for name in experiments for r in records.records(experiment=name, source=source)]
    costs = [cost for config in configs if (cost := minutes(config, known, device_type)) is not None]
    unlike = len(configs) - len(costs)
    about = f", about {duration(sum(costs))} in all" if costs else ", of which no like run tells the time"
    about += f" and what {unlike} take that are like no recorded run" if costs and unlike else ""
    names = [f"{config.name} · {config.model} · seed {config.seed}" for config in configs]
    more = f"; and {len(names) - LISTED} more" if len(names) > LISTED else ""
    follow = f"{len(names)} run{'s follow' if len(names) > 1 else ' follows'}"
    return f"{follow}{about}: {'; '.join(names[:LISTED])}{more}"
