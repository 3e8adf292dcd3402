"""Conclusions: what each task says of a second pass."""

from typing import Any

import pandas as pd

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from rtx_core.report.statistics import equivalent, mean_interval
from rtx_core.report.values import Value
from study.analysis.classifiers import Family
from study.analysis.outcomes import CONTRADICTED, REPRODUCED
from study.analysis.records import test_loss
from study.analysis.yardstick import Yardstick
from study.claims import Sources, judged
from study.folders import Folders
from study.gains import gains
from study.second_pass import questions


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
    hard, asked = runs.khop_hard_at_best_rates(), questions(runs)
    beside = Yardstick({records[0]["name"]: records for records in tests.values() if records}, bags, models)

    @remember
    def gained() -> dict[str, dict[str, list[float]]]:
        return gains(runs)

    # Text

    def layers() -> Value:
        return runs.worth_in_layers("1x6-64")

    def tuned_layers() -> Value:
        return runs.worth_at_best_rate("1x6-64")

    # Classifiers

    @remember
    def outcomes() -> pd.Series:
        return judged(Sources(**claims)).loc[:, "outcome"]

    def count(outcome: str) -> int:
        return int((outcomes() == outcome).sum())

    numbers = {
        "hops_share": lambda: number(100 * asked["hops"].share(), ".0f"),
        # Limits
        "statements": lambda: str(len(outcomes())),
        "reproduced": lambda: str(count(REPRODUCED)),
        "contradicted": lambda: str(count(CONTRADICTED)),
    }
    checks = {
        "gap_closed": lambda: [
            min(min(loop) for loop in gained()["pointers, four hops"].values()) > 50,
            min(gained()["pointers, eight hops"]["2x3"]) > 70,
            sorted(gained()["pointers, eight hops"]["1x6"])[0]
            < 0
            < 95
            < sorted(gained()["pointers, eight hops"]["1x6"])[1],
            max(max(loop) for loop in gained()["facts, 60 exposures"].values()) < 25,
            min(gained()["Shakespeare"]["1x2-64"]) > 20,
            min(gained()["Shakespeare"]["3x2-64"]) < 0 < max(gained()["Shakespeare"]["3x2-64"]) < 60,
            sorted(gained()["Shakespeare, input injected"]["1x6-64"])[1] > 20,
            min(gained()["Shakespeare, width 256"]["1x2"]) > 20,
        ],
        "tuned_layers": lambda: [tuned_layers().low < 0 and tuned_layers().high < layers().low],
        "muon": lambda: [
            max(map(test_loss, runs.with_muon("iso-depth", "3x2-64")))
            < min(map(test_loss, runs.with_muon("iso-depth", "3x1-64")))
        ],
        "evidence": lambda: [
            hard("2x3", "6x1-w36", new=True).p
            < 0.05
            < min(hard.unpaired("2x3", "6x1-w36").p, hard.unpaired("2x3", "6x1-w36").ranks),
            hard("2x3", "6x1-w36", new=True).lower == len(hard.new("2x3")),
            mean_interval(runs.over_tuned_layer("1x4"))[1] < 1,
        ],
        "two_thirds": lambda: [
            0.6 < asked["hops"].share() < 0.8,
            asked["bits"].share() < 0.15,
            0.25 < asked["text_wide"].share() < asked["text"].share() < 0.55,
            min(gained()["the same, width 256"]["1x2"]) > 90,
            max(gained()["facts, width 128"]["1x2"]) < 10,
        ],
        "parameters": lambda: [
            equivalent(family.gaps["grouped"].by_seed, 1),
            max(beside.best(model) for model in models) < 2,
        ],
        "statements": lambda: [count(CONTRADICTED) < count(REPRODUCED)],
    }
    return Quantities(numbers, checks)
