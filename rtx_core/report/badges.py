"""The evidence badge: how many seeds a number rests on, and at which budget.

A circle a seed, filled where the run had the full budget and hollow where it was reduced: "●●●" three seeds
at the full budget, "○" one seed at a reduced one, "●●○" two full and one reduced.  More than five seeds are
five circles and a "+".
"""

from collections.abc import Iterable
from dataclasses import dataclass

MOST = 5
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Badge:
    """Seeds at the full and at a reduced budget; `synthetic` where the texts are generated."""

    full: int
    reduced: int
    synthetic: bool = False

    @property
    def seeds(self) -> int:
        return self.full + self.reduced

    @property
    def circles(self) -> str:
        marks = "●" * self.full + "○" * self.reduced
        return marks if len(marks) <= MOST else f"{marks[:MOST]}+"

    @property
    def budget(self) -> str:
        if not self.seeds:
            return "not measured"
        return (
            "synthetic"
            if self.synthetic
            else "full"
            if not self.reduced
            else "mixed"
            if self.full
            else "reduced"
        )

    @property
    def words(self) -> str:
        """ "three seeds, full budget"."""
        if not self.seeds:
            return "not measured"
        count = WORDS[self.seeds] if self.seeds < len(WORDS) else str(self.seeds)
        budget = "synthetic data" if self.synthetic else f"{self.budget} budget"
        return f"{count} seed{'' if self.seeds == 1 else 's'}, {budget}"

    def __str__(self) -> str:
        return f"{self.circles} {self.budget}".strip()

    def __format__(self, form: str) -> str:
        return format(str(self), form)


def badge(found: object) -> Badge:
    """The badge of records, runs or a frame: the seeds that all models and settings among them have in
    common."""
    groups = {}
    for record in as_records(found):
        group = (entry(record, "of") or entry(record, "name"), entry(record, "model"))
        groups.setdefault(group, {})[entry(record, "seed")] = record
    if not groups:
        return Badge(0, 0)
    seeds = set.intersection(*(set(group) for group in groups.values()))
    full = sum(all(is_full(group[seed]) for group in groups.values()) for seed in seeds)
    synthetic = any(
        getattr(record, "synthetic", False) for group in groups.values() for record in group.values()
    )
    if not seeds:  # none in common: as many as the model with the fewest has
        fewest = min(groups.values(), key=len)
        full = sum(is_full(record) for record in fewest.values())
        return Badge(full, len(fewest) - full, synthetic)
    return Badge(full, len(seeds) - full, synthetic)


def is_full(record: object) -> bool:
    return entry(record, "budget", "full") == "full"


def entry(record: object, key: str, otherwise: object = None) -> object:
    """A record's entry, or `otherwise` where it has none."""
    try:
        return record[key]
    except KeyError:
        return otherwise


def as_records(found: object) -> list:
    """The records in whatever a page holds: a frame of `rtx.results()`, `rtx.runs()`, records, or lists of
    these."""
    if hasattr(found, "columns"):
        return list(found["record"])
    if hasattr(found, "record"):  # a run
        return [found.record]
    if hasattr(found, "path"):  # a record
        return [found]
    if isinstance(found, dict):
        found = found.values()
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
        raise TypeError(f"Got {type(found).__name__}; expected records, runs or a frame of results.")
    return [record for part in found for record in as_records(part)]


def by_model(found: object) -> dict[str, list]:
    """Model -> its records in the order of seeds; models in the order of the registry."""
    from rtx_core.report.style import ordered

    records = as_records(found)
    return {
        name: sorted(
            (record for record in records if record["model"] == name), key=lambda record: record["seed"]
        )
        for name in ordered(record["model"] for record in records)
    }
