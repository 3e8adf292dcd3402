"""What prose, claims and tables quote: values with an interval, and their names.

    sst2 = Task(records.records(name="sst2"))
    sst2.recurrent.accuracy   a float; .low, .high, .badge; written "90.0 % (89.3 to 90.7)"
    sst2.difference           a float; .low, .high, .p, .sign, .badge; written "+0.1 (−0.3 to +0.6)"

Differences and their bounds are in percentage points, accuracies are shares.
"""

import ast
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from statistics import mean
from types import CodeType

import numpy as np

from rtx_core import study
from rtx_core.errors import RtxError, unknown
from rtx_core.report import statistics
from rtx_core.report.evidence import COUNTS, Badge, as_records, badge, milliseconds
from rtx_core.report.style import number


class Unmeasured(RtxError):
    """What a name stands for has no record."""


class Value(float):
    """A number with its 95 % interval, a share unless `form` says otherwise; `sign` and `p` are what its test says."""

    def __new__(cls, value: float, low=math.nan, high=math.nan, evidence: Badge | None = None, **about):
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

    def __new__(cls, found: statistics.Difference, evidence: Badge):
        points = (100 * each for each in (found.value, found.low, found.high))
        self = super().__new__(cls, *points, evidence, form="+.1f", sign=found.sign, p=found.p)
        self.seeds, self.lean = found.seeds, found.lean
        self.by_seed = tuple(100 * difference for difference in found.by_seed)
        return self

    @property
    def interval(self) -> str:
        if self.seeds != 2:
            return super().interval
        return "the two seeds: " + " and ".join(number(each, self.form) for each in self.by_seed)


class Space:
    """The entries of a dict as attributes, with `_` for what is no letter or digit: `space.recurrent_wide.total`."""

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

    def __init__(self, found: object, models: tuple[str, str] = ("baseline", "recurrent"), called: str = "this task"):
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
    def parameter_ratio(self) -> float:
        """The second model's parameters as a share of the first's."""
        first, second = (getattr(self, name.replace("-", "_")).parameters for name in self._models)
        return second / first

    saving = parameter_ratio  # its name before, which promised the opposite

    @property
    def badge(self) -> Badge:
        return badge([record for record in self._records if record["model"] in self._models])


class Runs:
    """The runs of one task, whose models have names that are no attributes, such as 2x2."""

    def __init__(self, found: object, called: str):
        self.records = as_records(found)
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


TAKEN = (abs, min, max, round, len, all, any, sorted, sum, map, zip, mean, math.isnan)
FUNCTIONS = {function.__name__: function for function in TAKEN}
SYNTAX = (ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.keyword)
SYNTAX += (ast.Tuple, ast.List, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.ListComp, ast.GeneratorExp)
SYNTAX += (ast.Lambda, ast.arguments, ast.arg, ast.comprehension, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)
SYNTAX += (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
FOREIGN = {"count", "mean", "sum", "values"}  # what an expression takes of objects whose classes are not ours


@cache
def defined() -> dict[str, object]:
    """Every name that pages quote: the `VALUES` of all modules of the study's package `values`."""
    found = {}
    for module in study.values():
        if twice := found.keys() & module.VALUES.keys():
            raise RtxError(f"{module.__name__} defines {', '.join(twice)} as another module does; names must differ.")
        found |= module.VALUES
    return found


class Names(dict):
    """The names for `eval`: a function among the values is called, once, when its name is first used."""

    def __init__(self, given: dict[str, object]):
        super().__init__(FUNCTIONS, __builtins__={}, _attribute=attribute)
        self.given = given

    def __missing__(self, name: str) -> object:
        if name not in self.given:
            raise unknown("value", name, self.given)
        value = self.given[name]
        try:
            self[name] = value() if callable(value) else value
        except KeyError as error:  # which `eval` would take for a name that is not defined
            raise RtxError(f"{name!r} cannot be computed: it looks for {error} in vain.") from error
        return self[name]


@cache
def names() -> Names:
    return Names(defined())


def attribute(of: object, name: str) -> object:
    """An attribute whose class is of the library or the study; of other objects only those in `FOREIGN`."""
    ours = f"{type(of).__module__}.".startswith(("rtx_core.", f"{study.study().__name__}."))
    if not ours and name not in FOREIGN:
        raise RtxError(f"{name!r} of a {type(of).__name__} cannot be quoted; make it a value of the study.")
    return getattr(of, name)


class Checked(ast.NodeTransformer):
    """Expressions of nodes in `SYNTAX`, without a name that begins with `_`; attributes are read by `attribute`."""

    def visit(self, node: ast.AST) -> ast.AST:
        name = getattr(node, "id", getattr(node, "attr", ""))
        if not isinstance(node, SYNTAX) or name.startswith("_"):
            raise RtxError(f"{name or type(node).__name__!r} cannot stand in an expression that is quoted.")
        node = self.generic_visit(node)
        if isinstance(node, ast.Attribute):
            read = ast.Name("_attribute", ast.Load())
            node = ast.copy_location(ast.Call(read, [node.value, ast.Constant(node.attr)], []), node)
        return node


@cache
def checked(expression: str) -> CodeType:
    tree = Checked().visit(ast.parse(expression.strip(), mode="eval"))
    return compile(ast.fix_missing_locations(tree), "<quoted>", "eval")


def look_up(expression: str) -> object:
    """What an expression over the names gives, such as "sst2.difference" or "abs(sst2.difference) < 1"."""
    try:
        return eval(checked(expression), names())  # as globals: generators see them too
    except RtxError:
        raise
    except Exception as error:
        raise RtxError(f"{expression!r} cannot be computed: {type(error).__name__}: {error}.") from error


def conditions(lines: Iterable[str]) -> list[str]:
    """The guards of a block {holds}: one a line, continued by lines that are indented."""
    found = []
    for line in lines:
        if found and line.startswith(" "):
            found[-1] += f" {line.strip()}"
        elif line.strip():
            found.append(line.strip())
    return found


def parts(guard: str) -> str:
    """What the names in a condition stand for: "khop.error('2x1', 4) is 0.27, khop.error('2x2', 4) is 0.003"."""
    found: dict[str, str] = {}

    def root(node: ast.AST) -> str:
        while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            node = node.func if isinstance(node, ast.Call) else node.value
        return node.id if isinstance(node, ast.Name) else ""

    def walk(node: ast.AST) -> None:
        used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        if root(node) in names().given and used <= names().given.keys() | FUNCTIONS.keys():
            with suppress(RtxError):
                if not callable(value := look_up(ast.unparse(node))):
                    found.setdefault(ast.unparse(node), written(value))
        else:
            for inner in ast.iter_child_nodes(node):
                walk(inner)

    walk(ast.parse(guard, mode="eval"))
    return ", ".join(f"{name} is {value}" for name, value in found.items())


def written(value: object) -> str:
    """A value as text without a format."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(written, value))})"
    if not isinstance(value, (int, float)) or hasattr(value, "badge"):
        return str(value)
    return number(value, "," if isinstance(value, int) else ".4g")


def shown(quoted: str) -> str:
    """The text for `{val}`: "name" or "name:format"; by the format `words`, as in `len(seeds):words`, a word."""
    expression, _, form = quoted.partition(":")
    value = look_up(expression.strip())
    if not form:
        return written(value)
    try:
        return COUNTS[value] if form.strip() == "words" else number(value, form.strip())
    except (TypeError, ValueError, IndexError) as error:
        raise RtxError(f"{quoted!r} cannot be written: {error}.") from error
