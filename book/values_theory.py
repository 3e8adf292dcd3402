"""What a further pass is worth on 10 % of SST-2, and where [CLS] looks in a sentence."""

import numpy as np

from rtx_core import records
from rtx_core.report import badge, statistics
from rtx_core.report.style import number
from rtx_core.report.values import Gap, Model, Space, Value


class Change(Value):
    """A difference of test losses in nats, with its 95 % interval."""

    @property
    def interval(self) -> str:
        return f"{number(self.low, '+.3f')} to {number(self.high, '+.3f')}"


def passes() -> Space:
    """Layers run once, twice, three times; `second` and `third` are differences to one pass fewer."""
    names = {"once": "sst2-10pct-numpasses1", "twice": "sst2-10pct", "thrice": "sst2-10pct-numpasses3"}
    found = {name: Model(records.records(name=run, model="recurrent"), run) for name, run in names.items()}
    once, twice, thrice = (model.records for model in found.values())
    pairs = statistics.common(twice, once)
    losses = [[record["test"]["loss"] for record in side] for side in zip(*pairs)]
    *loss, p = statistics.over_seeds(*losses)
    end = {name: model.records[0]["history"][-1]["validation_accuracy"] for name, model in found.items()}
    return Space(
        found
        | {
            "second": Gap(statistics.difference(twice, once), badge([twice, once])),
            "third": Gap(statistics.difference(thrice, twice), badge([thrice, twice])),
            "second_loss": Change(*loss),
            "second_loss_p": p,
            "end": end,
        }
    )


def attention() -> Space:
    """By model: the probability of "negative", and the token that [CLS] weighs most in each application."""
    found = {}
    for measured in records.measurements("attention", "sst2"):
        weights = np.mean(measured["weights"], axis=1)  # (applications, tokens)
        found.setdefault(
            measured["model"],
            {
                "negative": measured["probabilities"][measured["classes"].index("negative")],
                "most": [measured["tokens"][place] for place in weights.argmax(1)],
            },
        )
    return Space(found)


VALUES = {"passes": passes, "attention": attention}
