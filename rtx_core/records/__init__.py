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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from glob import escape
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from rtx_core.data.config import Source
from rtx_core.errors import RtxError, unknown
from rtx_core.foreign import MOST_ARRAYS, Odd, as_odd, loads, read_arrays, read_json
from rtx_core.metrics import classification_metrics
from rtx_core.models import registry
from rtx_core.paths import BOOK, build, home, write_atomically, write_json
from rtx_core.records import fingerprint
from rtx_core.records.migrate import hash_of_task
from rtx_core.records.schema import RESTORE, VERSION, check, check_measurement
from rtx_core.study import declared

SOURCES = (*get_args(Source), "generated", "files")
NAMES = ("experiment", "name", "model", "seed", "recipe", "budget")
DECIDED_BY_DATA = ("num_labels", "vocab_size", "block_size")  # fields of a model's configuration


# Keys that say which run a record is of; reading any other key is reading a result.
IDENTITY = {*NAMES, "kind", "config", "environment", "code", "finished"}
READS: list[list["Record"]] = []


@contextmanager
def reading() -> Iterator[list["Record"]]:
    """The records whose results are read inside."""
    READS.append([])
    try:
        yield READS[-1]
    finally:
        READS.pop()


@dataclass(frozen=True, eq=False)
class Record:
    """A file of `results/`: `record["test"]["accuracy"]` reads the JSON."""

    content: dict
    path: Path

    def __repr__(self) -> str:
        return short_name(self.path)

    def __getitem__(self, key: str):
        if key not in IDENTITY:
            for read in READS:
                read.append(self)
        return self.content[key]

    def get(self, key: str, default=None):
        return self.content.get(key, default)

    def stale_reason(self) -> str:
        """Why today's code may give other numbers, else ""; an audit is of the code that it names, so never stale."""
        if (kind := self.get("kind")) == "audits":
            return ""
        what, known = (kind, declared("MEASUREMENTS")) if kind else (self["config"]["architecture"], registry.MODELS)
        if what not in known:
            return f"of a model or measurement that is not registered here ({what})"
        hashes, task = hash_of_task(self.content)["code"]["hashes"], self.task
        with suppress(RtxError):  # of a task that is not defined here
            if task and kind and fingerprint.measurement_is_current(hashes, task, known[what]):
                return ""
            if task and not kind and fingerprint.run_is_current(hashes, task, self["config"]):
                return ""
        return f"made by another version of the code (commit {(self['code']['commit'] or 'unknown')[:9]})"

    @property
    def task(self) -> str | None:
        """The class of the task, as "module:class"; None of older code that is not known here."""
        return hash_of_task(self.content)["code"].get("task")

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
            arrays = read_arrays(path, min(MOST_ARRAYS, 4096 + n * (4 * classes + 8)))
            logits, labels = arrays["logits"], arrays["labels"]
            if (logits.dtype, logits.shape, labels.shape) != (np.float32, (n, classes), (n,)):
                raise Odd(f"its logits are {logits.dtype} {logits.shape}; the record has {n} texts, {classes} classes")
            if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= classes:
                raise Odd(f"it has labels that are none of {classes} classes")
            if not np.isfinite(logits).all():
                raise Odd("it has logits that are no numbers")
            return {"logits": logits, "labels": labels}
        except (Odd, KeyError) as error:
            raise RtxError(f"{path.name} cannot be read ({error})") from error


def short_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def verify(record: Record) -> None:
    """An error unless every test metric follows from what was predicted."""
    if (test := record.get("test")) is None:
        return
    near = {"rel_tol": 1e-5, "abs_tol": 1e-6}  # of metrics over float32 logits, whose loss may be 0
    if "batch_losses" in test:
        near = {"rel_tol": 1e-9, "abs_tol": 1e-12}
        if len(test["batch_losses"]) != len(test["batch_sizes"]):
            raise RtxError(
                f"its test has {len(test['batch_losses'])} batch_losses, {len(test['batch_sizes'])} batch_sizes"
            )
        losses, sizes = np.array(test["batch_losses"]), np.array(test["batch_sizes"])
        share = sizes / sizes.sum()
        variance = ((share * (losses - share @ losses)) ** 2).sum() * len(losses) / (len(losses) - 1)
        counted = test | {"n": sizes.sum(), "loss": float(share @ losses), "error": math.sqrt(variance)}
        if "parts" in test:
            wrong = sum(part["answers"] * part["error"] for part in test["parts"])
            counted["accuracy"] = 1 - wrong / sum(part["answers"] for part in test["parts"])
    else:
        counted = classification_metrics(**record.predictions)
    for name in sorted(counted | test):
        got, value = test.get(name), counted.get(name)
        if not (math.isclose(got, value, **near) if type(got) is type(value) is float else got == value):
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
    declares = declared("EXPERIMENTS").get(experiment)
    known = {*declares.models, *declares.default_models} if declares else ()
    built_in = model in registry.MODELS and isinstance(registry.MODELS[model].kind, str)
    return folders(source)[-1 if declares and (built_in or model in known) else 0]


