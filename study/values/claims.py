"""What the claims page judges: differences, shares, times, counts, each with the bounds that decide a claim.

One rule for all: three seeds or more at the full budget decide at 5 % (95 % intervals); one seed, or a reduced
budget, at 1 % (99 %); two seeds give a range and decide nothing.
What is written is the estimate with its 95 % interval, as on every other page.
"""

from functools import cached_property

import numpy as np

from rtx_core import paths, records
from rtx_core.errors import RtxError
from rtx_core.models.registry import config_of
from rtx_core.report import statistics as S
from rtx_core.report.evidence import Badge, badge, device_of
from rtx_core.report.style import number
from rtx_core.report.values import Model, Space, Task, Value
from study import paper
from study.published import published

NONE = (float("nan"), float("nan"))  # bounds that decide nothing
STRICT = 0.01  # the level of a test that rests on one seed or on a reduced budget
MODELS = ("baseline", "recurrent")


class Finding(Value):
    """A number as the tests of claims take it: `low` and `high` decide, with sign, p and badge; `text` is written."""

    def __new__(cls, value: float, text: str, bounds=None, sign=0, p=None, evidence=None):
        self = super().__new__(cls, value, *(bounds or (value, value)), evidence)
        self.text = text
        self.sign = sign
        self.p = p
        return self

    def __format__(self, form: str = "") -> str:
        return self.text

    __str__ = __format__


def weak(evidence: Badge) -> bool:
    return evidence.seeds < 2 or bool(evidence.reduced)


def spelled(value: float, low: float, high: float, form: str = "+.1f") -> str:
    return f"{number(value, form)} ({number(low, form)} to {number(high, form)})"


def found(statistic, seeds: list[tuple], form: str = "+.1f", same_training: bool = True) -> Finding:
    """100 × `statistic(labels, *guesses, weights)` of models whose records of each seed are given."""
    evidence = badge(list(seeds))
    value, *bounds = (100 * bound for bound in S.estimate(statistic, seeds, same_training))
    text = spelled(value, *bounds, form)
    if len(seeds) == 2:
        bounds = NONE
    elif weak(evidence):
        bounds = strict(statistic, seeds, same_training)
    return Finding(value, text, bounds, evidence=evidence)


def strict(statistic, seeds: list[tuple], same_training: bool = True) -> list[float]:
    """100 × the bounds of the 99 % interval."""
    return [100 * bound for bound in S.estimate(statistic, seeds, same_training, 1 - STRICT)[1:]]


def difference(a: list, b: list, measure: str = "accuracy", same_training: bool = True) -> Finding:
    """a − b in points, paired."""
    evidence = badge([a, b])
    d = S.difference(a, b, measure, same_training)
    bounds, sign = (100 * d.low, 100 * d.high), d.sign
    text = spelled(100 * d.value, *bounds)
    if d.seeds == 2:
        bounds = NONE
    elif weak(evidence):
        bounds = strict(gap(measure), S.common(a, b), same_training)
        clear = d.p < STRICT if d.p is not None else bounds[0] > 0 or bounds[1] < 0
        sign = sign if clear else 0
    return Finding(100 * d.value, text, bounds, sign, d.p, evidence)


def gap(measure: str = "accuracy"):
    """The statistic of two models' guesses that is their difference in a measure."""
    score = S.MEASURES[measure]
    return lambda labels, a, b, weights: score(labels, a, weights) - score(labels, b, weights)


class Judged(Task):
    """A task as claims need it; a model stopped before it knew every class counts as no record."""

    def __getattr__(self, name: str) -> Model:
        model = super().__getattr__(name)
        if not all(map(S.answers_all, model.records)):
            del vars(self)[name]
            raise RtxError(f"There is no record of {self._called}, {name}, trained until it answers every class.")
        return model

    def of(self, name: str) -> list:
        return getattr(self, name.replace("-", "_")).records

    @property
    def pairs(self) -> list[tuple]:
        return S.common(*map(self.of, MODELS))

    def minus(self, first: str, second: str, measure: str = "accuracy") -> Finding:
        return difference(self.of(first), self.of(second), measure)

    @property
    def share(self) -> Finding:
        """The recurrent model's accuracy as a percentage of the baseline's."""
        score = S.MEASURES["accuracy"]
        return found(lambda y, a, b, weights: score(y, b, weights) / score(y, a, weights), self.pairs, ".1f")

    def balance(self, model: str, average: str = "") -> Finding:
        """Precision minus recall in points; `average="weighted "` as the study printed them."""
        precision, recall = S.MEASURES[f"{average}precision"], S.MEASURES[f"{average}recall"]
        seeds = [(record,) for record in self.of(model)]
        return found(lambda y, a, weights: precision(y, a, weights) - recall(y, a, weights), seeds)

    @cached_property
    def first_epoch(self) -> Finding:
        """Validation accuracy after the first epoch, baseline − recurrent, in points."""
        return over_seeds(self.pairs, lambda record: 100 * after_one_epoch(record), "+.1f")

    def rise(self, model: str) -> Finding:
        """Validation loss at the end minus its lowest, in nats per text."""
        value, *bounds = S.mean_interval(list(map(rise, self.of(model))))
        return Finding(value, spelled(value, *bounds, "+.2f"), bounds, evidence=badge(self.of(model)))

    @property
    def overfitting(self) -> Finding:
        """The baseline's rise minus the recurrent model's."""
        return over_seeds(self.pairs, rise, "+.2f")


