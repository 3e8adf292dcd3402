"""What the claims page judges: differences, shares, times, counts, each with the bounds that decide a claim.

One rule for all: two seeds or more at the full budget decide at 5 % (95 % intervals); one seed, or a reduced
budget, at 1 % (99 %).
What is written is the estimate with its 95 % interval, as on every other page.
"""

import json
from functools import cached_property

import numpy as np

from rtx_core import paths, records
from rtx_core.errors import RtxError
from rtx_core.models.registry import config_of
from rtx_core.report import statistics as S
from rtx_core.report.style import number
from rtx_core.report.values import Badge, Model, Space, Task, badge

STRICT = 0.01  # the level of a test that rests on one seed or on a reduced budget
MODELS = ("baseline", "recurrent")


class Finding(float):
    """A number as the tests of claims take it: text, the bounds that decide, sign, p and badge."""

    def __new__(cls, value: float, text: str, bounds=None, sign=0, p=None, evidence=None):
        self = super().__new__(cls, value)
        self.text = text
        self._bounds = bounds or (value, value)  # or a function that gives them: a bootstrap takes a moment
        self.sign = sign
        self.p = p
        self.badge = evidence
        return self

    @cached_property
    def bounds(self) -> tuple[float, float]:
        return self._bounds() if callable(self._bounds) else self._bounds

    @property
    def low(self) -> float:
        return self.bounds[0]

    @property
    def high(self) -> float:
        return self.bounds[1]

    def __str__(self) -> str:
        return self.text

    def __format__(self, form: str) -> str:
        return self.text


def weak(evidence: Badge) -> bool:
    return evidence.seeds < 2 or bool(evidence.reduced)


def found(statistic, seeds: list[tuple], scale: float, form: str, same_training: bool = True) -> Finding:
    """`statistic(labels, *guesses, weights)` of models whose records of each seed are given."""
    evidence = badge(list(seeds))
    value, low, high, _ = S.estimate(statistic, seeds, same_training)
    shown = f"{number(scale * value, form)} ({number(scale * low, form)} to {number(scale * high, form)})"
    if weak(evidence):
        return Finding(
            scale * value, shown, lambda: strict(statistic, seeds, scale, same_training), evidence=evidence
        )
    return Finding(scale * value, shown, (scale * low, scale * high), evidence=evidence)


def strict(statistic, seeds: list[tuple], scale: float, same_training: bool = True) -> tuple[float, float]:
    """The 99 % interval over texts, of the first seed."""
    columns = S.same_texts(*seeds[0], same_training=same_training)
    _, low, high = S.bootstrap(statistic, *columns, level=1 - STRICT)
    return scale * low, scale * high


def difference(a: list, b: list, measure: str = "accuracy", same_training: bool = True) -> Finding:
    """a − b in points, paired."""
    evidence = badge([a, b])
    d = S.difference(a, b, measure, same_training)
    text = (
        f"{number(100 * d.value, '+.1f')} ({number(100 * d.low, '+.1f')} to {number(100 * d.high, '+.1f')})"
    )
    if not weak(evidence):
        return Finding(100 * d.value, text, (100 * d.low, 100 * d.high), d.sign, d.p, evidence)
    score = S.MEASURES[measure]

    def bounds() -> tuple[float, float]:
        gap = lambda y, x, z, weights: score(y, x, weights) - score(y, z, weights)  # noqa: E731
        return strict(gap, S.common(a, b), 100, same_training)

    clear = d.p < STRICT if d.p is not None else bounds()[0] > 0 or bounds()[1] < 0
    return Finding(100 * d.value, text, bounds, d.sign if clear else 0, d.p, evidence)


