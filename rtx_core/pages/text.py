"""Sentences with generated numbers."""

from collections.abc import Iterable

import numpy as np

from rtx_core.corpora.sources import CORPORA
from rtx_core.pages import display
from rtx_core.pages.cells import milliseconds, title, with_interval
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.provenance import commit_of, data_provenance, provenance, when  # noqa: F401  (part of `rtx.text`)
from rtx_core.pages.published import stand_ins
from rtx_core.pages.runs import Profiles, Runs, Studies, matched, measured
from rtx_core.pages.table import printed_labels
from rtx_core.pages.threshold import shifted
from rtx_core.results.record import Record
from rtx_core.results.statistics import answers_all, common, compare, difference, equals, same_share, shares


def say(template: str, **values: object) -> Displayed:
    """A paragraph whose numbers are filled in: `say("accuracy {baseline[test][accuracy]:.4f}", **runs.first)`."""
    return display.text(template.format(**values))


@measured
def comparison(runs: Runs | Studies) -> Displayed:
    """What the benchmark table says, in sentences: accuracy, size, time, and the paired difference to the first model."""
    paragraphs = [_named(name, _compared(one)) for name, one in Studies.of(runs).items()]
    if any(len(one.of(model)) > 1 for one in Studies.of(runs).values() for model in one.models):
        last = "The interval of an accuracy is Student's, over seeds, or of a single one Wilson's; the test is of the seeds that both models have."
    else:
        last = (
            "The intervals are Wilson's: the uncertainty of a test set of this size for these trained models. How much another seed or "
            "another split would change is not in them, and one seed cannot show it."
        )
    return display.text(" ".join([*paragraphs, last]) if len(paragraphs) == 1 else "\n\n".join([*paragraphs, last]))


def _named(study: str, sentences: list[str]) -> str:
    """A paragraph that begins with the name of its study, if it has one."""
    return " ".join([f"**{escape(study)}.**", *(sentences or ["Not measured yet."])] if study else sentences)


def _compared(runs: Runs) -> list[str]:
    sentences, classes = [], CORPORA[runs.settings.corpus].classes
    for other in runs.models[1:]:
        first = runs.models[0]
        a, b = runs.of(first), runs.of(other)
        sentences.append(
            f"With {b[0]['parameters']['total'] / a[0]['parameters']['total']:.0%} of the parameters, {title(other)} reaches an accuracy of "
            f"{explained(b)}, {title(first)} {explained(a)}. {_paired(runs, first, other)}"
        )
        sentences += [said] if (said := shifted(a, b, classes)) else []
        batches, single = (milliseconds(b, measured) / milliseconds(a, measured) for measured in (-1, 0))
        sentences.append(
            f"In batches of {a[0]['latency']['measured'][-1]['batch']} {title(other)} needs {batches:.2f} of {title(first)}'s time a text, "
            f"for single texts {single:.2f}{' (medians over the seeds)' if len(a) > 1 or len(b) > 1 else ''}."
        )
    for missing in [model for model in runs.settings.models if model not in runs.models] if runs.models else []:
        sentences.append(f"{title(missing)} is not measured yet.")
    return sentences + [_never_answered(record, classes) for record in runs.first.values() if 0 in shares(record)[1]]


def _never_answered(record: Record, classes: tuple[str, ...]) -> str:
    """The classes that a model puts no test text in: training ended before it knew them."""
    true, answered = shares(record)
    missed = [f"{round(share * record['test']['n']):,} texts of class {name}" for name, share, some in zip(classes, true, answered) if not some]
    return f"{title(record['model'])} (seed {record['seed']}) recognizes none of the {' and '.join(missed)}: it never answers so."


def explained(records: list[Record]) -> str:
    """Accuracy with its interval, for a sentence."""
    return with_interval(records).replace("(", "(95 % interval ")