def over_seeds(pairs: list[tuple], what, form: str) -> Finding:
    """`what(record)` of the first of each pair − that of the second, by the paired t-test over seeds; fewer than
    three seeds decide nothing."""
    evidence = badge(pairs)
    first, second = ([what(record) for record in column] for column in zip(*pairs))
    if len(pairs) < S.ENOUGH_SEEDS:
        value = float(np.mean(first) - np.mean(second))
        return Finding(value, number(value, form), NONE, evidence=evidence)
    value, *bounds, p = S.over_seeds(first, second)
    sign = int(np.sign(value)) if p < (STRICT if weak(evidence) else S.ALPHA) else 0
    return Finding(value, spelled(value, *bounds, form), bounds, sign, p, evidence)


def after_one_epoch(record) -> float:
    return next(row["validation_accuracy"] for row in record["history"] if row["epoch"] >= 1)


def rise(record) -> float:
    losses = [row["validation_loss"] for row in record["history"]]
    return losses[-1] - min(losses)


# Which records


def best(called: str, *names: str) -> Judged:
    """The first of these folders in which the models have a seed in common; largest budget first."""
    for name in names:
        task = Judged(paper.records(name=name), called=called)
        if S.common(*([r for r in task._records if r["model"] == model] for model in MODELS)):
            return task
    return task


def tasks() -> Space:
    budgets = {
        "sst2": ["sst2"],
        "official": ["sst2-official"],
        "ten": ["sst2-10pct"],
        "half": ["sst2-50pct", "sst2-50pct-epochs1"],
        "long": ["sst2-long", "sst2-long-epochs1"],
        "short": ["sst2-short"],
        "yelp": ["yelp", "yelp-trainrows10000-epochs1"],
        "three_domains": ["multi-domain", "multi-domain-trainrows5000-epochs1"],
        "one_epoch": ["sst2-epochs1"],
        "ten_one_epoch": ["sst2-10pct-epochs1"],
        "half_one_epoch": ["sst2-50pct-epochs1"],
        "short_one_epoch": ["sst2-short-epochs1"],
        "long_one_epoch": ["sst2-long-epochs1"],
        "small": ["sst2-trainrows5000-epochs1"],
        "three_domains_small": ["multi-domain-trainrows5000-epochs1"],
    }
    return Space({name: best(name.replace("_", " "), *folders) for name, folders in budgets.items()})


def moved() -> Space:
    """Trained on one corpus, tested on another."""
    ways = {"to_yelp": "sst2-10pct-to-yelp", "to_sst2": "yelp-trainrows10000-epochs1-to-sst2"}
    return Space({name: Judged(paper.measurements("transfer", of), called=of) for name, of in ways.items()})


# One task against another


def half_minus_all() -> Space:
    """Trained on half of the data minus trained on all of it, at one epoch, on one test part."""
    all_ = tasks()
    pairs = {name: (all_.half_one_epoch.of(name), all_.one_epoch.of(name)) for name in MODELS}
    return Space({name: difference(a, b, same_training=False) for name, (a, b) in pairs.items()})


def closer() -> Space:
    """By how many points the difference of the models shrinks with more training data."""
    all_ = tasks()
    ways = {"to_half": (all_.ten_one_epoch, all_.half_one_epoch), "to_all": (all_.ten, all_.sst2)}
    return Space({name: shrinks(*pair) for name, pair in ways.items()})


def shrinks(small: Judged, large: Judged) -> Finding:
    # Who is ahead is taken from all texts: the size of a resampled difference is biased upward.
    signs = [
        np.sign(np.mean([a["test"]["accuracy"] - b["test"]["accuracy"] for a, b in task.pairs]))
        for task in (small, large)
    ]
    points = gap()

    def change(y, a, b, c, d, weights):
        return signs[0] * points(y, a, b, weights) - signs[1] * points(y, c, d, weights)

    some, more = [[task.of(name) for name in MODELS] for task in (small, large)]
    return found(change, S.common(*some, *more), same_training=False)


def harder(task: Judged, than: Judged, name: str) -> Finding:
    """Accuracy on `than` minus accuracy on `task` in points; other texts, so Fisher's exact test."""
    pair = [getattr(each, name).records[0] for each in (task, than)]
    (a, n), (b, m) = [(round(r["test"]["accuracy"] * r["test"]["n"]), r["test"]["n"]) for r in pair]
    points, p = 100 * (b / m - a / n), S.same_share(a, n, b, m)
    evidence = badge(pair[0])
    clear = p < (STRICT if weak(evidence) else S.ALPHA)
    sign = int(np.sign(points)) if clear else 0
    return Finding(points, number(points, "+.1f"), sign=sign, p=p, evidence=evidence)


