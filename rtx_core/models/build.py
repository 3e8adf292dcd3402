"""Models by name: build, count, save and load them."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from rtx_core.errors import RtxError, reason
from rtx_core.models.registry import MODELS, config_of, find
from rtx_core.paths import write_atomically
from rtx_core.settings import Settings


def build_model(name: str, seed: int | None = None, **overrides: object) -> nn.Module:
    """A freshly initialised model; overrides are fields of its config.

    `seed` fixes the initialisation and leaves torch's global generator as it was.
    """
    config, registered = config_of(name, **overrides), find(name)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(seed)  # the CPU's alone: that is where weights are drawn
        try:
            model = registered.cls(config)
        except Exception as error:
            if isinstance(error, RtxError) or isinstance(registered.kind, str):
                raise
            raise RtxError(f"{registered.cls.__name__}(config) cannot be built ({reason(error)}).") from error
    if not isinstance(model, nn.Module) or not isinstance(getattr(model, "config", None), Settings):
        expected = "a torch.nn.Module that keeps the config it is built with as self.config"
        raise RtxError(f"{registered.cls.__name__}, registered as {name!r}, is no usable model; expected {expected}.")
    return model


def settings_in(model: nn.Module) -> Settings:
    """What the model was built with, which it keeps as `config`."""
    config = getattr(model, "config", None)
    if not isinstance(config, Settings):
        raise RtxError(f"{type(model).__name__} keeps no settings as self.config; give it those it is built with.")
    return config


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Parameters: all of them, those outside the vocabulary's embedding table, and those that are `frozen`, if any."""
    total = sum(p.numel() for p in model.parameters())
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    word = getattr(getattr(model, "word", None), "weight", None)
    outside = total - (word.numel() if word is not None else 0)
    return {"total": total, "non_embedding": outside} | ({"frozen": frozen} if frozen else {})


def save_model(model: nn.Module, name: str, path: Path | str, **about: object) -> None:
    """Weights as one safetensors file; its header has the model's name, and its config and `about` as JSON."""
    header = {"model": name, "config": settings_in(model).model_dump_json(), "about": json.dumps(about)}
    write_atomically(Path(path), save(untied(model.state_dict()), metadata=header))


def untied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as a safetensors file takes them: contiguous, and copied where they share memory with one before."""
    separate, storages = {}, set()
    for name, value in tensors.items():
        storage = value.untyped_storage().data_ptr()
        is_shared = storage in storages
        separate[name] = value.clone(memory_format=torch.contiguous_format) if is_shared else value.contiguous()
        storages.add(storage)
    return separate


def set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a model these weights; a ValueError unless their names, shapes and types are its own, and all numbers."""
    expected, parameters = model.state_dict(), dict(model.named_parameters(remove_duplicate=False))
    if others := sorted(expected.keys() ^ weights.keys()):
        raise ValueError(f"{others[0]!r} is {'missing' if others[0] in expected else 'no weight of this model'}")
    for name, value in weights.items():
        kinds = [f"{x.dtype} of shape {tuple(x.shape)}" for x in (value, expected[name])]
        if kinds[0] != kinds[1]:
            raise ValueError(f"{name} is {kinds[0]} instead of {kinds[1]}")
        if (~value.isfinite() if name in parameters else value.isnan()).any():  # a mask may hold infinities
            raise ValueError(f"{name} holds a number that is not finite")
    model.load_state_dict(weights)


def load_model(path: Path | str, device: str = "cpu") -> nn.Module:
    """The model that `save_model` wrote, in evaluation mode; `model.about` holds what was said of it."""
    header = {}
    try:
        with safe_open(path, framework="pt", device=device) as file:
            header = file.metadata() or {}
            weights = {key: file.get_tensor(key) for key in file.keys()}
        # with a seed, so as not to move the caller's
        model = build_model(header["model"], seed=0, **json.loads(header["config"]))
        set_weights(model, weights)
        model.about = json.loads(header.get("about", "{}"))
        if not isinstance(model.about, dict):
            raise ValueError(f"its header is about {model.about!r:.40}")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if "model" in header and header["model"] not in MODELS:
            raise RtxError(f"{path} is of {header['model']!r}, which is not registered here: run what does.") from None
        reason = str(error).partition("\n")[0]
        raise RtxError(f"{path} holds no model that this code can read ({reason}); train or export it anew.") from error
    return model.to(device).eval()
