"""Claims about trained models.  Each judge takes the claim's own terms and returns a verdict with its statistic."""

from collections.abc import Iterator

import numpy as np

from rtx_core.pages.runs import Runs
from rtx_core.pages.table import title
from rtx_core.pages.verdicts import (
    UNDECIDED, Missing, Verdict, by_bounds, by_sign, marked, not_all, runs, together, transferred,
)  # fmt: skip
from rtx_core.results import measurement
from rtx_core.results.record import Record
from rtx_core.results.statistics import ALPHA, MEASURES, bootstrap_interval, difference, over_seeds, paired_guesses, same_share
from rtx_core.tasks import TASKS

NAMES = {"f1": "F1"}
MARGIN = 0.01  # two accuracies are comparable within a point


def measured(variants: list[str], *models: str) -> Iterator[tuple[str, Runs, list[list[Record]]]]:
    """Each task for which all these models are recorded, with its records."""
    for variant in variants:
        try:
            yield variant, *runs(variant, *models)
        except Missing:
            continue


# -- two models on one task --------------------------------------------------------------------------------------------


def more(variant: str, first: str, second: str, measure: str = "accuracy") -> Verdict:
    """The first model exceeds the second in a measure."""
    found, (a, b) = runs(variant, first, second)
    d = difference(a, b, measure)
    return Verdict(by_sign(d.sign), marked(f"{TASKS[variant][0]}, {NAMES.get(measure, measure)}, {title(first)} minus {title(second)}: {d}.", found))


def comparable(variants: list[str], first: str, second: str) -> Verdict:
    """The accuracies differ by a point at most, on every task that is recorded."""
    words, said, used = [], [], []
    for variant, found, (a, b) in measured(variants, first, second):
        d = difference(a, b)
        words.append(by_bounds(-MARGIN < d.low and d.high < MARGIN, d.high < -MARGIN or d.low > MARGIN))
        said.append(f"{TASKS[variant][0]}: {d}")
        used.append(found)
    if not words:
        raise Missing("any of the tasks")
    sentence = f"{title(first)} minus {title(second)}, {'; '.join(said)}.{not_all(len(words), variants)}"
    return Verdict(together(words, len(variants)), marked(sentence, *used))


def at_least(variant: str, first: str, second: str, share: float) -> Verdict:
    """The first model has at least this share of the second's accuracy."""
    found, (a, b) = runs(variant, first, second)
    y, guesses, others = paired_guesses(a[0], b[0])
    ratio = lambda y, g, o, axis: MEASURES["accuracy"](y, g, axis) / MEASURES["accuracy"](y, o, axis)  # noqa: E731
    value, low, high = bootstrap_interval(ratio, y, guesses, others)
    said = f"{TASKS[variant][0]}: the ratio is {value:.4f} (95 % bootstrap interval {low:.4f} to {high:.4f}, n = {len(y):,}, one seed)."
    return Verdict(by_bounds(low >= share, high < share), marked(said, found))


def overall(variants: list[str], first: str, second: str) -> Verdict:
    """The first model is ahead: significantly on some task, and significantly behind on none; all must be measured."""
    signs, used = {}, []
    for variant, found, (a, b) in measured(variants, first, second):
        signs[variant] = difference(a, b).sign
        used.append(found)
    if not signs:
        raise Missing("any of the tasks")
    ahead, behind = (sum(sign == s for sign in signs.values()) for s in (1, -1))
    word = by_sign(int(ahead > 0) - int(behind > 0)) if len(signs) == len(variants) else UNDECIDED
    said = (
        f"Of {len(variants)} tasks {len(signs)} are measured; {title(first)} is significantly more accurate on {ahead} of them, {title(second)} on "
        f"{behind}, and on {len(signs) - ahead - behind} the test cannot tell."
    )
    return Verdict(word, marked(said, *used))


