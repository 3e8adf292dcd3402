"""Every run of the classification study, in order: `python -m rtx_core.paper` lists what is recorded and what is missing.

    python -m rtx_core.paper --run              train what is missing, at the report's full protocol (meant for a GPU)
    python -m rtx_core.paper --run --reduced    the long ones at the budget stated here, for a machine without one

The command may be started several times at once: each process takes the next run that no other has.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from rtx_core.corpora.sources import resolve
from rtx_core.errors import Busy, RtxError
from rtx_core.parameters import Settings, settings
from rtx_core.results import store


@dataclass(frozen=True)
class Study:
    """One line of the plan."""

    experiment: str
    given: dict = field(default_factory=dict)  # what differs from the experiment's default
    seeds: tuple[int, ...] = (0,)
    reduced: dict = field(default_factory=dict)  # a budget that two CPU cores can carry; empty: the full one is

    def settings(self, reduced: bool) -> Settings:
        return settings(self.experiment, self.given | (self.reduced if reduced else {}) | {"seeds": list(self.seeds)})


LONG_TEXTS = {"epochs": 1, "train_rows": 10_000}  # reviews, of which one has the words of ten SST-2 phrases
PLAN = (
    Study("sst2"),
    Study("sst2", {"split": "official"}),
    Study("sst2", {"fraction": 0.1}, seeds=(0, 1, 2)),
    Study("sst2", {"length": "short"}),
    Study("sst2", {"fraction": 0.5}),
    Study("sst2", {"length": "long"}),
    Study("sst2", {"split": "grouped"}),
    Study("sst2", seeds=(1,)),
    Study("sst2", {"models": ["recurrent-wide"]}),
    Study("multi-domain", reduced=LONG_TEXTS),
    Study("yelp", reduced=LONG_TEXTS),
    Study("multi-domain-imdb", reduced=LONG_TEXTS),
    Study("yelp", {"max_length": 512}, reduced=LONG_TEXTS),
)


def plan(reduced: bool = False) -> Iterator[tuple[Settings, str, int]]:
    """(settings, model, seed) of every run."""
    for study in PLAN:
        asked = study.settings(reduced)
        for seed in asked.seeds:
            yield from ((asked, model, seed) for model in asked.models)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core.paper", description="The runs of the classification study.")
    parser.add_argument("--run", action="store_true", help="train what is missing")
    parser.add_argument("--reduced", action="store_true", help="long runs at their reduced budget")
    chosen = parser.parse_args(arguments)
    for asked, model, seed in plan(chosen.reduced):
        record = store.find(resolve(asked.source), asked.variant, model, seed)
        if record is None and chosen.run:
            from rtx_core.run import run  # needs torch, which listing does not

            try:
                record = run(asked, model, seed)
            except Busy:  # the same command beside this one: it takes that run, this one the next
                pass
        said = "missing" if record is None else f"recorded, test accuracy {record['test']['accuracy']:.4f}"
        print(f"{asked.variant:<36} {model:<14} seed {seed}  {said}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
