"""The table of the learning rates that were tried and taken."""

from pathlib import Path

from rtx_core.records import Record
from rtx_core.report.rates import AtOwnRates
from rtx_core.report.values import Runs
from study import tried_rates


def run(model: str, rate: float, loss: float) -> Record:
    config = {"train": {"learning_rate": rate}}
    return Record({"model": model, "seed": 0, "config": config, "selected": {"validation_loss": loss}}, Path("x.json"))


def test_a_rate_taken_at_an_end_of_what_was_tried_is_named():
    losses = {0.001: (3, 1, 2), 0.002: (2, 2, 1), 0.004: (1, 3, 2)}
    models = ("1x1", "2x1", "2x2")
    at_rates = [Runs([run(m, rate, loss) for m, loss in zip(models, each)], "x") for rate, each in losses.items()]
    tried = AtOwnRates(*at_rates, picked_on=(0,), least=0)
    task, rates, taken, ends = tried_rates.row("pointers", tried, (*models, "never tried"))
    assert (task, rates) == ("pointers", "1e-3, 2e-3, 4e-3")
    assert taken == "1e-3: 2×1; 2e-3: 2×2; 4e-3: 1×1"
    assert ends == "2×1; 1×1"
