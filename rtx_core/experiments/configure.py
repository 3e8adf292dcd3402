"""A run is an experiment of the study with settings: `configure("sst2", "recurrent", seed=1, fraction=0.1)` gives its
whole configuration.  The folder of its records is named by what differs from the experiment: `sst2-10pct`.  No torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from types import SimpleNamespace
from typing import Any, get_args

import pandas as pd

from rtx_core.data.config import DataConfig, name_parts
from rtx_core.data.sources import resolve
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments import Experiment, ModelVariant
from rtx_core.models import registry
from rtx_core.study import declaration
from rtx_core.train.config import DEVICES, TrainConfig

RESERVED = ("seed", "seeds", "model", "models", "replace", "recipe", "budget", "device", "compile", "timed")
RESERVED += ("experiment", "name", "record", "stale", "accuracy", "loss", "f1", "recall")  # columns of results
RESERVED += ("n_train", "n_test", "parameters")
TIMED_BATCHES = 200  # whose latency is measured
TIMED_BATCHES_SYNTHETIC = 20  # of generated texts, which pages quote nowhere
MAX_NAME_BYTES = 180  # bytes of a folder's name: with model and seed it is a part of a file's, of at most 255
PAPER_THREADS = 1  # of the CPU: every run of the paper was made on one
COMPILE = ("", "graph", "layers", "default", "reduce-overhead", "max-autotune")


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
    compile: str  # "graph" or a mode of torch.compile, on a GPU, or "layers"; like the device no part of the name
    timed: int  # batches or texts whose latency is measured, no part of the name either
    threads: int  # of the CPU; 0: what it has free, of generated texts and of your own data
    model_spec: str | Mapping  # the model that `configure` was called with
    settings: dict  # and its settings


def find_experiment(name: str | DataConfig) -> Experiment:
    """A named experiment, or the one that data of your own are."""
    if isinstance(name, DataConfig):
        name.check_recordable()
        if clash := {*TrainConfig.names(), *RESERVED} & {*name.settable()}:
            raise RtxError(f"{type(name).__name__} has a setting {min(clash)!r}, as every run has: call it otherwise.")
        models, built_in = {}, (model for model, entry in registry.MODELS.items() if isinstance(entry.kind, str))
        for model in built_in if name.model_defaults else ():
            fields = registry.find(model).config.names()
            models[model] = ModelVariant(
                model, {field: size for field, size in name.model_defaults.items() if field in fields}
            )
        default_models = ("baseline", "recurrent") if name.labeled else ("gpt", "looped")
        return Experiment(name, TrainConfig(**name.train_defaults), models, default_models)
    if isinstance(name, type) and issubclass(name, DataConfig):
        raise RtxError(f"{name.__name__} is a class of data: give one of it, {name.__name__}() with its settings.")
    experiments = declaration("EXPERIMENTS")
    if not isinstance(name, str) or name not in experiments:
        raise unknown("experiment", name, experiments or ["files of your own (rtx.data.from_files)"])
    return experiments[name]


def find_variant(experiment: Experiment, model: str | Mapping) -> tuple[str, ModelVariant]:
    """(name in tables, variant) of "recurrent" or {"base": "recurrent", "name": "rec-128", "hidden_size": 128}."""
    if isinstance(model, str):
        if model not in experiment.models and model not in registry.MODELS:
            raise unknown("model", model, dict.fromkeys([*experiment.models, *registry.MODELS]))
        variant, registered = experiment.models.get(model) or ModelVariant(model), registry.MODELS.get(model)
        if registered and variant.base != model and not isinstance(registered.kind, str):
            raise RtxError(f"{model!r} is a model of this experiment, too; register yours under another name.")
        return model, variant
    if not isinstance(model, Mapping) or {type(model.get("base")), type(model.get("name"))} != {str}:
        raise RtxError(f"Model {model!r:.60} has no base and name; write its name, or {{base: recurrent, name: mine}}.")
    registry.check_name(model["name"])
    overrides = {key: value for key, value in model.items() if key not in ("base", "name")}
    _, base = find_variant(experiment, model["base"])
    if model["name"] in experiment.models or model["name"] in registry.MODELS:
        raise RtxError(f"The name {model['name']!r} is that of another model; give this variant its own.")
    registry.config_of(base.base, **base.settings | overrides)  # a setting that it does not have ends here
    return model["name"], ModelVariant(base.base, base.settings | overrides, base.steps_factor)


def fits(architecture: str, data: DataConfig) -> bool:
    """Whether a registered model can be trained on such data; a class that is registered elsewhere is not judged."""
    model = registry.find(architecture)
    return not isinstance(model.kind, str) or isinstance(model.config, data.model_configs)


def configure(name: str | DataConfig, model: str | Mapping, /, seed: int = 0, **settings: Any) -> RunConfig:
    """The whole configuration of one run; every setting is one of the data, of the training, or of the model."""
    experiment = find_experiment(name)
    experiment_name, folder = (name, name) if isinstance(name, str) else ("own-data", f"own-{name.slug}")
    label, variant = find_variant(experiment, model)
    seed, settings = _plain(seed), {key: _plain(value) for key, value in settings.items()}
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise RtxError(f"The seed is {seed!r:.40}; expected a whole number from 0 to {2**31 - 1}.")
    if not fits(variant.base, experiment.data):
        choices = ", ".join(name for name in registry.MODELS if fits(name, experiment.data))
        message = f"The model {label!r} does not fit the data of {experiment_name}"
        raise RtxError(f"{message}; choose one that does: {choices}.")
    request = dict(settings)
    device, compile = settings.pop("device", "auto"), settings.pop("compile", "")
    timed = settings.pop("timed", TIMED_BATCHES)
    if type(timed) is not int or not 1 <= timed <= TIMED_BATCHES:
        raise RtxError(f"timed is {timed!r:.40}; expected a number of batches from 1 to {TIMED_BATCHES}.")
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if compile not in COMPILE:
        raise unknown("way to compile", compile, COMPILE[1:])
    recipe = _choice("recipe", settings.pop("recipe", None), experiment.recipes)
    budget = _choice("budget", settings.pop("budget", None), experiment.budgets)
    recipe_settings, budget_settings = experiment.recipes.get(recipe, {}), experiment.budgets.get(budget, {})
    # from the general to the particular; of two that set the same, the later counts
    full = _apply(experiment, variant, recipe_settings)
    default = _apply(experiment, variant, recipe_settings | budget_settings)
    effective = _apply(experiment, variant, recipe_settings | budget_settings | settings)
    if not isinstance(name, str):
        effective.data.check_recordable()
    if not isinstance(registry.find(variant.base).kind, str):
        effective.model.check_recordable()
    parts = [folder, recipe, budget if budget_settings else "", *effective.data.name_parts(default.data)]
    changed = effective.model.changes(default.model) | effective.train.changes(default.train)
    if changed.get("steps") and changed.get("epochs") == 0:  # as it must be where steps are counted
        del changed["epochs"]
    parts += name_parts(changed)
    smaller = _shorter(full.train, effective.train) or effective.data.is_smaller_than(full.data)
    train, unit = effective.train, "steps" if effective.train.steps else "epochs"
    if variant.steps_factor != 1:
        train = train.replace(**{unit: round(getattr(train, unit) * variant.steps_factor)})
    if len((run_name := "-".join(filter(None, parts))).encode()) > MAX_NAME_BYTES:
        problem = f"The folder of these runs would be called {run_name:.60}…, more than {MAX_NAME_BYTES} bytes"
        raise RtxError(f"{problem}; change fewer settings at once, or name files shorter by from_files(name=).")
    return RunConfig(
        experiment=experiment_name,
        name=run_name,
        model=label,
        seed=seed,
        recipe=recipe,
        budget="reduced" if smaller and isinstance(name, str) else "full",  # own data have no other
        architecture=variant.base,
        overrides=effective.model.changes(registry.find(variant.base).config),
        data=effective.data,
        source=resolve(effective.data.source),
        train=train,
        keep_weights=experiment.keep_weights and effective.data.source != "embedded",
        device=device,
        compile=compile,
        timed=min(timed, TIMED_BATCHES_SYNTHETIC) if effective.data.source == "embedded" else timed,
        threads=PAPER_THREADS if isinstance(name, str) and effective.data.source != "embedded" else 0,
        model_spec=model,
        settings=request,
    )


def _plain(value: Any) -> Any:
    """A number of NumPy's, or of torch's, as Python's own."""
    return value.item() if hasattr(value, "dtype") and not value.shape else value


