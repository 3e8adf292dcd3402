"""The settings of a notebook: its parameters, checked.  Unknown names and wrong types stop here.

A field that differs from the experiment's own default names a variant: `sst2` with `epochs=1` is `sst2-epochs1`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import FunctionType, MappingProxyType, ModuleType

from rtx_core.corpora import subsets
from rtx_core.errors import RtxError, unknown
from rtx_core.training.protocol import Protocol

_PROTOCOL = {f.name: f for f in fields(Protocol)}

CLASSIFIERS = ("baseline", "recurrent", "recurrent-wide")  # of `rtx_core.models`, named here so that pages need no torch
ARCHITECTURE = ("residual", "num_layers", "num_passes")  # settings that are fields of a model's configuration


@dataclass(frozen=True)
class Settings:
    experiment: str
    corpus: str
    models: list = field(default_factory=lambda: ["baseline", "recurrent"])
    seeds: list = field(default_factory=lambda: [0])
    source: str = "real"  # real (mirror at RTX_DATA, else hub), hub, mirror or embedded
    split: str = "seeded"
    fraction: float = 1.0  # of the training texts, stratified by label; validation and test stay whole
    length: str = "all"  # or the "short" or the "long" texts of every part
    length_fraction: float = 0.3  # how large a share those are; the report says 30 %, its code took 10 %
    max_length: int = 128  # tokens, [CLS] and [SEP] included
    train_rows: int = 0  # a fixed random sample of this many training rows, for trials; 0 = all
    residual: str = "code"
    num_layers: int = 0  # of the models, with weights of their own; 0: as each model has them
    num_passes: int = 0  # through them; 0: as each model has them
    device: str = "auto"
    protocol: Protocol = field(default_factory=Protocol)

    def __post_init__(self):
        subsets.check(self.fraction, self.length, self.length_fraction)

    def but(self, **changes: object) -> "Settings":
        """The same settings but for these; another `experiment` brings its corpus."""
        known = {f.name: f for f in fields(Settings)} | _PROTOCOL
        for name, value in changes.items():
            changes[name] = _typed(name, value, known[name].type)
        if (experiment := changes.get("experiment", self.experiment)) not in EXPERIMENTS:
            raise unknown("experiment", experiment, EXPERIMENTS)
        protocol = replace(self.protocol, **{name: changes.pop(name) for name in list(changes) if name in _PROTOCOL})
        return replace(self, **changes, corpus=EXPERIMENTS[experiment].corpus, protocol=protocol)

    @property
    def data(self) -> dict[str, object]:
        """What `rtx_core.corpora.dataset.dataset` is asked for."""
        names = ("corpus", "source", "split", "max_length", "train_rows", "fraction", "length", "length_fraction")
        return {name: getattr(self, name) for name in names}

    @property
    def overrides(self) -> dict[str, object]:
        """What `build_model` is given beside the number of classes."""
        return {name: value for name in ARCHITECTURE if (value := getattr(self, name))}

    @property
    def subset(self) -> str:
        """The end of a name that says which part of the data is used; empty when all of it is."""
        share = "" if self.length_fraction == Settings.length_fraction else _percent(self.length_fraction)
        return (f"-{self.length}{share}" if self.length != "all" else "") + (f"-{_percent(self.fraction)}" if self.fraction < 1 else "")

    @property
    def reduced(self) -> dict[str, object]:
        """What differs from the report's own protocol; empty when nothing does."""
        changed = {k: v for k, v in vars(self.protocol).items() if v != getattr(Protocol(), k)}
        if self.train_rows:
            changed["train_rows"] = self.train_rows
        if self.max_length < EXPERIMENTS[self.experiment].max_length:
            changed["max_length"] = self.max_length
        return changed

    @property
    def effort(self) -> tuple[float, int]:
        """Orders budgets by size: by training rows, then epochs."""
        return self.train_rows or float("inf"), self.protocol.epochs

    @property
    def longer(self) -> dict[str, float]:
        """Models that are trained for more steps than the others: none."""
        return {}

    @property
    def variant(self) -> str:
        """The experiment's name with a suffix for every setting that decides numbers and is not the default."""
        default = EXPERIMENTS[self.experiment]
        name = self.experiment
        if self.split != default.split:
            name += f"-{self.split}"
        name += self.subset
        for key in ("max_length", "train_rows", *ARCHITECTURE):
            if getattr(self, key) != getattr(default, key):
                name += f"-{key.replace('_', '')}{_short(getattr(self, key))}"
        for key in _PROTOCOL:
            if getattr(self.protocol, key) != getattr(default.protocol, key):
                name += f"-{key.replace('_', '')}{_short(getattr(self.protocol, key))}"
        return name


