"""What prose, claims and tables quote: values with an interval.

    sst2 = Task(records.records(name="sst2"))
    sst2.recurrent.accuracy   a float; .low, .high, .badge; written "90.0 % (89.3 to 90.7)"
    sst2.difference           a float; .low, .high, .p, .sign, .badge; written "+0.1 (−0.3 to +0.6)"

Differences and their bounds are in percentage points, accuracies are shares.
"""

import math
from collections.abc import Iterator
from typing import Self

import numpy as np

from rtx_core.errors import RtxError
from rtx_core.reads import remembered
from rtx_core.report import statistics
from rtx_core.report.evidence import Badge, as_records, badge, milliseconds
from rtx_core.report.style import number


class Unmeasured(RtxError):
    """What a name stands for has no record."""


class Value(float):
    """A number with its 95 % interval, a share unless `form` says otherwise; `sign` and `p` are what its test says."""

    low: float
    high: float
    badge: Badge | None
    form: str
    sign: int
    p: float | None
    text: str

    def __new__(cls, value: float, low=math.nan, high=math.nan, evidence: Badge | None = None, **about) -> Self:
        self = super().__new__(cls, value)
        self.low, self.high, self.badge = low, high, evidence
        vars(self).update({"form": ".1%", "sign": 0, "p": None, "text": ""} | about)
        return self

    @property
    def interval(self) -> str:
        form, scale = (".1f", 100) if self.form == ".1%" else (self.form, 1)
        return f"{number(scale * self.low, form)} to {number(scale * self.high, form)}"

    def __str__(self) -> str:
        bounds = f" ({self.interval})" if self.low < self.high else ""
        return self.text or number(self, self.form) + bounds


class Gap(Value):
    """A paired difference in percentage points, with what `statistics.difference` says of it."""

    badge: Badge  # pyright: ignore[reportIncompatibleVariableOverride]  (a gap always has one)
    seeds: int
    lean: int
    by_seed: tuple[float, ...]

    def __new__(cls, difference: statistics.Difference, evidence: Badge) -> Self:
        value, low, high = (100 * each for each in (difference.value, difference.low, difference.high))
        self = super().__new__(cls, value, low, high, evidence, form="+.1f", sign=difference.sign, p=difference.p)
        self.seeds, self.lean = difference.seeds, difference.lean
        self.by_seed = tuple(100 * each for each in difference.by_seed)
        return self

    @property
    def interval(self) -> str:
        if self.seeds != 2:
            return super().interval
        return "the two seeds: " + " and ".join(number(each, self.form) for each in self.by_seed)


class Model:
    """The records of one model on one task."""

    def __init__(self, records: list, what: str):
        if not records:
            raise Unmeasured(f"There is no record of {what}; run it, or take out the sentence that quotes it.")
        self.records = records
        self.badge = badge(records)
        self.n = records[0]["test"]["n"]

    def __iter__(self) -> Iterator:
        return iter(self.records)

    def __getattr__(self, name: str) -> float:
        """Any other number of the test entry, the mean over seeds: f1, precision and recall as shares."""
        if name.startswith("_") or not isinstance(self.records[0]["test"].get(name), (int, float)):
            raise AttributeError(f"a model's records have no {name!r}")
        mean = float(np.mean([record["test"][name] for record in self.records]))
        return Value(mean, evidence=self.badge) if name in statistics.MEASURES else mean

    @remembered
    def accuracy(self) -> Value:
        return Value(*statistics.accuracy(self.records), self.badge)

    @property
    def accuracies(self) -> list[float]:
        return [record["test"]["accuracy"] for record in self.records]

    @remembered
    def auc(self) -> float | None:
        return statistics.mean_auc(self.records)

    @remembered
    def matched(self) -> float:
        """Accuracy with as many texts called positive as there are, the mean over seeds."""
        return float(np.mean([statistics.matched_accuracy(record) for record in self.records]))

    @remembered
    def positive(self) -> float:
        """The share of test texts that the model calls positive, the mean over seeds."""
        return float(np.mean([statistics.shares(record)[1][1] for record in self.records]))

    @property
    def parameters(self) -> int:
        return self.records[0]["parameters"]["total"]

    @property
    def ms(self) -> float:
        """Milliseconds a text in batches of 16, the median over seeds."""
        return milliseconds(self.records)

    @property
    def ms_single(self) -> float:
        return milliseconds(self.records, 0)


class Task:
    """One task at one budget: its models by name with `_` for `-`, and the paired difference of the first two."""

    def __init__(self, runs: object, models: tuple[str, str] = ("baseline", "recurrent"), called: str = "this task"):
        self._records = as_records(runs)
        self._models = models
        self._called = called

    def __getattr__(self, name: str) -> Model:
        if name.startswith("_"):
            raise AttributeError(name)
        records = [record for record in self._records if record["model"] == name.replace("_", "-")]
        model = Model(records, f"{self._called}, {name}")
        setattr(self, name, model)
        return model

    def minus(self, first: str, second: str, measure: str = "accuracy") -> Gap:
        """Any other paired difference of two of its models, in points."""
        pair = [getattr(self, name.replace("-", "_")).records for name in (first, second)]
        return Gap(statistics.difference(*pair, measure=measure), badge(pair))

    @remembered
    def difference(self) -> Gap:
        return self.minus(*self._models)

    @property
    def parameter_ratio(self) -> float:
        """The second model's parameters as a share of the first's."""
        first, second = (getattr(self, name.replace("-", "_")).parameters for name in self._models)
        return second / first

    @property
    def badge(self) -> Badge:
        return badge([record for record in self._records if record["model"] in self._models])


class Runs:
    """The runs of one task, whose models have names that are no attributes, such as 2x2."""

    def __init__(self, runs: object, called: str):
        self.records = as_records(runs)
        self.called = called

    def of(self, *models: str) -> list:
        """All records of these models; an error where one of them has none."""
        for model in models:
            if model not in {record["model"] for record in self.records}:
                raise Unmeasured(f"There is no record of {self.called}, {model}; run it first.")
        return [record for record in self.records if record["model"] in models]

    records_for = of

    def loss(self, model: str) -> float:
        """In the mean over seeds, in nats."""
        return float(np.mean([record["test"]["loss"] for record in self.of(model)]))

    def badge(self, *models: str) -> Badge:
        return badge(self.of(*models))

    def weights(self, model: str) -> int:
        """Parameters outside of the embedding."""
        return self.of(model)[0]["parameters"]["non_embedding"]
