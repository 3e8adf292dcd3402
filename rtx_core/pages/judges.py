"""Claims about trained models.  Each judge takes the claim's own terms and returns a verdict with its statistic."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rtx_core.corpora.sources import CORPORA
from rtx_core.errors import RtxError
from rtx_core.pages.published import stand_ins
from rtx_core.pages.runs import Runs, architectures, matched, recorded
from rtx_core.pages.table import title
from rtx_core.pages.threshold import shifted
from rtx_core.pages.verdicts import (
    CONTRADICTED, UNDECIDED, Missing, Part, Verdict, answering, at_one_budget, by_bounds, by_sign, in_common, marked, not_all, pairs, reserved, runs, together, transferred,
)  # fmt: skip
from rtx_core.results import measurement
from rtx_core.results.record import Record
from rtx_core.results.statistics import (
    ALPHA, ENOUGH_SEEDS, MEASURES, adjusted, as_one_more_run, common, difference, equals, estimate, mean_interval, over_seeds, same_share, tested,
)  # fmt: skip
from rtx_core.tasks import TASKS, task

NAMES = {"f1": "F1"}
TIMES = ("per_sentence_ms", "p10_ms", "p90_ms")  # of a batch, the median over seeds
MARGIN = 0.01  # two accuracies are comparable within a point


def measured(variants: list[str], *models: str) -> Iterator[tuple[str, Runs, list[list[Record]]]]:
    """Each task for which all these models are recorded, with its records."""
    for variant in variants:
        try:
            yield variant, *pairs(variant, *models)
        except Missing:
            continue


def _sign(value: float, p: float) -> int:
    return int(np.sign(value)) if p < ALPHA else 0


def _interval(low: float, high: float, seeds: int, form: str) -> str:
    how = f"95 % interval over {seeds} seeds" if seeds > 1 else "95 % bootstrap interval over texts, one seed:"
    return f"{how} {low:{form}} to {high:{form}}"


# -- two models on one task --------------------------------------------------------------------------------------------


def more(variant: str, first: str, second: str, measure: str = "accuracy") -> Verdict:
    """The first model exceeds the second in a measure."""
    found, (a, b) = pairs(variant, first, second)
    d = difference(a, b, measure)
    said = f"{TASKS[variant][0]}, {NAMES.get(measure, measure)}, {title(first)} minus {title(second)}: {d}"
    moved = shifted(*map(list, zip(*common(a, b))), CORPORA[found.settings.corpus].classes)
    return together([Part(by_sign(d.sign), said, d.seeds, (found,))], after=f". {moved}".rstrip())


def comparable(variants: list[str], first: str, second: str) -> Verdict:
    """The accuracies differ by a point at most, on every task that is recorded."""
    parts = []
    for variant, found, (a, b) in measured(variants, first, second):
        d = difference(a, b)
        word = by_bounds(-MARGIN < d.low and d.high < MARGIN, d.high < -MARGIN or d.low > MARGIN)
        moved = shifted(*map(list, zip(*common(a, b))), CORPORA[found.settings.corpus].classes) if word == CONTRADICTED else ""
        said = f"{TASKS[variant][0]}: {d}" + (f" ({moved.removesuffix('.')})" if moved else "")
        parts.append(Part(word, said, d.seeds, (found,)))
    if not parts:
        raise Missing("any of the tasks")
    return together(parts, f"{title(first)} minus {title(second)}, ", f".{not_all(len(parts), variants)}", len(variants))


def at_least(variant: str, first: str, second: str, share: float) -> Verdict:
    """The first model has at least this share of the second's accuracy."""
    found, models = pairs(variant, first, second)
    score = MEASURES["accuracy"]
    value, low, high, seeds = estimate(lambda y, a, b, axis: score(y, a, axis) / score(y, b, axis), in_common(TASKS[variant][0], *models))
    said = f"{TASKS[variant][0]}: the ratio is {value:.4f} ({_interval(low, high, seeds, '.4f')}; n = {models[0][0]['test']['n']:,})"
    return together([Part(by_bounds(low >= share, high < share), said, seeds, (found,))])


def overall(variants: list[str], first: str, second: str) -> Verdict:
    """The first model is ahead: significantly on some task, and significantly behind on none; all must be measured."""
    found = [(one, difference(a, b)) for _, one, (a, b) in measured(variants, first, second)]
    if not found:
        raise Missing("any of the tasks")
    signs = [d.sign for d in adjusted([d for _, d in found])]
    ahead, behind = signs.count(1), signs.count(-1)
    word = by_sign(int(ahead > 0) - int(behind > 0)) if len(signs) == len(variants) else UNDECIDED
    said = (
        f"Of these {len(variants)} tasks {len(signs)} are measured; {title(first)} is significantly more accurate on {ahead} of them, {title(second)} on "
        f"{behind}, and on {len(signs) - ahead - behind} the test cannot tell; p adjusted over the tasks."
    )
    return reserved(word, marked(said, *(one for one, _ in found)), [Part(word, "", d.seeds, (one,)) for one, d in found])


