"""`build_model(name, **overrides)`, and one call each to save and load a model."""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from rtx_core.errors import RtxError, unknown
from rtx_core.models.control import Control, ControlConfig
from rtx_core.models.encoder import Encoder, EncoderConfig
from rtx_core.models.frailt import FraiLT, FraiLTConfig
from rtx_core.models.gpt import GPT, GPTConfig
from rtx_core.models.kausik import Kausik, KausikConfig
from rtx_core.models.relaxed import Relaxed, RelaxedConfig
from rtx_core.models.three_part import ThreePart, ThreePartConfig
from rtx_core.paths import write_atomically

_RECURRENT = EncoderConfig(hidden_size=256, num_layers=3, num_passes=2, num_heads=4, intermediate_size=1024)

# name -> (class, config).  A new architecture is one file beside this one and one line here.
MODELS: dict[str, tuple[type[nn.Module], EncoderConfig]] = {
    "baseline": (Encoder, EncoderConfig()),
    "recurrent": (Encoder, _RECURRENT),
    "recurrent-wide": (Encoder, replace(_RECURRENT, hidden_size=384, num_heads=6, intermediate_size=1536)),
    "gpt": (GPT, GPTConfig()),
    "kausik": (Kausik, KausikConfig()),
    "control": (Control, ControlConfig()),
    "frailt": (FraiLT, FraiLTConfig()),
    "three-part": (ThreePart, ThreePartConfig()),
    "relaxed": (Relaxed, RelaxedConfig()),
}


def model_config(name: str, **overrides) -> EncoderConfig:
    """The named configuration with some fields replaced."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    default = MODELS[name][1]
    for field in overrides:
        if field not in (known := [f.name for f in fields(default)]):
            raise unknown(f"setting of model {name!r}:", field, known)
    return replace(default, **overrides)


def build_model(name: str, seed: int | None = None, **overrides) -> nn.Module:
    """A freshly initialised model; overrides are fields of its config.

    `seed` fixes the initialisation and leaves torch's global generator as it was.
    """
    config = model_config(name, **overrides)
    if seed is None:
        return MODELS[name][0](config)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone: that is where weights are drawn
        return MODELS[name][0](config)


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Trainable parameters: all of them, and those outside the vocabulary's embedding table."""
    total = sum(p.numel() for p in model.parameters())
    return {"total": total, "non_embedding": total - model.word.weight.numel()}


def save_model(model: nn.Module, name: str, path: Path | str) -> None:
    """Weights as one safetensors file, with the model's name and config as JSON in its header."""
    header = {"model": name, "config": json.dumps(asdict(model.config))}
    write_atomically(Path(path), save({k: v.contiguous() for k, v in model.state_dict().items()}, metadata=header))


def load_model(path: Path | str, device: str = "cpu") -> nn.Module:
    """The model that `save_model` wrote, in evaluation mode."""
    try:
        with safe_open(path, framework="pt", device=device) as file:
            header = file.metadata() or {}
            weights = {key: file.get_tensor(key) for key in file.keys()}
        model = build_model(header["model"], seed=0, **json.loads(header["config"]))  # a seed, so as not to move the caller's
        model.load_state_dict(weights)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise RtxError(f"{path} holds no model that this code can read ({reason}); save it anew with save_model.") from error
    return model.to(device).eval()
