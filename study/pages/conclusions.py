"""Conclusions: what each task says of a second pass."""

from functools import partial
from typing import Any

import pandas as pd

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from rtx_core.report.statistics import equivalent, mean_interval
from rtx_core.report.values import Value
from study.analysis.classifiers import Family
from study.analysis.facts import Facts
from study.analysis.hops import wrong
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
    rated, hard, at_240 = runs.khop_at_best_rates(), runs.khop_hard_at_best_rates(), runs.saturated()
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

    # Classifiers

    @remember
    def outcomes() -> pd.Series:
        return judged(Sources(**claims)).loc[:, "outcome"]

    def count(outcome: str) -> int:
        return int((outcomes() == outcome).sum())

    numbers = {
        # Steps and facts
        "exposures": lambda: number(at_240.records[0]["config"]["train"]["epochs"], "d"),
        "four_passes_add": lambda: more_bits(at_240, "1x4"),
        "second_layer_adds": lambda: more_bits(at_240, "2x1"),
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
        "four_passes_add": lambda: [
            1.2 < at_240.gain("1x4", "1x1") < 1.35,
            at_240.bits("1x4") < at_240.bits("1x1-wide") < at_240.bits("2x1"),
        ],
        "tuned_layers": lambda: [tuned_layers().low < 0 and tuned_layers() < layers()],
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
        "two_thirds": lambda: [0.6 < rated.share("1x1", "1x2", "2x1") < 0.72],
        "parameters": lambda: [
            equivalent(family.gaps["grouped"].by_seed, 1),
            max(beside.best(model) for model in models) < 2,
        ],
        "statements": lambda: [count(CONTRADICTED) < count(REPRODUCED)],
    }
    return Quantities(numbers, checks)