def balanced(variants: list[str], models: list[str], within: float) -> Verdict:
    """Precision and recall differ by less than this."""
    words, said, used = [], [], []
    for variant in variants:
        found, records = runs(variant, *models)
        used.append(found)
        for record, *_ in records:
            gap = lambda y, g, axis: MEASURES["precision"](y, g, axis) - MEASURES["recall"](y, g, axis)  # noqa: E731
            value, low, high = bootstrap_interval(gap, record.predictions["labels"], record.predictions["logits"].argmax(1))
            words.append(by_bounds(-within < low and high < within, high < -within or low > within))
            said.append(f"{title(record['model'])} on {TASKS[variant][0]} {value:+.4f} ({low:+.4f} to {high:+.4f})")
    return Verdict(together(words), marked(f"Precision minus recall of the positive class, 95 % bootstrap interval: {'; '.join(said)}.", *used))


# -- values in print ---------------------------------------------------------------------------------------------------


def published(variant: str, n: int, **accuracies: float) -> Verdict:
    """The published accuracies, each on a test set of its own of n texts."""
    words, said = [], []
    found, every = runs(variant, *(model.replace("_", "-") for model in accuracies))
    for records, value in zip(every, accuracies.values()):
        ours, size = float(np.mean([r["test"]["accuracy"] for r in records])), records[0]["test"]["n"]
        p = same_share(round(value * n), n, round(ours * size), size)
        words.append(by_bounds(p >= ALPHA and abs(ours - value) <= MARGIN, p < ALPHA))
        said.append(f"{title(records[0]['model'])} {ours:.4f} of {size:,} against {value:.4f} of {n:,} (Fisher's exact test, p = {p:.2g}; "
                    f"{len(records)} seed{'s' if len(records) > 1 else ''})")  # fmt: skip
    return Verdict(together(words), marked(f"{TASKS[variant][0]}, ours against the published accuracy: {'; '.join(said)}.", found))


# -- one task against another ------------------------------------------------------------------------------------------


def subset_beats_full(subset: str, full: str, models: list[str]) -> Verdict:
    """Trained on a part of the data, a model is more accurate on the same test part than trained on all of it."""
    part, whole = runs(subset, *models), runs(full, *models)
    found = {model: difference(a, b, same_training=False) for model, a, b in zip(models, part[1], whole[1])}
    said = "; ".join(f"{title(model)} {d}" for model, d in found.items())
    return Verdict(together(by_sign(d.sign) for d in found.values()), marked(f"{TASKS[subset][0]} minus all of it: {said}.", part[0], whole[0]))


def gap_shrinks(small: str, large: str, first: str, second: str) -> Verdict:
    """The models are closer on the larger training part; the test part is the same."""
    (some, (a, b)), (all_, (c, d)) = runs(small, first, second), runs(large, first, second)
    y, *guesses = paired_guesses(a[0], b[0])
    z, *others = paired_guesses(c[0], d[0])
    if not np.array_equal(y, z):
        raise Missing("two training sizes with one test part")

    def change(y, a, b, c, d, axis):
        score = MEASURES["accuracy"]
        return np.abs(score(y, a, axis) - score(y, b, axis)) - np.abs(score(y, c, axis) - score(y, d, axis))

    value, low, high = bootstrap_interval(change, y, *guesses, *others)
    said = (
        f"The size of the difference falls by {100 * value:+.2f} points from {TASKS[small][0]} to {TASKS[large][0]} (95 % bootstrap interval "
        f"{100 * low:+.2f} to {100 * high:+.2f}, n = {len(y):,}, one seed)."
    )
    return Verdict(by_bounds(low > 0, high < 0), marked(said, some, all_))


def harder(variant: str, than: str, model: str) -> Verdict:
    """The task has the lower accuracy; its yardstick is told beside."""
    (one, (a,)), (other, (b,)) = runs(variant, model), runs(than, model)
    (x, n), (y, m) = ((round(r[0]["test"]["accuracy"] * r[0]["test"]["n"]), r[0]["test"]["n"]) for r in (a, b))
    p = same_share(x, n, y, m)
    word = UNDECIDED if p >= ALPHA else by_sign(1 if x / n < y / m else -1)
    bags = [m["test"]["accuracy"] for v in (variant, than) for m in measurement.every("hub", "yardstick", v)]
    beside = f" A bag of words reaches {bags[0]:.4f} and {bags[1]:.4f}." if len(bags) == 2 else ""
    said = f"{title(model)}: {x / n:.4f} on {TASKS[variant][0]}, {y / m:.4f} on {TASKS[than][0]} (Fisher's exact test, p = {p:.2g}).{beside}"
    return Verdict(word, marked(said, one, other))


