"""A run is an experiment of the study with settings: `configure("sst2", "recurrent", seed=1, fraction=0.1)` gives its
whole configuration.  The folder of its records is named by what differs from the experiment: `sst2-10pct`.  No torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from types import SimpleNamespace
from typing import get_args

import pandas as pd

from rtx_core.data.config import DataConfig, name_parts
from rtx_core.data.sources import resolve
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments import Entry, Experiment
from rtx_core.models import registry
from rtx_core.study import declared
from rtx_core.train.config import DEVICES, TrainConfig

OF_A_RUN = ("seed", "seeds", "model", "models", "replace", "recipe", "budget", "device", "compile", "timed")
OF_A_RUN += ("experiment", "name", "record", "stale", "accuracy", "loss", "f1", "recall")  # columns of results
OF_A_RUN += ("n_train", "n_test", "parameters")
TIMED, TIMED_IN_TRIALS = 200, 20  # batches whose latency is measured; of generated texts, which pages quote nowhere
LONGEST_NAME = 180  # bytes of a folder's name: with model and seed it is a part of a file's, of at most 255
COMPILE = ("", "default", "reduce-overhead", "max-autotune")


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers, and its names."""

    experiment: str
    name: str  # of the folder of its records
    model: str  # as tables call it
    seed: int
    recipe: str  # the named settings it follows, "" where the experiment has one way alone
    budget: str  # "full", or "reduced" where it trains on less than the experiment's own recipe
    architecture: str  # the registered model
    overrides: dict  # of that model's configuration
    data: DataConfig
    source: str  # of the texts, where "real" has become the mirror or the hub
    train: TrainConfig
    keep_weights: bool  # beside the record, if the model is small
    device: str  # "auto", or torch's name
    compile: str  # a mode of torch.compile, "reduce-overhead" on a GPU; like the device no part of the name
    timed: int  # batches or texts whose latency is measured, no part of the name either
    asked: str | Mapping  # the model that `configure` was called with
    given: dict  # and the settings


def experiment(name: str | DataConfig) -> Experiment:
    """A named experiment, or the one that data of your own are."""
    if isinstance(name, DataConfig):
        name.check_recordable()
        if clash := {*TrainConfig.names(), *OF_A_RUN} & {*name.settable()}:
            raise RtxError(f"{type(name).__name__} has a setting {min(clash)!r}, as every run has: call it otherwise.")
        models, built_in = {}, (model for model, each in registry.MODELS.items() if isinstance(each.kind, str))
        for model in built_in if name.width else ():
            fields = registry.find(model).config.names()
            models[model] = Entry(model, {field: size for field, size in name.width.items() if field in fields})
        shown = ("baseline", "recurrent") if name.labelled else ("gpt", "looped")
        return Experiment(name, TrainConfig(**name.training), models, shown)
    if isinstance(name, type) and issubclass(name, DataConfig):
        raise RtxError(f"{name.__name__} is a class of data: give one of it, {name.__name__}() with its settings.")
    known = declared("EXPERIMENTS")
    if not isinstance(name, str) or name not in known:
        raise unknown("experiment", name, known or ["files of your own (rtx.data.from_files)"])
    return known[name]


def entry_of(fixed: Experiment, model: str | Mapping) -> tuple[str, Entry]:
    """(name in tables, entry) of "recurrent" or {"base": "recurrent", "name": "rec-128", "hidden_size": 128}."""
    if isinstance(model, str):
        if model not in fixed.models and model not in registry.MODELS:
            raise unknown("model", model, dict.fromkeys([*fixed.models, *registry.MODELS]))
        entry, mine = fixed.models.get(model) or Entry(model), registry.MODELS.get(model)
        if mine and entry.base != model and not isinstance(mine.kind, str):
            raise RtxError(f"{model!r} is a model of this experiment, too; register yours under another name.")
        return model, entry
    if not isinstance(model, Mapping) or {type(model.get("base")), type(model.get("name"))} != {str}:
        raise RtxError(f"Model {model!r:.60} has no base and name; write its name, or {{base: recurrent, name: mine}}.")
    registry.check_name(model["name"])
    changed = {key: value for key, value in model.items() if key not in ("base", "name")}
    _, base = entry_of(fixed, model["base"])
    if model["name"] in fixed.models or model["name"] in registry.MODELS:
        raise RtxError(f"The name {model['name']!r} is that of another model; give this variant its own.")
    registry.config_of(base.base, **base.settings | changed)  # a setting that it does not have ends here
    return model["name"], Entry(base.base, base.settings | changed, base.steps_factor)