# Time, counts


def times(task: Task, device: str = "cpu") -> Finding:
    """Recurrent's time of a text in a batch over the baseline's; bounds: the middle 80 % of batches."""
    pairs = S.common(*(getattr(task, name).records for name in MODELS))
    machines = {device_of(record, "latency") for pair in pairs for record in pair}
    if len(machines) != 1 or pairs[0][0]["latency"]["environment"]["device_type"] != device:
        kind = "GPU" if device == "cuda" else "CPU"
        raise RtxError(f"There is no record of the times of both models on one {kind}.")
    keys = ("per_sentence_ms", "p10_ms", "p90_ms")
    y, x = [{k: np.median([p[i]["latency"]["measured"][-1][k] for p in pairs]) for k in keys} for i in (0, 1)]
    ratio, low, high = x[keys[0]] / y[keys[0]], x["p10_ms"] / y["p90_ms"], x["p90_ms"] / y["p10_ms"]
    return Finding(ratio, spelled(ratio, low, high, ".2f"), (low, high), evidence=badge(pairs))


def profile(name: str) -> dict:
    return records.read_json(paths.home() / "results" / "data" / f"{name}.json")["parts"]


def percents(part: dict) -> np.ndarray:
    return 100 * np.array(part["labels"]) / part["n"]


def labels() -> Space:
    """The largest distance of a part's share of a label from what is stated, in points."""
    stated = published()["labels"]["sst2"]
    whole = percents(profile("sst2-seeded-128")["train"])
    parts = profile("sst2-published-128")
    table = [abs(percents(parts[name]) - stated[name]["percent"]).max() for name in parts]
    smaller = [profile(f"sst2-seeded-{size}pct-128")["train"] for size in (10, 50)]
    subsets = [abs(percents(part) - whole).max() for part in smaller]
    three = [abs(percents(part) - 100 / 3).max() for part in profile("multi-domain-seeded-128").values()]
    yelp = [abs(percents(part) - 50).max() for part in profile("yelp-seeded-128").values()]
    found = {"table": max(table), "subsets": max(subsets), "three": max(three), "yelp": max(yelp)}
    return Space({name: Finding(most, f"{most:.3f} points off at most") for name, most in found.items()})


def lengths() -> Space:
    """Per cent of the test texts that are as long as stated."""

    def between(name: str, unit: str, low: int, high: int, longest: float = 1.0) -> Finding:
        histogram = profile(name)["test"][unit]
        every = np.sort(np.repeat([int(n) for n in histogram], list(histogram.values())))
        chosen = every[len(every) - round(longest * len(every)) :]
        share = 100 * float(((low <= chosen) & (chosen <= high)).mean())
        return Finding(share, f"{share:.1f}% of the texts")

    return Space(
        {
            "one_or_two_words": between("sst2-seeded-short-128", "words", 1, 2),
            "one_or_two_tokens": between("sst2-seeded-short-128", "tokens", 1, 2),
            "longest_tenth": between("sst2-seeded-128", "words", 20, 50, longest=0.1),
            "longest_third": between("sst2-seeded-long-128", "words", 20, 50),
            "up_to_50_tokens": between("sst2-seeded-128", "tokens", 0, 50),
        }
    )


def sizes() -> Space:
    """Parameters in millions, the saving in per cent, and how many settings of the two models differ."""
    millions = [getattr(tasks().sst2, name).parameters / 1e6 for name in MODELS]
    saving = 100 * (1 - millions[1] / millions[0])
    first, second = map(config_of, MODELS)
    settings = ("hidden_size", "num_heads", "intermediate_size")
    differing = sum(getattr(first, name) != getattr(second, name) for name in settings)
    depths = [each.num_layers * each.num_passes for each in (first, second)]

    def off(first: float, second: float, percent: float) -> Finding:
        """How far our counts are from those stated, in roundings: 0.05 million, and a point of the saving."""
        distances = abs(np.subtract(millions, (first, second))) / 0.05
        distance = max(*distances, abs(saving - percent))
        return Finding(distance, f"{millions[0]:.1f} M, {millions[1]:.1f} M, {saving:.1f}%")

    return Space(
        {
            "off": off,
            "differing": Finding(differing, f"{differing} of {len(settings)} widths differ"),
            "depth_gap": Finding(abs(depths[0] - depths[1]), f"depth {depths[0]} and {depths[1]}"),
        }
    )


VALUES = {
    "judged": tasks,
    "moved": moved,
    "half_minus_all": half_minus_all,
    "closer": closer,
    "harder_task": lambda: harder,
    "times_of": lambda: times,
    "labels": labels,
    "lengths": lengths,
    "sizes": sizes,
}