def balanced(variants: list[str], models: list[str], within: float, weighted: bool = False) -> Verdict:
    """Precision and recall of the positive class, or their averages weighted by the size of the classes, differ by less than this."""
    kind, parts = "weighted " if weighted else "", []
    for variant in variants:
        found, every = runs(variant, *models)
        for model, records in zip(models, every):
            gap = lambda y, g, axis: MEASURES[f"{kind}precision"](y, g, axis) - MEASURES[f"{kind}recall"](y, g, axis)  # noqa: E731
            value, low, high, seeds = estimate(gap, in_common(TASKS[variant][0], records))
            word = by_bounds(-within < low and high < within, high < -within or low > within)
            parts.append(Part(word, f"{title(model)} on {TASKS[variant][0]} {value:+.4f} ({_interval(low, high, seeds, '+.4f')})", seeds, (found,)))
    return together(parts, f"Precision minus recall, {'weighted averages' if weighted else 'of the positive class'}: ")


# -- values in print ---------------------------------------------------------------------------------------------------


def published(
    variant: str, n: int, length_fraction: float | None = None, same_texts: bool = False, first_epoch: bool = False, **accuracies: float
) -> Verdict:
    """The published accuracies, each of one run, tested on n texts, ours or others; of a subset by length, the share that it was.

    `first_epoch`: those on the validation part after one epoch.
    """
    share, parts, (found, every) = task(variant).length_fraction, [], runs(variant, *(name.replace("_", "-") for name in accuracies))
    if not first_epoch:
        answering(variant, *every)
    for records, value in zip(every, accuracies.values()):
        accuracy, word = _after_one(records) if first_epoch else [r["test"]["accuracy"] for r in records], UNDECIDED
        said = f"{title(records[0]['model'])} {np.mean(accuracy):.4f} ({len(records)} seed{'s' if len(records) > 1 else ''}) against {value:.4f} of {n:,}"
        if length_fraction not in (None, share):
            said += f", but the published texts were the {found.settings.length}est {length_fraction:.0%}, ours the {found.settings.length}est {share:.0%}"
        elif found.budget:
            said += ", but the published run had the full budget"
        elif len(accuracy) < ENOUGH_SEEDS:
            said += ", but how far seeds spread here is not measured"
        else:
            p = as_one_more_run(value, n, accuracy, records[0]["data"]["n_validation" if first_epoch else "n_test"], same_texts)
            word = by_bounds(p >= ALPHA and abs(np.mean(accuracy) - value) <= MARGIN, p < ALPHA)
            said += f" (as one more run p {equals(p)}, standard deviation over seeds {np.std(accuracy, ddof=1):.4f})"
        parts.append(Part(word, said, len(records), (found,)))
    for ours, hub in stand_ins(record["data"]["name"] for records in every for record in records):
        parts[-1] = replace(parts[-1], said=f"{parts[-1].said}; ours of {ours}, which stands in for {hub}")
    after_one = ", on the validation part after one epoch" if first_epoch else ""
    return together(parts, f"{TASKS[variant][0]}, ours against the published accuracy{after_one}: ")


def _after_one(records: list[Record]) -> list[float]:
    """Validation accuracy after the first epoch, of each record."""
    return [next(row["validation_accuracy"] for row in record["history"] if row["epoch"] >= 1) for record in records]


# -- one task against another ------------------------------------------------------------------------------------------


def deeper(variant: str, model: str, passes: list[int]) -> Verdict:
    """Each number of passes through the same layers gives a higher accuracy than the one before."""
    asked, parts = task(variant).but(models=[model]), []
    usual = architectures()[model]["config"]["num_passes"]
    found = {n: recorded(asked.but(num_passes=n * (n != usual))) for n in passes}
    if lacking := [n for n, one in found.items() if not one.of(model)]:
        raise Missing(f"{TASKS[variant][0]}, {title(model)} with {' and '.join(map(str, lacking))} passes")
    for few, many in zip(passes, passes[1:]):
        same = matched([model], found[few], found[many])
        if same is None:
            raise Missing(f"{TASKS[variant][0]}, {title(model)} with {few} and {many} passes at one budget")
        a, b = (one.of(model) for one in same)
        in_common(f"{few} and {many} passes", a, b)
        d = difference(b, a)
        loss = [float(np.mean([pair[i]["test"]["loss"] for pair in common(a, b)])) for i in (1, 0)]
        said = f"{many} minus {few} passes: {d}, with a test loss of {loss[0]:.4f} against {loss[1]:.4f}"
        parts.append(Part(by_sign(d.sign), said, d.seeds, tuple(same)))
    return together(parts, f"{TASKS[variant][0]}, {title(model)}, equally many parameters: ")


