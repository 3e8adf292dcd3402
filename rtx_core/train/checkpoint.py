"""A run's whole state in one safetensors file, so that a killed run goes on where it was; the one before it is kept as well.

A new file takes the name of the old one only when it is complete, so a kill leaves a whole checkpoint at every moment.  A file
that the disk spoiled later is told by its checksum, and the one before is used.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.build import apart
from rtx_core.train.distributed import ranks

VERSION = 1  # of the layout below; a file of another one is not read


def previous(path: Path) -> Path:
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def checksum(tensors: dict[str, Tensor], state: str) -> str:
    """SHA-256 of everything in the file."""
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def save(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, best: dict[str, Tensor], state: dict
) -> None:
    """Weights, optimizer moments, best weights and random states as tensors; the rest as JSON in the header.

    Weights that are no numbers any more are refused, so that what is kept is from before they went astray.
    """
    if not all(torch.isfinite(weights).all() for weights in model.parameters()):
        raise RtxError(
            "Training diverged: the weights are no longer finite; lower learning_rate (the last checkpoint is from before)."
        )
    tensors = {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best/{k}": v for k, v in best.items()}
    for i, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{i}/{k}": v for k, v in moments.items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    tensors, text = apart(tensors), json.dumps(state)
    about = {"version": str(VERSION), "state": text, "sha256": checksum(tensors, text)}
    temporary = path.with_name(f".{path.name}.partial")  # all that a kill leaves; the next save overwrites it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, temporary, metadata=about)
        if path.exists():
            os.replace(path, previous(path))
        os.replace(temporary, path)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        what = (
            f"The checkpoint {path.name} cannot be written ({error}); make room or make its folder writable"
        )
        if path.exists() or previous(path).exists():
            what += "; the last one is whole, and the same command goes on from it"
        raise RtxError(what + ".") from error


def load(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, say: Callable[[str], None] = print
) -> tuple[dict[str, Tensor], dict] | None:
    """Put the saved state back into model, optimizer and generators; returns (best weights, the JSON state), or None if none is
    there.
    """
    file = ranks().broadcast(lambda: _sound(path, say))  # one process looks, and all read what it found
    if file is None:
        return None
    try:
        tensors, state = _read(file)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RtxError(
            f"The checkpoint {file.name} cannot be read ({error}); processes that train together need one folder for it."
        ) from error
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
        raise RtxError(
            f"The checkpoint {file.name} is of another model ({reason}); delete it to start that run anew."
        ) from error
    torch.set_rng_state(groups["random"]["cpu"])
    if "cuda" in groups["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(groups["random"]["cuda"])
    device = next(model.parameters()).device
    return {name: tensor.to(device) for name, tensor in groups["best"].items()}, state


def _sound(path: Path, say: Callable[[str], None]) -> Path | None:
    """The newest checkpoint that is whole, None where there is none; a damaged one gives its name to the one before."""
    there = [p for p in (path, previous(path)) if p.exists()]
    damage = []
    for file in there:
        try:
            _read(file)
        except OSError as error:
            raise RtxError(
                f"The checkpoint {file.name} cannot be read ({error}); make it readable, and the same command goes on."
            ) from error
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            damage.append(f"{file.name}: {error}")
            left = "the one before it is used" if file != there[-1] else "there is no other"
            say(f"the checkpoint {file.name} is damaged ({error}); {left}")
            continue
        if file != path:
            os.replace(file, path)  # what is damaged must not become the one before the next
        return path
    if damage:
        raise RtxError(
            f"No checkpoint of this run can be read ({'; '.join(damage)}); delete them to start the run anew."
        )
    return None


def _read(file: Path) -> tuple[dict[str, Tensor], dict]:
    with safe_open(file, framework="pt") as opened:
        about = opened.metadata()
        tensors = {key: opened.get_tensor(key) for key in opened.keys()}
    if about.get("version") != str(VERSION):
        raise ValueError(f"it is of version {about.get('version', 0)}, and this code reads version {VERSION}")
    if checksum(tensors, about["state"]) != about["sha256"]:
        raise ValueError("its checksum does not fit")
    return tensors, json.loads(about["state"])


def discard(path: Path) -> None:
    """Of a run that is recorded."""
    for file in (path, previous(path)):
        file.unlink(missing_ok=True)
