"""Every training run of the paper, in order: what is recorded, what is stale or missing, and the line that makes it.

    python -m rtx_core.paper                     lists them
    python -m rtx_core.paper --run               trains what is missing or stale, at the studies' full budgets (meant for a GPU)
    python -m rtx_core.paper --run --missing     leaves stale records as they are
    python -m rtx_core.paper --run --reduced     the long ones at the budgets stated here, for a machine without one

The command may be started several times at once: each process takes the next run that no other has.  `make paper` (workflow/)
makes the same runs side by side, on this machine or a cluster.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rtx_core.corpora.sources import SOURCES, resolve
from rtx_core.errors import Busy, RtxError
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.parameters import Settings, settings
from rtx_core.paths import REPOSITORY, build
from rtx_core.results import language, store
from rtx_core.results.record import Record

# What a notebook compares is a list there: notebook -> (its parameter, the setting of one run).
COMPARED = {
    "data-size": ("fraction", "fraction"), "length": ("length", "length"), "leakage": ("split", "split"),
    "yelp": ("max_length", "max_length"), "multi-domain": ("experiment", "experiment"), "shakespeare": ("recipes", "recipe"),
}  # fmt: skip


@dataclass(frozen=True)
class Study:
    """One line of the plan."""

    experiment: str
    given: dict = field(default_factory=dict)  # what differs from the experiment's default
    seeds: tuple[int, ...] = (0,)
    reduced: dict = field(default_factory=dict)  # a budget that two CPU cores can carry; empty: the full one is
    full: dict = field(default_factory=dict)  # what asks for the full budget where the default is smaller
    both: bool = False  # two cores can carry the full budget too; the reduced one is there to be compared with others'
    also: dict = field(default_factory=dict)  # a smaller budget yet, of a task with dearer texts that is compared with this one
    notebook: str = ""  # that trains it, if not the experiment's own

    def budgets(self, reduced: bool) -> list[dict]:
        """What is given for each budget of the full plan or of the reduced one."""
        if not reduced:
            return [self.full]
        return [self.full] * self.both + [self.reduced] + [self.also] * bool(self.also)


ONE_EPOCH = {"epochs": 1}
DEPTHS = ({"num_passes": 1}, {"num_passes": 3}, {"num_layers": 6, "num_passes": 1})  # the last: unshared, as deep as two passes
LONG_TEXTS = {"epochs": 1, "train_rows": 10_000}  # reviews, of which one has the words of ten SST-2 phrases
THREE_DOMAINS = {"epochs": 1, "train_rows": 5_000}
PLAN = (
    Study("sst2", reduced=ONE_EPOCH, both=True, also=THREE_DOMAINS),
    Study("sst2", {"split": "official"}, reduced=ONE_EPOCH, both=True),
    Study("sst2", {"fraction": 0.1}, seeds=(0, 1, 2), reduced=ONE_EPOCH, both=True, notebook="data-size"),
    Study("sst2", {"length": "short"}, reduced=ONE_EPOCH, both=True, notebook="length"),
    Study("sst2", {"fraction": 0.5}, reduced=ONE_EPOCH, notebook="data-size"),
    Study("sst2", {"length": "long"}, reduced=ONE_EPOCH, notebook="length"),
    Study("sst2", {"split": "grouped"}, reduced=ONE_EPOCH, notebook="leakage"),
    Study("sst2", seeds=(1,), reduced=ONE_EPOCH),
    Study("sst2", {"models": ["recurrent-wide"]}, reduced={"fraction": 0.1}, notebook="data-size"),
    *(Study("sst2", {"models": ["recurrent"], "fraction": 0.1} | depth, seeds=(0, 1, 2), notebook="data-size") for depth in DEPTHS),
    Study("multi-domain", reduced=THREE_DOMAINS),
    Study("yelp", reduced=LONG_TEXTS),
    Study("multi-domain-imdb", reduced=THREE_DOMAINS, notebook="multi-domain"),
    Study("yelp", {"max_length": 512}, reduced=LONG_TEXTS),
    *(
        Study(name, {"recipe": recipe}, seeds=(seed,), full={"budget": "full"})
        for name in ("shakespeare", "tinystories")
        for seed in LANGUAGE[name].seeds
        for recipe in LANGUAGE[name].recipes  # inside seeds, so that pairs come early
    ),
)

# On the embedded corpus, which says nothing of real text, the plan is there to be tried: a few steps each.
TRIAL = {"epochs": 1, "train_rows": 64}
LANGUAGE_TRIAL = {"steps": 2, "batch_size": 8, "block_size": 64}


@dataclass(frozen=True)
class Run:
    """One training run; whether it is recorded is looked up anew whenever it is asked."""

    notebook: str  # that trains it
    given: dict  # the parameters that the notebook needs for it
    settings: Settings | LanguageSettings  # what they come to
    model: str
    seed: int

    @property
    def variant(self) -> str:
        return self.settings.variant

    @property
    def name(self) -> str:
        return f"{self.variant}-{self.model}-seed{self.seed}"

    @property
    def _store(self) -> ModuleType:
        return language if self.settings.experiment in LANGUAGE else store

    @property
    def _key(self) -> tuple[str, str, str, int]:
        return resolve(self.settings.source), self.variant, self.model, self.seed

    @property
    def record(self) -> Path:
        """Where its record lies, or would."""
        return self._store.path_of(*self._key)

    @property
    def found(self) -> Record | None:
        return self._store.find(*self._key)

    @property
    def why(self) -> str:
        """Why it is to be made: missing, or what is wrong with its record today; empty when nothing is.

        The texts of language models are proven by the code that reads them, which is in their fingerprint and has their hash.
        """
        found = self.found
        if found is None:
            return "missing"
        return found.note() if self._store is language else found.note(_data_sha256(os.environ.get("RTX_DATA"), **self.settings.data))

    @property
    def state(self) -> str:
        """ "recorded", "stale" or "missing"."""
        return {"": "recorded", "missing": "missing"}.get(self.why, "stale")

    @property
    def command(self) -> list[str]:
        """The line that a reader types; a record that is there, stale or not, is shown by it and not made again (see `RTX_STALE`)."""
        return papermill(self.notebook, self.given, self.name)


@cache
def _data_sha256(mirror: str | None, source: str, **data: object) -> str | None:
    """The hash of today's data; None where it would have to be downloaded or cannot be read."""
    if resolve(source) == "hub":
        return None
    from rtx_core.corpora.dataset import dataset

    try:
        return dataset(source=source, **data).facts["sha256"]
    except RtxError:
        return None


