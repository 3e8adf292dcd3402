"""The foot of a page: which records and data it shows, what made them, and the line that makes them again."""

import json
from dataclasses import fields

from rtx_core.pages import display
from rtx_core.pages.cells import device_of
from rtx_core.pages.display import Displayed, escape
from rtx_core.pages.runs import Profiles, Runs, Studies, recorded
from rtx_core.parameters import EXPERIMENTS, Settings
from rtx_core.training.protocol import Protocol


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
