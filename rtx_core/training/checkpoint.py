"""A run's whole state in one safetensors file, replaced atomically, so that a killed run goes on where it was."""

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from rtx_core.errors import RtxError


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: dict[str, Tensor], state: dict) -> None:
    """Weights, optimizer moments, best weights and random states as tensors; the rest as JSON in the header."""
    tensors = {f"model/{k}": v for k, v in model.state_dict().items()} | {f"best/{k}": v for k, v in best.items()}
    for i, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{i}/{k}": v for k, v in moments.items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.partial")  # a kill leaves at most this one, which the next save overwrites
    save_file({k: v.contiguous() for k, v in tensors.items()}, temporary, metadata={"state": json.dumps(state)})
    os.replace(temporary, path)


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict]:
    """Put the saved state back into model, optimizer and generators; returns (best weights, the JSON state)."""
    try:
        with safe_open(path, framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RtxError(f"The checkpoint {path.name} cannot be read ({error}); delete it to start that run anew.") from error
    groups: dict[str, dict] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
    for key, tensor in tensors.items():
        group, name = key.split("/", 1)
        groups[group][name] = tensor
    moments: dict[int, dict] = {}
    for name, tensor in groups["optimizer"].items():
        index, key = name.split("/")
        moments.setdefault(int(index), {})[key] = tensor
    try:
        model.load_state_dict(groups["model"])
        optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise RtxError(f"The checkpoint {path.name} is of another model ({reason}); delete it to start that run anew.") from error
    torch.set_rng_state(groups["random"]["cpu"])
    if "cuda" in groups["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(groups["random"]["cuda"])
    device = next(model.parameters()).device
    return {name: tensor.to(device) for name, tensor in groups["best"].items()}, state