def fits(architecture: str, data: DataConfig) -> bool:
    """Whether a registered model can be trained on such data; a class that is registered elsewhere is not judged."""
    model = registry.find(architecture)
    return not isinstance(model.kind, str) or isinstance(model.config, data.trains)


def configure(name: str | DataConfig, model: str | Mapping, /, seed: int = 0, **settings: object) -> RunConfig:
    """The whole configuration of one run; every setting is one of the data, of the training, or of the model."""
    fixed = experiment(name)
    called, folder = (name, name) if isinstance(name, str) else ("own-data", f"own-{name.slug}")
    label, entry = entry_of(fixed, model)
    seed, *plain = (x.item() if hasattr(x, "dtype") and not x.shape else x for x in (seed, *settings.values()))
    settings = dict(zip(settings, plain))
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise RtxError(f"The seed is {seed!r:.40}; expected a whole number from 0 to {2**31 - 1}.")
    if not fits(entry.base, fixed.data):
        fitting = ", ".join(name for name in registry.MODELS if fits(name, fixed.data))
        raise RtxError(f"The model {label!r} does not fit the data of {called}; choose one that does: {fitting}.")
    given = dict(settings)
    device, compile = settings.pop("device", "auto"), settings.pop("compile", "")
    timed = settings.pop("timed", TIMED)
    if type(timed) is not int or not 1 <= timed <= TIMED:
        raise RtxError(f"timed is {timed!r:.40}; expected a number of batches from 1 to {TIMED}.")
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if compile not in COMPILE:
        raise unknown("mode of torch.compile", compile, COMPILE[1:])
    recipe = _choice("recipe", settings.pop("recipe", None), fixed.recipes)
    budget = _choice("budget", settings.pop("budget", None), fixed.budgets)
    full, small = fixed.recipes.get(recipe, {}), fixed.budgets.get(budget, {})
    # from the general to the particular; of two that set the same, the later counts
    own, usual, asked = (_applied(fixed, entry, layers) for layers in (full, full | small, full | small | settings))
    if not isinstance(name, str):
        asked.data.check_recordable()
    if not isinstance(registry.find(entry.base).kind, str):
        asked.model.check_recordable()
    parts = [folder, recipe, budget if small else "", *asked.data.name_parts(usual.data)]
    changed = asked.model.changes(usual.model) | asked.train.changes(usual.train)
    if changed.get("steps") and changed.get("epochs") == 0:  # as it must be where steps are counted
        del changed["epochs"]
    parts += name_parts(changed)
    less = _shorter(own.train, asked.train) or asked.data.less_than(own.data)
    train, counted = asked.train, "steps" if asked.train.steps else "epochs"
    if entry.steps_factor != 1:
        train = train.replace(**{counted: round(getattr(train, counted) * entry.steps_factor)})
    if len((run_name := "-".join(filter(None, parts))).encode()) > LONGEST_NAME:
        what = f"The folder of these runs would be called {run_name:.60}…, more than {LONGEST_NAME} bytes"
        raise RtxError(f"{what}; change fewer settings at once, or name files shorter by from_files(name=).")
    return RunConfig(
        experiment=called,
        name=run_name,
        model=label,
        seed=seed,
        recipe=recipe,
        budget="reduced" if less and isinstance(name, str) else "full",  # own data have no other
        architecture=entry.base,
        overrides=asked.model.changes(registry.find(entry.base).config),
        data=asked.data,
        source=resolve(asked.data.source),
        train=train,
        keep_weights=fixed.keep_weights and asked.data.source != "embedded",
        device=device,
        compile=compile,
        timed=min(timed, TIMED_IN_TRIALS) if asked.data.source == "embedded" else timed,
        asked=model,
        given=given,
    )