def settings_of(name: str | DataConfig, model: str | Mapping = "", /, **settings: Any) -> pd.DataFrame:
    """A row for each setting of a run of this experiment and model (of none: its first): `setting`, what it is `of`,
    its `type`, its `default` (under other `settings`, such as a recipe) and its `meaning`."""
    experiment = find_experiment(name)
    default = configure(name, model or experiment.default_models[0], **settings)
    architecture = registry.find(default.architecture).config.replace(**default.overrides)
    rows: list[tuple] = [("seed", "run", "int >= 0", 0, "of the initial weights, the order of the texts and dropout")]
    if experiment.recipes:
        rows.append(("recipe", "run", " | ".join(experiment.recipes), default.recipe, "named settings"))
    budget = settings.get("budget", next(iter(experiment.budgets)))
    rows.append(("budget", "run", " | ".join(experiment.budgets), budget, "named smaller settings"))
    rows.append(("device", "run", " | ".join(DEVICES), "auto", "what trains; auto: a GPU where there is one"))
    meaning = "batches whose latency is measured; of generated texts fewer"
    rows.append(("timed", "run", f"1 to {TIMED_BATCHES}", TIMED_BATCHES, meaning))
    meaning = "graph (a CUDA graph), layers (on a CPU), or a mode of torch.compile"
    rows.append(("compile", "run", " | ".join(COMPILE[1:]), "", meaning))
    for part, group in {"data": default.data, "training": default.train, "model": architecture}.items():
        hidden = set(group.names()) - set(default.data.settable()) if part == "data" else default.data.derived_fields
        for key, kind in group.kinds().items():
            field = type(group).model_fields[key]
            if key not in hidden and len(get_args(field.annotation)) != 1:
                rows.append((key, part, kind, getattr(group, key), field.description or ""))
    return pd.DataFrame(rows, columns=["setting", "of", "type", "default", "meaning"])


