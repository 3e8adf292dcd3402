"""What prose, claims and tables quote: evidence badges, values with an interval, and the names of both.

    sst2 = Task(records.records(name="sst2"))
    sst2.recurrent.accuracy   a float; .low, .high, .badge; written "90.0 % (89.3 to 90.7)"
    sst2.difference           a float; .low, .high, .p, .sign, .badge; written "+0.1 (−0.3 to +0.6)"

Differences and their bounds are in percentage points, accuracies are shares.
"""

import importlib.util
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

import numpy as np

from rtx_core.errors import RtxError, unknown
from rtx_core.paths import REPOSITORY
from rtx_core.report import statistics
from rtx_core.report.style import number, ordered, percent

# -- records, as pages hold them


def as_records(found: object) -> list:
    """The records in a frame of `rtx.results()`, in `rtx.runs()`, a run, a record, or a list or dict of these."""
    if hasattr(found, "columns"):
        return list(found["record"])
    if hasattr(found, "record"):  # a run
        return [found.record]
    if hasattr(found, "path"):  # a record
        return [found]
    if isinstance(found, dict):
        found = found.values()
    if not isinstance(found, Iterable) or isinstance(found, (str, bytes)):
        raise TypeError(f"Got {type(found).__name__}; expected records, runs or a frame of results.")
    return [record for part in found for record in as_records(part)]


def by_model(found: object) -> dict[str, list]:
    """Model -> its records in the order of seeds; models in the order of the registry."""
    records = sorted(as_records(found), key=lambda record: record["seed"])
    names = ordered(record["model"] for record in as_records(found))
    return {name: [record for record in records if record["model"] == name] for name in names}


def milliseconds(records: list, measured: int = -1) -> float:
    """Inference time of a text, the median over the seeds timed as the first was; `measured`: 0 single texts, -1 batches."""
    records = [
        record for record in records if device_of(record, "latency") == device_of(records[0], "latency")
    ]
    times = [record["latency"]["measured"][measured] for record in records]
    return float(np.median([time["per_sentence_ms"] for time in times]))


def device_of(record, of: str = "") -> str:
    """The machine of a record, or of one of its entries (`of="latency"`), with the threads of a CPU."""
    environment = (record[of] if of else record)["environment"]
    if environment["device_type"] != "cpu":
        return environment["device"]
    threads = environment["threads"]
    return f"{environment['device']} ({threads} thread{'s' if threads > 1 else ''})"


# -- the evidence badge

MOST = 5  # circles; further seeds are a "+"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Badge:
    """How many seeds a number rests on: a circle a seed, filled at the full budget, hollow at a reduced one.

    `synthetic`: of generated texts.
    """

    full: int
    reduced: int
    synthetic: bool = False

    @property
    def seeds(self) -> int:
        return self.full + self.reduced

    @property
    def circles(self) -> str:
        marks = "●" * self.full + "○" * self.reduced
        return marks if len(marks) <= MOST else f"{marks[:MOST]}+"

    @property
    def budget(self) -> str:
        if not self.seeds:
            return "not measured"
        if self.synthetic:
            return "synthetic"
        if self.full and self.reduced:
            return "mixed"
        return "full" if self.full else "reduced"

    @property
    def words(self) -> str:
        """As in "three seeds, full budget"."""
        if not self.seeds:
            return "not measured"
        count = WORDS[self.seeds] if self.seeds < len(WORDS) else self.seeds
        what = "synthetic data" if self.synthetic else f"{self.budget} budget"
        return f"{count} seed{'' if self.seeds == 1 else 's'}, {what}"

    def __str__(self) -> str:
        return f"{self.circles} {self.budget}".strip()


def badge(found: object) -> Badge:
    """The badge of records, runs or a frame: the seeds that all models and settings in them have in common.

    Where they have none, it is that of the model with the fewest.
    """
    records = as_records(found)
    if not records:
        return Badge(0, 0)
    groups = {}
    for record in records:
        group = (record.get("of") or record["name"], record["model"])
        groups.setdefault(group, {})[record["seed"]] = record.get("budget", "full") == "full"
    groups = list(groups.values())
    if not set.intersection(*map(set, groups)):
        groups = [min(groups, key=len)]
    seeds = set.intersection(*map(set, groups))
    full = sum(all(group[seed] for group in groups) for seed in seeds)
    return Badge(full, len(seeds) - full, any(record.synthetic for record in records))


