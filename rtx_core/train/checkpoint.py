"""A run's whole state in one safetensors file, so that a killed run goes on where it was.

A new file takes the name of the old one only when it is complete, so a kill leaves a whole checkpoint at every moment.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.build import untied
from rtx_core.train.optimizer import MuonAndAdamW

Optimizer = torch.optim.Optimizer | MuonAndAdamW


def save(path: Path, model: nn.Module, optimizer: Optimizer, best: dict[str, Tensor], state: dict) -> None:
    """Weights, optimizer moments, best weights and random states as tensors; the rest as JSON in the header.

    Weights that are no longer finite are refused, so that the checkpoint on disk is from before training diverged.
    """
    if not all(torch.isfinite(weights).all() for weights in model.parameters()):
        raise RtxError("Training diverged: the weights are no longer finite; lower learning_rate.")
    tensors = {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best/{k}": v for k, v in best.items()}
    for i, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{i}/{k}": v for k, v in moments.items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    temporary = path.with_name(f".{path.name}.partial")  # all that a kill leaves; the next save overwrites it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(untied(tensors), temporary, metadata={"state": json.dumps(state)})
        os.replace(temporary, path)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        advice = "; the last one is whole, and the same command goes on from it" if path.exists() else ""
        raise RtxError(f"{os.path.relpath(path)} cannot be written ({error}); make room{advice}.") from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever is wrong with what a checkpoint holds ends in one sentence."""
    try:
        yield
    except (OSError, SafetensorError, LookupError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise RtxError(f"{os.path.relpath(path)} is damaged or of another run ({reason}); delete it.") from error


def load(path: Path, model: nn.Module, optimizer: Optimizer) -> tuple[dict[str, Tensor], dict] | None:
    """Put the saved state back into model, optimizer and generators; gives (best weights, the JSON state), None where
    there is no file.  One that cannot be read, or is of another model, is an error, and stays."""
    if not path.exists():
        return None
    groups: dict[str, dict] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
    moments: dict[int, dict] = {}
    with readable(path):
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            for key in file.keys():
                group, name = key.split("/", 1)
                groups[group][name] = file.get_tensor(key)
        for name, tensor in groups["optimizer"].items():
            index, key = name.split("/")
            moments.setdefault(int(index), {})[key] = tensor
        model.load_state_dict(groups["model"])
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
        torch.set_rng_state(groups["random"]["cpu"])
        if "cuda" in groups["random"] and torch.cuda.is_available():
            torch.cuda.set_rng_state(groups["random"]["cuda"])
    device = next(model.parameters()).device
    return {name: tensor.to(device) for name, tensor in groups["best"].items()}, state