def _paired(runs: Runs, first: str, other: str) -> str:
    """The difference of two models as the tables have it; of a single seed with the counts behind McNemar's test."""
    pairs, names = common(runs.of(first), runs.of(other)), f"{title(first)} minus {title(other)}"
    if not pairs:
        return f"The difference, {names}, is not tested: no seed is recorded of both."
    if not all(answers_all(record) for pair in pairs for record in pair):
        return f"The difference, {names}, is not tested: a model was stopped before it knew every class."
    found = difference(runs.of(first), runs.of(other))
    if len(pairs) > 1:
        return f"The difference, {names}, is {found}; {found.verdict}."
    pair = compare(*pairs[0])
    return (
        f"With seed {pairs[0][0]['seed']} the difference, {names}, is {pair['points']:+.2f} points (95 % interval {100 * found.low:+.2f} to "
        f"{100 * found.high:+.2f}). Of the same {pair['n']:,} texts, {pair['only_a']:,} are right with {title(first)} only and "
        f"{pair['only_b']:,} with {title(other)} only; by McNemar's exact test (p {equals(pair['p'])}) {pair['verdict']}."
    )


@measured
def training(runs: Runs | Studies) -> Displayed:
    """How training went: the selected checkpoint and the gap to the training loss at the end."""
    every = Studies.of(runs)
    return display.text("\n\n".join(_named(name, [_trained(record) for record in one]) for name, one in every.items()))


def _trained(record: Record) -> str:
    history, selected = record["history"], record["selected"]
    row = next(row for row in history if row["step"] == selected["step"])
    return (
        f"{title(record['model'])} (seed {record['seed']}) has its lowest validation loss, {selected['validation_loss']:.4f}, after epoch "
        f"{row['epoch']:g} of {history[-1]['epoch']:g}, with validation accuracy {row['validation_accuracy']:.4f}; "
        f"at the end its training loss is {history[-1]['train_loss']:.4f} and its validation loss {history[-1]['validation_loss']:.4f}."
    )


@measured
def selection(runs: Runs | Studies) -> Displayed:
    """At which epoch each seed is selected, how that goes with its test accuracy, and whether accuracy still rose when the loss turned."""
    paragraphs = []
    for name, one in Studies.of(runs).items():
        if several := [records for model in one.models if len(records := one.of(model)) > 1]:
            paragraphs.append(_named(name, [*map(_by_epoch, several), *_still_rising([record for records in several for record in records])]))
    return display.text("\n\n".join(paragraphs) or "One seed of each model is recorded here; at which epoch another would be selected is not known.")


def _from_selection(record: Record) -> list[dict]:
    """The history from the selected checkpoint on."""
    return [row for row in record["history"] if row["step"] >= record["selected"]["step"]]


def _by_epoch(records: list[Record]) -> str:
    """The seeds of a model by the epoch they are selected at, with their test accuracies."""
    found: dict[float, dict[int, float]] = {}
    for record in records:
        found.setdefault(_from_selection(record)[0]["epoch"], {})[record["seed"]] = record["test"]["accuracy"]
    said = [
        f"at epoch {epoch:g} with seed{'s' if len(seeds) > 1 else ''} {_and(map(str, seeds))} "
        f"(test accuracy {_and(f'{accuracy:.4f}' for accuracy in seeds.values())})" for epoch, seeds in sorted(found.items())
    ]  # fmt: skip
    apart, within = (100 * value for value in (
        np.ptp([np.mean([*seeds.values()]) for seeds in found.values()]), max(np.ptp([*seeds.values()]) for seeds in found.values())))  # fmt: skip
    goes = (
        f" The mean accuracies of these epochs are {apart:.2f} points apart, seeds of one epoch at most {within:.2f}; so few seeds do not show whether "
        "the epoch is why."
    )
    return f"{title(records[0]['model'])} is selected {_and(said)}.{goes if len(found) > 1 and apart > within else ''}"


def _still_rising(records: list[Record]) -> list[str]:
    """Of the runs that went on after the selected checkpoint: in how many the next has the higher validation accuracy."""
    pairs = [(rows[0], rows[1]) for rows in map(_from_selection, records) if len(rows) > 1]
    gains = [after["validation_accuracy"] - at["validation_accuracy"] for at, after in pairs]
    if not gains:
        return []
    return [
        "At the evaluation after the selected one the validation loss is higher; the validation accuracy is higher too in "
        f"{sum(gain > 0 for gain in gains)} of {len(gains)} runs, and changes by {100 * np.mean(gains):+.2f} points in their mean."
    ]