EXPERIMENTS = {
    "sst2": Settings("sst2", "sst2"),
    "yelp": Settings("yelp", "yelp"),
    "multi-domain": Settings("multi-domain", "multi-domain"),
    "multi-domain-imdb": Settings("multi-domain-imdb", "multi-domain-imdb"),  # with film reviews as long as the others
    "quickstart": Settings("quickstart", "sst2", source="embedded", protocol=Protocol(epochs=1, learning_rate=3e-4, eval_every=55)),
}


def settings(experiment: str, given: Mapping[str, object], only: Sequence[str] = (), also: Mapping[str, type] = MappingProxyType({})) -> Settings:
    """Settings from a notebook's `globals()`, or from any mapping of names to plain values.

    `only` narrows the parameters to those that the notebook uses; `also` names ones it uses itself, with their types: a
    setting of which it compares several values is a list there, and stays at its default in what is returned.
    """
    from rtx_core import language  # whose settings use the checks below

    if experiment in language.LANGUAGE:
        return language.settings(experiment, given, only, also)
    if experiment not in EXPERIMENTS:
        raise unknown("experiment", experiment, [*EXPERIMENTS, *language.LANGUAGE])
    default = EXPERIMENTS[experiment]
    own = {f.name: f for f in fields(Settings) if f.name not in ("experiment", "corpus", "protocol")}
    known = list(dict.fromkeys([*also, *(only or [*own, *_PROTOCOL])]))
    changes, protocol = {}, {}
    for name, value in _parameters(given, known).items():
        if name not in known:
            raise unknown("parameter", name, known)
        if name in also:
            _typed(name, value, also[name])
        elif name in own:
            changes[name] = _typed(name, value, own[name].type)
        else:
            protocol[name] = _typed(name, value, _PROTOCOL[name].type)
    _typed_items("models", changes.get("models", default.models), str)
    for model in changes.get("models", ()):
        if model not in CLASSIFIERS:
            raise unknown("model", model, CLASSIFIERS)
    _typed_items("seeds", changes.get("seeds", default.seeds), int)
    return replace(default, **changes, protocol=replace(default.protocol, **protocol))


def _parameters(given: Mapping[str, object], known: Sequence[str]) -> dict[str, object]:
    """What a notebook's globals set: every known name, and any other plain value; not modules, functions, IPython's own."""
    ipython = {"In", "Out", "exit", "quit"}
    return {
        name: value
        for name, value in given.items()
        if name in known
        or (not name.startswith("_") and name not in ipython and type(value).__module__ == "builtins"
            and not isinstance(value, (ModuleType, FunctionType, type)) and not callable(value))
    }


def _typed(name: str, value: object, kind: type) -> object:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise RtxError(f"Parameter {name} is {value!r} of type {type(value).__name__}; expected {kind.__name__}.{_advice(name, kind)}")
    return value


def _typed_items(name: str, values: list, kind: type) -> None:
    if not values or any(type(v) is not kind for v in values) or len(set(values)) < len(values):
        raise RtxError(f"Parameter {name} is {values!r}; expected a list of distinct {kind.__name__} values.{_advice(name, list)}")
    if kind is int and min(values) < 0:
        raise RtxError(f"Parameter {name} is {values!r}; seeds are 0 or above.")


def _advice(name: str, kind: type) -> str:
    return f" With papermill: -y '{name}: [a, b]'." if kind is list else ""


def _percent(share: float) -> str:
    return f"{100 * share:g}pct"


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
