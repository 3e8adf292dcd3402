"""Claims: what became of each statement in the four sources."""

from statistics import mean
from typing import Any

import pandas as pd

from rtx_core.reads import remember
from rtx_core.records import Record
from rtx_core.report import number
from rtx_core.report.quantities import Quantities, words
from rtx_core.report.statistics import ENOUGH_SEEDS, equivalent
from rtx_core.report.values import Gap
from study.analysis.classifiers import Family, of_model, paired, peaks
from study.analysis.language import Language
from study.analysis.outcomes import CONTRADICTED, OPPOSITE, REPRODUCED, SAME, UNDECIDED
from study.claims import Sources, judged


def quantities(tests: dict[str, list[Record]], models: tuple[str, str], **records: Any) -> Quantities:
    """Of the tests on which two classifiers are compared, and what `study.claims.Sources` takes."""
    sources, family = Sources(**records), Family(tests, models)

    @remember
    def claims() -> pd.DataFrame:
        return judged(sources)

    def count(*outcomes: str) -> int:
        return int(claims()["outcome"].isin(outcomes).sum())

    def trained(on_rounding: bool = False) -> int:
        """How many reproduced claims rest on models: on trained ones, or on the untrained ones that are rounded."""
        models = claims()[(claims()["outcome"] == REPRODUCED) & (claims()["badge"] != "")]
        return int(((models["page"] == "Number formats") == on_rounding).sum())

    def six_layers_ahead() -> list[float]:
        """By seed, at a third of Kausik's width."""
        small = Language(sources.folders["shakespeare-small-learningrate0.003"], "shakespeare-small")
        return small.gaps("gpt-6", "kausik")

    def peak(model: str) -> float:
        """The highest validation accuracy on the pooled cut, the mean over seeds."""
        return mean(peaks(of_model(paired(tests["sst2"], models), model)))

    def full() -> list[Gap]:
        return list(family.full.values())

    def decided() -> list[Gap]:
        return [gap for gap in full() if gap.badge.seeds >= ENOUGH_SEEDS]

    numbers = {
        "statements": lambda: str(len(claims())),
        "reproduced": lambda: str(count(REPRODUCED)),
        "contradicted": lambda: str(count(CONTRADICTED)),
        "trained": lambda: words(trained()),
        "full_tests": lambda: words(len(full())),
        "decided_tests": lambda: words(len(decided())),
        "other_tests": lambda: words(len(full()) - len(decided())),
        "most_points": lambda: number(max(map(abs, full())), ".1f"),
        "clean_loss": lambda: number(family.gaps["grouped"].high, ".1f"),
        "tenth_loss": lambda: number(family.gaps["tenth"].high, ".1f"),
    }
    checks = {
        "statements": lambda: [
            sources.task("sst2-10pct").difference.sign == 0,
            sources.task("sst2-short").difference.sign == 0,
            count(UNDECIDED, SAME, OPPOSITE) > (len(claims()) - count(REPRODUCED)) / 2,
        ],
        "trained": lambda: [trained() == 5, trained(on_rounding=True) == 1, max(six_layers_ahead()) < 0],
        "full_tests": lambda: [
            len(full()) == 9,
            not any(gap.sign for gap in full()),
            [gap for gap in decided() if equivalent(gap.by_seed, 1)] == [family.gaps["grouped"]],
            sorted(gap.badge.seeds for gap in full()) == [1, 1, 1, 1, 2, 2, 3, 3, 5],
            max(family.gaps["sst2"].high, family.gaps["long"]) < 0,
            min(family.gaps["official"].low, *(family.gaps[test] for test in ("half", "yelp", "domains"))) > 0,
        ],
        "clean_loss": lambda: [
            max(family.gaps["sst2"].by_seed) < 0 < min(family.gaps["official"].by_seed),
            abs(peak(models[0]) - peak(models[1])) < 0.003,
        ],
    }
    return Quantities(numbers, checks)
