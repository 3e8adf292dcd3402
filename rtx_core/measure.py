"""Every measurement of the classification study that is no training run: `python -m rtx_core.measure [--reduced] [KIND …]`.

Each is made by the command of its own that the README names.  Most need trained weights, so this comes after the runs and where
they were made; what one of them lacks is said, and the others are made.
"""

import argparse
import sys
from importlib import import_module

from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError, unknown
from rtx_core.parameters import CLASSIFIERS, settings
from rtx_core.results import measurement
from rtx_core.tasks import TASKS

TENTH = {"fraction": 0.1}
# (module of rtx_core.evaluation, experiments, parameters, what is added for runs at reduced budgets)
PLAN: tuple[tuple[str, tuple[str, ...], dict, dict], ...] = (
    *(("bag_of_words", (experiment,), given, {}) for _, experiment, given in TASKS.values()),
    ("transfer", ("sst2", "yelp"), {}, TENTH | {"seeds": [0, 1, 2]}),
    ("transfer", ("yelp", "sst2"), {}, {"epochs": 1, "train_rows": 10_000}),
    ("rounding", ("sst2",), {"models": list(CLASSIFIERS)}, TENTH),
    ("attention", ("sst2",), {}, TENTH),
    ("precision", ("sst2",), {"models": list(CLASSIFIERS)}, TENTH),  # last: its times want a machine that does nothing else
)
RECORDED_AS = {"bag_of_words": "yardstick"}
KINDS = list(dict.fromkeys(kind for kind, *_ in PLAN))


def recorded(kind: str, experiments: tuple[str, ...], given: dict) -> bool:
    """Whether all of it is in `results/`, made by today's code."""
    chosen = settings(experiments[0], given)
    of = "-to-".join([chosen.variant, *experiments[1:]])
    runs = [f"{model}-seed{seed}" for model in chosen.models for seed in chosen.seeds]
    names = {"bag_of_words": ["bag-of-words-seed0"], "rounding": ["errors"], "precision": [f"{run}-fp32" for run in runs]}.get(kind, runs)
    found = [measurement.find(resolve(chosen.source), RECORDED_AS.get(kind, kind), of, name) for name in names]
    return all(one is not None and not one.note() for one in found)


def measure(kinds: list[str], reduced: bool) -> list[str]:
    """Make the measurements of these kinds that are not recorded, or not by today's code; returns what was lacking."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("kind of measurement", kind, KINDS)
    lacking = []
    for kind, experiments, given, smaller in PLAN:
        if kind in (kinds or KINDS):
            asked = given | (smaller if reduced else {})
            if recorded(kind, experiments, asked):
                continue
            try:
                getattr(import_module(f"rtx_core.evaluation.{kind}"), kind)(*experiments, asked)
            except RtxError as error:
                lacking.append(f"{kind} {' '.join(experiments)}: {error}")
                print(f"left out: {lacking[-1]}", flush=True)
    return lacking


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core.measure", description="The measurements of the classification study beside its runs.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all unless given")
    parser.add_argument("--reduced", action="store_true", help="of the runs at reduced budgets")
    chosen = parser.parse_args(arguments)
    measure(chosen.kinds, chosen.reduced)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
