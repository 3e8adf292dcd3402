"""What a verdict on a claim rests on: the rule, and the records.

The rule (the claims page repeats it in words):
a direction    reproduced or contradicted where the paired test says so at 5 %, else undecided;
a value        reproduced where, as one more run beside our seeds, it may well be chance and is a point away at most, contradicted where
               chance would rarely give it, else undecided; undecided always beside runs of a reduced budget;
a bound        (comparable, at least, within) reproduced where our whole 95 % interval keeps it, contradicted where all of it
               breaks it, else undecided;
several tasks  contradicted by one of them, reproduced by all of them;
two tasks      only at one budget.
What there is no record of is not measured yet; a model that never answers some class was stopped before it could be compared, and counts
as none.  What was decided on one seed or at a reduced budget says so beside the word.
"""

import re
from dataclasses import dataclass
from functools import cache

from rtx_core.pages.runs import BUDGET, Runs, matched, recorded
from rtx_core.pages.table import title
from rtx_core.paths import home
from rtx_core.results import measurement, store
from rtx_core.results.record import Record, read_json
from rtx_core.results.statistics import answers_all, common
from rtx_core.tasks import TASKS, task

REPRODUCED, CONTRADICTED, UNDECIDED, MISSING = VERDICTS = ("reproduced", "contradicted", "undecided", "not measured yet")
BUDGET_AT_END = re.compile(f"{BUDGET.pattern}$")
ONE_SEED, REDUCED = "one seed", "reduced budget"


@dataclass(frozen=True)
class Verdict:
    word: str
    statistic: str
    at: str = ""  # of a decided one: "one seed", "reduced budget" or both

    @property
    def called(self) -> str:
        return f"{self.word.capitalize()} ({self.at})" if self.at else self.word.capitalize()


@dataclass(frozen=True)
class Part:
    """What a verdict is made of: a finding, how many seeds it rests on, and the records."""

    word: str
    said: str
    seeds: int
    runs: tuple[Runs, ...] = ()
    reduced: bool = False  # where there are measurements and no runs to ask

    @property
    def at(self) -> list[str]:
        return [ONE_SEED] * (self.seeds < 2) + [REDUCED] * (self.reduced or any(one.budget for one in self.runs))


class Missing(Exception):
    """What there is no record of."""


def by_sign(sign: int) -> str:
    return {1: REPRODUCED, -1: CONTRADICTED, 0: UNDECIDED}[sign]


def by_bounds(kept: bool, broken: bool) -> str:
    return REPRODUCED if kept else CONTRADICTED if broken else UNDECIDED


def together(parts: list[Part], before: str = "", after: str = ".", of: int = 0) -> Verdict:
    """Contradicted by one part, reproduced by all of them, of which there have to be `of`; the sentence is what the parts say."""
    words = {part.word for part in parts}
    word = CONTRADICTED if CONTRADICTED in words else UNDECIDED if UNDECIDED in words or len(parts) < of else REPRODUCED
    bearing = [part for part in parts if part.word == word]
    if word == CONTRADICTED:  # one is enough: the one with the fewest reservations
        bearing = [min(bearing, key=lambda part: len(part.at))]
    return reserved(word, marked(f"{before}{'; '.join(part.said for part in parts)}{after}", *(one for part in parts for one in part.runs)), bearing)


def reserved(word: str, statistic: str, bearing: list[Part]) -> Verdict:
    """With the reservations of the parts that it rests on."""
    decided = word in (REPRODUCED, CONTRADICTED)
    return Verdict(word, statistic, ", ".join(name for name in (ONE_SEED, REDUCED) if decided and any(name in part.at for part in bearing)))


def not_all(measured: int, variants: list[str]) -> str:
    return f" Not measured yet: {len(variants) - measured} of the {len(variants)} tasks." if measured < len(variants) else ""


# -- evidence ----------------------------------------------------------------------------------------------------------


def stamp() -> tuple:
    """What `results/` holds now: as long as it is the same, so are all verdicts."""
    files = sorted((home() / "results").rglob("*.*"))
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file in files for stat in [file.stat()])


def of_task(variant: str) -> Runs:
    """All that is recorded of a task, other budgets among its `budgets`."""
    return _of_task(variant, stamp())


@cache
def _of_task(variant: str, stamp: tuple) -> Runs:
    return recorded(task(variant))


def runs(variant: str, *models: str) -> tuple[Runs, list[list[Record]]]:
    """The task's records of these models, all seeds."""
    found = of_task(variant)
    if lacking := [model for model in models if not found.of(model)]:
        raise Missing(f"{TASKS[variant][0]}: {', '.join(map(title, lacking))}")
    return found, [found.of(model) for model in models]


def pairs(variant: str, *models: str) -> tuple[Runs, list[list[Record]]]:
    """The same of models that have at least one seed in common and answer every class."""
    found, records = runs(variant, *models)
    in_common(TASKS[variant][0], *records)
    answering(variant, *records)
    return found, records


def answering(variant: str, *records: list[Record]) -> None:
    """Refuses models that were stopped before they knew every class: what they say is of no architecture."""
    if early := dict.fromkeys(title(record["model"]) for of_model in records for record in of_model if not answers_all(record)):
        raise Missing(f"{TASKS[variant][0]}: {' and '.join(early)} trained far enough to answer every class")


def at_one_budget(models: list[str], *variants: str) -> list[tuple[Runs, list[list[Record]]]]:
    """The records of these models of each task, at the largest budget that all the tasks have of them."""
    if (same := matched(models, *map(of_task, variants))) is None:
        raise Missing(f"{' and '.join(TASKS[variant][0] for variant in variants)} at one budget, of {' and '.join(map(title, models))}")
    for variant, found in zip(variants, same):
        answering(variant, *(found.of(model) for model in models))
    return [(found, [found.of(model) for model in models]) for found in same]


def in_common(name: str, *records: list[Record]) -> list[tuple[Record, ...]]:
    """The records of each seed that all have."""
    if not (found := common(*records)):
        raise Missing(f"a common seed on {name}")
    return found


def marked(sentence: str, *found: Runs) -> str:
    """The sentence, and what a reader must know of the records behind it: a reduced protocol above all, where budgets differ whose it is."""
    notes = dict.fromkeys(note for one in found for note in one.notes if note.startswith(("Protocol", "Synthetic")))
    if len({one.budget for one in found}) > 1:
        small = dict.fromkeys(f"{called(one.settings.variant)} ({one.budget})" for one in found if one.budget)
        notes = [*(note for note in notes if note.startswith("Synthetic")), f"Protocol reduced: {'; '.join(small)}."]
    return " ".join([sentence, *notes])


def called(variant: str) -> str:
    """What a reader calls a task, whatever its budget."""
    name = BUDGET_AT_END.sub("", variant)
    return TASKS[name][0] if name in TASKS else name


def profile(name: str) -> dict:
    path = store.folder("hub") / "data" / f"{name}.json"
    if not path.exists():
        raise Missing(f"the profile of {name}")
    return read_json(path, needs=("parts",))["parts"]


def transferred(trained: list[str], tested: str, *models: str) -> tuple[str, list[list[measurement.Measurement]]]:
    """These models of the first of the tasks tested on another, at the largest budget that all were measured at; and which task."""
    for variant in trained:
        for one in of_task(variant).budgets:
            found = measurement.every("hub", "transfer", f"{one.settings.variant}-to-{tested}")
            if all(records := [[m for m in found if m["model"] == model] for model in models]):
                return variant, records
    raise Missing(f"transfer from {' or '.join(TASKS[variant][0] for variant in trained)} to {TASKS[tested][0]}")
