"""Trained encoders in other number formats.

fp32, bf16         all weights and arithmetic in that format; fp32 is as trained
int8               torch's dynamic quantization: the weight of every linear map as int8, one scale a row; its input as
                   int8, one scale a batch, found when it arrives; embeddings and norms stay fp32

Measured on the CPU, where torch has int8 kernels; one without 16-bit products takes minutes for bf16.
"""

import io
import warnings
from contextlib import nullcontext
from copy import deepcopy
from functools import partial

import torch
from torch import nn
from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

FORMATS = ("fp32", "bf16", "int8")


def converted(model: nn.Module, number_format: str) -> nn.Module:
    """A copy of the model in this format, in evaluation mode; no row is left out: int8 cannot be sliced."""
    model = deepcopy(model).eval().to(torch.bfloat16 if number_format == "bf16" else torch.float32)
    with warnings.catch_warnings():  # torch announces that this moves to torchao; the locked torch has it
        warnings.simplefilter("ignore")
        if number_format == "int8":
            model = quantize_dynamic(model, {nn.Linear: per_channel_dynamic_qconfig})
    model.forward = partial(model.forward, rows_only=False)
    return model


def stored_mb(model: nn.Module) -> float:
    """Size of the serialized weights, in MB of 2²⁰ bytes."""
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.tell() / 2**20


def of_run(record, study) -> list[tuple]:
    """The run's model in every format."""
    model, results = study.trained(record).cpu(), []
    for name in FORMATS:
        variant = converted(model, name)
        test, predictions = study.task.test(variant, torch.device("cpu"), nullcontext())
        results.append(({"suffix": [name], "format": name, "size_mb": stored_mb(variant), "test": test}, predictions))
    return results
