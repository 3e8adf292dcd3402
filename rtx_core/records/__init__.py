"""Records: one JSON file a run, `results/<name>/<model>-seed<k>.json`, its test predictions beside it; and all of them
as one table.  Runs on generated text lie in `_build/results/` instead, so synthetic and real numbers cannot meet; runs
of data or models that the study does not declare lie in `runs/`, so a paper's folder holds the paper's runs.
What is measured beside the runs lies in `results/<kind>/<of>/<name>.json` and reads the same way.
"""

import io
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from glob import escape
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from rtx_core import reads
from rtx_core.data.config import Source
from rtx_core.deprecated import warn_renamed
from rtx_core.errors import RtxError, unknown
from rtx_core.foreign import MAX_ARRAY_BYTES, InvalidFile, invalid_file_errors, loads, read_arrays, read_json
from rtx_core.inputs import look_for
from rtx_core.metrics import classification_metrics
from rtx_core.models import registry
from rtx_core.paths import BOOK, build, home, write_atomically, write_json
from rtx_core.records import fingerprint
from rtx_core.records.schema import RESTORE, VERSION, check, check_measurement
from rtx_core.study import declaration

SOURCES = (*get_args(Source), "generated", "files")
NAMES = ("experiment", "name", "model", "seed", "recipe", "budget")
DERIVED_FIELDS = ("num_labels", "vocab_size", "block_size")  # fields of a model's configuration


@dataclass(frozen=True, eq=False)
class Record:
    """A file of `results/`: `record["test"]["accuracy"]` reads the JSON."""

    content: dict
    path: Path

    def __repr__(self) -> str:
        return short_name(self.path)

    def __getitem__(self, key: str):
        reads.note(self, key)
        return self.content[key]

    def get(self, key: str, default=None):
        return self.content.get(key, default)

    def stale_reason(self) -> str:
        """Why today's code may give other numbers, else ""; an audit is of the code that it names, so never stale."""
        if (kind := self.get("kind")) == "audits":
            return ""
        measurements = declaration("MEASUREMENTS")
        name = kind or self["config"]["architecture"]
        if name not in (measurements if kind else registry.MODELS):
            return f"of a model or measurement that is not registered here ({name})"
        hashes, task = self["code"]["hashes"], self.task
        with suppress(RtxError):  # of a task that is not defined here
            if task and kind and fingerprint.measurement_is_current(hashes, task, measurements[name]):
                return ""
            if task and not kind and fingerprint.run_is_current(hashes, task, self["config"]):
                return ""
        return f"made by another version of the code (commit {(self['code']['commit'] or 'unknown')[:9]})"

    @property
    def task(self) -> str | None:
        """The class of the task, as "module:class"; None of older code that is not known here."""
        return self["code"].get("task")

    @property
    def synthetic(self) -> bool:
        return self["data"]["source"] == "embedded"

    @property
    def score(self) -> str:
        """As in "test accuracy 0.9012"; of language models the loss."""
        measure = "accuracy" if "accuracy" in self["test"] else "loss"
        return f"test {measure} {self['test'][measure]:.4f}"

    @cached_property
    def predictions(self) -> dict[str, np.ndarray]:
        """`logits` (n, C) and `labels` (n,) of the test set, in its order; of language models there are none."""
        if "confusion" not in self["test"]:
            raise RtxError(f"{self} holds no predictions of texts, as it is of a decoder; compare its test losses.")
        path, (n, classes) = self.path.with_suffix(".npz"), (self["test"]["n"], len(self["test"]["confusion"]))
        try:
            arrays = read_arrays(path, min(MAX_ARRAY_BYTES, 4096 + n * (4 * classes + 8)))
            logits, labels = arrays["logits"], arrays["labels"]
            if (logits.dtype, logits.shape, labels.shape) != (np.float32, (n, classes), (n,)):
                raise InvalidFile(
                    f"its logits are {logits.dtype} {logits.shape}; the record has {n} texts, {classes} classes"
                )
            if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= classes:
                raise InvalidFile(f"it has labels that are none of {classes} classes")
            if not np.isfinite(logits).all():
                raise InvalidFile("it has logits that are no numbers")
            return {"logits": logits, "labels": labels}
        except (InvalidFile, KeyError) as error:
            raise RtxError(f"{path.name} cannot be read ({error})") from error


