"""About how long a run takes, by recorded runs that are like it."""

from collections.abc import Sequence
from math import prod

from rtx_core import records
from rtx_core.experiments.configure import RunConfig

MAX_LISTED = 8  # names of runs in an announcement


def minutes(
    config: RunConfig, runs: Sequence[records.Record], device_type: str = "cpu", same_model: bool = True
) -> float | None:
    """Minutes of the most similar recorded run of this experiment and this or any model, scaled by what each reads."""
    epoch_fields = ("epochs", "fraction", "train_rows", "facts", "max_length")
    size_fields = ("steps", "batch_size") if config.train.steps else epoch_fields
    sizes = config.data.model_dump() | config.train.model_dump()

    def cost(record: records.Record) -> tuple:
        recorded_sizes = record["config"]["data"] | record["config"]["train"]
        ratios = [(sizes.get(size), recorded_sizes.get(size)) for size in size_fields]
        work = prod(a / b for a, b in ratios if all(isinstance(size, int | float) and size > 0 for size in (a, b)))
        return recorded_sizes.get("length") != sizes.get("length"), abs(1 - work), record["seconds"] / 60 * work

    runs = [r for r in runs if r["environment"]["device_type"] == device_type]
    similar = [r for r in runs if r["experiment"] == config.experiment]
    similar = [r for r in similar if r["model"] == config.model or not same_model]
    if config.experiment == "own-data":  # of these data alone
        similar = [r for r in similar if f"{r['name']}-".startswith(f"own-{config.data.slug}-")]
    similar = [r for r in similar if bool(r["config"]["data"].get("train_rows")) == bool(sizes.get("train_rows"))]
    return min(map(cost, similar))[-1] if similar else None


def duration(minutes: float) -> str:
    """As in "40 s", "12 min" or "3.5 hours"."""
    if minutes < 1.5:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} hours"


def announcement(configs: Sequence[RunConfig], device_type: str = "cpu") -> str:
    """How many runs these are, about how long they take in all, and which."""
    experiments = {config.experiment for config in configs}
    sources = {"embedded" if config.source == "embedded" else "hub" for config in configs}
    runs = [r for source in sources for name in experiments for r in records.records(experiment=name, source=source)]
    costs = [cost for config in configs if (cost := minutes(config, runs, device_type)) is not None]
    unknown = len(configs) - len(costs)
    total = f", about {duration(sum(costs))} in all" if costs else ", of which no like run tells the time"
    total += f" and what {unknown} take that are like no recorded run" if costs and unknown else ""
    names = [f"{config.name} · {config.model} · seed {config.seed}" for config in configs]
    rest = f"; and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    count = f"{len(names)} run{'s follow' if len(names) > 1 else ' follows'}"
    return f"{count}{total}: {'; '.join(names[:MAX_LISTED])}{rest}"