class Judged(Task):
    """A task as claims need it; a model stopped before it knew every class counts as no record."""

    def __getattr__(self, name: str) -> Model:
        model = super().__getattr__(name)
        if not all(map(S.answers_all, model.records)):
            del vars(self)[name]
            raise RtxError(
                f"There is no record of {self._called}, {name}, trained until it answers every class."
            )
        return model

    def of(self, name: str) -> list:
        return getattr(self, name.replace("-", "_")).records

    def minus(self, first: str, second: str, measure: str = "accuracy") -> Finding:
        return difference(self.of(first), self.of(second), measure)

    @property
    def share(self) -> Finding:
        """The recurrent model's accuracy as a percentage of the baseline's."""
        score = S.MEASURES["accuracy"]
        pairs = S.common(*map(self.of, MODELS))
        return found(lambda y, a, b, weights: score(y, b, weights) / score(y, a, weights), pairs, 100, ".1f")

    def balance(self, model: str, average: str = "") -> Finding:
        """Precision minus recall in points; `average="weighted "` as the study printed them."""
        precision, recall = S.MEASURES[f"{average}precision"], S.MEASURES[f"{average}recall"]
        seeds = [(record,) for record in self.of(model)]
        return found(
            lambda y, a, weights: precision(y, a, weights) - recall(y, a, weights), seeds, 100, "+.1f"
        )

    @cached_property
    def first_epoch(self) -> Finding:
        """Validation accuracy after the first epoch, baseline − recurrent, in points."""
        pairs = S.common(*map(self.of, MODELS))
        return over_seeds(
            *zip(*(tuple(map(after_one_epoch, pair)) for pair in pairs)), 100, "+.1f", badge(pairs)
        )

    def rise(self, model: str) -> Finding:
        """Validation loss at the end minus its lowest, in nats per text."""
        found = self.of(model)
        value, low, high = S.mean_interval(list(map(rise, found)))
        text = f"{number(value, '+.2f')} ({number(low, '+.2f')} to {number(high, '+.2f')})"
        return Finding(value, text, (low, high), evidence=badge(found))

    @property
    def overfitting(self) -> Finding:
        """The baseline's rise minus the recurrent model's."""
        pairs = S.common(*map(self.of, MODELS))
        return over_seeds(*zip(*(tuple(map(rise, pair)) for pair in pairs)), 1, "+.2f", badge(pairs))


def over_seeds(a: list[float], b: list[float], scale: float, form: str, evidence: Badge) -> Finding:
    """a − b by the paired t-test over seeds; fewer than three seeds decide nothing."""
    if len(a) < S.ENOUGH_SEEDS:
        value = scale * float(np.mean(a) - np.mean(b))
        return Finding(value, number(value, form), (float("nan"), float("nan")), evidence=evidence)
    value, low, high, p = S.over_seeds(a, b)
    text = f"{number(scale * value, form)} ({number(scale * low, form)} to {number(scale * high, form)})"
    sign = int(np.sign(value)) if p < (STRICT if weak(evidence) else S.ALPHA) else 0
    return Finding(scale * value, text, (scale * low, scale * high), sign, p, evidence)


def after_one_epoch(record) -> float:
    return next(row["validation_accuracy"] for row in record["history"] if row["epoch"] >= 1)


def rise(record) -> float:
    losses = [row["validation_loss"] for row in record["history"]]
    return losses[-1] - min(losses)


# Which records


def best(called: str, *names: str) -> Judged:
    """The first of these folders in which the models have a seed in common; largest budget first."""
    for name in names:
        task = Judged(records.records(name=name), called=called)
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
    return Space({name: Judged(records.measurements("transfer", of), called=of) for name, of in ways.items()})


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
    score = S.MEASURES["accuracy"]
    some, more = [[task.of(name) for name in MODELS] for task in (small, large)]
    # Who is ahead is taken from all texts: the size of a resampled difference is biased upward.
    signs = [
        np.sign(np.mean([a["test"]["accuracy"] - b["test"]["accuracy"] for a, b in S.common(*p)]))
        for p in (some, more)
    ]

    def change(y, a, b, c, d, weights):
        before, after = (
            score(y, a, weights) - score(y, b, weights),
            score(y, c, weights) - score(y, d, weights),
        )
        return signs[0] * before - signs[1] * after

    return found(change, S.common(*some, *more), 100, "+.1f", same_training=False)


