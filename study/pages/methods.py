"""Methods."""

from rtx_core.experiments.configure import configure
from rtx_core.models.registry import config_of
from rtx_core.report import number
from rtx_core.report.quantities import Quantities
from rtx_core.train.config import TrainConfig
from study.experiments import EXPERIMENTS
from study.plan import SMALL

RECIPES = {  # rows of the table -> experiment
    "pointers": "khop",
    "hard_pointers": "khop-hard",
    "facts": "facts",
    "products": "state-tracking",
    "characters": "iso-depth",
    "kausik": "shakespeare-small",
    "stories": "tinystories-small",
}


def recipe(experiment: str) -> TrainConfig:
    """How the models of an experiment train; those of `SMALL` at the rate that was chosen for all of them."""
    model = EXPERIMENTS[experiment].default_models[0]
    return configure(experiment, model, **SMALL.get(experiment, {})).train


def row(name: str, experiment: str) -> dict[str, str]:
    """The numbers of one row of the table of recipes."""
    train = recipe(experiment)
    return {
        f"{name}_duration": number(train.steps or train.epochs, ","),
        f"{name}_batch": number(train.batch_size, ","),
        f"{name}_rate": number(train.learning_rate, "g"),
        f"{name}_warmup": number(train.warmup_steps, ","),
        f"{name}_beta2": number(train.beta2, "g"),
        f"{name}_decay": number(train.weight_decay, "g"),
    }


def quantities() -> Quantities:
    """Of the recipes that experiments declare."""
    protocol, pointers = recipe("sst2"), recipe("khop")
    decoder = config_of("looped", **EXPERIMENTS["khop"].models["1x4"].settings)
    rows = {key: text for name, experiment in RECIPES.items() for key, text in row(name, experiment).items()}
    numbers = {
        "weight_decay": lambda: number(protocol.weight_decay, "g"),
        "batch": lambda: number(protocol.batch_size, ","),
        "warmup": lambda: number(protocol.warmup_steps, ","),
        "clip_norm": lambda: number(protocol.clip_norm, ".1f"),
        "plateau_patience": lambda: number(protocol.plateau_patience, ","),
        "epochs": lambda: number(protocol.epochs, ","),
        "stop_patience": lambda: number(protocol.stop_patience, ","),
        "stop_min_delta": lambda: number(protocol.stop_min_delta, ".3f"),
        **{key: lambda text=text: text for key, text in rows.items()},
        "heads": lambda: number(decoder.num_heads, ","),
        "rope_base": lambda: number(decoder.rope_base, "g"),
        "units": lambda: number(decoder.intermediate_size, ","),
        "width": lambda: number(decoder.hidden_size, ","),
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
        "recipes": lambda: [
            all(train.schedule == "cosine" and train.warmup_steps > 0 for train in map(recipe, RECIPES.values()))
        ],
    }
    return Quantities(numbers, checks)
