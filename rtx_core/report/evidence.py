"""What a number rests on: the records that a page holds, the machine they are of, and the badge of their seeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtx_core.report.style import ordered


def as_records(runs: Any) -> list:
    """The records in a frame of `rtx.results()`, in `rtx.runs()`, a run, a record, or a list or dict of these."""
    if hasattr(runs, "columns"):
        return list(runs["record"])
    if hasattr(runs, "record"):  # a run
        return [runs.record]
    if hasattr(runs, "path"):  # a record
        return [runs]
    parts = runs.values() if isinstance(runs, dict) else runs
    return [record for part in parts for record in as_records(part)]


def by_model(runs: object) -> dict[str, list]:
    """Model -> its records in the order of seeds; models in the order of the registry."""
    records = sorted(as_records(runs), key=lambda record: record["seed"])
    names = ordered(record["model"] for record in as_records(runs))
    return {name: [record for record in records if record["model"] == name] for name in names}


def milliseconds(records: list, entry: int = -1) -> float:
    """Inference time of a text, alone (`entry` 0) or in batches (-1): the median over seeds timed on one machine."""
    records = [r for r in records if device_of(r, "latency") == device_of(records[0], "latency")]
    times = [record["latency"]["measured"][entry] for record in records]
    return float(np.median([time["per_sentence_ms"] for time in times]))


def device_of(record, entry: str = "") -> str:
    """The machine of a record, or of one of its entries (`entry="latency"`), with the threads of a CPU."""
    environment = (record[entry] if entry else record)["environment"]
    if environment["device_type"] != "cpu":
        return environment["device"]
    threads = environment["threads"]
    return f"{environment['device']} ({threads} thread{'s' if threads > 1 else ''})"


MAX_CIRCLES = 5  # circles; further seeds are a "+"
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Badge:
    """How many seeds a number rests on: a circle a seed, filled at the full budget, hollow at a reduced one."""

    full: int
    reduced: int
    synthetic: bool = False  # of generated texts

    @property
    def seeds(self) -> int:
        return self.full + self.reduced

    @property
    def circles(self) -> str:
        marks = "●" * self.full + "○" * self.reduced
        return marks if len(marks) <= MAX_CIRCLES else f"{marks[:MAX_CIRCLES]}+"

    @property
    def budget(self) -> str:
        if not self.seeds or self.synthetic:
            return "synthetic" if self.seeds else "not measured"
        return "mixed" if self.full and self.reduced else "full" if self.full else "reduced"

    @property
    def words(self) -> str:
        """As in "three seeds, full budget"."""
        if not self.seeds:
            return "not measured"
        count = COUNTS[self.seeds] if self.seeds < len(COUNTS) else self.seeds
        data = "synthetic data" if self.synthetic else f"{self.budget} budget"
        return f"{count} seed{'' if self.seeds == 1 else 's'}, {data}"

    def __str__(self) -> str:
        return f"{self.circles} {self.budget}".strip()


def badge(runs: object) -> Badge:
    """That of the seeds which all models and settings have in common, or where there is none those of the fewest."""
    records = as_records(runs)
    if not records:
        return Badge(0, 0)
    by_group = {}
    for record in records:
        group = by_group.setdefault((record.get("of") or record["name"], record["model"]), {})
        group[record["seed"]] = record.get("budget", "full") == "full"
    groups = list(by_group.values())
    seeds = set.intersection(*map(set, groups))
    if not seeds:
        seeds, groups = min(groups, key=len), [min(groups, key=len)]
    full = sum(all(group[seed] for group in groups) for seed in seeds)
    return Badge(full, len(seeds) - full, any(record.synthetic for record in records))
