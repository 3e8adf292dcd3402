"""Records made elsewhere, proven and put into `results/`, all or none: `rtx import FOLDER`."""

import os
from pathlib import Path

from rtx_core import records
from rtx_core.errors import RtxError
from rtx_core.experiments import configure, entry_of, experiment
from rtx_core.models.registry import config_of
from rtx_core.paths import write_atomically


def main(folder: str, replace: bool = False) -> None:
    taken = import_records(Path(folder), replace)
    for stored in taken:
        print(" · ".join(filter(None, [records.short_name(stored.path), stored.note()])))
    print(f"{len(taken)} records imported." if taken else "All records in that folder are here already.")


def import_records(folder: Path, replace: bool = False) -> list[records.Stored]:
    """The records that are new here.  If one is not proven, or does not fit the others, none is written."""
    root, here = folder / "results" if (folder / "results").is_dir() else folder, records.folder()
    found, new = {path.relative_to(root): read(path, root) for path in paths(root)}, {}
    if not found:
        raise RtxError(f"{folder} holds no records; name another clone of this project, or its results/.")
    for name, stored in found.items():
        prove(stored)
        for file in (name, name.with_suffix(".npz")):
            content, there = (p.read_bytes() if p.exists() else None for p in (root / file, here / file))
            if there not in (None, content) and not replace:
                raise RtxError(f"{file} differs from the file of that name here; --replace overwrites it.")
            if content not in (None, there):
                new[here / file] = content
    staying = [read(path, here) for path in paths(here) if path.relative_to(here) not in found]
    fit_together([*staying, *found.values()])
    write(new)
    return [s for name, s in found.items() if {here / name, here / name.with_suffix(".npz")} & new.keys()]


def paths(root: Path) -> list[Path]:
    """Its records: in a folder of their run's name, or in two, the kind and what is measured."""
    runs = [path for path in root.glob("*/[!.]*.json") if path.parent.name not in records.NO_RUNS]
    measured = [sorted((root / kind).glob("*/[!.]*.json")) for kind in records.KINDS]
    return sum(measured, sorted(runs))


def read(path: Path, root: Path) -> records.Stored:
    return records.read(path) if path.parent.parent == root else records.read_measurement(path)


def prove(stored: records.Stored) -> None:
    """An error unless it is of real text, and its name follows from its settings; reading it has proven the rest."""
    name = records.short_name(stored.path)
    try:
        if stored.synthetic:
            raise RtxError(f"{name} is of synthetic text, and results/ is of real text; leave it out.")
        if stored.get("key"):
            prove_settings(stored, name)
        stored.note()  # by the code that it names
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, RtxError):
            raise
        raise RtxError(f"{name} is not made as records are ({type(error).__name__}: {error}).") from None


def prove_settings(record: records.Record, name: str) -> None:
    """Its name, budget and settings are those that today's experiments give such a run."""
    config, fixed = record["config"], experiment(record["experiment"])
    _, entry = entry_of(fixed, record["model"])
    usual = dict(config_of(entry.base, **entry.settings))
    given = {key: value for key, value in config["data"].items() if key != "corpus"} | config["train"]
    changed = {key: value for key, value in config["model"].items() if value != usual.get(key)}
    given |= {key: value for key, value in changed.items() if key not in records.DECIDED_BY_DATA}
    given |= {"steps": round(given["steps"] / entry.longer), "recipe": record["recipe"] or None}
    run = (record["experiment"], record["model"], record["seed"])
    asked = [configure(*run, budget=budget, **given) for budget in fixed.budgets]
    mine = (record["name"], record["budget"], config["architecture"], config["data"].get("corpus", ""))
    if mine not in (
        expected := [(c.name, c.budget, c.architecture, getattr(c.data, "corpus", "")) for c in asked]
    ):
        raise RtxError(f"{name} is {', '.join(mine)}, and its settings are of {', '.join(expected[0])}.")
    if record["selected"]["validation_loss"] != min(row["validation_loss"] for row in record["history"]):
        raise RtxError(f"{name} selects a validation loss that is not the lowest of its history.")


def fit_together(found: list[records.Stored]) -> None:
    """What shares a name shares its data, and what was measured of a run comes with that run."""
    first, keys = {}, {stored.get("key") for stored in found}
    for stored in found:
        name = records.short_name(stored.path)
        other = first.setdefault(stored["name"] if stored.get("key") else stored["of"], stored)
        if other["data"]["sha256"] != stored["data"]["sha256"]:
            beside = records.short_name(other.path)
            raise RtxError(f"{name} was made on other data than {beside}; do not mix them.")
        if missing := {stored.get("run"), *stored.get("runs", {}).values()} - {None, *keys}:
            raise RtxError(f"{name} is of the run {missing.pop()}, which has no record; import that too.")


def write(new: dict[Path, bytes]) -> None:
    """All or, where the disk refuses one, none: first beside their places, predictions before records."""
    places = sorted(new, key=lambda place: place.suffix, reverse=True)
    beside = {place: place.with_name(f".{place.name}.importing") for place in places}
    try:
        for place, waiting in beside.items():
            write_atomically(waiting, new[place])
        for place, waiting in beside.items():
            os.replace(waiting, place)
    except OSError as error:
        raise RtxError(f"Records cannot be written ({error}); make room or results/ writable.") from error
    finally:
        for waiting in beside.values():
            waiting.unlink(missing_ok=True)
