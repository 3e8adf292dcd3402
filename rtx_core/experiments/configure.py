"""A run is an experiment of the study with settings: `configure("sst2", "recurrent", seed=1, fraction=0.1)` gives its
whole configuration, and the folder of its records is named by what differs from the experiment's own: `sst2-10pct`.  No
torch here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from rtx_core import study
from rtx_core.data.config import ClassificationData, FactData, FilesData, GroupData, HopData
from rtx_core.errors import RtxError, unknown
from rtx_core.experiments import Entry, Experiment
from rtx_core.models import registry
from rtx_core.settings import Settings
from rtx_core.train.config import TrainConfig

COMPILE = ("", "default", "reduce-overhead", "max-autotune")
FIXED = ("corpus", "source")  # of the data; not in a run's name


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
    data: Settings
    train: TrainConfig
    device: str  # "auto", or torch's name
    compile: str  # a mode of torch.compile, "reduce-overhead" on a GPU
    asked: str | Mapping  # the model and
    given: dict  # the settings that this was made of


def experiment(name: str | FilesData) -> Experiment:
    """A named experiment, or the one that files of your own are."""
    if isinstance(name, FilesData):
        return Experiment(name)
    known = study.experiments()
    if not isinstance(name, str) or name not in known:
        raise unknown("experiment", name, known or ["files of your own (rtx.data.from_files)"])
    return known[name]


def entry_of(fixed: Experiment, model: str | Mapping) -> tuple[str, Entry]:
    """(name in tables, entry) of "recurrent" or {"base": "recurrent", "name": "rec-128", "hidden_size": 128}."""
    if isinstance(model, str):
        if model not in fixed.models and model not in registry.MODELS:
            raise unknown("model", model, dict.fromkeys([*fixed.shown, *registry.MODELS]))
        return model, fixed.models.get(model) or Entry(model)
    named = isinstance(model, Mapping) and {type(model.get("base")), type(model.get("name"))} == {str}
    if not named:
        raise RtxError(
            f"Model {model!r:.80} is no name and has no base and name; write {{base: recurrent, name: mine}}."
        )
    registry.check_name(model["name"])
    changed = {key: value for key, value in model.items() if key not in ("base", "name")}
    _, base = entry_of(fixed, model["base"])
    if model["name"] in fixed.models or model["name"] in registry.MODELS:
        raise RtxError(f"The name {model['name']!r} is that of another model; give this variant its own.")
    registry.config_of(base.base, **base.settings | changed)  # a setting that it does not have ends here
    return model["name"], Entry(base.base, base.settings | changed, base.steps_factor)


def configure(name: str | FilesData, model: str | Mapping, /, seed: int = 0, **settings: object) -> RunConfig:
    """The whole configuration of one run; every setting is one of the data, of the training, or of the model."""
    fixed = experiment(name)
    label, entry = entry_of(fixed, model)
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise RtxError(f"The seed is {seed!r:.40}; expected a whole number from 0 to {2**31 - 1}.")
    labelled = isinstance(fixed.data, ClassificationData | FilesData)
    built_in = isinstance(registry.find(entry.base).kind, str)
    if built_in and ("num_labels" in registry.config_of(entry.base).names()) != labelled:
        asks = "labels of texts" if labelled else "what comes next"
        raise RtxError(
            f"{name if isinstance(name, str) else 'own data'} asks for {asks}, which {label} cannot give."
        )
    given = dict(settings)
    device, compile = settings.pop("device", "auto"), settings.pop("compile", "")
    if compile not in COMPILE:
        raise unknown("mode of torch.compile", compile, COMPILE)
    recipe = _choice("recipe", settings.pop("recipe", None), fixed.recipes)
    budget = _choice("budget", settings.pop("budget", None), fixed.budgets)
    large, small = fixed.recipes.get(recipe, {}), fixed.budgets.get(budget, {})
    full, usual = _apply(fixed, entry, large), _apply(fixed, entry, large | small)
    data, train, overrides = _apply(fixed, entry, large | small | settings)
    own = isinstance(name, FilesData)  # has no budget but the one that it is given
    called, folder = ("own-data", f"own-{name.slug}") if own else (name, name)
    parts = [folder, recipe, budget if small else ""]
    parts += _data_parts(usual[0], data) + _changed_parts(overrides)
    parts += _changed_parts(dict(train), dict(usual[1]))
    reduced = not own and (_shorter(full[1], train) or _smaller(full[0], data))
    if entry.steps_factor != 1:
        train = train.but(steps=round(train.steps * entry.steps_factor))
    return RunConfig(
        experiment=called,
        name="-".join(filter(None, parts)),
        model=label,
        seed=seed,
        recipe=recipe,
        budget="reduced" if reduced else "full",
        architecture=entry.base,
        overrides=entry.settings | overrides,
        data=data,
        train=train,
        device=device,
        compile=compile,
        asked=model,
        given=given,
    )


def sweep(settings: Mapping[str, object]) -> list[dict]:
    """Every combination of settings of which some are lists: {"fraction": [0.1, 1.0]} is two."""
    lists = {key: value if isinstance(value, list) else [value] for key, value in settings.items()}
    for key, values in lists.items():
        if not values:
            raise RtxError(f"Setting {key} is []; expected a value or a list of at least one.")
    return [dict(zip(lists, values)) for values in product(*lists.values())]


def _choice(kind: str, chosen: object, known: Mapping[str, dict]) -> str:
    if chosen is None:
        return next(iter(known), "")
    if not isinstance(chosen, str) or chosen not in known:
        raise unknown(kind, chosen, known or ["none"])
    return chosen


def _apply(
    fixed: Experiment, entry: Entry, settings: Mapping[str, object]
) -> tuple[Settings, TrainConfig, dict]:
    """(data, training, overrides of the model's configuration) of an experiment under these settings."""
    data, train, model = {}, {}, {}
    fields = registry.config_of(entry.base).names()
    for key, value in settings.items():
        if (
            key == "source"
            and isinstance(fixed.data, HopData | GroupData | FactData)
            and value in ("real", "hub", "mirror")
        ):
            continue  # it is drawn anew, whatever texts the other runs read
        if isinstance(fixed.data, FilesData) and key != "max_length" and key in fixed.data.names():
            raise RtxError(f"{key} is a setting of the data: give it to from_files.")
        if key in fixed.data.names() and key != "corpus":
            data[key] = value
        elif key in TrainConfig.names():
            train[key] = value
        elif key in fields:
            model[key] = value
        else:
            known = [*(key for key in fixed.data.names() if key != "corpus"), *TrainConfig.names(), *fields]
            raise unknown(f"setting of a run of {entry.base}:", key, known)
    made = registry.config_of(entry.base, **entry.settings | model)  # values that do not go together end here
    model = {key: getattr(made, key) if isinstance(value, list) else value for key, value in model.items()}
    usual = registry.config_of(entry.base, **entry.settings)
    # in one order, and what changes nothing is not said
    model = {key: model[key] for key in fields if key in model and model[key] != getattr(usual, key)}
    if train.get("steps"):
        train.setdefault("epochs", 0)
    return fixed.data.but(**data), fixed.train.but(**train), model


def _shorter(full: TrainConfig, train: TrainConfig) -> bool:
    """Whether a run reads fewer texts in training than the experiment's own."""
    if full.epochs:
        return train.epochs < full.epochs
    return train.steps * train.batch_size < full.steps * full.batch_size


def _smaller(full: Settings, data: Settings) -> bool:
    """Whether a run sees less of its data than the experiment's own, apart from a subset that is the point of it."""
    return bool(getattr(data, "train_rows", 0)) or any(
        getattr(data, key) < getattr(full, key)
        for key in ("max_length", "block_size", "eval_batches")
        if key in data.names()
    )


def _data_parts(usual: Settings, data: Settings) -> list[str]:
    changed = {k: v for k, v in data if v != getattr(usual, k, None) and k not in FIXED}
    parts = [changed.pop("split")] if "split" in changed else []
    share = changed.pop("length_fraction", None)
    if length := changed.pop("length", None):
        parts.append(f"{length}{_percent(share) if share else ''}")
    if fraction := changed.pop("fraction", None):
        parts.append(_percent(fraction))
    return parts + _changed_parts(changed)


def _changed_parts(values: Mapping[str, object], usual: Mapping[str, object] = {}) -> list[str]:
    """`maxlength512` of {"max_length": 512}."""
    changed = {k: v for k, v in values.items() if k not in usual or v != usual[k]}
    if changed.get("steps") and changed.get("epochs") == 0:
        del changed["epochs"]
    return [f"{k.replace('_', '')}{f'{v:g}' if isinstance(v, float) else v}" for k, v in changed.items()]


def _percent(share: float) -> str:
    return f"{100 * share:g}pct"