def short_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def verify(record: Record) -> None:
    """An error unless every test metric follows from what was predicted."""
    if (test := record.get("test")) is None:
        return
    tolerance = {"rel_tol": 1e-5, "abs_tol": 1e-6}  # of metrics over float32 logits, whose loss may be 0
    if "batch_losses" in test:
        tolerance = {"rel_tol": 1e-9, "abs_tol": 1e-12}
        if len(test["batch_losses"]) != len(test["batch_sizes"]):
            raise RtxError(
                f"its test has {len(test['batch_losses'])} batch_losses, {len(test['batch_sizes'])} batch_sizes"
            )
        losses, sizes = np.array(test["batch_losses"]), np.array(test["batch_sizes"])
        share = sizes / sizes.sum()
        variance = ((share * (losses - share @ losses)) ** 2).sum() * len(losses) / (len(losses) - 1)
        expected = test | {"n": sizes.sum(), "loss": float(share @ losses), "error": math.sqrt(variance)}
        if "parts" in test:
            wrong = sum(part["answers"] * part["error"] for part in test["parts"])
            expected["accuracy"] = 1 - wrong / sum(part["answers"] for part in test["parts"])
    else:
        expected = classification_metrics(**record.predictions)
    for name in sorted(expected | test):
        got, value = test.get(name), expected.get(name)
        if not (math.isclose(got, value, **tolerance) if type(got) is float and type(value) is float else got == value):
            raise RtxError(f"it says that its test {name} is {got}, and what was predicted gives {value}")


