"""Models by name: build, count, save and load them."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.registry import MODELS, config_of, find
from rtx_core.paths import write_atomically


def build_model(name: str, seed: int | None = None, **overrides: object) -> nn.Module:
    """A freshly initialised model; overrides are fields of its config.

    `seed` fixes the initialisation and leaves torch's global generator as it was.
    """
    config = config_of(name, **overrides)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(seed)  # the CPU's alone: that is where weights are drawn
        return find(name).cls(config)


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Trainable parameters: all of them, and those outside the vocabulary's embedding table."""
    total = sum(p.numel() for p in model.parameters())
    word = getattr(getattr(model, "word", None), "weight", None)
    return {"total": total, "non_embedding": total - (word.numel() if word is not None else 0)}


def save_model(model: nn.Module, name: str, path: Path | str, **about: object) -> None:
    """Weights as one safetensors file; its header has the model's name, and its config and `about` as JSON."""
    header = {"model": name, "config": model.config.model_dump_json(), "about": json.dumps(about)}
    write_atomically(Path(path), save(untied(model.state_dict()), metadata=header))


def untied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as a safetensors file takes them: contiguous, and copied where they share memory with one before."""
    separate, seen = {}, set()
    for name, value in tensors.items():
        place = value.untyped_storage().data_ptr()
        separate[name] = value.clone(memory_format=torch.contiguous_format) if place in seen else value.contiguous()
        seen.add(place)
    return separate


def load_model(path: Path | str, device: str = "cpu") -> nn.Module:
    """The model that `save_model` wrote, in evaluation mode; `model.about` holds what was said of it."""
    header = {}
    try:
        with safe_open(path, framework="pt", device=device) as file:
            header = file.metadata() or {}
            weights = {key: file.get_tensor(key) for key in file.keys()}
        # with a seed, so as not to move the caller's
        model = build_model(header["model"], seed=0, **json.loads(header["config"]))
        model.load_state_dict(weights)
        model.about = json.loads(header.get("about", "{}"))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if "model" in header and header["model"] not in MODELS:
            raise RtxError(f"{path} is of {header['model']!r}, which is not registered here: run what does.") from None
        reason = str(error).partition("\n")[0]
        raise RtxError(f"{path} holds no model that this code can read ({reason}); train or export it anew.") from error
    return model.to(device).eval()
