"""Every condition that a page's checks state is false for some records: each was seen to fail when records change.

Each page's own cells load its records, and `study/pages` computes the checks from nothing else; the test hands it the
same records changed by seeded draws: numbers scaled, answers of classifiers flipped, selected epochs, budgets and
threads exchanged, seeds left out.  A draw changes a part of a record when a check first reads it.
"""

import importlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pytest

from rtx_core import paths
from rtx_core.metrics import classification_metrics
from rtx_core.records import Record
from rtx_core.report import filling, statistics

DRAWS = 160  # at most; it ends as soon as every condition has failed
SCALES = (0.03, 0.3, 1.0, 2.0, 5.0)  # standard deviations of the factors' logarithms, a draw each in turn
COUNTS = {"labels", "truncated", "within_training", "total", "non_embedding", "n_train", "step", "n"}
COUNTS |= {"low-rank corrections", "tokens_known", "layers"}
EXCHANGED = ("budget", "environment", "latency", "config")  # parts of a record


class Capture:
    """Stands in for `Quantities` in a page's module: keeps its functions, computes nothing."""

    def __init__(self, numbers: dict, checks: dict | None = None):
        self.numbers, self.checks = numbers, checks or {}

    def holds(self, check: str) -> bool:
        return True

    def __getattr__(self, key: str) -> str:
        return key


def random(*what: object) -> np.random.Generator:
    """The same numbers for the same draw, file and place."""
    return np.random.default_rng(crc32(" ".join(map(str, what)).encode()))


def normal(*what: object) -> Callable[[], float]:
    """The same normal numbers, one after another; they are drawn by the million, and this generator starts sooner."""
    return partial(Random(" ".join(map(str, what))).gauss, 0.0, 1.0)


@cache
def factor(draw: int, name: str, key: str) -> float:
    return math.exp(SCALES[draw % len(SCALES)] * normal(draw, name, key)())


def scaled(content: dict, draw: int, name: str) -> object:
    """JSON with its fractions and counts scaled: by a factor for all numbers of one key, and a smaller one for each."""
    size = SCALES[draw % len(SCALES)]
    each = normal(draw, name, "each", *content)

    def walk(value: object, key: str) -> object:
        if isinstance(value, float):
            return value * factor(draw, name, key) * math.exp(size / 3 * each())
        if isinstance(value, dict):
            if key in ("words", "tokens"):  # a histogram: length -> texts
                longer = factor(draw, name, "lengths")
                return {str(round(int(length) * longer) + 1): n for length, n in value.items()}
            return {part: inner if part == "config" else walk(inner, part) for part, inner in value.items()}
        if isinstance(value, list):
            if len(value) > 5 and all(isinstance(inner, float) for inner in value):  # losses of batches
                noise = random(draw, name, key, each()).normal(0, size / 3, len(value))
                return (factor(draw, name, key) * np.array(value) * np.exp(noise)).tolist()
            if key == "history":  # thousands of rows, of which a check reads a column
                return [Parts(row, walk) for row in value]
            return [walk(inner, key) for inner in value]
        if isinstance(value, int) and key in COUNTS:
            return round(value * factor(draw, name, key) * math.exp((key != "step") * size / 3 * each()))
        return value

    return walk(content, "")


def flipped(logits: np.ndarray, labels: np.ndarray, draw: int, name: str) -> np.ndarray:
    """Some answers made right, wrong, or all of one class: how, and how many, as chance has it for this name."""
    how = random(draw, name)
    wanted = (labels, (labels + 1) % logits.shape[1], np.full_like(labels, how.integers(logits.shape[1])))
    answers = wanted[how.integers(3)]
    chosen = how.random(len(labels)) < how.choice([0.01, 0.1, 0.5, 1.0])
    logits = logits.copy()
    logits[chosen] = 6 * how.random() * np.eye(logits.shape[1])[answers[chosen]]
    return logits


class Parts(Mapping):
    """A record's content, each part changed when it is first read: a check reads few of thousands of numbers."""

    def __init__(self, content: Mapping, change: Callable):
        self.content, self.change, self.changed = content, change, {}

    def __getitem__(self, key: str) -> object:
        if key not in self.changed:
            self.changed[key] = self.change(self.content[key], key)
        return self.changed[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)


class Changed(Record):
    """What a draw makes of a record; the seeds of a model change alike but for chance."""

    def __init__(self, record: Record, draw: int):
        super().__init__(Parts(record.content, self.part), record.path)
        self.original, self.draw = record, draw
        self.run = f"{record.path.parent.name}/{re.sub('seed[0-9]+', '', record.path.stem)}"
        self.answers_alone = draw % 8 == 6  # so that the rates chosen by validation loss stay

    def chance(self, key: str) -> np.random.Generator:
        return random(self.draw, self.path.parent.name, key)

    def part(self, value: object, key: str) -> object:
        if not self.answers_alone:
            value = scaled({key: value}, self.draw, self.run)[key]
        if key == "test" and self.path.with_suffix(".npz").exists():
            return value | classification_metrics(**self.predictions)
        if key == "selected" and not self.answers_alone:
            row = self.content["history"][self.chance(key).integers(len(self.content["history"]))]
            return value | {column: row[column] for column in value if column in row}
        if key in EXCHANGED and self.chance(key).random() < 0.3:
            return exchanged(key, value)
        return value

    @cached_property
    def predictions(self) -> dict[str, np.ndarray]:
        answers, alone = self.original.predictions, self.draw % 2 or self.answers_alone
        logits = flipped(**answers, draw=self.draw, name=self.run if alone else "all models")
        n = len(logits) - (self.draw % 8 == 2) * int(self.chance("texts").integers(9))
        return {"logits": logits[:n], "labels": answers["labels"][:n]}


