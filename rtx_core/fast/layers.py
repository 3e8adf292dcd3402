"""The layers of a decoder, each compiled as a function of its own: for training on a CPU.

A whole looped model takes minutes to compile and gains nothing, since every pass is another part of one long function.
One layer takes half a minute, which torch keeps from run to run, and serves all passes and all layers of its size.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rtx_core.errors import RtxError
from rtx_core.models.layers import Blocks, EncoderBlock


def compile_layers(model: nn.Module, way: str = "layers") -> str:
    """Make training steps run compiled layers, if that is the way to compile; gives what is left to the trainer.

    Without gradients, as in a test, the layers run as written, since there batches have other shapes.
    """
    if way != "layers":
        return way
    layers = [layer for part in model.modules() if isinstance(part, Blocks) for layer in part]
    if not layers or any(isinstance(layer, EncoderBlock) for layer in layers):
        raise RtxError(f"compile='layers' got a model {type(model).__name__}; expected a looped decoder or a GPT.")
    for layer in layers:
        layer.forward = compiled_in_training(layer.forward)
    return ""


def compiled_in_training(written: Callable[..., Tensor]) -> Callable[..., Tensor]:
    compiled = torch.compile(written, dynamic=False)

    def forward(*arguments: Any) -> Tensor:
        return (compiled if torch.is_grad_enabled() else written)(*arguments)

    return forward