def folder(source: str = "hub") -> Path:
    """Where the records of runs on such texts lie."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    return build() / "results" if source == "embedded" else home() / "results"


def folders(source: str = "hub") -> list[Path]:
    """All folders with records of such texts; of two records with one name the first counts."""
    return [folder(source)] if source == "embedded" else [home() / "runs", folder(source)]


def folder_for(experiment: str, model: str, source: str) -> Path:
    """Where a new run is recorded: `results/` if the study declares its experiment and model, else `runs/`."""
    study_experiment = declaration("EXPERIMENTS").get(experiment)
    models = {*study_experiment.models, *study_experiment.default_models} if study_experiment else ()
    built_in = model in registry.MODELS and isinstance(registry.MODELS[model].kind, str)
    return folders(source)[-1 if study_experiment and (built_in or model in models) else 0]


def path_of(name: str, model: str, seed: int, source: str = "hub") -> Path:
    """The file of a run: the one that is there, else that of a run of the study."""
    paths = [root / name / f"{model}-seed{seed}.json" for root in folders(source)]
    return next((path for path in paths if look_for(path)), paths[-1])


def read(path: Path, measurement: bool = False) -> Record:
    """The record of a run in a file, checked; with `measurement` the file may also hold a measurement."""
    try:
        with invalid_file_errors():
            record = Record(read_json(path), path)
            if measurement and isinstance(record.content, dict) and "kind" in record.content:
                check_measurement(record.content)
                place = (record["kind"], record["of"], record["name"])
            else:
                check(record.content)
                place = (record["name"], f"{record['model']}-seed{record['seed']}")
            if path.parts[-len(place) :] != (*place[:-1], f"{place[-1]}.json"):
                raise InvalidFile(f"it belongs to {'/'.join(place)}")
            if any(map(os.path.islink, path.parents[: len(place) - 1])):
                raise InvalidFile("it lies in a folder that is a symbolic link")
            verify(record)
            return record
    except InvalidFile as error:
        raise RtxError(f"{short_name(path)} is no sound record ({error}); {RESTORE}.") from None


def read_or_none(path: Path, measurement: bool = False) -> Record | None:
    """The record in a file, read again when that or its predictions have changed; None where `read` refuses it."""
    record = _read_cached(path, *map(_version, (path, path.with_suffix(".npz"))))
    return record if record and (measurement or not record.get("kind")) else None


def _version(file: Path) -> tuple[int, ...] | None:
    """What changes with a file; None where it cannot be seen."""
    try:
        status = os.lstat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


@cache
def _read_cached(path: Path, *versions: tuple | None) -> Record | None:
    try:
        return read(path, measurement=True)
    except RtxError:
        return None


def invalid_files(source: str = "hub") -> dict[str, str]:
    """The files that `records` and `measurements` leave out, each with why `read` refuses it."""
    reasons = {}
    for path in record_paths(source):
        try:
            if read_or_none(path, measurement=True) is None:
                read(path, measurement=True)
        except RtxError as error:
            reasons[short_name(path)] = str(error)
    return reasons


def find(name: str, model: str, seed: int, source: str = "hub") -> Record | None:
    """The record of a run, if there is one; an odd one is an error, and none while the book is built."""
    path = path_of(name, model, seed, source)
    if os.environ.get(BOOK):
        return read_or_none(path)
    return read(path) if path.exists() else None


def load(address: str, source: str = "") -> Record:
    """The record of an address such as "sst2/recurrent-seed0", its path without the ending; without a `source` it is of
    generated texts if its experiment is."""
    name, _, stem = address.removesuffix(".json").rpartition("/")
    experiments = declaration("EXPERIMENTS").items()
    sources = {experiment.data.source for key, experiment in experiments if f"{name}-".startswith(f"{key}-")}
    source = source or ("embedded" if "embedded" in sources else "hub")
    places = [(side, root / name / f"{stem}.json") for side in ("hub", "embedded") for root in reversed(folders(side))]
    existing = {side: path for side, path in places if os.path.isfile(path)}  # of two the last, from the first folder
    if name and (path := existing.get("embedded" if source == "embedded" else "hub")):
        return read(path)
    if name and (alternative := next(iter(existing), "")):
        do = f"give source={alternative!r} (on the command line --source {alternative})"
        raise RtxError(f"The record {address} is of source {alternative!r}, and {source!r} was requested; {do}.")
    raise RtxError(f"There is no record {address!r} of source {source!r}; rtx.results() lists what is recorded.")


def paths_in(root: Path) -> list[Path]:
    """The files of all runs, then of all that is measured beside them; folders that are links or hidden, as an editor's
    are, are not entered."""
    parts = {path: path.relative_to(root).parts for path in sorted(root.rglob("[!.]*.json"))}
    visible = [path for path, names in parts.items() if not any(name.startswith(".") for name in names)]
    depths = {path: len(parts[path]) for path in visible}
    runs = [path for path in visible if depths[path] == 2 and path.match("*-seed[0-9]*.json")]
    return runs + [path for path in visible if depths[path] == 3]


def record_paths(source: str = "hub") -> list[Path]:
    """The same of all folders with such records, each name once."""
    by_name = {path.relative_to(root): path for root in reversed(folders(source)) for path in paths_in(root)}
    return list(by_name.values())


def records(name="", experiment: str | None = None, model: str | None = None, source="hub") -> list[Record]:
    """The recorded runs in order, as far as they are of this folder, experiment and model; odd ones are left out."""
    matches = [record for path in _run_paths(name, experiment, source) if (record := read_or_none(path))]
    matches.sort(key=lambda r: (r["name"], r["model"], r["seed"]))
    return [r for r in matches if experiment in (None, r["experiment"]) and model in (None, r["model"])]


def _run_paths(name: str, experiment: str | None, source: str) -> Iterable[Path]:
    prefix = experiment if experiment in declaration("EXPERIMENTS") else ""  # as the folders of all its runs do
    pattern = f"{escape(name) or (prefix or '[!.]') + '*'}/*-seed[0-9]*.json".lstrip("/")
    return {path.relative_to(root): path for root in reversed(folders(source)) for path in root.glob(pattern)}.values()


def path_for(content: Mapping) -> Path:
    """The file of a run that is to be recorded."""
    root = folder_for(content["experiment"], content["model"], content["data"]["source"])
    return root / content["name"] / f"{content['model']}-seed{content['seed']}.json"


def save(content: dict, predictions: Mapping[str, np.ndarray] | None = None) -> Record:
    """Write the record of a run, in the place of one that is there."""
    return _save(path_for(content), content, predictions, check)


def save_measurement(content: dict, predictions: Mapping[str, np.ndarray] | None = None) -> Record:
    """Write a measurement, dated now, in the folder of the run that it is of."""
    content = {"schema": VERSION, **content, "finished": now()}
    run_path = path_of(content["of"], content["model"], content["seed"], content["data"]["source"])
    directory = run_path.parents[1] / content["kind"] / content["of"]
    return _save(directory / f"{content['name']}.json", content, predictions, check_measurement)


def _save(path: Path, content: dict, predictions: Mapping[str, np.ndarray] | None, check: Callable) -> Record:
    """Predictions, where there are any, come first: a record is there only with them, and only one that can be read."""
    check(loads(json.dumps(content, ensure_ascii=False).encode()))
    if predictions is not None:
        save_predictions(path.with_suffix(".npz"), **predictions)
    write_json(path, content)
    return read(path, measurement=True)


def save_predictions(path: Path, logits: np.ndarray, labels: np.ndarray) -> None:
    buffer = io.BytesIO()
    small = np.int8 if labels.max(initial=0) < 128 else np.int16
    np.savez_compressed(buffer, logits=logits.astype(np.float32), labels=labels.astype(small))
    write_atomically(path, buffer.getvalue())


def measurements(kind: str, of: str = "*", source: str = "hub") -> list[Record]:
    """All measurements of a kind, in the order of their names; odd ones are left out."""
    paths = [path for root in folders(source)[::-1] for path in sorted((root / kind).glob(f"{of}/[!.]*.json"))]
    return [record for path in paths if (record := read_or_none(path, measurement=True))]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def results(experiment: str | None = None, /, *, source: str = "", **only: object) -> pd.DataFrame:
    """Every recorded run, one row each; `results("sst2", model=["baseline", "recurrent"])` keeps some.

    The first argument is an experiment or a run's folder.  Runs on generated texts are found by `source="embedded"`,
    unless the experiment itself is of these ("quickstart").
    """
    if not isinstance(experiment, str | None):
        raise RtxError(f"The experiment is {experiment!r:.60}; expected the name of one, or of a run's folder.")
    study_experiment = declaration("EXPERIMENTS").get(experiment)
    sources, matches = [source or (study_experiment.data.source if study_experiment else "hub")], []
    sources += ["embedded"] * bool(experiment and not study_experiment and not source)
    for place in sources:  # synthetic runs only where there are no others
        matches = matches or records(experiment=experiment, source=place)
        matches = matches or (records(experiment, source=place) if experiment else [])
    invalid = [path for place in sources for path in _run_paths("", experiment, place) if not read_or_none(path)]
    if invalid and not os.environ.get(BOOK):  # a page lists them
        message = f"{len(invalid)} files are no sound records and left out, such as {short_name(invalid[0])}"
        warnings.warn(f"{message}: `python -m rtx_core doctor` says why.", stacklevel=2)
    if experiment is not None and not study_experiment and not matches:
        existing = [record for place in sources for record in records(source=place)]
        names = {*declaration("EXPERIMENTS"), *(record[part] for record in existing for part in ("experiment", "name"))}
        raise unknown("experiment or folder", experiment, sorted(names))
    if not matches:
        advice = 'train one, as by rtx.run("quickstart"), or set RTX_HOME to the folder that holds results/'
        warnings.warn(f"There is no record of a run in {folder(sources[0])}: {advice}.", stacklevel=2)
    return frame(matches, **only)


def frame(records: Sequence[Record], **filters: Any) -> pd.DataFrame:
    """Runs as rows: what was measured, every setting by its name, why the record is stale, and the record itself."""
    table = pd.DataFrame([_row(record) for record in records])
    for column, values in filters.items() if len(table) else ():
        if column not in table:
            raise unknown("column of the results", column, table.columns)
        table = table.loc[table[column].isin(list(values) if pd.api.types.is_list_like(values) else [values])]
    return table.reset_index(drop=True)


def _row(record: Record) -> dict:
    test, config, latencies = record["test"], record["config"], record["latency"]["measured"]
    selected = next(row for row in record["history"] if row["step"] == record["selected"]["step"])
    row = {name: record[name] for name in NAMES} | {"source": record["data"]["source"]}
    row |= {name: test.get(name) for name in ("accuracy", "loss", "f1", "precision", "recall")}
    row |= {"n_train": record["data"]["n_train"], "n_test": test["n"]}
    row |= {"parameters": record["parameters"]["total"], "size_mb": record["size_mb"]}
    row |= {"minutes": record["seconds"] / 60, "ms_per_text": latencies[-1].get("per_sentence_ms")}  # in a batch
    row["ms_single"] = latencies[0].get("per_sentence_ms", latencies[0]["median_ms"])  # one text, or one token
    row |= {"selected_step": selected["step"], "selected_epoch": selected.get("epoch")}
    parts = {f"error_{test['by']}_{part[test['by']]}": part["error"] for part in test.get("parts", ())}
    row |= {name: error for name, error in parts.items() if name in selected}  # those that every evaluation reports
    row |= {"architecture": config["architecture"], "stale": record.stale_reason()}
    for part in ("data", "train", "model"):  # under another name where the column of that name is something else
        cells = {name: _cell(value) for name, value in config[part].items()}
        others = {name: cell for name, cell in cells.items() if name not in row or row[name] != cell}
        row |= {f"{part}_{name}" if name in {*row, "record"} else name: cell for name, cell in others.items()}
    return row | {"record": record}


def _cell(value: object) -> object:
    """A setting as a table can compare it."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def __getattr__(name: str) -> object:
    names = {"at": "load", "sound": "read_or_none", "odd": "invalid_files"}
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn_renamed(f"records.{name}", f"records.{names[name]}")
    return globals()[names[name]]
