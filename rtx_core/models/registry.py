"""Every model by name: its class, configuration, and how pictures show it.  torch is imported with a class alone.

A new architecture is one file beside this one and one line in `MODELS`; one from elsewhere, as a notebook's cell, is
registered by `register`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, TypeVar, overload

from rtx_core.errors import RtxError, unknown
from rtx_core.models.configs import EncoderConfig, GPTConfig, KausikConfig, LoopedConfig
from rtx_core.settings import Settings

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Model:
    """A registered model.  `kind` is a class, or "module:class" of one that is imported when it is first built."""

    kind: type | str
    config: Settings
    title: str = ""  # where one of these is not given, it follows from the name (`report.style.look`)
    colour: str = ""
    marker: str = ""

    @property
    def cls(self) -> type:
        return resolve_name(self.kind) if isinstance(self.kind, str) else self.kind


_ENCODER = "rtx_core.models.encoder:Encoder"
_RECURRENT = EncoderConfig(hidden_size=256, num_layers=3, num_passes=2, num_heads=4, intermediate_size=1024)
_WIDE = _RECURRENT.replace(hidden_size=384, num_heads=6, intermediate_size=1536)
_LOOPED = "rtx_core.models.looped:Looped"
_THREE_PART = LoopedConfig(
    num_core_layers=2,
    num_passes=7,  # fixed, with gradients through all of them: 1 + 7 · 2 + 1 = 16 layers are applied
    injection="linear",
    state_std=0.02,  # as the embedding's, Geiping et al.'s rule "like-init"; the study gives no value
    state_norm=True,
)

MODELS: dict[str, Model] = {
    "baseline": Model(_ENCODER, EncoderConfig(), "Baseline", "#4477aa", "o"),
    "recurrent": Model(_ENCODER, _RECURRENT, "Recurrent", "#ee6677", "s"),
    "recurrent-wide": Model(_ENCODER, _WIDE, "Recurrent, wide", "#aa3377", "D"),
    "gpt": Model("rtx_core.models.gpt:GPT", GPTConfig(), "GPT", "#117733", "o"),
    "kausik": Model("rtx_core.models.kausik:Kausik", KausikConfig(), "Kausik", "#d55e00", "s"),
    "control": Model(_LOOPED, LoopedConfig(), "Control", "#555555", "o"),
    "frailt": Model(_LOOPED, LoopedConfig(num_passes=4, encoding="pass"), "FraiLT", "#882255", "s"),
    "three-part": Model(_LOOPED, _THREE_PART, "Three Part", "#44aa99", "^"),
    "relaxed": Model(_LOOPED, LoopedConfig(num_passes=4, lora_rank=16), "Relaxed", "#b8a020", "D"),
    "looped": Model(_LOOPED, LoopedConfig(num_passes=4), "Looped", "#cc3311", "P"),
}


def find(name: str) -> Model:
    if not isinstance(name, str) or name not in MODELS:
        raise unknown("model", name, MODELS)
    return MODELS[name]


def check_name(name: str) -> None:
    """An error for a name that cannot be part of a record's file name."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]{,59}", name):
        raise RtxError(f"A model cannot be called {name!r:.70}; use at most 60 letters, digits, '-', '_' and '.'.")


def config_of(name: str, **overrides: object) -> Any:
    """The named configuration, of the model's own class, with some fields replaced."""
    return find(name).config.replace(**overrides)


@overload
def register(
    name: str, cls: Settings, config: None = None, *, title: str = "", colour: str = "", marker: str = ""
) -> Callable[[Class], Class]: ...


@overload
def register(
    name: str, cls: None = None, *, config: Settings, title: str = "", colour: str = "", marker: str = ""
) -> Callable[[Class], Class]: ...


@overload
def register(
    name: str, cls: Class, config: Settings, *, title: str = "", colour: str = "", marker: str = ""
) -> Class: ...


def register(name: str, cls: Any = None, config: Any = None, *, title="", colour="", marker="") -> Any:
    """Add a model: `register("gated", Gated, GatedConfig())`, or `@register("gated", GatedConfig())` above its class.

    A class is built as `cls(config)`.  An encoder maps a `Packed` batch to logits (B, C); a decoder maps (inputs,
    targets), (B, N) each or on TinyStories `Packed`, to its mean loss and, on k-hop and groups, inputs alone to logits
    (B, N, V); one with `start` and `advance`, as `GPT`, also writes texts.  A name registered before is replaced.
    Each run tries its model first: one step, saved and loaded (`experiments.dry_run`).
    """
    if isinstance(cls, Settings):
        cls, config = None, cls
    if cls is None:
        return lambda decorated: register(name, decorated, config, title=title, colour=colour, marker=marker)
    check_name(name)
    if not isinstance(cls, type):
        raise RtxError(f"What is registered as {name!r} is {cls!r:.60}; expected a class.")
    if name in MODELS and isinstance(MODELS[name].kind, str):
        raise RtxError(f"{name!r} is a model of this package; register yours under another name.")
    if not isinstance(config, Settings):
        raise RtxError(f"The config of {name!r} is {config!r:.60}; expected an instance of a subclass of Settings.")
    MODELS[name] = Model(cls, config, title, colour, marker)
    return cls