def subset_beats_full(subset: str, full: str, models: list[str]) -> Verdict:
    """Trained on a part of the data, a model is more accurate on the same test part than trained on all of it."""
    parts, ((part, some), (whole, all_)) = [], at_one_budget(models, subset, full)
    for model, a, b in zip(models, some, all_):
        in_common(f"{TASKS[subset][0]} and {TASKS[full][0]}", a, b)
        d = difference(a, b, same_training=False)
        parts.append(Part(by_sign(d.sign), f"{title(model)} {d}", d.seeds, (part, whole)))
    return together(parts, f"{TASKS[subset][0]} minus all of it: ")


def gap_shrinks(small: str, large: str, first: str, second: str) -> Verdict:
    """The models are closer on the larger training part; the test part is the same."""
    (some, models), (all_, others) = at_one_budget([first, second], small, large)

    def gap(y, a, b, axis):
        return MEASURES["accuracy"](y, a, axis) - MEASURES["accuracy"](y, b, axis)

    # Who is ahead on each is taken from all texts and stays so when they are resampled: the size of a resampled difference is biased upwards.
    on_small, on_large = (np.sign(np.mean([x["test"]["accuracy"] - y["test"]["accuracy"] for x, y in common(*pair)])) for pair in (models, others))

    def change(y, a, b, c, d, axis):
        return on_small * gap(y, a, b, axis) - on_large * gap(y, c, d, axis)

    try:
        value, low, high, seeds = estimate(change, in_common(f"{TASKS[small][0]} and {TASKS[large][0]}", *models, *others), same_training=False)
    except RtxError as other_texts:
        raise Missing("two training sizes with one test part") from other_texts
    said = (
        f"The size of the difference falls by {100 * value:+.2f} points from {TASKS[small][0]} to {TASKS[large][0]} "
        f"({_interval(100 * low, 100 * high, seeds, '+.2f')}; n = {models[0][0]['test']['n']:,})"
    )
    return together([Part(by_bounds(low > 0, high < 0), said, seeds, (some, all_))])


def harder(variant: str, than: str, model: str) -> Verdict:
    """The task has the lower accuracy; its yardstick is told beside."""
    (one, ((a, *_),)), (other, ((b, *_),)) = at_one_budget([model], variant, than)
    (x, n), (y, m) = ((round(r["test"]["accuracy"] * r["test"]["n"]), r["test"]["n"]) for r in (a, b))
    p = same_share(x, n, y, m)
    bags = [m["test"]["accuracy"] for v in (variant, than) for m in measurement.every("hub", "yardstick", v)]
    beside = f" A bag of words reaches {bags[0]:.4f} and {bags[1]:.4f}." if len(bags) == 2 else ""
    said = f"{title(model)}: {x / n:.4f} on {TASKS[variant][0]}, {y / m:.4f} on {TASKS[than][0]} (Fisher's exact test, p {equals(p)}; one seed)"
    return together([Part(by_sign(_sign(y / m - x / n, p)), said, 1, (one, other))], after=f".{beside}")


def transfers_better(trained: list[str], tested: str, first: str, second: str) -> Verdict:
    """Trained on one task, the first of these that is measured, and tested on another, the first model is the more accurate."""
    of, (a, b) = transferred(trained, tested, first, second)
    in_common(way := f"{TASKS[of][0]} to {TASKS[tested][0]}", a, b)
    d, reduced = difference(a, b), of != trained[0] or any(m["protocol"] == "reduced" for m in (*a, *b))
    said = f"{way}, {title(first)} minus {title(second)}: {d}"
    moved = shifted(*map(list, zip(*common(a, b))), CORPORA[task(tested).corpus].classes)
    return together([Part(by_sign(d.sign), said, d.seeds, reduced=reduced)], after=f". {moved}".rstrip())


# -- training ----------------------------------------------------------------------------------------------------------


def _rise(record: Record) -> float:
    losses = [row["validation_loss"] for row in record["history"]]
    return losses[-1] - min(losses)


def overfits_more(variant: str, first: str, second: str) -> Verdict:
    """After its best epoch the first model's validation loss rises by more; a test needs three seeds."""
    found, models = runs(variant, first, second)
    seeds = in_common(TASKS[variant][0], *models)
    said = "; ".join(
        f"seed {x['seed']}: " + ", ".join(
            f"{title(r['model'])} {min(row['validation_loss'] for row in r['history']):.3f} to {r['history'][-1]['validation_loss']:.3f}" for r in (x, y))
        for x, y in seeds)  # fmt: skip
    said = f"{TASKS[variant][0]}, validation loss, lowest to last: {said}"
    if len(seeds) < ENOUGH_SEEDS:
        return together([Part(UNDECIDED, said, len(seeds), (found,))], after=". A test needs three seeds.")
    value, low, high, p = over_seeds(*zip(*((_rise(x), _rise(y)) for x, y in seeds)))
    test = f". Difference of the rises {value:+.3f} ({low:+.3f} to {high:+.3f}, paired t-test, p {equals(p)}, {len(seeds)} seeds)."
    return together([Part(by_sign(_sign(value, p)), said, len(seeds), (found,))], after=test)