def path_of(name: str, model: str, seed: int, source: str = "hub") -> Path:
    """The file of a run: the one that is there, else that of a run of the study."""
    paths = [root / name / f"{model}-seed{seed}.json" for root in folders(source)]
    return next((path for path in paths if path.exists()), paths[-1])


def read(path: Path, measured: bool = False) -> Record:
    """The record of a run in a file, or where that is `measured` of what was measured beside the runs, checked."""
    try:
        with as_odd():
            found = Record(read_json(path), path)
            if measured and isinstance(found.content, dict) and "kind" in found.content:
                check_measurement(found.content)
                place = (found["kind"], found["of"], found["name"])
            else:
                check(found.content)
                place = (found["name"], f"{found['model']}-seed{found['seed']}")
            if path.parts[-len(place) :] != (*place[:-1], f"{place[-1]}.json"):
                raise Odd(f"it belongs to {'/'.join(place)}")
            if any(map(os.path.islink, path.parents[: len(place) - 1])):
                raise Odd("it lies in a folder that is a symbolic link")
            verify(found)
            return found
    except Odd as error:
        raise RtxError(f"{short_name(path)} is no sound record ({error}); {RESTORE}.") from None


def sound(path: Path, measured: bool = False) -> Record | None:
    """The record in a file, read again when that or its predictions have changed; None where `read` refuses it."""
    found = read_once(path, *map(_version, (path, path.with_suffix(".npz"))))
    return found if found and (measured or not found.get("kind")) else None


def _version(file: Path) -> tuple[int, ...] | None:
    """What changes with a file; None where it cannot be seen."""
    try:
        about = os.lstat(file)
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


@cache
def read_once(path: Path, *versions: tuple | None) -> Record | None:
    try:
        return read(path, measured=True)
    except RtxError:
        return None


def odd(source: str = "hub") -> dict[str, str]:
    """The files that `records` and `measurements` leave out, each with why `read` refuses it."""
    found = {}
    for path in every_path(source):
        try:
            sound(path, measured=True) or read(path, measured=True)
        except RtxError as error:
            found[short_name(path)] = str(error)
    return found


def find(name: str, model: str, seed: int, source: str = "hub") -> Record | None:
    """The record of a run, if there is one; an odd one is an error, and none while the book is built."""
    path = path_of(name, model, seed, source)
    if os.environ.get(BOOK):
        return sound(path)
    return read(path) if path.exists() else None


def at(address: str, source: str = "") -> Record:
    """The record of an address such as "sst2/recurrent-seed0", its path without the ending; without a `source` it is of
    generated texts if its experiment is."""
    name, _, stem = address.removesuffix(".json").rpartition("/")
    named = [data for each, data in declared("EXPERIMENTS").items() if f"{name}-".startswith(f"{each}-")]
    generated = any(experiment.data.source == "embedded" for experiment in named)
    source = source or ("embedded" if generated else "hub")
    places = [(of, root / name / f"{stem}.json") for of in ("hub", "embedded") for root in reversed(folders(of))]
    there = {of: path for of, path in places if os.path.isfile(path)}  # of two the last, from the first folder
    if name and (path := there.get("embedded" if source == "embedded" else "hub")):
        return read(path)
    if name and (other := next(iter(there), "")):
        do = f"give source={other!r} (on the command line --source {other})"
        raise RtxError(f"The record {address} is of source {other!r}, and {source!r} was requested; {do}.")
    raise RtxError(f"There is no record {address!r} of source {source!r}; rtx.results() lists what is recorded.")


def all_paths(root: Path) -> list[Path]:
    """The files of all runs, then of all that is measured beside them; folders that are links or hidden, as an editor's
    are, are not entered."""
    parts = {path: path.relative_to(root).parts for path in sorted(root.rglob("[!.]*.json"))}
    found = [path for path, names in parts.items() if not any(name.startswith(".") for name in names)]
    depths = {path: len(parts[path]) for path in found}
    runs = [path for path in found if depths[path] == 2 and path.match("*-seed[0-9]*.json")]
    return runs + [path for path in found if depths[path] == 3]


def every_path(source: str = "hub") -> list[Path]:
    """The same of all folders with such records, each name once."""
    named = {path.relative_to(root): path for root in reversed(folders(source)) for path in all_paths(root)}
    return list(named.values())


def records(name="", experiment: str | None = None, model: str | None = None, source="hub") -> list[Record]:
    """The recorded runs in order, as far as they are of this folder, experiment and model; odd ones are left out."""
    found = [record for path in _run_paths(name, experiment, source) if (record := sound(path))]
    found.sort(key=lambda r: (r["name"], r["model"], r["seed"]))
    return [r for r in found if experiment in (None, r["experiment"]) and model in (None, r["model"])]


