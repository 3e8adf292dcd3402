"""What proves a record that was made elsewhere: its name, its configuration, its predictions, its data and its code agree with today's."""

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from zipfile import ZipFile, is_zipfile

import numpy as np

from rtx_core.corpora.dataset import dataset
from rtx_core.corpora.sources import CORPORA
from rtx_core.errors import RtxError
from rtx_core.evaluation.metrics import metrics
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.models import model_config
from rtx_core.parameters import EXPERIMENTS, Settings, settings
from rtx_core.paths import home
from rtx_core.results import language, measurement, record, store
from rtx_core.results.record import Record, read_json
from rtx_core.training.protocol import Seeds, as_config
from rtx_core.travel.bundle import LARGEST

TOLERANCE = 1e-6  # of a metric computed again; a loss is a sum, whose order is the machine's


@dataclass(frozen=True)
class Proven:
    """A file of results that is what it says."""

    name: str  # its path from home
    said: str  # in one line
    content: dict
    labels: np.ndarray | None = None  # of the test texts, where it has predictions
    note: str = ""  # what is not as today: the code


@dataclass
class Today:
    """Today's data, read once where it is at hand."""

    read: dict[str, object] = field(default_factory=dict)

    def __call__(self, source: str, key: object, load: Callable[[], object]) -> object | None:
        """What `load` gives; None where it would have to be fetched or cannot be read."""
        if source == "hub":
            return None
        if str(key) not in self.read:
            try:
                self.read[str(key)] = load()
            except RtxError:
                self.read[str(key)] = None
        return self.read[str(key)]


def prove(root: Path, name: str, today: Today) -> Proven:
    """The file `name` below `root`, which wants to be of that name at home; what is wrong with it is one sentence."""
    try:
        return _proven(root / name, name, today)
    except RtxError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, MemoryError) as error:
        raise _wrong(name, f"is not made as records are ({type(error).__name__}: {error})") from error


def _proven(path: Path, name: str, today: Today) -> Proven:
    folder, *inside = PurePosixPath(name).relative_to("_build/results" if name.startswith("_build/") else "results").parts
    if folder == "language" and len(inside) == 2:
        return _language(path, name, today)
    if folder in measurement.MADE_BY and len(inside) == 2:
        return _measurement(path, name)
    if folder == "benchmarks" and len(inside) == 1:
        return _benchmark(path, name)
    if folder == "data" and len(inside) == 1:
        return _profile(path, name)
    if len(inside) == 1:
        return _classifier(path, name, today)
    raise RtxError(f"{name} is neither the record of a run nor a measurement; only these travel.")


def _wrong(name: str, what: str) -> RtxError:
    return RtxError(f"{name} {what}; nothing was brought.")


def _at(place: Path, name: str) -> None:
    if (wanted := place.relative_to(home()).as_posix()) != name:
        raise _wrong(name, f"holds what belongs at {wanted}")


def _as_today(made: Record, name: str, asked: Settings | LanguageSettings, config: dict, protocol: str) -> None:
    """The name, the configuration and the protocol are those of a run with these settings."""
    if asked.variant != made["experiment"]:
        raise _wrong(name, f"is called {made['experiment']}, but its configuration is that of {asked.variant}")
    for part in ("model", "training"):
        if made["config"][part] != config[part]:
            got, expected = made["config"][part], config[part]
            first = next(k for k in (*expected, *got) if got.get(k) != expected.get(k) or (k in got) != (k in expected))
            raise _wrong(name, f"has {first} {got.get(first)!r} in its {part}, where a run of that name has {expected.get(first)!r} today")
    if made["protocol"] != protocol:
        raise _wrong(name, f"says that its protocol is {made['protocol']!r}, but that of its settings is {protocol!r}")
    best = min(row["validation_loss"] for row in made["history"])
    if made["selected"]["validation_loss"] != best:
        raise _wrong(name, f"selects a validation loss of {made['selected']['validation_loss']}, and the best of its history is {best}")


def _same_data(made: Record, name: str, facts: dict | None) -> str:
    """Today's data must be what it was made on; what to say where that is not at hand."""
    if facts is None:
        return ", data not at hand to compare"
    for key in sorted(facts | made["data"], key=lambda key: key == "sha256"):  # the hash last: what tells more is said first
        got, expected = (f"{data.get(key)!r:.30}" for data in (made["data"], facts))
        if made["data"].get(key) != facts.get(key):
            raise _wrong(name, f"was made on other data than today's: its {key} is {got}, expected {expected}")
    return ""


def _settings(name: str, experiment: str, given: dict) -> Settings | LanguageSettings:
    try:
        return settings(experiment, given)
    except RtxError as error:
        raise RtxError(f"{name} was made under settings that today's code does not have: {error}") from error


# -- runs -------------------------------------------------------------------------------------------------------------


