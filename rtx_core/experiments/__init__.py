"""Experiments: what a study declares, a run of one of them, and what a run leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rtx_core.data.config import DataConfig
from rtx_core.train.config import TrainConfig


@dataclass(frozen=True)
class ModelVariant:
    """A model of an experiment: a registered one with some settings changed, under its own name."""

    base: str
    settings: dict = field(default_factory=dict)
    steps_factor: float = 1.0  # times the steps of the others


@dataclass(frozen=True)
class Experiment:
    """Data, the way of training, and the models that are compared."""

    data: DataConfig
    train: TrainConfig = TrainConfig()
    models: Mapping[str, ModelVariant] = field(default_factory=dict)  # by name, next to the registered ones
    default_models: tuple[str, ...] = ("baseline", "recurrent")  # models of a run that names none
    seeds: tuple[int, ...] = (0,)
    keep_weights: bool = False  # beside the records: only of small models
    recipes: Mapping[str, dict] = field(default_factory=dict)  # named settings; the first is the default
    # smaller ones by name; the first is the default
    budgets: Mapping[str, dict] = field(default_factory=lambda: {"full": {}})
