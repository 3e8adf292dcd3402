"""Sentences with generated numbers, and the provenance at the foot of every experiment page."""

import json
from dataclasses import fields

from rtx_core.corpora.sources import CORPORA
from rtx_core.pages import display
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.runs import Profiles, Runs, Studies, matched, measured, recorded
from rtx_core.pages.table import device_of, printed_labels, title, with_interval
from rtx_core.parameters import EXPERIMENTS, Settings
from rtx_core.results.record import Record
from rtx_core.results.statistics import common, compare, difference, equals, same_share, shares
from rtx_core.training.protocol import Protocol


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
    sentences = []
    for other in runs.models[1:]:
        first = runs.models[0]
        a, b = runs.of(first)[0], runs.of(other)[0]
        sentences.append(
            f"With {b['parameters']['total'] / a['parameters']['total']:.0%} of the parameters, {title(other)} reaches an accuracy of "
            f"{explained(runs.of(other))}, {title(first)} {explained(runs.of(first))}. {_paired(runs, first, other)}"
        )
        times = [record["latency"]["measured"] for record in (a, b)]
        sentences.append(
            f"At batch {times[0][-1]['batch']} a sentence takes {title(other)} {times[1][-1]['median_ms'] / times[0][-1]['median_ms']:.2f} times "
            f"as long as {title(first)}; alone, {times[1][0]['median_ms'] / times[0][0]['median_ms']:.2f} times."
        )
    for missing in [model for model in runs.settings.models if model not in runs.models] if runs.models else []:
        sentences.append(f"{title(missing)} is not measured yet.")
    classes = CORPORA[runs.settings.corpus].classes
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
    found = difference(runs.of(first), runs.of(other))
    if len(pairs) > 1:
        return f"The difference, {names}, is {found}; {found.verdict}."
    pair = compare(*pairs[0])
    return (
        f"With seed {pairs[0][0]['seed']} the difference, {names}, is {pair['points']:+.2f} points (95 % interval {100 * found.low:+.2f} to "
        f"{100 * found.high:+.2f}). Of the same {pair['n']:,} sentences, {pair['only_a']:,} are right with {title(first)} only and "
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


def provenance(runs: Runs | Studies, *, notebook: str, also: Settings | None = None) -> Displayed:
    """Which records a page shows, what made them, and the line that makes them again; `also`: of what it shows besides, where it is recorded."""
    every = Studies.of(runs)
    if also and (more := recorded(also)).settings.variant not in (shown := {one.settings.variant: one for one in every.values()}):
        runs = every = Studies(shown | {more.settings.variant: more}, every.setting)
    lines = ["````{admonition} Provenance", ":class: note", ""]
    lines += [f"**Note.** {escape(note)}\n" for note in runs.notes]
    if runs.records:
        lines += ["| Record | Protocol | Commit | Machine | Training | Peak memory | Finished |", "|---|---|---|---|--:|--:|---|"]
    for record in runs.records:
        cells = [
            "/".join(record.path.parts[-3:]), record["protocol"], commit_of(record["code"]), device_of(record),
            f"{record['seconds'] / 60:.1f} min", f"{record['peak_memory_mib']:,.0f} MiB", when(record["finished"]),
        ]  # fmt: skip
        lines.append("| " + " | ".join(escape(cell) for cell in cells) + " |")
    missing = [f"{one.settings.variant}, {model}" for one in every.values() for model in one.settings.models if model not in one.models]
    lines += ["", *([f"Not measured yet: {escape('; '.join(missing))}.", ""] if missing else [])]
    lines += list(dict.fromkeys(_data_line(one) for one in every.values() if one.records))
    lines += ["", "To make these records again, move them away and run" if runs.records else "To make them, run", "", "```bash"]
    lines += [papermill_line(one, notebook, every.setting) for one in every.values()]
    return display.text("\n".join([*lines, "```", "````"]))


def _data_line(runs: Runs) -> str:
    data, environment = runs.records[0]["data"], runs.records[0]["environment"]
    if runs.data_sha256 is None:
        checked = "not compared with today's data, which is not at hand or not readable"
    else:
        same = all(record["data"]["sha256"] == runs.data_sha256 for record in runs)
        checked = "the same as today's data" if same else "not today's data"
    return (
        f"Data: {escape(data['name'])} from the {_SOURCES[data['source']]}, split {escape(data['split'])}, SHA-256 of the tokens "
        f"`{data['sha256'][:16]}…` ({checked}). Python {environment['python']}, torch {environment['packages']['torch']}. "
        "Training is wall time, whatever else the machine did included.\n"
    )


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


def data_provenance(profiles: Profiles, *, notebook: str = "data") -> Displayed:
    """Where the text of a data page comes from: name, source and hash of every split or subset."""
    lines = [
        "````{admonition} Provenance", ":class: note", "",
        f"| {profiles.heading} | Data | Source | SHA-256 of the tokens | Commit | Counted |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for split, profile in profiles.items():
        data = profile["data"]
        cells = (split, data["name"], data["source"], data["sha256"][:16] + "…", commit_of(profile["code"]), when(profile["finished"]))
        lines.append("| " + " | ".join(map(escape, cells)) + " |")
    lines += [
        "", "The counts are recorded in `results/data/`. To count again, move a file of it away and run the following; the split `published` "
        "needs the mirror.", "", f"```bash\npapermill notebooks/{notebook}.ipynb _build/{notebook}.ipynb\n```", "````",
    ]  # fmt: skip
    return display.text("\n".join(lines))


def when(finished: str) -> str:
    return finished.replace("T", " ").replace("+00:00", " UTC")


def commit_of(code: dict) -> str:
    return (code["commit"] or "unknown")[:9] + ("" if code["clean"] else " + changes")


_SOURCES = {"hub": "hub", "mirror": "local mirror", "embedded": "embedded corpus"}


def papermill_line(runs: Runs, notebook: str, varied: str = "") -> str:
    """The command that reruns exactly these settings; every parameter that is not the notebook's default is given."""
    settings = runs.settings
    default = EXPERIMENTS[settings.experiment]
    line = f"papermill notebooks/{notebook}.ipynb _build/{notebook}.ipynb"
    lists = {"models": settings.models, "seeds": settings.seeds} | ({varied: [getattr(settings, varied)]} if varied else {})
    line += f" -y '{json.dumps(lists)}'"
    names = [f.name for f in fields(settings) if f.name not in ("experiment", "corpus", "device", "protocol", *lists)]
    values = {name: (getattr(settings, name), getattr(default, name)) for name in names}
    values |= {f.name: (getattr(settings.protocol, f.name), getattr(default.protocol, f.name)) for f in fields(Protocol)}
    return line + "".join(f" -p {name} {value}" for name, (value, usual) in values.items() if value != usual)
