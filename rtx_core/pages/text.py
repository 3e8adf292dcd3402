"""Sentences with generated numbers, and the provenance at the foot of every experiment page."""

import json
from dataclasses import fields

from rtx_core.pages import display
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.published import published
from rtx_core.pages.runs import Profiles, Runs
from rtx_core.pages.table import device_of, title
from rtx_core.parameters import EXPERIMENTS
from rtx_core.results.record import Record
from rtx_core.results.statistics import accuracy_interval, compare, mean_interval
from rtx_core.training.protocol import Protocol


def say(template: str, **values: object) -> Displayed:
    """A paragraph whose numbers are filled in: `say("accuracy {baseline[test][accuracy]:.4f}", **runs.first)`."""
    return display.text(template.format(**values))


def comparison(runs: Runs) -> Displayed:
    """What the benchmark table says, in sentences: accuracy, size, time, and the paired difference to the first model."""
    first, *others = runs.settings.models
    sentences = []
    for other in others:
        a, b = runs.of(first)[0], runs.of(other)[0]
        pair = compare(a, b)  # of the first seed: a pair is two models, one order of the data, one test set
        sentences.append(
            f"With {b['parameters']['total'] / a['parameters']['total']:.0%} of the parameters, {title(other)} reaches an accuracy of "
            f"{_with_interval(runs.of(other))}, {title(first)} {_with_interval(runs.of(first))}. "
            f"With seed {a['seed']} the difference, {title(first)} minus {title(other)}, is {pair['points']:+.2f} points. "
            f"Of the same {pair['n']:,} sentences, {pair['only_a']:,} are right with {title(first)} only and {pair['only_b']:,} with "
            f"{title(other)} only; by McNemar's exact test (p = {pair['p']:.2g}) {pair['verdict']}."
        )
        times = [record["latency"]["measured"] for record in (a, b)]
        sentences.append(
            f"At batch {times[0][-1]['batch']} a sentence takes {title(other)} {times[1][-1]['median_ms'] / times[0][-1]['median_ms']:.2f} times "
            f"as long as {title(first)}; alone, {times[1][0]['median_ms'] / times[0][0]['median_ms']:.2f} times."
        )
    if len(runs.settings.seeds) > 1:
        sentences.append("The intervals are Student's, over seeds; the paired test is of the first seed.")
    else:
        sentences.append(
            "The intervals are Wilson's: the uncertainty of a test set of this size for these trained models. How much another seed or "
            "another split would change is not in them, and one seed cannot show it."
        )
    return display.text(" ".join(sentences))


def _with_interval(records: list[Record]) -> str:
    if len(records) > 1:
        value, low, high = mean_interval([record["test"]["accuracy"] for record in records])
    else:
        value, (low, high) = records[0]["test"]["accuracy"], accuracy_interval(records[0])
    return f"{value:.4f} (95 % interval {low:.4f} to {high:.4f})"


def training(runs: Runs) -> Displayed:
    """How training went: the selected checkpoint and the gap to the training loss at the end."""
    sentences = []
    for record in runs:
        history, selected = record["history"], record["selected"]
        row = next(row for row in history if row["step"] == selected["step"])
        sentences.append(
            f"{title(record['model'])} (seed {record['seed']}) has its lowest validation loss, {selected['validation_loss']:.4f}, after epoch "
            f"{row['epoch']:g} of {history[-1]['epoch']:g}, with validation accuracy {row['validation_accuracy']:.4f}; "
            f"at the end its training loss is {history[-1]['train_loss']:.4f} and its validation loss {history[-1]['validation_loss']:.4f}."
        )
    return display.text(" ".join(sentences))


def labels(profiles: Profiles) -> Displayed:
    """Whether the published split gives the published shares, and what the others give."""
    quoted, sentences = published()["labels"]["sst2"], []
    for split, profile in profiles.items():
        parts = profile["parts"]
        shares = {part: [round(100 * n / facts["n"], 2) for n in facts["labels"]] for part, facts in parts.items()}
        equal = all(shares[part] == quoted[part]["percent"] and parts[part]["n"] == quoted[part]["n"] for part in parts)
        said = " / ".join(f"{share[0]:.2f}" for share in shares.values())
        verdict = ", exactly the shares of the report's Table 1." if equal else "."
        sentences.append(f"Under `{split}` label 0 has {said} % of the three parts{verdict}")
    return display.text(" ".join(sentences))