def _classifier(path: Path, name: str, today: Today) -> Proven:
    made = record.read(path)
    variant, model, data = made["experiment"], made["model"], made["data"]
    _at(store.path_of(data["source"], variant, model, made["seed"]), name)
    experiment = max((e for e in EXPERIMENTS if f"{variant}-".startswith(f"{e}-")), key=len, default=variant)
    given = {k: data[k] for k in ("source", "split", "max_length", "fraction", "length", "length_fraction") if k in data}
    given |= {k: v for k, v in made["config"]["training"].items() if k != "seeds"}
    given |= {"models": [model], "seeds": [made["seed"]]}
    given["residual"] = made["config"]["model"].get("residual", "code")
    for key in ("train_rows", "num_layers", "num_passes"):
        if stated := re.search(rf"-{key.replace('_', '')}(\d+)", variant):
            given[key] = int(stated[1])
    asked = _settings(name, experiment, given)
    spec = CORPORA[asked.corpus]
    config = asdict(model_config(model, num_labels=len(spec.classes), **asked.overrides))
    training = as_config(asked.protocol, Seeds.of(made["seed"]))
    _as_today(made, name, asked, {"model": config, "training": training}, "reduced" if asked.reduced else "report")
    if data["name"] != spec.name(data["source"]) or (asked.train_rows and data["n_train"] != asked.train_rows):
        raise _wrong(name, f"was made on {data['name']!r} with {data['n_train']:,} training rows, expected {spec.name(data['source'])!r} as in its name")
    labels = _predicted(made, name)
    if len(labels) != data["n_test"]:
        raise _wrong(name, f"has predictions of {len(labels):,} texts, and its test part has {data['n_test']:,}")
    read = today(data["source"], asked.data, lambda: dataset(**asked.data))
    unread = _same_data(made, name, read and read.facts)
    if read and not np.array_equal(read.test.labels, labels):
        raise _wrong(name, "has predictions for other labels than those of the test part")
    said = f"{variant} · {model} · seed {made['seed']} · test accuracy {made['test']['accuracy']:.4f}{unread}"
    return Proven(name, said, made.content, labels, made.note())


def _predicted(made: Record, name: str) -> np.ndarray:
    """The labels beside its predictions, which must give its metrics."""
    path = made.path.with_suffix(".npz")
    if not path.exists():
        raise _wrong(name, f"came without its predictions, {path.name}")
    if is_zipfile(path) and sum(part.file_size for part in ZipFile(path).infolist()) > LARGEST:
        raise _wrong(name, f"has predictions of more than {LARGEST:,} bytes")
    arrays = made.arrays
    logits, labels = arrays["logits"], arrays["labels"]
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not len(labels) or not np.isfinite(logits).all():
        raise _wrong(name, f"has predictions of shape {logits.shape} with labels of shape {labels.shape}; expected finite numbers, a row a label")
    if not ((0 <= labels) & (labels < logits.shape[1])).all():
        raise _wrong(name, f"has predictions of {logits.shape[1]} classes and labels from {labels.min()} to {labels.max()}")
    for key, value in metrics(logits, labels.astype(np.int64)).items():
        got = made["test"].get(key)
        same = math.isclose(got, value, rel_tol=TOLERANCE, abs_tol=TOLERANCE) if isinstance(value, float) and isinstance(got, (int, float)) else got == value
        if not same:
            raise _wrong(name, f"says that its test {key} is {got}, and its predictions give {value}")
    return labels


def _language(path: Path, name: str, today: Today) -> Proven:
    made = language.read(path)
    variant, model, source = made["experiment"], made["model"], made["data"]["source"]
    _at(language.path_of(source, variant, model, made["seed"]), name)
    training = {k: v for k, v in made["config"]["training"].items() if k != "seeds"}
    experiment = variant.partition("-")[0]
    if experiment in LANGUAGE:
        training["steps"] = round(training["steps"] / LANGUAGE[experiment].longer.get(model, 1))
    asked = _settings(name, experiment, {"models": [model], "seeds": [made["seed"]], "source": source, **training})
    architecture, overrides = asked.build_arguments(model, made["data"]["vocabulary"])
    recipe, shape = asked.training_of(model), asdict(model_config(architecture, **overrides))
    config = {"model": {"architecture": architecture, **shape}, "training": asked.training_config(model, made["seed"])}
    _as_today(made, name, asked, config, "reduced" if asked.reduced else asked.recipe)
    corpus = LANGUAGE[experiment].corpus
    facts = today(source, (corpus, source, recipe), lambda: import_module(f"rtx_core.corpora.{corpus}").data(source, recipe).facts)
    unread = _same_data(made, name, facts)
    said = f"{variant} · {model} · seed {made['seed']} · test loss {made['test']['loss']:.4f}{unread}"
    return Proven(name, said, made.content, None, made.note())


# -- measurements -----------------------------------------------------------------------------------------------------


def _measurement(path: Path, name: str) -> Proven:
    made = measurement.read(path)
    _at(measurement.path_of(made["data"]["source"], made["kind"], made["of"], made["name"]), name)
    labels = _predicted(made, name) if "test" in made.content else None
    return Proven(name, f"{made['of']} · {made['kind']} · {made['name']}", made.content, labels, made.note())


def _benchmark(path: Path, name: str) -> Proven:
    made = read_json(path, needs=("benchmark", "environment", "code", "finished"))
    _at(home() / "results" / "benchmarks" / f"{made['benchmark']}-{made['environment'].get('device_type')}.json", name)
    return Proven(name, f"benchmark {made['benchmark']} · {made['environment']['device']}", made)


def _profile(path: Path, name: str) -> Proven:
    made = read_json(path, needs=("classes", "data", "parts", "code", "finished"))
    data, places = made["data"], []
    subset = {k: data[k] for k in ("fraction", "length", "length_fraction") if k in data}
    for default in EXPERIMENTS.values():
        if CORPORA[default.corpus].name(data["source"]) == data["name"] and CORPORA[default.corpus].classes == tuple(made["classes"]):
            asked = default.but(split=data["split"], max_length=data["max_length"], **subset)
            places.append(store.folder(data["source"]) / "data" / f"{asked.corpus}-{asked.split}{asked.subset}-{asked.max_length}.json")
    if home() / name not in places:
        raise _wrong(name, f"holds the profile of {data['name']!r}, which has another name")
    return Proven(name, f"profile {path.stem} · {data['name']}", made)
