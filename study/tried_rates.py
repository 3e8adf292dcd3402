"""The learning rates that the main comparisons tried, and which of them each model took."""

from collections.abc import Collection

import pandas as pd

from rtx_core.report.rates import AtOwnRates, learning_rate
from study.analysis.roster import short_rate
from study.folders import HIGHER, OWN, PICKING, WIDER, Folders


def row(task: str, tried: AtOwnRates, models: Collection[str]) -> tuple[str, ...]:
    """A row for those of these models that were trained at every rate."""
    rates = sorted({learning_rate(run) for at_rate in tried.rates for run in at_rate.records})
    models_at = {rate: [m for m in models if m in tried.models and tried.rate(m) == rate] for rate in rates}
    names = {
        rate: ", ".join(m.removesuffix("-64").replace("x", "×") for m in of) for rate, of in models_at.items() if of
    }
    at_an_end = [names[rate] for rate in (rates[0], rates[-1]) if rate in names]
    summary = "; ".join(f"{short_rate(rate)}: {who}" for rate, who in names.items())
    return task, ", ".join(map(short_rate, rates)), summary, "; ".join(at_an_end) or "–"


def table(runs: Folders) -> pd.DataFrame:
    """A row for each main comparison."""

    def tried(name: str, *rates: float, on: Collection[int] = (0, 1, 2)) -> AtOwnRates:
        return AtOwnRates(*runs.at_rates(name, *rates), picked_on=on, least=0)

    small = ("1x1", "1x2", "2x1", "3x1", "4x1", "2x2", "1x4", "2x1-w44", "4x1-w44", "4x1-w32")
    wide, wide_rates = WIDER[256]
    text = ("1x1", "1x2", "1x6", "2x1", "2x3", "3x1", "3x2", "6x1")
    rows = [
        row("pointers, four hops", tried("khop", OWN, 0.001, 0.004, 0.008), small),
        row("the same at width 256", tried(wide, *wide_rates, on=(PICKING,)), small),
        row("pointers, eight hops", tried("khop-hard", OWN, 0.004), ("6x1", "6x1-w36", "2x3", "1x6")),
        row("pointers, 1,000 sequences", tried("khop-set", OWN, 0.004, on=(30, 31, 32)), small),
        row("facts, 60 exposures", tried("facts-facts49152", OWN, 0.001, 0.004), small),
        row("facts, 240 exposures", tried("facts-facts49152-epochs240", OWN, 0.001, 0.004, on=(PICKING,)), small),
        row("text", tried("iso-depth", OWN, *HIGHER), [f"{model}-64" for model in text]),
        row("the same at width 256", tried("iso-depth-wide", OWN, 0.00075, 0.003), text),
    ]
    return pd.DataFrame(rows, columns=["Task", "Rates tried", "Rate taken, and by which models", "Taken at an end"])