def settings_of(name: str | DataConfig, model: str | Mapping = "", /, **settings: object) -> pd.DataFrame:
    """A row for each setting of a run of this experiment and model (of none: its first): `setting`, what it is `of`,
    its `type`, its `default` (under other `settings`, such as a recipe) and its `meaning`."""
    fixed = experiment(name)
    usual = configure(name, model or fixed.shown[0], **settings)
    architecture = registry.find(usual.architecture).config.replace(**usual.overrides)
    rows = [("seed", "run", "int >= 0", 0, "of the initial weights, the order of the texts and dropout")]
    rows += [("recipe", "run", " | ".join(fixed.recipes), usual.recipe, "named settings")] if fixed.recipes else []
    budget = settings.get("budget", next(iter(fixed.budgets)))
    rows.append(("budget", "run", " | ".join(fixed.budgets), budget, "named smaller settings"))
    rows.append(("device", "run", " | ".join(DEVICES), "auto", "what trains; auto: a GPU where there is one"))
    rows.append(("timed", "run", f"1 to {TIMED}", TIMED, "batches whose latency is measured; of generated texts fewer"))
    rows.append(("compile", "run", " | ".join(COMPILE[1:]), "", "a mode of torch.compile"))
    for part, settings in {"data": usual.data, "training": usual.train, "model": architecture}.items():
        left_out = set(settings.names()) - set(usual.data.settable()) if part == "data" else usual.data.decides
        for key, kind in settings.kinds().items():
            about = type(settings).model_fields[key]
            if key not in left_out and len(get_args(about.annotation)) != 1:
                rows.append((key, part, kind, getattr(settings, key), about.description or ""))
    return pd.DataFrame(rows, columns=["setting", "of", "type", "default", "meaning"])


def distinct(name: str, values: object) -> list:
    """A parameter that is a list, in which every value stands once."""
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not listed or not values or any(values.count(value) > 1 for value in values):
        raise RtxError(f"Parameter {name} is {values!r:.60}; expected a list of different values, as '{name}: [a, b]'.")
    return list(values)


def sweep(settings: Mapping[str, object]) -> list[dict]:
    """Every combination of settings of which some are lists: {"fraction": [0.1, 1.0]} is two."""
    lists = [distinct(key, value) if isinstance(value, list) else [value] for key, value in settings.items()]
    return [dict(zip(settings, values)) for values in product(*lists)]


def _choice(kind: str, chosen: object, known: Mapping[str, dict]) -> str:
    if chosen is None:
        return next(iter(known), "")
    if not isinstance(chosen, str) or chosen not in known:
        raise unknown(kind, chosen, known or ["none"])
    return chosen


def _applied(fixed: Experiment, entry: Entry, settings: Mapping[str, object]) -> SimpleNamespace:
    """Data, training and model of an experiment under these settings."""
    fields, decided = registry.find(entry.base).config.names(), fixed.data.decides
    of = {"data": fixed.data.settable(), "train": TrainConfig.names()}
    of["model"] = [name for name in fields if name not in decided]
    given: dict[str, dict] = {part: {} for part in of}
    for key, value in settings.items():
        part = next((part for part, names in of.items() if key in names), None)
        if key in ("model", "models", "seeds"):
            raise RtxError(f"{key} is no setting here: `run` takes one model and seed, `runs` lists, models and seeds.")
        if part is None and key in fixed.data.names():
            raise RtxError(f"{key} tells this experiment from others; leave it out, or name another experiment.")
        if part != "model" and key in of["model"]:
            raise RtxError(f"{key} is a setting of {entry.base} and of its {part}, too; call one of them otherwise.")
        if part is None and key not in decided:
            raise unknown(f"setting of a run of {entry.base}:", key, [*chain(*of.values())])
        given[part or "model"][key] = value
    if given["train"].get("steps"):
        given["train"].setdefault("epochs", 0)
    if (epochs := given["train"].get("epochs")) and not fixed.data.has_epochs:
        raise RtxError(f"epochs is {epochs!r:.40}, and a pass over these data has no end; give steps alone.")
    data, train = fixed.data.replace(**given["data"]), fixed.train.replace(**given["train"])
    given["model"] = entry.settings | given["model"]
    if taken := [key for key in decided if key in given["model"]]:
        raise RtxError(f"{taken[0]} of a model follows from the data that it is trained on; leave it out.")
    model = registry.config_of(entry.base, **given["model"])
    return SimpleNamespace(data=data, train=train, model=model)


def _shorter(full: TrainConfig, train: TrainConfig) -> bool:
    """Whether a run reads fewer texts in training than the experiment's own."""
    if full.epochs:
        return train.epochs < full.epochs
    return train.steps * train.batch_size < full.steps * full.batch_size