def exchanged(key: str, value: object) -> object:
    """Another budget, a thread more, no limit of gradients."""
    if key == "budget":
        return "reduced" if value == "full" else "full"
    if key == "environment":
        return value | {"threads": value["threads"] + 1}
    if key == "latency" and "environment" in value:
        return value | {"environment": exchanged("environment", value["environment"])}
    if key == "config" and "train" in value:
        return value | {"train": value["train"] | {"clip_norm": 0.0}}
    return value


class Draw:
    """One draw's changes of whatever a page's cells handed to its module."""

    def __init__(self, number: int):
        self.number, self.record = number, cache(partial(Changed, draw=number))

    def __call__(self, value: object) -> object:
        if isinstance(value, Record):
            return self.record(self.first_seed(value))
        if isinstance(value, dict) and not holds_records(value):  # a benchmark, or what is published
            return scaled(value, self.number, " ".join(map(str, value)))
        if isinstance(value, dict):
            return {key: self(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self(one) for one in value if not self.leaves_out(one))
        return value

    def first_seed(self, record: Record) -> Record:
        """In every eighth draw all seeds have the results of one, so that differences are significant."""
        first = record.path.with_stem(re.sub("seed[0-9]+", "seed0", record.path.stem))
        if self.number % 8 != 5 or not first.exists() or "seed" not in record.content:
            return record
        return Record(dict(read(first).content) | {"seed": record["seed"]}, first)

    def leaves_out(self, value: object) -> bool:
        return (
            self.number % 8 == 7
            and isinstance(value, Record)
            and random(self.number, *value.path.parts[-2:]).random() < 0.1
        )


def holds_records(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, Record) or any(map(holds_records, inner))


@cache
def read(path: Path) -> Record:
    return Record(json.loads(path.read_text(encoding="utf-8")), path)


def notebooks() -> Iterator[Path]:
    """Those that quote numbers."""
    for folder in ("notebooks", "book"):
        for path in sorted(paths.REPOSITORY.joinpath(folder).glob("*.ipynb")):
            if ".quantities(" in path.read_text(encoding="utf-8"):
                yield path


def captured(path: Path, patch: pytest.MonkeyPatch) -> tuple[Callable, list, dict]:
    """The function of a page's module that makes its quantities, and what the notebook's cells hand to it."""
    module = importlib.import_module(f"study.pages.{path.stem.replace('-', '_')}")
    patch.setattr(module, "Quantities", Capture)
    make, calls = module.quantities, []

    def recorder(*arguments, **named):
        calls.append((arguments, named))
        return make(*arguments, **named)

    patch.setattr(module, "quantities", recorder)
    space: dict = {"__name__": path.stem}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and not calls:
            exec(compile("".join(cell["source"]), path.name, "exec"), space)
    patch.setattr(module, "quantities", make)
    return make, *calls[0]


def evaluated(checks: dict[str, Callable]) -> Iterator[tuple[str, int, bool]]:
    """Check, place and result of every condition that can be computed."""
    for name, check in checks.items():
        with suppress(Exception):
            yield from [(name, place, bool(result)) for place, result in enumerate(check())]


@pytest.fixture(scope="module")
def page(request) -> Iterator[tuple]:
    """The function that makes a page's quantities, and what its notebook's cells hand to it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RTX_HOME", "RTX_DATA"):
            patch.delenv(name, raising=False)
        patch.setenv("RTX_BOOK", "1")
        yield captured(request.param, patch)


EACH = pytest.mark.parametrize("page", list(notebooks()), ids=lambda path: path.stem, indirect=True)


@pytest.mark.filterwarnings("ignore")  # means of nothing, where seeds are missing
@EACH
def test_every_condition_fails_for_some_records(page, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 100)
    make, arguments, named = page
    standing = set()
    for name, place, holds in evaluated(make(*arguments, **named).checks):
        assert holds, f"the records do not bear out condition {place + 1} of {name}"
        standing.add((name, place))
    for draw in map(Draw, range(DRAWS)):
        if standing:
            checks = make(*map(draw, arguments), **{key: draw(value) for key, value in named.items()}).checks
            wanted = {name: checks[name] for name, _ in standing}
            standing -= {(name, place) for name, place, holds in evaluated(wanted) if not holds}
    left = "\n".join(f"{name}, condition {place + 1}" for name, place in sorted(standing))
    assert not standing, f"Nothing makes these fail, so they say nothing: mend or delete them.\n{left}"


@EACH
def test_every_quoted_key_is_a_number_and_every_check_has_a_place(page, request):
    path = request.node.callspec.params["page"]
    make, arguments, named = page
    made = make(*arguments, **named)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells)
    quoted = {*re.findall(r"\bq\.(\w+)", text), *filling.CHECK.findall(text)}
    for other in paths.REPOSITORY.joinpath("book").glob("*.md"):
        keys = re.findall(r"\{eval\}`(\w+)\.(\w+)`", other.read_text(encoding="utf-8"))
        quoted |= {key for name, key in keys if name == path.stem.replace("-", "_")}
    keys = {*made.numbers, *made.checks}
    assert quoted - {"holds", "unsupported"} - keys == set(), "the page quotes what its module does not have"
    assert keys - quoted == set(), "the module has numbers or checks that no sentence uses"