def distinct(name: str, values: object) -> list:
    """A parameter that is a list, in which every value stands once."""
    listed = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else []
    if not listed or any(listed.count(value) > 1 for value in listed):
        raise RtxError(f"Parameter {name} is {values!r:.60}; expected a list of different values, as '{name}: [a, b]'.")
    return listed


def sweep(settings: Mapping[str, Any]) -> list[dict]:
    """Every combination of settings of which some are lists: {"fraction": [0.1, 1.0]} is two."""
    lists = [distinct(key, value) if isinstance(value, list) else [value] for key, value in settings.items()]
    return [dict(zip(settings, values)) for values in product(*lists)]


def _choice(kind: str, value: object, choices: Mapping[str, dict]) -> str:
    if value is None:
        return next(iter(choices), "")
    if not isinstance(value, str) or value not in choices:
        raise unknown(kind, value, choices or ["none"])
    return value


def _apply(experiment: Experiment, variant: ModelVariant, settings: Mapping[str, object]) -> SimpleNamespace:
    """Data, training and model of an experiment under these settings."""
    model_fields, decided = registry.find(variant.base).config.names(), experiment.data.derived_fields
    fields = {"data": experiment.data.settable(), "train": TrainConfig.names()}
    fields["model"] = [name for name in model_fields if name not in decided]
    values: dict[str, dict] = {part: {} for part in fields}
    for key, value in settings.items():
        part = next((part for part, names in fields.items() if key in names), None)
        if key in ("model", "models", "seeds"):
            raise RtxError(f"{key} is no setting here: `run` takes one model and seed, `runs` lists, models and seeds.")
        if part is None and key in experiment.data.names():
            raise RtxError(f"{key} tells this experiment from others; leave it out, or name another experiment.")
        if part != "model" and key in fields["model"]:
            raise RtxError(f"{key} is a setting of {variant.base} and of its {part}, too; call one of them otherwise.")
        if part is None and key not in decided:
            raise unknown(f"setting of a run of {variant.base}:", key, [*chain(*fields.values())])
        values[part or "model"][key] = value
    if values["train"].get("steps"):
        values["train"].setdefault("epochs", 0)
    if (epochs := values["train"].get("epochs")) and not experiment.data.has_epochs:
        raise RtxError(f"epochs is {epochs!r:.40}, and a pass over these data has no end; give steps alone.")
    data, train = experiment.data.replace(**values["data"]), experiment.train.replace(**values["train"])
    values["model"] = variant.settings | values["model"]
    if derived := [key for key in decided if key in values["model"]]:
        raise RtxError(f"{derived[0]} of a model follows from the data that it is trained on; leave it out.")
    model = registry.config_of(variant.base, **values["model"])
    return SimpleNamespace(data=data, train=train, model=model)


def _shorter(full: TrainConfig, train: TrainConfig) -> bool:
    """Whether a run reads fewer texts in training than the experiment's own."""
    if full.epochs:
        return train.epochs < full.epochs
    return train.steps * train.batch_size < full.steps * full.batch_size
