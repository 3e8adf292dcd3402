"""Random facts: how many bits of them a model stores, and what a pass is worth there."""

from typing import NamedTuple

import numpy as np

from rtx_core.records import Record
from rtx_core.report.values import Runs


def stored_bits(record: Record, test_loss: float | None = None) -> float:
    """facts · (log2 values − L / ln 2): the bits of all facts, less those of a test loss of L nats, which is the run's
    unless another is given."""
    data, loss = record["config"]["data"], record["test"]["loss"] if test_loss is None else test_loss
    return data["facts"] * float(np.log2(data["values"]) - loss / np.log(2))


class Rounded(NamedTuple):
    """What a run's model stores with all its matrices rounded."""

    run: Record
    bits: int  # of each parameter
    stored: float  # bits of facts

    @property
    def kept(self) -> float:
        """The share of what it stored before."""
        return self.stored / stored_bits(self.run)

    @property
    def ceiling(self) -> int:
        """What so many parameters can tell apart, in bits."""
        return self.bits * self.run["parameters"]["total"]


def rounded(measured: list[Record], runs: list[Record]) -> list[Rounded]:
    """Of each measurement, with its run."""
    return [
        Rounded(run, one["bits"], stored_bits(run, one["test"]["loss"]))
        for run in runs
        for one in measured
        if (one["model"], one["seed"]) == (run["model"], run["seed"])
    ]


class Facts(Runs):
    """Runs on so many random facts; what a model of loss L nats holds is facts · (log2 values − L / ln 2) bits."""

    def __init__(self, records: list[Record], called: str = "facts"):
        super().__init__(records, called)

    @property
    def facts(self) -> int:
        return self.records[0]["config"]["data"]["facts"]

    @property
    def whole(self) -> float:
        """Bits of one fact."""
        return np.log2(self.records[0]["config"]["data"]["values"])

    def each(self, model: str) -> list[float]:
        """Bits that each seed stores."""
        return [stored_bits(record) for record in self.of(model)]

    def bits(self, model: str) -> float:
        return float(np.mean(self.each(model)))

    def gain(self, model: str, base: str) -> float:
        """How many times what `base` stores."""
        return self.bits(model) / self.bits(base)

    def per_parameter(self, model: str) -> float:
        """Bits for each parameter, embeddings included."""
        return self.bits(model) / self.of(model)[0]["parameters"]["total"]
