"""The settings of a notebook: its parameters, checked.  Unknown names and wrong types stop here.

A field that differs from the experiment's own default names a variant: `sst2` with `epochs=1` is `sst2-epochs1`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import FunctionType, MappingProxyType, ModuleType

from rtx_core.errors import RtxError, unknown
from rtx_core.training.protocol import Protocol

_PROTOCOL = {f.name: f for f in fields(Protocol)}


CLASSIFIERS = ("baseline", "recurrent", "recurrent-wide")  # of `rtx_core.models`, named here so that pages need no torch


@dataclass(frozen=True)
class Settings:
    experiment: str
    corpus: str
    models: list = field(default_factory=lambda: ["baseline", "recurrent"])
    seeds: list = field(default_factory=lambda: [0])
    source: str = "real"  # real (mirror at RTX_DATA, else hub), hub, mirror or embedded
    split: str = "seeded"
    max_length: int = 128  # tokens, [CLS] and [SEP] included
    train_rows: int = 0  # a fixed random sample of this many training rows, for trials; 0 = all
    residual: str = "code"
    device: str = "auto"
    protocol: Protocol = field(default_factory=Protocol)

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
    def variant(self) -> str:
        """The experiment's name with a suffix for every setting that decides numbers and is not the default."""
        default = EXPERIMENTS[self.experiment]
        name = self.experiment
        if self.split != default.split:
            name += f"-{self.split}"
        for key in ("max_length", "train_rows", "residual"):
            if getattr(self, key) != getattr(default, key):
                name += f"-{key.replace('_', '')}{_short(getattr(self, key))}"
        for key in _PROTOCOL:
            if getattr(self.protocol, key) != getattr(default.protocol, key):
                name += f"-{key.replace('_', '')}{_short(getattr(self.protocol, key))}"
        return name


EXPERIMENTS = {
    "sst2": Settings("sst2", "sst2"),
    "quickstart": Settings("quickstart", "sst2", source="embedded", protocol=Protocol(epochs=1, learning_rate=3e-4, eval_every=55)),
}


def settings(experiment: str, given: Mapping[str, object], only: Sequence[str] = (), also: Mapping[str, type] = MappingProxyType({})) -> Settings:
    """Settings from a notebook's `globals()`, or from any mapping of names to plain values.

    `only` narrows the parameters to those that the notebook uses; `also` names ones it uses itself, with their types.
    """
    if experiment not in EXPERIMENTS:
        raise unknown("experiment", experiment, EXPERIMENTS)
    default = EXPERIMENTS[experiment]
    own = {f.name: f for f in fields(Settings) if f.name not in ("experiment", "corpus", "protocol")}
    known = [*also, *(only or [*own, *_PROTOCOL])]
    changes, protocol = {}, {}
    for name, value in _parameters(given, known).items():
        if name not in known:
            raise unknown("parameter", name, known)
        if name in own:
            changes[name] = _typed(name, value, own[name].type)
        elif name in _PROTOCOL:
            protocol[name] = _typed(name, value, _PROTOCOL[name].type)
        else:
            _typed(name, value, also[name])
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


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
