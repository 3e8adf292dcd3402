"""The foot of a page: which records it shows, what made them, and the line that makes them again."""

import json

from rtx_core.report.badges import as_records, badge, entry
from rtx_core.report.display import Displayed, escape, markdown
from rtx_core.report.tables import device_of

SOURCES = {
    "hub": "hub",
    "mirror": "local mirror",
    "embedded": "generated texts",
    "synthetic": "generated texts",
}


def provenance(
    found: object, *, notebook: str = "", parameters: dict[str, object] | None = None
) -> Displayed:
    """A folded box with a row a record: badge, commit, machine, minutes, date, and what is stale about it;
    then the papermill line.

    `notebook` is its name without folder and ending, `parameters` those that the line passes.
    """
    records = as_records(found)
    fence = "````"
    lines = [f"{fence}{{admonition}} Provenance {badge(records).circles}", ":class: note dropdown", ""]
    if records:
        lines += [
            "| Record | Budget | Commit | Machine | Minutes | Finished | Stale |",
            "|---|---|---|---|--:|---|---|",
        ]
    for record in records:
        seconds = entry(record, "seconds")
        cells = (
            f"{record.path.parent.name}/{record.path.stem}",
            entry(record, "budget", ""),
            commit_of(record["code"]),
            device_of(record),
            "" if seconds is None else f"{seconds / 60:.1f}",
            record["finished"][:16].replace("T", " "),
            record.note(),
        )
        lines.append("| " + " | ".join(map(escape, cells)) + " |")
    lines += [
        "",
        *dict.fromkeys(_data(record) for record in records),
        "",
        "Training is wall time." if records else "Not measured yet.",
    ]
    if notebook:
        lines += [
            "",
            "To make these records again:",
            "",
            "```bash",
            papermill_line(notebook, parameters or {}),
            "```",
        ]
    return markdown("\n".join([*lines, fence]))


def papermill_line(notebook: str, parameters: dict[str, object]) -> str:
    """The command that runs a notebook with these parameters: lists and what YAML must quote in `-y`, numbers
    and plain words in `-p`."""
    plain = {name: value for name, value in parameters.items() if _is_plain(value)}
    others = {name: value for name, value in parameters.items() if name not in plain}
    line = f"papermill notebooks/{notebook}.ipynb _build/{notebook}.ipynb"
    if others:
        line += " -y '" + json.dumps(others).replace("'", "'\\''") + "'"
    return line + "".join(f" -p {name} {value}" for name, value in plain.items())


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return bool(value) and all(letter.isalnum() or letter in "._/-" for letter in value)
    return value is None or isinstance(value, (bool, int, float))


def commit_of(code: dict) -> str:
    return (code["commit"] or "unknown")[:9] + ("" if code["clean"] else " + changes")


def _data(record) -> str:
    data = record["data"]
    sha = f", SHA-256 `{data['sha256'][:16]}…`" if data.get("sha256") else ""
    split = f", split {escape(data['split'])}" if data.get("split") else ""
    source = SOURCES.get(data.get("source"), data.get("source"))
    return f"Data: {escape(data['name'])} from the {escape(source)}{split}{sha}.\n"
