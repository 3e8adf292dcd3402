"""The layers of a decoder, each compiled as a function of its own: for training on a CPU.

A whole looped model takes minutes to compile, and gains nothing: each pass is another part of one long function.  One
layer takes half a minute, is kept by torch from run to run, and serves every pass and every layer of its size.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.layers import Blocks


def compile_layers(model: nn.Module) -> None:
    """Make training steps run compiled layers; without gradients, as in a test, they run as written, since there the
    shapes are others."""
    layers = [layer for part in model.modules() if isinstance(part, Blocks) for layer in part]
    if not layers or hasattr(model, "classify"):
        raise RtxError(f"compile='layers' got a model {type(model).__name__}; expected a decoder. Leave out compile.")
    for layer in layers:
        layer.forward = compiled_in_training(layer.forward)


def compiled_in_training(written: Callable[..., Tensor]) -> Callable[..., Tensor]:
    compiled = torch.compile(written, dynamic=False)

    def forward(*arguments: Any) -> Tensor:
        return (compiled if torch.is_grad_enabled() else written)(*arguments)

    return forward