def transfers_better(trained: str, tested: str, first: str, second: str) -> Verdict:
    """Trained on one task and tested on another, the first model is the more accurate."""
    found = transferred(trained, tested)
    a, b = ([m for m in found if m["model"] == model] for model in (first, second))
    if not (a and b):
        raise Missing(f"transfer from {TASKS[trained][0]} to {TASKS[tested][0]}")
    d = difference(a, b)
    reduced = " Protocol reduced." if any(m["protocol"] == "reduced" for m in found) else ""
    said = f"{TASKS[trained][0]} to {TASKS[tested][0]}, {title(first)} minus {title(second)}: {d}.{reduced}"
    return Verdict(by_sign(d.sign), said)


# -- training ----------------------------------------------------------------------------------------------------------


def _rise(record: Record) -> float:
    losses = [row["validation_loss"] for row in record["history"]]
    return losses[-1] - min(losses)


def overfits_more(variant: str, first: str, second: str) -> Verdict:
    """After its best epoch the first model's validation loss rises by more; a test needs three seeds."""
    found, (a, b) = runs(variant, first, second)
    pairs = [(x, y) for x in a for y in b if x["seed"] == y["seed"]]
    said = "; ".join(
        f"seed {x['seed']}: " + ", ".join(
            f"{title(r['model'])} {min(row['validation_loss'] for row in r['history']):.3f} to {r['history'][-1]['validation_loss']:.3f}" for r in (x, y))
        for x, y in pairs)  # fmt: skip
    said = f"{TASKS[variant][0]}, validation loss, lowest to last: {said}."
    if len(pairs) < 3:
        return Verdict(UNDECIDED, marked(f"{said} A test needs three seeds.", found))
    value, low, high, p = over_seeds(*zip(*((_rise(x), _rise(y)) for x, y in pairs)))
    sign = int(np.sign(value)) if p < ALPHA else 0
    test = f"Difference of the rises {value:+.3f} ({low:+.3f} to {high:+.3f}, paired t-test, p = {p:.2g}, {len(pairs)} seeds)."
    return Verdict(by_sign(sign), marked(f"{said} {test}", found))


def starts_lower(variant: str, first: str, second: str) -> Verdict:
    """After one epoch the first model's validation accuracy is below the second's."""
    found, every = runs(variant, first, second)
    rights = []
    for records in every:
        rows = [next(row for row in r["history"] if row["epoch"] >= 1) for r in records]
        n = records[0]["data"]["n_validation"]
        rights.append((round(float(np.mean([row["validation_accuracy"] for row in rows])) * n), n))
    (x, n), (y, m) = rights
    p = same_share(x, n, y, m)
    said = (
        f"{TASKS[variant][0]}, validation accuracy after the first epoch: {title(first)} {x / n:.4f}, {title(second)} {y / m:.4f} "
        f"(Fisher's exact test, p = {p:.2g}, n = {n:,})."
    )
    return Verdict(UNDECIDED if p >= ALPHA else by_sign(1 if x / n < y / m else -1), marked(said, found))


# -- time --------------------------------------------------------------------------------------------------------------


def faster(variants: list[str], first: str, second: str) -> Verdict:
    """The first model takes less time a text on every task: the middle 80 % of its batches lie below those of the second."""
    words, said, used = [], [], []
    for variant, found, (a, b) in measured(variants, first, second):
        if a[0]["latency"]["environment"]["device"] != b[0]["latency"]["environment"]["device"]:
            continue
        x, y = (r[0]["latency"]["measured"][-1] for r in (a, b))
        words.append(by_bounds(x["p90_ms"] < y["p10_ms"], x["p10_ms"] > y["p90_ms"]))
        said.append(f"{TASKS[variant][0]} {x['per_sentence_ms']:.3f} against {y['per_sentence_ms']:.3f}")
        used.append(found)
    if not words:
        raise Missing("latency of both models on one device")
    sentence = f"Milliseconds a text in batches, {title(first)} against {title(second)}: {'; '.join(said)}.{not_all(len(words), variants)}"
    return Verdict(together(words, len(variants)), marked(sentence, *used))
