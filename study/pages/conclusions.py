"""Conclusions: what each task says of a second pass."""

from functools import partial
from statistics import mean
from typing import Any

import pandas as pd

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import equivalent
from rtx_core.report.values import Task, Value
from study.analysis.classifiers import Family, paired
from study.analysis.facts import Facts
from study.analysis.hops import wrong
from study.analysis.language import Language
from study.analysis.outcomes import CONTRADICTED, REPRODUCED
from study.analysis.records import gap_closed, test_loss
from study.analysis.yardstick import Yardstick
from study.claims import Sources, judged
from study.folders import HIGHER, STORIES, Folders

HIGHER_RATE = "khop-hard-learningrate0.004"


def quantities(
    folders: dict[str, list[Record]],
    tests: dict[str, list[Record]],
    bags: list[Record],
    claims: dict[str, Any],
    models: tuple[str, str],
) -> Quantities:
    """Of the paper's runs by folder, those of the tests on which two classifiers are compared, bags of words, and what
    `study.claims.Sources` takes."""
    runs, family = Folders(lambda name: folders.get(name, [])), Family(tests, models)
    rated, long = runs.khop_at_best_rates(), runs.hops("khop-steps12000")
    at_240, products = runs.saturated(), runs.hops("state-tracking-curriculum")
    beside = Yardstick({records[0]["name"]: records for records in tests.values() if records}, bags, models)

    # Pointers and facts

    def closed(name: str, *models: str, hops: int | None = None) -> list[float]:
        return gap_closed(folders[name], *models, measure=test_loss if hops is None else partial(wrong, hops=hops))

    def more_bits(facts: Facts, model: str) -> str:
        """Than one layer run once, in per cent."""
        return number(100 * (facts.gain(model, "1x1") - 1), ".0f")

    # Text

    def layers() -> Value:
        return runs.worth_in_layers("1x6-64")

    def tuned_layers() -> Value:
        return runs.worth_in_layers("1x6-64", *HIGHER)

    def stories() -> Language:
        return runs.on_shared_seeds(STORIES)

    # Classifiers

    def task(test: str) -> Task:
        return Task(paired(tests[test], models), models, test)

    @remember
    def outcomes() -> pd.Series:
        return judged(Sources(**claims)).loc[:, "outcome"]

    def count(outcome: str) -> int:
        return int((outcomes() == outcome).sum())

    numbers = {
        # Steps and facts
        "two_layers_once": lambda: number(mean(rated.errors("2x1", new=True)), ".0%"),
        "two_layers_twice": lambda: number(mean(rated.errors("2x2", new=True)), ".1%"),
        "seeds": lambda: words(len(rated.new("2x2"))),
        "exposures": lambda: number(at_240.records[0]["config"]["train"]["epochs"], "d"),
        "four_passes_add": lambda: more_bits(at_240, "1x4"),
        "wide_adds": lambda: more_bits(at_240, "1x1-wide"),
        "second_layer_adds": lambda: more_bits(at_240, "2x1"),
        # Products
        "factors": lambda: str(min(products.factors("1x64"))),
        # Text
        "layers_for_six_passes": lambda: number(6 ** layers(), ".1f"),
        "tuned_layers": lambda: number(6 ** tuned_layers(), ".1f"),
        "tuned_low": lambda: number(6 ** tuned_layers().low, ".1f"),
        "tuned_high": lambda: number(6 ** tuned_layers().high, ".1f"),
        # Reviews
        "parameters": lambda: number(task("sst2").parameter_ratio, ".0%"),
        # Limits
        "statements": lambda: str(len(outcomes())),
        "reproduced": lambda: str(count(REPRODUCED)),
        "contradicted": lambda: str(count(CONTRADICTED)),
    }
    checks = {
        "gap_closed": lambda: [
            min(closed("khop", "2x1", "2x2", "4x1", hops=4) + closed("khop", "1x1", "1x4", "4x1", hops=4)) > 75,
            min(closed("khop-hard", "2x1", "2x3", "6x1", hops=8)) > 65,
            sorted(closed(HIGHER_RATE, "2x1", "2x3", "6x1", hops=8))[1] > 100,
            max(closed(STORIES, "control", "frailt", "control-8")) < 20,
            max(closed("facts-facts49152", "1x1", "1x4", "4x1")) < 15,
            max(closed("facts-facts49152", "2x1", "2x2", "4x1")) < 10,
        ],
        "two_layers_once": lambda: [
            min(rated.errors("2x1", new=True)) > 0.2,
            max(rated.errors("2x2", new=True)) < 0.01,
            max(rated.errors("2x2", new=True)) < min(rated.errors("4x1-w44", new=True)),
            rated.unpaired("2x2", "4x1").p > 0.1,
            min(long.errors("2x1", 4)) > 0.08,
            runs.wider("2x1") > 10 * runs.wider("2x2"),
        ],
        "four_passes_add": lambda: [
            1.2 < at_240.gain("1x4", "1x1") < 1.35,
            at_240.bits("1x4") < at_240.bits("1x1-wide") < at_240.bits("2x1"),
        ],
        "factors": lambda: [min(products.factors("1x64")) == 64],
        "layers_for_six_passes": lambda: [
            max(map(test_loss, runs.with_muon("iso-depth", "3x2-64")))
            < min(map(test_loss, runs.with_muon("iso-depth", "3x1-64"))),
            layers().low > 0,
            tuned_layers().low < 0 and tuned_layers() < layers(),
            stories().loss("control-8") < stories().loss("control-long") < stories().loss("frailt"),
            stories().loss("frailt") < stories().loss("control"),
        ],
        "parameters": lambda: [
            equivalent(family.gaps["grouped"].by_seed, 1),
            max(beside.best(model) for model in models) < 2,
        ],
        "statements": lambda: [count(CONTRADICTED) < count(REPRODUCED)],
    }
    return Quantities(numbers, checks)