def provenance(runs: Runs, *, notebook: str) -> Displayed:
    """Which records a page shows, what made them, and the line that makes them again."""
    lines = ["````{admonition} Provenance", ":class: note", ""]
    lines += [f"**Note.** {escape(note)}\n" for note in runs.notes]
    lines += ["| Record | Protocol | Commit | Machine | Training | Peak memory | Finished |", "|---|---|---|---|--:|--:|---|"]
    for record in runs:
        cells = [
            "/".join(record.path.parts[-3:]), record["protocol"], commit_of(record["code"]), device_of(record),
            f"{record['seconds'] / 60:.1f} min", f"{record['peak_memory_mib']:,.0f} MiB", when(record["finished"]),
        ]  # fmt: skip
        lines.append("| " + " | ".join(escape(cell) for cell in cells) + " |")
    data, environment = runs.records[0]["data"], runs.records[0]["environment"]
    if runs.data_sha256 is None:
        checked = "not compared with today's data, which is not at hand or not readable"
    else:
        same = all(record["data"]["sha256"] == runs.data_sha256 for record in runs)
        checked = "the same as today's data" if same else "not today's data"
    lines += [
        "",
        f"Data: {escape(data['name'])} from the {_SOURCES[data['source']]}, split {escape(data['split'])}, SHA-256 of the tokens "
        f"`{data['sha256'][:16]}…` ({checked}). Python {environment['python']}, torch {environment['packages']['torch']}. "
        "Training is wall time, whatever else the machine did included.",
        "",
        "To make these records again, move them away and run",
        "",
        f"```bash\n{papermill_line(runs, notebook)}\n```",
        "````",
    ]
    return display.text("\n".join(lines))


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


def data_provenance(profiles: Profiles) -> Displayed:
    """Where the text of a data page comes from: name, source and hash of every split."""
    lines = [
        "````{admonition} Provenance", ":class: note", "",
        "| Split | Data | Source | SHA-256 of the tokens | Commit | Counted |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for split, profile in profiles.items():
        data = profile["data"]
        cells = (split, data["name"], data["source"], data["sha256"][:16] + "…", commit_of(profile["code"]), when(profile["finished"]))
        lines.append("| " + " | ".join(map(escape, cells)) + " |")
    lines += [
        "", "The counts are recorded in `results/data/`. To count again, move a file of it away and run the following; the split `published` "
        "needs the mirror.", "", "```bash\npapermill notebooks/data.ipynb _build/data.ipynb\n```", "````",
    ]  # fmt: skip
    return display.text("\n".join(lines))


def when(finished: str) -> str:
    return finished.replace("T", " ").replace("+00:00", " UTC")


def commit_of(code: dict) -> str:
    return (code["commit"] or "unknown")[:9] + ("" if code["clean"] else " + changes")


_SOURCES = {"hub": "hub", "mirror": "local mirror", "embedded": "embedded corpus"}


def papermill_line(runs: Runs, notebook: str) -> str:
    """The command that reruns exactly these settings; every parameter that is not the notebook's default is given."""
    settings, default = runs.settings, EXPERIMENTS[runs.settings.experiment]
    line = f"papermill notebooks/{notebook}.ipynb _build/{notebook}.ipynb"
    lists = {"models": settings.models, "seeds": settings.seeds}
    line += f" -y '{json.dumps(lists)}'"
    values = {name: (getattr(settings, name), getattr(default, name)) for name in ("source", "split", "max_length", "train_rows", "residual")}
    values |= {f.name: (getattr(settings.protocol, f.name), getattr(default.protocol, f.name)) for f in fields(Protocol)}
    return line + "".join(f" -p {name} {value}" for name, (value, usual) in values.items() if value != usual)
