"""Losses before training, over many initialisations: `python -m rtx_core.evaluation.initial tinystories [name=value …]`.

The study lists one initial loss a model, 8.369 to 8.390, and concludes that initialisation decides which model ends best.
How far such losses differ between seeds of one model tells whether that order is more than chance; seconds suffice.
"""

import sys
from importlib import import_module

import yaml

from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.language import LANGUAGE, LanguageSettings
from rtx_core.language import settings as language_settings
from rtx_core.models import build_model
from rtx_core.results import measurement
from rtx_core.results.measurement import Measurement
from rtx_core.training.devices import device, environment
from rtx_core.training.language import losses_of, mean_and_error
from rtx_core.training.protocol import Seeds
from rtx_core.training.step import autocast_of

SEEDS = 10
BATCHES = 2  # of the evaluation's


def initial(settings: LanguageSettings, seeds: int = SEEDS) -> Measurement:
    """The loss of every model and seed on the same validation stories, before any training; recorded."""
    made_by, where, recipe = measurement.made_by("initial"), device(settings.device), settings.training
    data = import_module(f"rtx_core.corpora.{LANGUAGE[settings.experiment].corpus}").data(resolve(settings.source), recipe)
    batches, losses = data.evaluation()["validation"][:BATCHES], {}
    for name in settings.models:
        architecture, overrides = settings.build_arguments(name, data.vocab_size)
        losses[name] = []
        for seed in range(seeds):
            model = build_model(architecture, seed=Seeds.of(seed).initialization, **overrides).to(where)
            losses[name].append(mean_and_error(*losses_of(model, batches, where, autocast_of("fp32", where)))[0])
        print(f"{name}: {min(losses[name]):.4f} to {max(losses[name]):.4f}", flush=True)
    return measurement.save({
        "kind": "initial", "of": settings.experiment, "name": "losses", "model": ", ".join(losses), "seed": 0, "protocol": settings.recipe,
        "data": data.facts, "environment": environment(where), "losses": losses, "n": sum(len(targets) for _, targets in batches),
        "code": made_by,
    })  # fmt: skip


def main(arguments: list[str]) -> None:
    if not arguments:
        raise RtxError("usage: python -m rtx_core.evaluation.initial EXPERIMENT [name=value …]")
    given = {name: yaml.safe_load(value) for name, _, value in (pair.partition("=") for pair in arguments[1:])}
    initial(language_settings(arguments[0], given))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RtxError as error:
        sys.exit(str(error))
