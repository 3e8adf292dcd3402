"""Claims: what became of each statement in the four sources."""

from typing import Any

import pandas as pd

from rtx_core.reads import remember
from rtx_core.report.quantities import Quantities, words
from study.analysis.language import Language
from study.analysis.outcomes import CONTRADICTED, OPPOSITE, REPRODUCED, SAME, UNDECIDED
from study.claims import Sources, judged


def quantities(**records: Any) -> Quantities:
    """Of what `study.claims.Sources` takes."""
    sources = Sources(**records)

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

    numbers = {
        "statements": lambda: str(len(claims())),
        "reproduced": lambda: str(count(REPRODUCED)),
        "contradicted": lambda: str(count(CONTRADICTED)),
        "trained": lambda: words(trained()),
    }
    checks = {
        "statements": lambda: [
            sources.task("sst2-10pct").difference.sign == 0,
            sources.task("sst2-short").difference.sign == 0,
            count(UNDECIDED, SAME, OPPOSITE) > (len(claims()) - count(REPRODUCED)) / 2,
        ],
        "trained": lambda: [trained() == 5, trained(on_rounding=True) == 1, max(six_layers_ahead()) < 0],
    }
    return Quantities(numbers, checks)
