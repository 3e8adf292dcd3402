"""Methods."""

from rtx_core.experiments.configure import configure
from rtx_core.models.registry import config_of
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from rtx_core.train.config import TrainConfig
from study.experiments import EXPERIMENTS


def recipe(experiment: str) -> TrainConfig:
    """How the models of an experiment train."""
    return configure(experiment, EXPERIMENTS[experiment].default_models[0]).train


def quantities() -> Quantities:
    """Of the recipes that experiments declare."""
    protocol, pointers = recipe("sst2"), recipe("khop")
    decoder = config_of("looped", **EXPERIMENTS["khop"].models["1x4"].settings)
    numbers = {
        "weight_decay": lambda: number(protocol.weight_decay, "g"),
        "batch": lambda: number(protocol.batch_size, ","),
        "warmup": lambda: number(protocol.warmup_steps, ","),
        "clip_norm": lambda: number(protocol.clip_norm, ".1f"),
        "plateau_patience": lambda: number(protocol.plateau_patience, ","),
        "epochs": lambda: number(protocol.epochs, ","),
        "stop_patience": lambda: number(protocol.stop_patience, ","),
        "stop_min_delta": lambda: number(protocol.stop_min_delta, ".3f"),
        "initializer_std": lambda: number(decoder.initializer_std, "g"),
        "least_rate": lambda: number(pointers.min_learning_rate, "g"),
        "decoders_clip_norm": lambda: number(pointers.clip_norm, "g"),
    }
    checks = {
        "weight_decay": lambda: [protocol.learning_rate == 3e-5],
        "plateau_patience": lambda: [
            protocol.plateau_factor == 0.5,
            protocol.stop_patience <= protocol.plateau_patience + 1,
        ],
        "protocol": lambda: [protocol.eval_every == 0, protocol.precision == "fp32"],
    }
    return Quantities(numbers, checks)