def harder(task: Judged, than: Judged, name: str) -> Finding:
    """Accuracy on `than` minus accuracy on `task` in points; other texts, so Fisher's exact test."""
    pair = [getattr(each, name).records[0] for each in (task, than)]
    (a, n), (b, m) = [(round(r["test"]["accuracy"] * r["test"]["n"]), r["test"]["n"]) for r in pair]
    gap, p = 100 * (b / m - a / n), S.same_share(a, n, b, m)
    evidence = badge(pair[0])
    clear = p < (STRICT if weak(evidence) else S.ALPHA)
    return Finding(gap, number(gap, "+.1f"), sign=int(np.sign(gap)) if clear else 0, p=p, evidence=evidence)


def deeper() -> Space:
    """More passes through the same layers: accuracy gained by each, in points."""
    named = {1: "sst2-10pct-numpasses1", 2: "sst2-10pct", 3: "sst2-10pct-numpasses3"}
    passes = {n: Task(records.records(name=name), called=name).recurrent.records for n, name in named.items()}
    return Space({"second": difference(passes[2], passes[1]), "third": difference(passes[3], passes[2])})


# Time, rounding, counts


def times(task: Task, device: str = "cpu") -> Finding:
    """Recurrent's time of a text in a batch over the baseline's; bounds: the middle 80 % of batches."""
    pairs = S.common(*(getattr(task, name).records for name in MODELS))
    places = {timed_on(record) for pair in pairs for record in pair}
    kinds = {r["latency"]["environment"]["device_type"] for pair in pairs for r in pair}
    if kinds != {device} or len(places) > 1:
        raise RtxError(
            f"There is no record of the times of both models on one {'GPU' if device == 'cuda' else 'CPU'}."
        )
    keys = ("per_sentence_ms", "p10_ms", "p90_ms")
    y, x = [{k: np.median([p[i]["latency"]["measured"][-1][k] for p in pairs]) for k in keys} for i in (0, 1)]
    ratio, low, high = x[keys[0]] / y[keys[0]], x["p10_ms"] / y["p90_ms"], x["p90_ms"] / y["p10_ms"]
    return Finding(ratio, f"{ratio:.2f} ({low:.2f} to {high:.2f})", (low, high), evidence=badge(pairs))


def speed() -> Space:
    names = {
        "sst2": "sst2-10pct",  # of the full runs the pair was not timed with equal threads
        "official": "sst2-official",
        "half": "sst2-50pct-epochs1",
        "short": "sst2-short",
        "long": "sst2-long-epochs1",
        "yelp": "yelp-trainrows10000-epochs1",
        "three": "multi-domain-trainrows5000-epochs1",
    }
    return Space({name: Task(timed_alike(folder), called=folder) for name, folder in names.items()})


def timed_alike(name: str) -> list:
    """Both models' records of the seeds that were timed as the first was: on that device, with as many
    threads."""
    pairs = S.common(*(records.records(name=name, model=model) for model in MODELS))
    places = [{timed_on(record) for record in pair} for pair in pairs]
    return [
        record for pair, place in zip(pairs, places) if place == {timed_on(pairs[0][0])} for record in pair
    ]


def timed_on(record: records.Record) -> tuple[str, int]:
    environment = record["latency"]["environment"]
    return environment["device"], environment["threads"]


def amplification() -> Finding:
    """Error of shared over unshared weights after the last layer: the weakest of 4, 6 and 8 bits."""
    measured = records.measurements("rounding", "sst2-10pct")
    if not measured:
        raise RtxError("There is no record of rounded weights.")
    ratios = []
    for comparison, model in [
        ("random", None),
        *(("draws", name) for name in ("recurrent", "recurrent-wide")),
    ]:
        for bits in (4, 6, 8):
            ends = {"shared": {}, "unshared": {}}
            for curve in measured[0]["curves"]:
                if (curve["comparison"], curve["bits"], curve.get("model")) == (comparison, bits, model):
                    ends[curve["arm"]][curve["seed"]] = curve["errors"][-1]
            if ends["shared"]:
                logs = [
                    float(np.log(ends["shared"][seed] / ends["unshared"][seed])) for seed in ends["shared"]
                ]
                ratios.append([float(np.exp(bound)) for bound in S.mean_interval(logs)])
    value, low, high = min(ratios, key=lambda ratio: ratio[1])
    return Finding(value, f"{value:.2f} ({low:.2f} to {high:.2f})", (low, high), evidence=Badge(1, 0))


