"""A run's whole state in one file, so that a killed run goes on where it was.

A new file takes the name of the old one only when it is complete, so a kill leaves a whole checkpoint at every moment.
"""

import os
from pathlib import Path
from pickle import UnpicklingError

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: dict[str, Tensor], state: dict) -> None:
    """Weights, optimizer moments, best weights, random states and what else makes the run's `state`.

    Weights that are no longer finite are refused, so that the checkpoint on disk is from before training diverged.
    """
    if not all(torch.isfinite(weights).all() for weights in model.parameters()):
        raise RtxError("Training diverged: the weights are no longer finite; lower learning_rate.")
    content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "best": best, "state": state}
    content["random"] = [torch.get_rng_state(), torch.cuda.get_rng_state() if torch.cuda.is_available() else None]
    temporary = path.with_name(f".{path.name}.partial")  # all that a kill leaves; the next save overwrites it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(content, temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        temporary.unlink(missing_ok=True)
        kept = "; the last one is whole, and the same command goes on from it" if path.exists() else ""
        reason = str(error).partition("\n")[0]
        raise RtxError(f"The checkpoint {path.name} cannot be written ({reason}); make room{kept}.") from error


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict] | None:
    """Put the saved state back into model, optimizer and generators.

    Returns (best weights, the `state`), or None where there is no file.  A file that cannot be read, or is of another
    model, is an error, and stays.
    """
    if not path.exists():
        return None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        cpu, cuda = found["random"]
        torch.set_rng_state(cpu)
        if cuda is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(cuda)
        device = next(model.parameters()).device
        return {name: tensor.to(device) for name, tensor in found["best"].items()}, found["state"]
    except (OSError, UnpicklingError, EOFError, LookupError, ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:120]
        raise RtxError(f"The checkpoint {path.name} is damaged or of another run ({reason}); delete it.") from error