def best_later(variant: str, first: str, second: str) -> Verdict:
    """The first model's best epoch is the later one in every seed, or the earlier one."""
    found, models = runs(variant, first, second)
    seeds = in_common(TASKS[variant][0], *models)
    epochs = [[next(row["epoch"] for row in r["history"] if row["step"] == r["selected"]["step"]) for r in pair] for pair in seeds]
    told = "; ".join(f"seed {pair[0]['seed']}: {x:g} and {y:g}" for pair, (x, y) in zip(seeds, epochs))
    said = f"{TASKS[variant][0]}, epoch of the lowest validation loss, {title(first)} and {title(second)}: {told}"
    word = by_bounds(all(x > y for x, y in epochs), all(x < y for x, y in epochs)) if len(seeds) >= ENOUGH_SEEDS else UNDECIDED
    return together([Part(word, said, len(seeds), (found,))])


def stays(variant: str, model: str) -> Verdict:
    """After its best epoch the model's validation loss does not rise; a test needs three seeds."""
    found, (records,) = runs(variant, model)
    rises = [_rise(record) for record in records]
    said = f"{TASKS[variant][0]}, {title(model)}, rise of the validation loss from its lowest to the last: {', '.join(f'{rise:+.3f}' for rise in rises)}"
    if len(rises) < ENOUGH_SEEDS:
        return together([Part(UNDECIDED, said, len(rises), (found,))], after=". A test needs three seeds.")
    mean, low, high = mean_interval(rises)
    return together([Part(by_bounds(high <= 0, low > 0), f"{said}; mean {mean:+.3f} ({_interval(low, high, len(rises), '+.3f')})", len(rises), (found,))])


def starts_lower(variant: str, first: str, second: str) -> Verdict:
    """After one epoch the first model's validation accuracy is below the second's."""
    found, models = runs(variant, first, second)
    seeds = tested(in_common(TASKS[variant][0], *models))
    x, y = (_after_one([pair[i] for pair in seeds]) for i in (0, 1))
    n = seeds[0][0]["data"]["n_validation"]
    if len(seeds) > 1:
        p, test = over_seeds(x, y)[3], "paired t-test over seeds"
    else:
        p, test = same_share(round(x[0] * n), n, round(y[0] * n), n), "Fisher's exact test"
    said = (
        f"{TASKS[variant][0]}, validation accuracy after the first epoch: {title(first)} {np.mean(x):.4f}, {title(second)} {np.mean(y):.4f} "
        f"({test}, p {equals(p)}; n = {n:,}, {f'{len(seeds)} seeds' if len(seeds) > 1 else 'one seed'})"
    )
    return together([Part(by_sign(_sign(np.mean(y) - np.mean(x), p)), said, len(seeds), (found,))])


# -- time --------------------------------------------------------------------------------------------------------------


def faster(variants: list[str], first: str, second: str, on: str = "") -> Verdict:
    """The first model takes less time a text on every task: the middle 80 % of its batches lie below those of the second.

    `on`: the kind of device that a claim about published times speaks of; other devices cannot decide it.
    """
    parts, form = [], "{per_sentence_ms:.3f} ({p10_ms:.1f} to {p90_ms:.1f} a batch)".format_map
    for variant in variants:
        try:
            found, models = runs(variant, first, second)
            seeds = in_common(TASKS[variant][0], *models)
        except Missing:
            continue
        places = [record["latency"]["environment"] for pair in seeds for record in pair]
        if len({(one["device"], one["threads"]) for one in places}) > 1:
            continue
        x, y = ({k: float(np.median([pair[i]["latency"]["measured"][-1][k] for pair in seeds])) for k in TIMES} for i in (0, 1))
        word = by_bounds(x["p90_ms"] < y["p10_ms"], x["p10_ms"] > y["p90_ms"])
        said = f"{TASKS[variant][0]} {form(x)} against {form(y)}" + ", which overlap" * (word == UNDECIDED)
        if on and places[0]["device_type"] != on:
            word, said = UNDECIDED, f"{said}, not on {on}"
        parts.append(Part(word, said, len(seeds), (found,)))
    if not parts:
        raise Missing("latency of both models on one device with as many threads")
    before = f"Milliseconds a text in batches (with the middle 80 % of the batches), {title(first)} against {title(second)}: "
    return together(parts, before, f".{not_all(len(parts), variants)}", len(variants))