def profile(name: str) -> dict:
    path = paths.home() / "results" / "data" / f"{name}.json"
    if not path.exists():
        raise RtxError(f"There is no record of the data of {name}.")
    return json.loads(path.read_text(encoding="utf-8"))["parts"]


def percents(part: dict) -> np.ndarray:
    return 100 * np.array(part["labels"]) / part["n"]


def labels() -> Space:
    """The largest distance of a part's share of a label from what is stated, in points."""
    published = json.loads((paths.PACKAGE / "report" / "published.json").read_text(encoding="utf-8"))[
        "labels"
    ]
    whole = percents(profile("sst2-seeded-128")["train"])
    parts = profile("sst2-published-128")
    table = [abs(percents(parts[name]) - published["sst2"][name]["percent"]).max() for name in parts]
    subsets = [
        abs(percents(profile(f"sst2-seeded-{size}pct-128")["train"]) - whole).max() for size in (10, 50)
    ]
    three = [abs(percents(part) - 100 / 3).max() for part in profile("multi-domain-seeded-128").values()]
    yelp = [abs(percents(part) - 50).max() for part in profile("yelp-seeded-128").values()]
    found = {"table": table, "subsets": subsets, "three": three, "yelp": yelp}
    return Space(
        {name: Finding(max(each), f"{max(each):.3f} points off at most") for name, each in found.items()}
    )


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
    found = [getattr(tasks().sst2, name).records[0]["parameters"] for name in MODELS]
    millions = [each["total"] / 1e6 for each in found]
    saving = 100 * (1 - millions[1] / millions[0])
    first, second = map(config_of, MODELS)
    settings = ("hidden_size", "num_heads", "intermediate_size")
    differing = sum(getattr(first, name) != getattr(second, name) for name in settings)
    depths = [each.num_layers * each.num_passes for each in (first, second)]

    def off(first: float, second: float, percent: float) -> Finding:
        """How far our counts are from those stated, in roundings: 0.05 million, and a point of the saving."""
        distance = max(
            abs(millions[0] - first) / 0.05, abs(millions[1] - second) / 0.05, abs(saving - percent)
        )
        return Finding(distance, f"{millions[0]:.1f} M, {millions[1]:.1f} M, {saving:.1f}%")

    return Space(
        {
            "off": off,
            "totals": dict(zip(MODELS, (each["total"] for each in found))),
            "differing": Finding(differing, f"{differing} of {len(settings)} widths differ"),
            "depth_gap": Finding(abs(depths[0] - depths[1]), f"depth {depths[0]} and {depths[1]}"),
            "three_domain_tests": profile("multi-domain-seeded-128")["test"]["n"],
        }
    )


def scoreboard() -> Space:
    """How many claims have which outcome, for the page's own sentences: `scoreboard.reproduced`."""
    from rtx_core.report import claims
    from rtx_core.report.values import look_up

    frame = claims.judged(claims.read(paths.REPOSITORY / "book" / "claims.yaml"), look_up)
    counts = {word.replace(" ", "_"): int((frame["outcome"] == word).sum()) for word in claims.OUTCOMES}
    decided = frame["outcome"].isin([claims.REPRODUCED, claims.CONTRADICTED])
    counts["thin"] = int((decided & frame["badge"].str.contains("○")).sum())
    return Space(counts | {"all": len(frame), "decided": int(decided.sum())})


VALUES = {
    "judged": tasks,
    "moved": moved,
    "half_minus_all": half_minus_all,
    "closer": closer,
    "harder_task": lambda: harder,
    "deeper": deeper,
    "speed": speed,
    "times_of": lambda: times,
    "amplification": amplification,
    "labels": labels,
    "lengths": lengths,
    "sizes": sizes,
    "scoreboard": scoreboard,
}