def _run_paths(name: str, experiment: str | None, source: str) -> Iterable[Path]:
    begins = experiment if experiment in declared("EXPERIMENTS") else ""  # as the folders of all its runs do
    of = f"{escape(name) or (begins or '[!.]') + '*'}/*-seed[0-9]*.json".lstrip("/")
    return {path.relative_to(root): path for root in reversed(folders(source)) for path in root.glob(of)}.values()


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
    of = path_of(content["of"], content["model"], content["seed"], content["data"]["source"])
    place = of.parents[1] / content["kind"] / content["of"]
    return _save(place / f"{content['name']}.json", content, predictions, check_measurement)


def _save(path: Path, content: dict, predictions: Mapping[str, np.ndarray] | None, check: Callable) -> Record:
    """Predictions, where there are any, come first: a record is there only with them, and only one that can be read."""
    check(loads(json.dumps(content, ensure_ascii=False).encode()))
    if predictions is not None:
        save_predictions(path.with_suffix(".npz"), **predictions)
    write_json(path, content)
    return read(path, measured=True)


def save_predictions(path: Path, logits: np.ndarray, labels: np.ndarray) -> None:
    buffer = io.BytesIO()
    small = np.int8 if labels.max(initial=0) < 128 else np.int16
    np.savez_compressed(buffer, logits=logits.astype(np.float32), labels=labels.astype(small))
    write_atomically(path, buffer.getvalue())


def measurements(kind: str, of: str = "*", source: str = "hub") -> list[Record]:
    """All measurements of a kind, in the order of their names; odd ones are left out."""
    every = [path for root in folders(source)[::-1] for path in sorted((root / kind).glob(f"{of}/[!.]*.json"))]
    return [found for path in every if (found := sound(path, measured=True))]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def results(experiment: str | None = None, /, *, source: str = "", **only: object) -> pd.DataFrame:
    """Every recorded run, one row each; `results("sst2", model=["baseline", "recurrent"])` keeps some.

    The first argument is an experiment or a run's folder.  Runs on generated texts are found by `source="embedded"`,
    unless the experiment itself is of these ("quickstart").
    """
    if not isinstance(experiment, str | None):
        raise RtxError(f"The experiment is {experiment!r:.60}; expected the name of one, or of a run's folder.")
    fixed = declared("EXPERIMENTS").get(experiment)
    sources, found = [source or (fixed.data.source if fixed else "hub")], []
    sources += ["embedded"] * bool(experiment and not fixed and not source)
    for place in sources:  # synthetic runs only where there are no others
        found = found or records(experiment=experiment, source=place)
        found = found or (records(experiment, source=place) if experiment else [])
    left_out = [path for place in sources for path in _run_paths("", experiment, place) if not sound(path)]
    if left_out and not os.environ.get(BOOK):  # a page lists them
        what = f"{len(left_out)} files are no sound records and left out, such as {short_name(left_out[0])}"
        warnings.warn(f"{what}: `python -m rtx_core doctor` says why.", stacklevel=2)
    if experiment is not None and not fixed and not found:
        every = [record for place in sources for record in records(source=place)]
        names = {*declared("EXPERIMENTS"), *(record[part] for record in every for part in ("experiment", "name"))}
        raise unknown("experiment or folder", experiment, sorted(names))
    if not found:
        advice = 'train one, as by rtx.run("quickstart"), or set RTX_HOME to the folder that holds results/'
        warnings.warn(f"There is no record of a run in {folder(sources[0])}: {advice}.", stacklevel=2)
    return frame(found, **only)


def frame(found: Sequence[Record], **only: object) -> pd.DataFrame:
    """Runs as rows: what was measured, every setting by its name, why the record is stale, and the record itself."""
    table = pd.DataFrame([_row(record) for record in found])
    for column, wanted in only.items() if len(table) else ():
        if column not in table:
            raise unknown("column of the results", column, table.columns)
        table = table[table[column].isin(list(wanted) if pd.api.types.is_list_like(wanted) else [wanted])]
    return table.reset_index(drop=True)


def _row(record: Record) -> dict:
    test, config, measured = record["test"], record["config"], record["latency"]["measured"]
    selected = next(row for row in record["history"] if row["step"] == record["selected"]["step"])
    row = {name: record[name] for name in NAMES} | {"source": record["data"]["source"]}
    row |= {name: test.get(name) for name in ("accuracy", "loss", "f1", "precision", "recall")}
    row |= {"n_train": record["data"]["n_train"], "n_test": test["n"]}
    row |= {"parameters": record["parameters"]["total"], "size_mb": record["size_mb"]}
    row |= {"minutes": record["seconds"] / 60, "ms_per_text": measured[-1].get("per_sentence_ms")}  # in a batch
    row["ms_single"] = measured[0].get("per_sentence_ms", measured[0]["median_ms"])  # one text, or one token
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
