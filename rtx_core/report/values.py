"""What a page's prose quotes: values with a name, an interval and a badge, made from records when they are
first asked for.

    sst2 = Task(records.records(name="sst2"))
    sst2.recurrent.accuracy   a float; .low, .high, .badge; written "90.0 % (89.3 to 90.7)"
    sst2.difference           a float; .points, .low, .high, .p, .sign, .badge; written "+0.1 (−0.3 to +0.6)"

Differences, their bounds and `points` are in percentage points, accuracies are shares.
"""

import re
from functools import cached_property

import numpy as np

from rtx_core.errors import RtxError, unknown
from rtx_core.report import statistics
from rtx_core.report.badges import Badge, as_records, badge
from rtx_core.report.style import number, percent
from rtx_core.report.tables import milliseconds


class Value(float):
    """A share with its 95 % interval."""

    def __new__(
        cls,
        value: float,
        low: float = float("nan"),
        high: float = float("nan"),
        evidence: Badge | None = None,
    ):
        self = super().__new__(cls, value)
        self.low = low
        self.high = high
        self.badge = evidence
        return self

    @property
    def interval(self) -> str:
        return f"{number(100 * self.low)} to {number(100 * self.high)}"

    def __str__(self) -> str:
        return percent(self, self.low, self.high)


class Gap(float):
    """A paired difference of two models in percentage points, with what `statistics.difference` says of
    it."""

    def __new__(cls, found: statistics.Difference, evidence: Badge):
        self = super().__new__(cls, 100 * found.value)
        self.points = 100 * found.value
        self.low = 100 * found.low
        self.high = 100 * found.high
        self.p = found.p
        self.sign = found.sign
        self.n = found.n
        self.seeds = found.seeds
        self.by_seed = tuple(100 * one for one in found.by_seed)
        self.found = found
        self.badge = evidence
        return self

    @property
    def interval(self) -> str:
        return f"{number(self.low, '+.1f')} to {number(self.high, '+.1f')}"

    def __str__(self) -> str:
        return f"{number(self, '+.1f')} ({self.interval})"


class Space:
    """The entries of a dict as attributes, `_` for what is no letter or digit:
    `space.recurrent_wide.parameters.total`."""

    def __init__(self, entries: dict):
        self._entries = {re.sub(r"\W", "_", str(key)): value for key, value in entries.items()}

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._entries:
            raise unknown("value", name, self._entries)
        value = self._entries[name]
        return Space(value) if isinstance(value, dict) else value


class Model:
    """The records of one model on one task."""

    def __init__(self, records: list, what: str):
        if not records:
            raise RtxError(f"There is no record of {what}; run it, or take out the sentence that quotes it.")
        self.records = records
        self.badge = badge(records)
        self.seeds = len(records)
        self.n = records[0]["test"]["n"]

    def __getattr__(self, name: str) -> float:
        """Any other number of the test entry, the mean over seeds: f1, precision and recall as shares, loss
        as a plain number."""
        if (
            name.startswith("_")
            or name == "records"
            or not isinstance(self.records[0]["test"].get(name), (int, float))
        ):
            raise AttributeError(f"a model's records have no {name!r}")
        mean = float(np.mean([record["test"][name] for record in self.records]))
        return Value(mean, evidence=self.badge) if name in statistics.MEASURES else mean

    @cached_property
    def accuracy(self) -> Value:
        return Value(*statistics.accuracy(self.records), self.badge)

    @cached_property
    def accuracies(self) -> list[float]:
        return [record["test"]["accuracy"] for record in self.records]

    @cached_property
    def auc(self) -> float | None:
        return statistics.mean_auc(self.records)

    @cached_property
    def matched(self) -> float:
        """Accuracy with as many texts called positive as there are, the mean over seeds."""
        return float(np.mean([statistics.matched_accuracy(record) for record in self.records]))

    @cached_property
    def positive(self) -> float:
        """The share of test texts that the model calls positive, the mean over seeds."""
        return float(np.mean([statistics.shares(record)[1][1] for record in self.records]))

    @property
    def parameters(self) -> int:
        return self.records[0]["parameters"]["total"]

    @property
    def size_mb(self) -> float:
        return self.records[0]["size_mb"]

    @property
    def ms(self) -> float:
        """Milliseconds a text in batches of 16, the median over seeds."""
        return milliseconds(self.records)

    @property
    def ms_single(self) -> float:
        return milliseconds(self.records, 0)

    @property
    def epoch(self) -> float:
        """The epoch of the selected checkpoint, the mean over seeds."""
        chosen = [
            row["epoch"]
            for record in self.records
            for row in record["history"]
            if row["step"] == record["selected"]["step"]
        ]
        return float(np.mean(chosen))


class Task:
    """One task at one budget: its models by name with `_` for `-`, and the paired difference of the first
    two."""

    def __init__(
        self, found: object, models: tuple[str, str] = ("baseline", "recurrent"), called: str = "this task"
    ):
        self._records = as_records(found)
        self._models = models
        self._called = called

    def __getattr__(self, name: str) -> Model:
        if name.startswith("_"):
            raise AttributeError(name)
        found = [record for record in self._records if record["model"] == name.replace("_", "-")]
        model = Model(found, f"{self._called}, {name}")
        setattr(self, name, model)
        return model

    def minus(self, first: str, second: str, measure: str = "accuracy") -> Gap:
        """Any other paired difference of two of its models, in points."""
        pair = [getattr(self, name.replace("-", "_")).records for name in (first, second)]
        return Gap(statistics.difference(*pair, measure), badge(pair))

    @cached_property
    def difference(self) -> Gap:
        return self.minus(*self._models)

    @property
    def interval(self) -> str:
        """The bounds of the difference: "−0.3 to +0.6"."""
        return self.difference.interval

    @property
    def saving(self) -> float:
        """The second model's parameters as a share of the first's."""
        first, second = (getattr(self, name.replace("-", "_")).parameters for name in self._models)
        return second / first

    @property
    def badge(self) -> Badge:
        return badge([record for record in self._records if record["model"] in self._models])

    @property
    def n(self) -> int:
        return self._records[0]["test"]["n"] if self._records else 0

    @property
    def n_train(self) -> int:
        return self._records[0]["data"]["n_train"] if self._records else 0
