"""What a verdict on a claim rests on: the rule, and the records.

The rule, stated before the results (the claims page repeats it in words):
a direction    reproduced or contradicted where the paired test says so at 5 %, else undecided;
a value        reproduced where Fisher's exact test cannot tell it from ours and they differ by a point at most, contradicted
               where the test can, else undecided;
a bound        (comparable, at least, within) reproduced where our whole 95 % interval keeps it, contradicted where all of it
               breaks it, else undecided;
several tasks  contradicted by one of them, reproduced by all of them.
What there is no record of is not measured yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from rtx_core.pages.runs import Runs, recorded
from rtx_core.pages.table import title
from rtx_core.paths import home
from rtx_core.results import measurement, store
from rtx_core.results.record import Record, read_json
from rtx_core.tasks import TASKS, task

REPRODUCED, CONTRADICTED, UNDECIDED, MISSING = VERDICTS = ("reproduced", "contradicted", "undecided", "not measured yet")


@dataclass(frozen=True)
class Verdict:
    word: str
    statistic: str


class Missing(Exception):
    """What there is no record of."""


def by_sign(sign: int) -> str:
    return {1: REPRODUCED, -1: CONTRADICTED, 0: UNDECIDED}[sign]


def by_bounds(kept: bool, broken: bool) -> str:
    return REPRODUCED if kept else CONTRADICTED if broken else UNDECIDED


def together(verdicts: Iterable[str], parts: int = 0) -> str:
    """Of a claim with several parts: contradicted by one, reproduced by all of them."""
    verdicts = list(verdicts)
    return CONTRADICTED if CONTRADICTED in verdicts else UNDECIDED if UNDECIDED in verdicts or len(verdicts) < parts else REPRODUCED


def not_all(measured: int, variants: list[str]) -> str:
    return f" Not measured yet: {len(variants) - measured} of the {len(variants)} tasks." if measured < len(variants) else ""


# -- evidence ----------------------------------------------------------------------------------------------------------


def stamp() -> tuple:
    """What `results/` holds now: as long as it is the same, so are all verdicts."""
    files = sorted((home() / "results").rglob("*.*"))
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file in files for stat in [file.stat()])


@cache
def _runs(variant: str, stamp: tuple) -> Runs:
    return recorded(task(variant))


def runs(variant: str, *models: str) -> tuple[Runs, list[list[Record]]]:
    """The task's records of these models, all seeds."""
    found = _runs(variant, stamp())
    if lacking := [model for model in models if not found.of(model)]:
        raise Missing(f"{TASKS[variant][0]}: {', '.join(map(title, lacking))}")
    return found, [found.of(model) for model in models]


def marked(sentence: str, *found: Runs) -> str:
    """The sentence, and what a reader must know of the records behind it: a reduced protocol above all."""
    return " ".join([sentence, *dict.fromkeys(note for one in found for note in one.notes if note.startswith(("Protocol", "Synthetic")))])


def profile(name: str) -> dict:
    path = store.folder("hub") / "data" / f"{name}.json"
    if not path.exists():
        raise Missing(f"the profile of {name}")
    return read_json(path, needs=("parts",))["parts"]


def transferred(trained: str, tested: str) -> list[measurement.Measurement]:
    """Models of one task tested on another, of the same budget as the task's own records."""
    return measurement.every("hub", "transfer", f"{_runs(trained, stamp()).settings.variant}-to-{tested}")