# -- values


class Value(float):
    """A share with its 95 % interval."""

    def __new__(
        cls, value: float, low: float = math.nan, high: float = math.nan, evidence: Badge | None = None
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


class Gap(Value):
    """A paired difference in percentage points, with what `statistics.difference` says of it."""

    def __new__(cls, found: statistics.Difference, evidence: Badge):
        self = super().__new__(cls, 100 * found.value, 100 * found.low, 100 * found.high, evidence)
        self.p = found.p
        self.sign = found.sign
        self.seeds = found.seeds
        self.by_seed = tuple(100 * difference for difference in found.by_seed)
        self.found = found
        return self

    @property
    def interval(self) -> str:
        return f"{number(self.low, '+.1f')} to {number(self.high, '+.1f')}"

    def __str__(self) -> str:
        return f"{number(self, '+.1f')} ({self.interval})"


class Space:
    """The entries of a dict as attributes, `_` for what is no letter or digit: `space.recurrent_wide.total`."""

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
        """Any other number of the test entry, the mean over seeds: f1, precision and recall as shares."""
        if name.startswith("_") or not isinstance(self.records[0]["test"].get(name), (int, float)):
            raise AttributeError(f"a model's records have no {name!r}")
        mean = float(np.mean([record["test"][name] for record in self.records]))
        return Value(mean, evidence=self.badge) if name in statistics.MEASURES else mean

    @cached_property
    def accuracy(self) -> Value:
        return Value(*statistics.accuracy(self.records), self.badge)

    @property
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
    def ms(self) -> float:
        """Milliseconds a text in batches of 16, the median over seeds."""
        return milliseconds(self.records)

    @property
    def ms_single(self) -> float:
        return milliseconds(self.records, 0)


class Task:
    """One task at one budget: its models by name with `_` for `-`, and the paired difference of the first two."""

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


# -- names: what {val} and {holds} of the book (`book/_ext/values_roles.py`) and the claims ask

FUNCTIONS = {
    function.__name__: function for function in (abs, min, max, round, len, all, any, sum, math.isnan)
}


@cache
def defined() -> dict[str, object]:
    """Every name of `book/values.py` and of the `book/values_<page>.py` beside it: the `VALUES` of all."""
    found = {}
    owner = {}
    for path in sorted((REPOSITORY / "book").glob("values*.py")):
        for name, value in load(path).VALUES.items():
            if name in found:
                raise RtxError(f"{name!r} is defined by {owner[name]} and by {path.name}; names must differ.")
            found[name] = value
            owner[name] = path.name
    return found


def load(path: Path) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(f"book_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Names(dict):
    """The names for `eval`: a function among the values is called, once, when its name is first used."""

    def __init__(self, given: dict[str, object]):
        super().__init__(FUNCTIONS, __builtins__={})
        self.given = given

    def __missing__(self, name: str) -> object:
        if name not in self.given:
            near = get_close_matches(name, self.given, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise RtxError(f"Unknown value {name!r}: {hint}the names are those of book/values*.py.")
        value = self.given[name]
        self[name] = value() if callable(value) else value
        return self[name]


@cache
def names() -> Names:
    return Names(defined())


def look_up(expression: str, known: Names | None = None) -> object:
    """What an expression over the names gives, such as "sst2.difference" or "abs(sst2.difference) < 1"."""
    try:
        return eval(expression, names() if known is None else known)  # as globals: generators see them too
    except RtxError:
        raise
    except Exception as error:
        raise RtxError(f"{expression!r} cannot be computed: {type(error).__name__}: {error}.") from error


def shown(quoted: str) -> str:
    """The text for `{val}`: "name" or "name:format"; a real minus sign, a thin no-break space before %."""
    expression, _, form = quoted.partition(":")
    value = look_up(expression.strip())
    write = number if isinstance(value, (int, float)) else format
    if not form:
        if write is format or hasattr(value, "badge"):
            return str(value)
        form = "," if isinstance(value, int) else ".4g"
    try:
        return write(value, form.strip())
    except (TypeError, ValueError) as error:
        raise RtxError(f"{quoted!r} cannot be written: {error}.") from error
