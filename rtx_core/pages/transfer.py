"""Trained on one corpus, tested on another: the table, and the difference of the models over all seeds."""

import numpy as np
import pandas as pd

from rtx_core.pages import display
from rtx_core.pages.display import Displayed
from rtx_core.pages.measured import called, interval, listed, missing, notes, where
from rtx_core.pages.runs import recorded
from rtx_core.pages.table import title
from rtx_core.parameters import CLASSIFIERS
from rtx_core.results import measurement
from rtx_core.results.measurement import Measurement
from rtx_core.results.statistics import ENOUGH_SEEDS, auc, common, compare, difference, equals, over_seeds, shares
from rtx_core.tasks import task

FIRST = "baseline"  # what the others are subtracted from


def accuracies(source: str, *, label: str) -> Displayed:
    """Every transferred model, beside the same architecture trained where it is tested."""
    found, rows = measurement.every(where(source), "transfer"), []
    if not found:
        return missing("transfer sst2 yelp")
    for m in found:
        there = recorded(task(m["tested_on"], where(source)))
        home = [r for r in there.of(m["model"]) if r["seed"] == m["seed"]]
        area = auc(m)
        rows.append({
            "Trained on": called(m["trained_on"]), "Tested on": called(m["tested_on"]), "Model": title(m["model"]), "Seed": str(m["seed"]),
            "Accuracy": f"{m['test']['accuracy']:.4f} ({interval(m)})", "AUC": None if area is None else f"{area:.4f}",
            "Positive": None if area is None else _percent(shares(m)[1][1]),
            "Trained there": f"{home[0]['test']['accuracy']:.4f} ({there.budget_named})" if home else None,
        })  # fmt: skip
    note = (
        "Accuracy: with Wilson's 95 % interval. Trained there: accuracy on the same test texts after training on the corpus of the test, with what "
        f"differs from the full protocol; a dash: not measured yet. {notes(found)}"
    )
    return display.table(pd.DataFrame(rows), label=label, caption="Transfer between corpora.", note=f"{_reading(found)}{note}")


def _reading(found: list[Measurement]) -> str:
    """How to read AUC and the share called positive; nothing where there are more than two classes."""
    positive = {called(m["tested_on"]): _percent(shares(m)[0][1]) for m in found if len(m["test"]["confusion"]) == 2}
    if not positive:
        return ""
    return (
        "AUC, the area under the ROC curve, is the share of pairs of a positive and a negative text in which the positive one is scored higher; it "
        "knows no threshold. Positive: the share of the test texts called so; truly positive are "
        f"{listed([f'{share} of {name}' for name, share in positive.items()])}, and where a model is far from that, accuracy is lost to its threshold. "
    )


def differences(source: str) -> Displayed:
    """The paired difference of the two models, a paragraph for each direction, over all seeds that both have."""
    found: dict[str, dict[str, list[Measurement]]] = {}
    for m in measurement.every(where(source), "transfer"):
        found.setdefault(m["of"], {}).setdefault(m["model"], []).append(m)
    said = [
        _compared(model, seeds)
        for models in found.values() for model in CLASSIFIERS
        if model != FIRST and (seeds := common(models.get(FIRST, []), models.get(model, [])))
    ]  # fmt: skip
    return display.text("\n\n".join(said) or "A difference between the models is not measured yet.")


def _compared(model: str, seeds: list[tuple[Measurement, Measurement]]) -> str:
    """Of a single seed McNemar's counts; of several the values seed by seed, and the statement over them."""
    (a, b), *more = seeds
    names = f"{title(FIRST)} minus {title(model)}"
    head = f"**Trained on {called(a['trained_on'])}, tested on {called(a['tested_on'])}.**"
    if not more:
        pair = compare(a, b)
        return (
            f"{head} With one seed, {a['seed']}, {names} is {pair['points']:+.2f} points; of {pair['n']:,} texts {pair['only_a']:,} are right with the "
            f"first only and {pair['only_b']:,} with the second only (McNemar's exact test, p {equals(pair['p'])}). Of these two trained models, "
            f"{pair['verdict']}; what another seed would change, one seed cannot show. {_beyond_accuracy(seeds)}"
        )
    d = difference(*map(list, zip(*seeds)))
    points = listed([f"{100 * one:+.2f}" for one in d.by_seed])
    disagree = " The seeds disagree on which model is ahead." if len({np.sign(one) for one in d.by_seed}) > 1 else ""
    return (
        f"{head} {names} is {points} points with seeds {listed([str(one['seed']) for one, _ in seeds])}.{disagree} Over these seeds the difference is "
        f"{d}; {d.verdict}. {_beyond_accuracy(seeds)}"
    )


def _beyond_accuracy(seeds: list[tuple[Measurement, Measurement]]) -> str:
    """AUC of both models, with a test where there are enough seeds, and the share of the texts that they call positive."""
    if auc(seeds[0][0]) is None:
        return ""
    first, second = ([auc(pair[i]) for pair in seeds] for i in (0, 1))
    both = [one for pair in seeds for one in pair]
    positive, true = [shares(one)[1][1] for one in both], _percent(shares(both[0])[0][1])
    if len(seeds) == 1:
        return f"AUC is {first[0]:.4f} and {second[0]:.4f}; {_percent(positive[0])} and {_percent(positive[1])} of the texts are called positive, {true} are."
    said = f"AUC is {np.mean(first):.4f} and {np.mean(second):.4f} in the mean"
    if len(seeds) >= ENOUGH_SEEDS:
        value, low, high, p = over_seeds(first, second)
        said += f", a difference of {value:+.4f} (95 % interval {low:+.4f} to {high:+.4f}; paired t-test over seeds, p {equals(p)})"
    right = [one["test"]["accuracy"] for one in both]
    return (
        f"{said}. Over these runs accuracy goes from {min(right):.4f} to {max(right):.4f} and AUC from {min(first + second):.4f} to "
        f"{max(first + second):.4f}, while {_percent(min(positive))} to {_percent(max(positive))} of the texts are called positive and {true} are."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
