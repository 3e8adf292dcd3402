"""Records made elsewhere, proven and put into `results/`, all or none: `rtx import FOLDER`."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from rtx_core import records, study
from rtx_core.errors import RtxError
from rtx_core.experiments.configure import configure, entry_of, experiment
from rtx_core.models import registry
from rtx_core.models.registry import config_of
from rtx_core.paths import home, write_atomically
from rtx_core.records import Record


def main(folder: str, replace: bool = False) -> None:
    taken = import_records(Path(folder), replace)
    for record in taken:
        print(" · ".join(filter(None, [records.short_name(record.path), record.note()])))
    print(
        f"{len(taken)} records imported."
        if taken
        else "Nothing new: the paper's records in that folder are here already."
    )


def import_records(folder: Path, replace: bool = False) -> list[Record]:
    """The records that are new here.  If one is not proven, or does not fit the others, none is written."""
    root, here = folder / "results" if (folder / "results").is_dir() else folder, records.folder()
    every, new = {path.relative_to(root): records.read(path, True) for path in records.all_paths(root)}, {}
    own = {record["key"] for record in every.values() if not of_the_paper(record)}
    found = {name: record for name, record in every.items() if own.isdisjoint(_keys(record))}
    for name in sorted(every.keys() - found.keys()):
        print(f"left out: {name}, of data or of a model of one's own; copy it by hand")
    if not every:
        raise RtxError(f"{folder} holds no records; name another clone of this project, or its results/.")
    for name, record in found.items():
        prove(record)
        for file in (name.with_suffix(".npz"), name):  # a record is written after its predictions
            content, there = (p.read_bytes() if p.exists() else None for p in (root / file, here / file))
            if there not in (None, content) and not replace:
                raise RtxError(f"{file} differs from the file of that name here; --replace overwrites it.")
            if content not in (None, there):
                new[file] = content
    staying = [path for path in records.all_paths(here) if path.relative_to(here) not in found]
    fit_together([*(records.read(path, True) for path in staying), *found.values()])
    write(new, here)
    return [record for name, record in found.items() if {name, name.with_suffix(".npz")} & new.keys()]


def _keys(record: Record) -> set:
    """Of the runs that a record is of."""
    return {record.get("key"), record.get("run"), *record.get("runs", {}).values()} - {None}


def of_the_paper(record: Record) -> bool:
    """Whether the catalogue knows the run: what one of own data, of an own model or of a variant is called, it cannot prove."""
    fixed = study.experiments().get(record.get("experiment"))
    return not record.get("key") or bool(fixed and record["model"] in {*fixed.models, *registry.MODELS})


def prove(record: Record) -> None:
    """An error unless it is of real text, and its name follows from its settings; reading it has proven the rest."""
    name = records.short_name(record.path)
    try:
        if record.synthetic:
            raise RtxError(f"{name} is of synthetic text, and results/ is of real text; leave it out.")
        if record.get("key"):
            prove_settings(record, name)
        record.note()  # by the code that it names
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        if isinstance(error, RtxError):
            raise
        raise RtxError(f"{name} is not made as records are ({type(error).__name__}: {error}).") from None


def prove_settings(record: Record, name: str) -> None:
    """Its name, budget and settings are those that today's experiments give such a run."""
    config, fixed = record["config"], experiment(record["experiment"])
    _, entry = entry_of(fixed, record["model"])
    usual = dict(config_of(entry.base, **entry.settings))
    given = {key: value for key, value in config["data"].items() if key != "corpus"} | config["train"]
    changed = {key: value for key, value in config["model"].items() if value != usual.get(key)}
    given |= {key: value for key, value in changed.items() if key not in records.DECIDED_BY_DATA}
    given["recipe"] = record["recipe"] or None
    near = round(
        given["steps"] / entry.steps_factor
    )  # of a model that trains for part of the steps several fit
    fit = [n for n in range(max(0, near - 2), near + 3) if round(n * entry.steps_factor) == given["steps"]]
    steps = sorted(fit, key=lambda n: abs(n - near)) or [near]
    run = (record["experiment"], record["model"], record["seed"])
    asked = [configure(*run, budget=each, **given | {"steps": n}) for each in fixed.budgets for n in steps]
    mine = (record["name"], record["budget"], config["architecture"], config["data"].get("corpus", ""))
    if mine not in (
        expected := [(c.name, c.budget, c.architecture, getattr(c.data, "corpus", "")) for c in asked]
    ):
        raise RtxError(f"{name} is {', '.join(mine)}, and its settings are of {', '.join(expected[0])}.")
    if record["selected"]["validation_loss"] != min(row["validation_loss"] for row in record["history"]):
        raise RtxError(f"{name} selects a validation loss that is not the lowest of its history.")


def fit_together(found: list[Record]) -> None:
    """What shares a name shares its data, and what was measured of a run comes with that run."""
    first, keys = {}, {record.get("key") for record in found}
    for record in found:
        name = records.short_name(record.path)
        other = first.setdefault(record["name"] if record.get("key") else record["of"], record)
        if other["data"]["sha256"] != record["data"]["sha256"]:
            beside = records.short_name(other.path)
            raise RtxError(f"{name} was made on other data than {beside}; do not mix them.")
        if missing := _keys(record) - keys:
            raise RtxError(f"{name} is of the run {missing.pop()}, which has no record; import that too.")


def write(new: dict[Path, bytes], here: Path) -> None:
    """All or, where the disk refuses one, none: they get their names when all of them are written."""
    try:
        with TemporaryDirectory(dir=home()) as waiting:
            for file, content in new.items():
                write_atomically(Path(waiting, file), content)
            for file in new:
                (here / file).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(waiting, file), here / file)
    except OSError as error:
        raise RtxError(f"Records cannot be written ({error}); make room or results/ writable.") from error
