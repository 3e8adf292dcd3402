"""What the measuring commands share: `python -m rtx_core.evaluation.… EXPERIMENT… [name=value …]`, and the trained weights."""

import sys
from collections.abc import Callable

import torch
import yaml
from torch import nn

from rtx_core.corpora.sources import resolve
from rtx_core.errors import RtxError
from rtx_core.parameters import Settings
from rtx_core.results import store
from rtx_core.results.record import Record


def command(measure: Callable, experiments: str) -> None:
    """Call `measure(*names, {name: value})` with what the command line says; bad input ends in one sentence.

    `experiments` are the names that it takes, as its usage shows them: "FROM TO".
    """
    words = sys.argv[1:]
    names = [word for word in words if "=" not in word]
    if len(names) != len(experiments.split()):
        sys.exit(f"usage: python -m {sys.modules['__main__'].__spec__.name} {experiments} [name=value …]")
    try:
        measure(*names, {name: yaml.safe_load(value) for name, _, value in (word.partition("=") for word in words if "=" in word)})
    except RtxError as error:
        sys.exit(str(error))


def trained(settings: Settings, name: str, seed: int, device: torch.device | str = "cpu") -> tuple[Record, nn.Module]:
    """A recorded run and its model, whose weights lie where the run was made."""
    from rtx_core.models import load_model
    from rtx_core.run import work  # brings the whole of training, which the yardstick does not need

    found = store.find(resolve(settings.source), settings.variant, name, seed)
    if found is None:
        raise RtxError(f"There is no record of {settings.variant}, {name}, seed {seed}; run its notebook first.")
    weights = work(settings, found["key"]) / "model.safetensors"
    if not weights.exists():
        raise RtxError(f"The trained weights of {settings.variant}, {name}, seed {seed}, are not in _build/runs; measure where the run was made.")
    return found, load_model(weights).to(device)


def say(*parts: object) -> None:
    print(" · ".join(map(str, parts)), flush=True)