def _and(items: Iterable[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


@measured
def against_first(studies: Studies) -> Displayed:
    """How far each model's accuracy under the other values of the setting is from that under the first, at the largest budget that
    both have; other test texts, so unpaired."""
    (name, first), *others = studies.items()
    sentences = []
    for other_name, other in others:
        for model in first.settings.models:
            if not (same := matched([model], first, other)):
                continue
            (a, *_), (b, *_) = (one.of(model) for one in same)
            at = f" (both with {same[0].budget})" if same[0].budget else ""
            right = [(round(record["test"]["accuracy"] * record["test"]["n"]), record["test"]["n"]) for record in (a, b)]
            p = same_share(*right[0], *right[1])
            sentences.append(
                f"{title(model)}, seed {b['seed']}{at}: {b['test']['accuracy']:.4f} under `{other_name}`, "
                f"{100 * (b['test']['accuracy'] - a['test']['accuracy']):+.2f} points from the {a['test']['accuracy']:.4f} under `{name}` "
                f"(Fisher's exact test, p {equals(p)})."
            )
    return display.text(" ".join(sentences) or f"Not measured yet: nothing with the same budget can be set beside `{name}`.")


@measured
def seeds(runs: Runs) -> Displayed:
    """How many seeds of each model are recorded, and how far apart their accuracies lie."""
    found = {title(model): [record["test"]["accuracy"] for record in runs.of(model)] for model in runs.models}
    said = [
        f"The {len(all_)} recorded seeds of {name} have accuracies from {min(all_):.4f} to {max(all_):.4f}, {100 * (max(all_) - min(all_)):.2f} points apart."
        for name, all_ in found.items() if len(all_) > 1
    ]  # fmt: skip
    if single := [name for name, all_ in found.items() if len(all_) == 1]:
        said.append(f"Of {' and '.join(single)} one seed is recorded, which cannot show what another would change.")
    return display.text(" ".join(said))


def labels(profiles: Profiles) -> Displayed:
    """Whether the published split gives the published shares, and what the others give."""
    sentences = []
    for name, profile in profiles.items():
        quoted, parts = printed_labels(profiles, name), profile["parts"]
        shares = {part: [round(100 * n / facts["n"], 2) for n in facts["labels"]] for part, facts in parts.items()}
        equal = quoted and all(shares[part] == quoted[part]["percent"] and parts[part]["n"] == quoted[part]["n"] for part in parts)
        said = " / ".join(f"{share[0]:.2f}" for share in shares.values())
        printed = quoted.get("source", "").removeprefix("report, ")
        verdict = f", exactly the shares of the report's {printed}." if equal else "."
        sentences.append(f"Under `{name}` label 0 has {said} % of the three parts{verdict}")
    return display.text(" ".join(sentences))


def origin(profiles: Profiles) -> Displayed:
    """Which corpora the texts are from, and which of them stand in for the ones of the report."""
    names = list(dict.fromkeys(profile["data"]["name"] for profile in profiles.values()))
    if found := stand_ins(names):
        said = _and(f"{escape(ours)} stands in for {escape(hub)}" for ours, hub in found)
        return display.text(f"{said[0].upper()}{said[1:]}, so the published values are of other texts than ours.")
    return display.text(f"The texts are the corpora's own rows: {escape('; '.join(names))}.")


def overlap(profiles: Profiles) -> Displayed:
    """How much of each test part is inside the training part."""
    sentences = []
    for split, profile in profiles.items():
        test = profile["parts"]["test"]
        sentences.append(
            f"Under `{split}`, {test['within_training']:,} of the {test['n']:,} test texts ({test['within_training'] / test['n']:.1%}) "
            "are, word for word, a training text or a part of one."
        )
    return display.text(" ".join(sentences))


def contents(profiles: Profiles) -> Displayed:
    """What else sets the test parts of subsets apart: how much of each is inside its own training part, and its labels."""
    sentences = []
    for name, profile in profiles.items():
        test = profile["parts"]["test"]
        shares = ", ".join(f"{n / test['n']:.1%} {kind}" for kind, n in zip(profile["classes"], test["labels"]))
        sentences.append(
            f"Of the {test['n']:,} test texts under `{name}`, {test['within_training']:,} ({test['within_training'] / test['n']:.1%}) are, word for word, "
            f"a text of its training part or a piece of one; {shares}."
        )
    return display.text(" ".join(sentences))