def papermill(notebook: str, given: dict, name: str) -> list[str]:
    """The command, for the repository's folder, that executes a notebook into `_build/paper/`."""
    made = build() / "paper" / f"{name}.ipynb"
    made = made.relative_to(REPOSITORY) if made.is_relative_to(REPOSITORY) else made
    return ["papermill", f"notebooks/{notebook}.ipynb", str(made), *(["-y", json.dumps(given)] if given else [])]


def runs(reduced: bool = False, source: str = "real") -> Iterator[Run]:
    """Every run of the paper; with source "embedded" of a few steps each."""
    for study, budget in ((study, budget) for study in PLAN for budget in ([study.reduced] if source == "embedded" else study.budgets(reduced))):
        given = {} if source == "real" else {"source": source}
        given |= study.given | budget
        if source == "embedded":
            given |= LANGUAGE_TRIAL if study.experiment in LANGUAGE else TRIAL
        notebook = study.notebook or study.experiment
        for seed in study.seeds:
            for model in settings(study.experiment, given).models:
                one = given | {"models": [model], "seeds": [seed]}
                asked, parameters = settings(study.experiment, one), one
                if notebook in COMPARED:
                    parameter, setting = COMPARED[notebook]
                    parameters = {k: v for k, v in one.items() if k != setting} | {parameter: [getattr(asked, setting)]}
                yield Run(notebook, parameters, asked, model, seed)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m rtx_core.paper", description="The runs of the paper.")
    parser.add_argument("--run", action="store_true", help="train what is missing or stale")
    parser.add_argument("--missing", action="store_true", help="train only what is missing")
    parser.add_argument("--reduced", action="store_true", help="long runs at their reduced budget")
    parser.add_argument("--source", default="real", choices=SOURCES, help="of all texts; embedded: a few steps of every run, as a trial")
    chosen = parser.parse_args(arguments)
    for one in runs(chosen.reduced, chosen.source):
        why = one.why
        if chosen.run and (why == "missing" or (why and not chosen.missing)):
            module = import_module("rtx_core.run_language" if one.settings.experiment in LANGUAGE else "rtx_core.run")  # torch
            try:
                module.run(one.settings, one.model, one.seed, wait=False)
                why = ""
            except Busy:  # the same command beside this one: it takes that run, this one the next
                pass
        print(f"{one.variant:<40} {one.model:<16} seed {one.seed}  {told(one, why)}", flush=True)


def told(one: Run, why: str) -> str:
    if why:
        return why if why == "missing" else f"stale: {why}"
    measure = "loss" if one.settings.experiment in LANGUAGE else "accuracy"
    return f"recorded, test {measure} {one.found['test'][measure]:.4f}"


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
